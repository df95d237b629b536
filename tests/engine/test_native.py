"""Native code against XLA: the same states to round-off, the same rows, reports and failures."""

import warnings

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from catalogue_by_size import sampled
from noslip import SolveFailed, System, integrators, simulate, systems
from noslip.engine import kept, shelf
from noslip.engine.backends import improved, native
from noslip.integrators.discrete_gradient import DiscreteGradient
from noslip.integrators.runge_kutta4 import RungeKutta4
from noslip.integrators.semi_implicit_dla import SemiImplicitDLA
from noslip.integrators.solve import Status
from noslip.run import one_native, programs
from noslip.systems import gearbox, nonholonomic_particle

pytestmark = pytest.mark.native

TELLING = {
    ("DiscreteGradient", "gearbox"),
    ("DiscreteLagrangeDAlembert", "appell_hamel_spring"),
    ("GeneratingFunction", "gearbox"),
    ("RungeKutta4", "turntable_ball"),
    ("VelocityNonholonomic", "chaplygin_sleigh"),
}
SAMPLED = sampled(systems.discover())
CASES = [
    pytest.param(
        name, system, marks=() if (name, system) in TELLING else pytest.mark.all_pairs, id=f"{name}-{system}"
    )
    for name, cls in integrators.discover().items()
    if not cls.host_driven
    for system in SAMPLED
]


@pytest.mark.parametrize(("method", "name"), CASES)
def test_native_and_xla_agree_to_round_off(method, name):
    module, integrator = systems.find(name), integrators.find(method)()
    system = module.system()
    if reason := integrator.applies_to(system):
        pytest.skip(reason)
    q0, v0 = module.typical_state()[:2]
    runs = [
        simulate(system, integrator, q0, v0, step_size=0.01, steps=5, backend=b) for b in ("native", "xla")
    ]
    assert [run.backend for run in runs] == ["native", "xla"]
    for field in ("q", "v", "energy"):
        a, b = (getattr(run, field) for run in runs)
        scale = 1 + np.max(np.abs(b))
        assert np.max(np.abs(a - b)) <= 1e-13 * scale, field
    scale = 1 + np.max(np.abs(runs[1].multipliers))
    assert np.max(np.abs(runs[0].multipliers - runs[1].multipliers)) <= 1e-10 * scale
    assert abs(runs[0].report.iterations.max() - runs[1].report.iterations.max()) <= 3


@pytest.mark.thorough
@pytest.mark.parametrize("every", [3, 1, 1000])
def test_rows_and_reports_are_those_of_xla(every):
    system, (q0, v0) = gearbox.system(), gearbox.typical_state()
    runs = [
        simulate(system, SemiImplicitDLA(), q0, v0, step_size=0.1, steps=20, save_every=every, backend=b)
        for b in ("native", "xla")
    ]
    np.testing.assert_array_equal(runs[0].t, runs[1].t)
    np.testing.assert_array_equal(runs[0].report.steps, runs[1].report.steps)
    np.testing.assert_allclose(runs[0].q, runs[1].q, rtol=0, atol=1e-13)


@pytest.mark.thorough
@pytest.mark.parametrize("every", [7, 1])
def test_a_failed_step_is_reported_alike(every):
    system, (q0, v0) = gearbox.system(), gearbox.typical_state()
    runs = [
        simulate(
            system,
            SemiImplicitDLA(),
            q0,
            v0,
            step_size=3.0,
            steps=50,
            save_every=every,
            backend=b,
            throw=False,
        )
        for b in ("native", "xla")
    ]
    assert not runs[0].success
    assert len(runs[0].t) > 1
    for field in ("status", "failed_step", "steps"):
        np.testing.assert_array_equal(getattr(runs[0].report, field), getattr(runs[1].report, field))
    np.testing.assert_array_equal(runs[0].t, runs[1].t)
    with pytest.raises(SolveFailed, match=r"step 8 of 50.*the energy, which the motion conserves, has grown"):
        simulate(system, SemiImplicitDLA(), q0, v0, step_size=3.0, steps=50, backend="native")


