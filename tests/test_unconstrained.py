"""Systems without constraints, m = 0, and all that can be done with them."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.optimize import brentq
from typer.testing import CliRunner

import noslip
from models import double_pendulum, double_pendulum_lagrangian, kepler
from noslip import System, ensemble, integrators, sampling, simulate
from noslip.analysis import (
    constraint_error,
    deformed_constraint_error,
    energy_error,
    measured_order,
    nonholonomic_momentum,
    reversibility_defect,
)
from noslip.analysis.canonical_form import canonical_form_defect
from noslip.cli import app
from noslip.integrators import (
    Composition,
    DiscreteGradient,
    DiscreteLagrangeDAlembert,
    EnergyCollocation,
    GeneratingFunction,
    HamiltonizedDEL,
    LobattoSpark,
    Projected,
    ReferenceFlow,
    SemiImplicitDLA,
    VelocityNonholonomic,
)
from noslip.integrators.families.chaplygin import OnBase
from noslip.testing import check_system

EVERY = [v for c in integrators.discover().values() for v in c.variants() if not v.exact]
ON_Q = [v for v in EVERY if not isinstance(v, OnBase)]
QUICK = [
    DiscreteGradient(),
    VelocityNonholonomic(),
    LobattoSpark(3),
]


def closed_form(system, q, v, t):
    """(r, angle, their velocities) on Kepler's ellipse, from the equation of the eccentric anomaly."""
    m, k = system.parameters["m"], system.parameters["k"]
    E, h = 0.5 * m * (v[0] ** 2 + (q[0] * v[1]) ** 2) - k / q[0], q[0] ** 2 * v[1]
    a = -k / (2 * E)
    e, n = np.sqrt(1 - m * h**2 / (k * a)), np.sqrt(k / m / a**3)

    def true_anomaly(u):
        return u + 2 * np.arctan2(e * np.sin(u), 1 + np.sqrt(1 - e**2) - e * np.cos(u))

    u0 = np.arctan2(q[0] * v[0] / (n * a**2), 1 - q[0] / a)
    mean = u0 - e * np.sin(u0) + n * t
    u = brentq(lambda u: u - e * np.sin(u) - mean, mean - 2, mean + 2, xtol=1e-15)
    r = a * (1 - e * np.cos(u))
    return np.array([r, q[1] + true_anomaly(u) - true_anomaly(u0)]), np.array(
        [n * a**2 * e * np.sin(u) / r, h / r**2]
    )


# ---- what a system without constraints is ------------------------------------------------------------
def test_its_forms_are_empty_and_its_motion_is_that_of_euler_and_lagrange():
    system, q, v = double_pendulum()
    assert system.m == 0
    assert system.kind == "linear"

    @jax.jit
    def all_of(q, v):
        assert system.mu(q, v).shape == (0, 2)
        assert system.phi(q, v).shape == (0,)
        assert system.multipliers(q, v).shape == (0,)
        dp = jax.jvp(system.momentum, (q, v), (v, system.acceleration(q, v)))[1]
        return dp, system.dL_dq(q, v), system.project_velocity(q, v), system.projectors(q)

    dp, dL_dq, projected, (P, Q) = jax.tree.map(np.asarray, all_of(q, v))
    assert_allclose(dp, dL_dq, rtol=1e-13)
    assert_allclose(projected, v, rtol=0, atol=0)
    assert np.array_equal(P, np.eye(2))
    assert not np.any(Q)
    assert system.multipliers(q, v).shape == (0,)  # of numbers too


def test_one_forms_without_rows_are_no_constraints():
    system, q, v = double_pendulum()
    empty = System(
        double_pendulum_lagrangian,
        one_forms=lambda q, p: jnp.zeros((0, 2)),
        coordinates=system.coordinates,
        parameters=system.parameters,
    )
    assert empty.m == 0
    assert_allclose(empty.acceleration(q, v), system.acceleration(q, v), rtol=1e-15)


def test_a_drift_needs_one_forms():
    with pytest.raises(ValueError, match="`drift` must come with `one_forms`, but neither"):
        System(double_pendulum_lagrangian, drift=lambda q, p: jnp.zeros(0), coordinates=("a", "b"))


def test_the_checks_for_systems_pass_with_the_closed_form():
    system, q, v = kepler()
    motion = simulate(system, ReferenceFlow(), q, v, step_size=0.5, steps=8)
    for k in (1, 5, 8):
        there = closed_form(system, np.asarray(q), np.asarray(v), motion.t[k])
        assert_allclose(motion.q[k], there[0], rtol=0, atol=1e-12)
        assert_allclose(motion.v[k], there[1], rtol=0, atol=1e-12)
    check_system(system, q0=q, v0=v, t_end=1.0)