@pytest.mark.parametrize("method", [RungeKutta4(), SemiImplicitDLA(), DiscreteGradient()], ids=repr)
@pytest.mark.parametrize("every", [1, 4])
def test_a_failed_step_leaves_the_bits_of_the_state_before_it(method, every):
    system = System(
        lambda q, v, p: 0.5 * v @ v - 0.5 * q[0] ** 2 - 0.25 * q[1] ** 4,
        one_forms=lambda q, p: jnp.array([[-q[1], 0.0, 1.0]]),
        coordinates=("x", "y", "z"),
        force=lambda q, v, t, p: jnp.where(t > 0.62, jnp.nan, 0.1) * v,
    )
    q0, v0 = np.array([0.2, 0.5, -0.1]), np.array([0.8, 0.6, 0.4])
    how = {"step_size": 0.1, "save_every": every, "backend": "native"}
    failed = simulate(system, method, q0, v0, steps=20, throw=False, **how)
    k = int(failed.report.failed_step[-1])
    before = simulate(system, method, q0, v0, steps=k - 1, **how)
    assert 5 <= k <= 7
    assert failed.report.status[-1] == Status.NOT_FINITE
    for name in ("t", "q", "v", "energy", "multipliers"):
        assert getattr(failed, name)[-1].tobytes() == getattr(before, name)[-1].tobytes(), name


def test_a_run_does_not_depend_on_how_it_is_cut(monkeypatch):
    system, (q0, v0) = gearbox.system(), gearbox.typical_state()
    whole = simulate(system, SemiImplicitDLA(), q0, v0, step_size=0.1, steps=300)
    monkeypatch.setattr(one_native, "CAPACITY", 7)
    cut = simulate(system, SemiImplicitDLA(), q0, v0, step_size=0.1, steps=300)
    np.testing.assert_array_equal(whole.q, cut.q)


def test_auto_is_native_and_says_so_and_compiles_once(monkeypatch):
    system, (q0, v0) = nonholonomic_particle.system(), nonholonomic_particle.typical_state()
    first = simulate(system, RungeKutta4(), q0, v0, step_size=0.1, steps=3)
    assert first.backend == "native"

    def no_more(self, text):
        raise AssertionError("compiled again")

    monkeypatch.setattr(native.Module, "__init__", no_more)
    other = nonholonomic_particle.system().with_parameters({})
    simulate(other, RungeKutta4(), q0, v0, step_size=0.05, steps=30, save_every=2)


@pytest.mark.slow
def test_gradients_go_through_xla():
    system, (q0, v0) = gearbox.system(), gearbox.typical_state()

    def last(q0):
        run = simulate(system, RungeKutta4(), q0, v0, step_size=0.1, steps=2)
        assert run.backend == "xla"
        return run.q[-1, 0]

    assert np.all(np.isfinite(jax.grad(last)(q0)))
    with pytest.raises(ValueError, match="'native' cannot run traced"):
        jax.grad(
            lambda q: simulate(system, RungeKutta4(), q, v0, step_size=0.1, steps=2, backend="native").q[
                -1, 0
            ]
        )(q0)


STATE = [0.1, 0.2, 0.3], [1.0, 0.5, 0.2]


def forms(q, p):
    return jnp.array([[-q[1], 0.0, 1.0]])


def sorting_system():
    """A Lagrangian with an operation that has no scalar form."""

    def lagrangian(q, v, p):
        return 0.5 * jnp.dot(v, v) - 0.1 * jnp.sort(q**2)[-1]

    return System(lagrangian, one_forms=forms, coordinates=("x", "y", "z"))


def test_an_unknown_operation_names_itself_and_xla_takes_over():
    system = sorting_system()
    with pytest.warns(UserWarning, match="the operation 'sort' has no scalar form; XLA runs this instead"):
        run = simulate(system, RungeKutta4(), *STATE, step_size=0.1, steps=2)
    assert run.backend == "xla"
    with pytest.raises(ValueError, match="backend 'native' cannot run this: the operation 'sort'"):
        simulate(system, RungeKutta4(), *STATE, step_size=0.1, steps=2, backend="native")