# ---- methods ------------------------------------------------------------------------------------------
def errors(system, method, q, v, counts, backend):
    """At the run's own last time: some methods choose their steps."""
    found = []
    for steps in counts:
        run = simulate(system, method, q, v, step_size=1.0 / steps, steps=steps, backend=backend)
        assert run.multipliers.shape == (steps + 1, 0) == run.constraint_residual.shape
        end = closed_form(system, np.asarray(q), np.asarray(v), float(run.t[-1]))
        found.append(max(np.max(np.abs(run.q[-1] - end[0])), np.max(np.abs(run.v[-1] - end[1]))))
    return np.array(found)


def order_is_as_promised(method, backend):
    system, q, v = kepler()
    found = errors(system, method, q, v, (40, 80), backend)
    order = 2 if getattr(method, "reading", "") == "projection" else method.order  # with P = 1 no first order
    assert np.log2(found[0] / found[1]) == pytest.approx(order, abs=0.25), found


@pytest.mark.parametrize("method", QUICK, ids=repr)
def test_methods_have_their_order_on_an_ellipse(method):
    order_is_as_promised(method, "native")


def test_the_order_is_that_of_xla_too():
    order_is_as_promised(SemiImplicitDLA(), "xla")


@pytest.mark.slow
@pytest.mark.matrix
@pytest.mark.parametrize("backend", ["native", "xla"])
@pytest.mark.parametrize("method", ON_Q, ids=repr)
def test_every_method_has_its_order_on_both_backends(method, backend):
    order_is_as_promised(method, backend)


@pytest.mark.thorough
@pytest.mark.parametrize("method", [DiscreteGradient(), EnergyCollocation(3)], ids=repr)
def test_the_energy_of_a_double_pendulum_is_kept(method):
    system, q, v = double_pendulum()
    run = simulate(system, method, q, v, step_size=0.05, steps=2000)
    assert np.max(np.abs(energy_error(run))) < 2e-14
    other = simulate(system, SemiImplicitDLA(), q, v, step_size=0.05, steps=2000)
    assert np.max(np.abs(energy_error(other))) > 1e-3


@pytest.mark.slow
def test_compositions_raise_the_order():
    order_is_as_promised(Composition(GeneratingFunction(), "suzuki4"), "native")


def test_projection_keeps_a_first_integral():
    system, q, v = kepler()
    run = simulate(system, Projected(DiscreteGradient()), q, v, step_size=0.05, steps=200)
    momentum = run.first_integrals["angular momentum"]
    assert np.ptp(momentum) < 1e-13
    assert np.max(np.abs(energy_error(run))) < 1e-13


@pytest.mark.thorough
@pytest.mark.parametrize("method", [DiscreteGradient(), SemiImplicitDLA(), GeneratingFunction()], ids=repr)
def test_self_adjoint_methods_go_back_the_way_they_came(method):
    system, q, v = double_pendulum()
    assert reversibility_defect(system, method, q, v, step_size=0.05, steps=40) < 1e-13


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("kept", "not_kept"),
    [
        (GeneratingFunction(alpha=0.3), integrators.RungeKutta4()),
        (LobattoSpark(2), DiscreteGradient()),
    ],
)
def test_methods_from_generating_functions_keep_the_canonical_form(kept, not_kept):
    """For every alpha, LMS section 1.2; RK4 and energy methods do not."""
    system, q, v = double_pendulum()
    assert canonical_form_defect(system, kept, q, v, step_size=0.1) < 1e-14
    assert canonical_form_defect(system, not_kept, q, v, step_size=0.1) > 1e-7


def test_with_constraints_no_canonical_form_is_asked_for():
    particle = noslip.systems.find("nonholonomic_particle")
    system, state = particle.system(), particle.typical_state()
    with pytest.raises(ValueError, match="without constraints only"):
        canonical_form_defect(system, GeneratingFunction(), *state, step_size=0.1)


def test_the_momentum_of_a_cyclic_angle_is_constant():
    """Without constraints the momentum equation is conservation; a method without it misses."""
    system, q, v = kepler()
    kept = simulate(system, GeneratingFunction(alpha=0.0), q, v, step_size=0.05, steps=200)
    found = nonholonomic_momentum(system, GeneratingFunction(alpha=0.0), kept)
    assert np.max(np.abs(found.defect)) < 1e-13
    assert np.ptp(found.values) < 1e-12


@pytest.mark.parametrize("method", [v for v in EVERY if isinstance(v, OnBase)][::3], ids=repr)
def test_methods_on_a_base_say_why_they_cannot(method):
    system, q, v = double_pendulum()
    with pytest.raises(ValueError, match=r"cannot run on this system: .* but there are none"):
        simulate(system, method, q, v, step_size=0.1, steps=1)
    assert HamiltonizedDEL().applies_to(system)


# ---- results ------------------------------------------------------------------------------------------
@pytest.mark.parametrize("suffix", ["nc", "zarr"])
def test_runs_are_saved_and_loaded(tmp_path, suffix):
    system, q, v = double_pendulum()
    store = tmp_path / "run.zarr" if suffix == "zarr" else None
    run = simulate(system, VelocityNonholonomic(), q, v, step_size=0.05, steps=10, store=store)
    if store is None:
        run.save(tmp_path / "run.nc")
    back = noslip.load(tmp_path / f"run.{suffix}")
    assert back.multipliers.shape == (11, 0)
    assert np.array_equal(back.q, run.q)
    assert run.to_xarray().sizes["constraint"] == 0
    assert constraint_error(run) == 0 == deformed_constraint_error(system, DiscreteLagrangeDAlembert(), run)


def test_pictures_say_that_there_are_no_constraints():
    from noslip.plots.trajectory import compare_runs

    system, q, v = double_pendulum()
    run = simulate(system, VelocityNonholonomic(), q, v, step_size=0.05, steps=10)
    for figure in (run.plot(), compare_runs({"one": run, "two": run})):
        said = {text.get_text() for ax in figure.axes for text in ax.texts}
        assert {"no constraints", "no constraints, no multipliers"} <= said


@pytest.mark.parametrize("backend", ["native", "xla"])
def test_members_are_those_of_single_runs(backend):
    system, q, v = double_pendulum()
    q0s = np.asarray(q) + 0.1 * np.arange(3)[:, None]
    many = ensemble(system, VelocityNonholonomic(), q0s, v, step_size=0.05, steps=20, backend=backend)
    assert many.multipliers.shape == (3, 2, 0)
    one = simulate(system, VelocityNonholonomic(), q0s[2], v, step_size=0.05, steps=20)
    assert_allclose(many.q[2, -1], one.q[-1], rtol=0, atol=1e-13)
    assert np.all(many.constraint_residual == 0)


def test_random_states_have_the_asked_for_energy():
    system, q, _ = double_pendulum()
    region = sampling.Box(np.asarray(q) - 0.3, np.asarray(q) + 0.3)
    q0s, v0s = sampling.on_energy_shell(system, 3.0, 50, region=region, seed=1)
    assert_allclose(jax.jit(jax.vmap(system.energy))(q0s, v0s), 3.0, rtol=1e-13)


@pytest.mark.slow
def test_a_run_can_be_differentiated():
    system, q, v = kepler()

    def end(v0):
        return simulate(system, GeneratingFunction(), q, v0, step_size=0.1, steps=5).q[-1, 0]

    d = 1e-5 * np.array([1.0, 0.0])
    assert jax.grad(end)(v)[0] == pytest.approx((end(v + d) - end(v - d)) / 2e-5, rel=1e-7)


def test_the_order_of_no_multipliers_is_not_a_number():
    system, q, v = kepler()
    found = measured_order(system, VelocityNonholonomic(), q, v, t_end=1.0, steps=(20, 40, 80))
    assert found.p == pytest.approx(2, abs=0.15)
    assert np.isnan(found.s)


def test_the_command_line_and_the_report(tmp_path):
    source = tmp_path / "mine.py"
    source.write_text(
        "import jax.numpy as jnp\nfrom noslip import System\n"
        "def lagrangian(q, v, p):\n    return 0.5 * (v[0]**2 + (1 + q[0]**2) * v[1]**2) + jnp.cos(q[1])\n"
        "def system():\n    return System(lagrangian, coordinates=('a', 'b'))\n"
    )
    run = f"run {source}:system -i SemiImplicitDLA --q0 0.5,2 --v0 0.1,0.2 --step-size 0.1 --t-end 1"
    for arguments in (
        [*run.split(), "-o", str(tmp_path / "run.nc")],
        [
            "report",
            str(tmp_path / "run.nc"),
            "--system",
            f"{source}:system",
            "-o",
            str(tmp_path / "run.html"),
        ],
    ):
        result = CliRunner().invoke(app, arguments)
        assert result.exit_code == 0, result.output
        assert arguments[0] == "report" or "no constraints" in result.output
    page = (tmp_path / "run.html").read_text()
    assert "<td>constraints</td><td>none</td>" in page
    assert "phi(q, v) = 0" not in page


def test_a_run_is_not_saved_under_the_name_of_something_else(tmp_path):
    system, q, v = double_pendulum()
    run = simulate(system, VelocityNonholonomic(), q, v, step_size=0.05, steps=10)
    for name in ("run.zarr", "run.csv", "run.png"):
        with pytest.raises(ValueError, match="would be a NetCDF file"):
            run.save(tmp_path / name)
    assert not list(tmp_path.iterdir())