def test_a_large_system_is_left_to_xla_without_a_word(monkeypatch):
    monkeypatch.setattr(programs, "LARGEST", 2)
    monkeypatch.setattr(programs, "FEW", 1)
    system = System(lambda q, v, p: 0.5 * jnp.dot(v, v), one_forms=forms, coordinates=("x", "y", "z"))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        run = simulate(system, RungeKutta4(), *STATE, step_size=0.05, steps=2)
    assert run.backend == "xla"


@pytest.mark.slow
def test_a_dense_system_of_twenty_coordinates_runs_natively():
    n, m, rng = 20, 5, np.random.default_rng(0)
    A, B, F, G = (rng.normal(size=shape) / n for shape in ((n, n), (n, n), (m, n), (m, n, n)))

    def lagrangian(q, v, p):
        w = v * (1 + 0.1 * jnp.sin(B @ q))
        return 0.5 * w @ (A @ A.T + np.eye(n)) @ w - 0.5 * q @ q - jnp.sum(jnp.cos(n * A @ q)) / n

    def forms(q, p):
        return n * F + jnp.tensordot(G, jnp.sin(q), 1)

    system = System(lagrangian, one_forms=forms, coordinates=[f"q{k}" for k in range(n)])
    q0 = 0.3 * rng.normal(size=n)
    v0 = system.project_velocity(q0, 0.3 * rng.normal(size=n))
    run = simulate(system, DiscreteGradient(), q0, v0, step_size=0.01, steps=200, save_every=20)
    assert run.backend == "native"
    np.testing.assert_allclose(run.energy, run.energy[0], rtol=1e-13)
    assert np.max(np.abs(run.constraint_residual)) < 1e-13


def test_without_llvmlite_there_is_one_sentence(monkeypatch):
    monkeypatch.setattr(programs, "_has_llvmlite", lambda: False)
    system, (q0, v0) = gearbox.system(), gearbox.typical_state()
    with pytest.raises(ValueError, match="needs the package llvmlite"):
        simulate(system, RungeKutta4(), q0, v0, step_size=0.05, steps=2, backend="native")


def test_optimisations_change_no_bit(monkeypatch, tmp_path):
    monkeypatch.setattr(improved, "PATIENCE", -1.0)  # at once
    monkeypatch.setenv(shelf.VARIABLE, str(tmp_path))  # one translation; the code of each level is its own
    q0, v0 = gearbox.typical_state()
    runs = []
    for level in (1, 0, 3):
        monkeypatch.setattr(native, "OPTIMIZE", level)
        kept.forget()
        runs.append(simulate(gearbox.system(), DiscreteGradient(), q0, v0, step_size=0.1, steps=300))
    kept.forget()
    assert runs[0] == runs[1] == runs[2]


def test_a_first_integral_without_scalar_form_does_not_cost_native_code():
    def integral(q, v, p):
        return jax.scipy.special.gammaln(2.0 + v[1] ** 2)

    given = gearbox.system()
    system = System(
        given.lagrangian,
        coordinates=given.coordinates,
        one_forms=given.one_forms,
        parameters=given.parameters,
        first_integrals={"gamma": integral, "square": lambda q, v, p: v[2] ** 2},
    )
    run = simulate(system, RungeKutta4(), *gearbox.typical_state(), step_size=0.1, steps=5)
    assert run.backend == "native"
    assert list(run.first_integrals) == ["gamma", "square"]
    expected = jax.scipy.special.gammaln(2.0 + run.v[:, 1] ** 2)
    np.testing.assert_allclose(run.first_integrals["gamma"], expected, rtol=1e-14)
    np.testing.assert_allclose(run.first_integrals["square"], run.v[:, 2] ** 2, rtol=1e-14)
