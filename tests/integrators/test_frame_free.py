"""Energy methods on systems that declare no frame: energy, constraint, order, the way back, units."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from numpy.testing import assert_allclose

from noslip import System, simulate
from noslip.analysis import energy_error, first_integral_errors, measured_order, reversibility_defect
from noslip.integrators.composition import Composition
from noslip.integrators.discrete_gradient import DiscreteGradient
from noslip.integrators.energy_collocation import EnergyCollocation
from noslip.integrators.projected import Projected
from noslip.integrators.solve import LIMIT
from noslip.systems import gearbox, knife_edge, rolling_disk_on_incline, suslov
from noslip.testing import frameless
from noslip.testing.integrators import Case, check_order

GONZALEZ, MEAN = DiscreteGradient(), DiscreteGradient("mean_value")
ISOMETRIC = DiscreteGradient("mean_value", "orthonormal")
SYSTEMS = {
    "bent_blade": frameless.bent_blade,
    "charged_pair": frameless.charged_pair,
    "ball": frameless.ball_in_quaternions,
    "gearbox": lambda: frameless.without_frame(gearbox),
    "disk": lambda: frameless.without_frame(rolling_disk_on_incline),
    "suslov": lambda: frameless.without_frame(suslov),
}
METHODS = [GONZALEZ, MEAN, ISOMETRIC, EnergyCollocation(2), EnergyCollocation(3), Projected()]
QUICK = [(m, "bent_blade") for m in METHODS] + [(m, "charged_pair") for m in (GONZALEZ, EnergyCollocation(2))]
SLOW = [*METHODS, EnergyCollocation(2, "orthonormal")]
REST = [(method, name) for method in SLOW for name in SYSTEMS if (method, name) not in QUICK]
PAIRS = QUICK + [pytest.param(*pair, marks=pytest.mark.slow) for pair in REST]


def largest(x):
    return float(np.max(np.abs(x)))


def turn_time(system, factor):
    """The same motion with time in another unit."""
    return dataclasses.replace(system, lagrangian=lambda q, v, p: system.lagrangian(q, v * factor, p))


@pytest.mark.matrix
@pytest.mark.parametrize(("method", "name"), PAIRS)
def test_order_energy_constraint_and_the_way_back(method, name):
    system, q, v = SYSTEMS[name]()
    check_order(method, Case(name, system, q, v))
    run = simulate(system, method, q, v, step_size=0.05, steps=10_000, save_every=10)
    assert largest(energy_error(run)) < 1e-14
    assert largest(run.constraint_residual) < 1e-14
    assert reversibility_defect(system, method, q, v, step_size=0.05, steps=100) < 1e-13


def test_the_householder_signs_are_memory_and_nothing_else_remembers():
    """The way back differs where a sign has changed, so that no such promise is made."""
    system, q, v = frameless.bent_blade()

    def defect(method, steps):
        return reversibility_defect(system, method, q, v, step_size=0.1, steps=steps)

    remembering = DiscreteGradient(frame="householder")
    assert defect(remembering, 10) < 1e-15
    assert defect(remembering, 45) > 1e-4
    for method in (GONZALEZ, MEAN, ISOMETRIC):
        assert defect(method, 100) < 1e-14
    assert "reversible" not in remembering.preserves
    assert "reversible" not in EnergyCollocation(frame="householder").preserves
    assert ISOMETRIC.preserves == {"reversible", "energy", "constraint"}
    assert GONZALEZ.preserves == ISOMETRIC.preserves | {"holonomic"}
    with pytest.raises(ValueError, match="`base` must be self-adjoint"):
        Composition(remembering)


@pytest.mark.parametrize("base", [GONZALEZ, pytest.param(ISOMETRIC, marks=pytest.mark.slow)])
def test_a_composition_has_order_6(base):
    system, q, v = frameless.bent_blade()
    method = Composition(base, "kahan_li6")
    found = measured_order(system, method, q, v, t_end=4.0, steps=(8, 12, 16))
    assert_allclose(found.global_[:2], 6, atol=0.3)


def test_a_step_that_lands_on_the_singularity_of_the_householder_frame():
    """The blade at the angle at which w~ = 0 after a step: NaN, or lost digits; without a frame, neither."""
    system = knife_edge.system(alpha=0.5)
    for delta in (0.0, 1e-8, 1e-5):
        q = np.array([0.0, 0.0, 3 * np.pi / 2 - 1.8 + delta])
        v = np.asarray(system.project_velocity(q, [0.0, 0.0, 0.8]))
        run = simulate(system, DiscreteGradient(frame="none"), q, v, step_size=0.75, steps=20)
        assert largest(energy_error(run)) < 2e-15
        assert largest(run.constraint_residual) < 1e-15


# ---- units --------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    "method", [GONZALEZ, *(pytest.param(m, marks=pytest.mark.slow) for m in METHODS[1:] if m.order < 6)]
)
def test_no_unit_matters(method):
    """L a thousand times larger, time in hundredths, each coordinate in its own unit: the same motion."""
    pair, q, v = (x if isinstance(x, System) else np.asarray(x) for x in frameless.charged_pair())
    system = dataclasses.replace(
        pair,
        lagrangian=lambda q, v, p: p["L"] * pair.lagrangian(q / p["X"], v * p["T"] / p["X"], None),
        one_forms=lambda q, p: pair.one_forms(q / p["X"], None) / p["X"],
        parameters={"L": 1.0, "T": 1.0, "X": np.ones(4)},
    )

    def end(q, v, h, **units):
        run = simulate(system, method, q, v, step_size=h, steps=50, parameters=units)
        return run.q[-1], run.v[-1]

    run = simulate(pair, method, q, v, step_size=0.1, steps=50)
    plain = run.q[-1], run.v[-1]
    for x, y in zip(end(q, v, 0.1, L=1e3), plain, strict=True):
        assert_allclose(x, y, atol=2e-14)
    slow = end(q, v / 100, 10.0, T=100.0)
    assert_allclose(slow[0], plain[0], atol=2e-14)
    assert_allclose(slow[1] * 100, plain[1], atol=2e-14)
    units = np.array([1e3, 1e-3, 20.0, 1.0])
    found = end(q * units, v * units, 0.1, X=units)
    assert_allclose(found[0] / units, plain[0], atol=3e-14)
    assert_allclose(found[1] / units, plain[1], atol=3e-14)


def test_the_gearbox_with_a_thousand_times_its_lagrangian():
    """Where Gonzalez in the paper's frame, which measures d by its Euclidean length, meets a step without a
    solution: `test_a_step_without_a_solution_is_reported`."""
    heavy = System(
        lambda q, v, p: 1e3 * gearbox.lagrangian(q, v, p),
        one_forms=gearbox.one_forms,
        coordinates=("q1", "q2", "q3"),
        angles=("q3",),
        parameters={"epsilon": 0.2},
    )
    start = gearbox.typical_state()
    run = simulate(heavy, GONZALEZ, *start, step_size=0.1, steps=10_000, save_every=10)
    assert largest(energy_error(run)) < 3e-15


@pytest.mark.slow
def test_the_choice_of_one_forms_does_not_matter():
    """The rows of mu mixed by a matrix that turns with q."""
    system, q, v = frameless.charged_pair()

    def mixed(q, p):
        c, s = jnp.cos(3 * q[0]), jnp.sin(3 * q[0])
        return jnp.array([[c, s], [-s, c]]) @ jnp.array([[2.0, 0.3], [0.0, 0.5]]) @ system.one_forms(q, p)

    for method in (GONZALEZ, EnergyCollocation(2)):
        runs = [
            simulate(s, method, q, v, step_size=0.1, steps=50)
            for s in (system, dataclasses.replace(system, one_forms=mixed))
        ]
        assert_allclose(runs[0].q, runs[1].q, atol=2e-14)


@pytest.mark.slow
def test_differences_of_a_frame_are_of_second_order_in_any_unit_of_time():
    """CFHM remark 3.5 took the time step for a length: with time in hundredths the order was gone."""
    system, q, v = frameless.bent_blade()
    method = DiscreteGradient(frame="householder", frame_derivative="finite_difference")
    for factor in (1.0, 100.0):
        found = measured_order(
            turn_time(system, factor), method, q, v / factor, t_end=1.0 * factor, steps=(10, 20, 40)
        )
        assert_allclose(found.global_[:2], 2, atol=0.15)


# ---- forces, large steps, where the code runs, derivatives ---------------------------------------------
def pushed():
    """The charged pair with friction and a drive."""
    system, q, v = frameless.charged_pair()

    def force(q, v, t, p):
        return -0.2 * v + jnp.array([0.0, 0.3 * jnp.cos(t), 0.1 * q[0], 0.0])

    return dataclasses.replace(system, force=force), q, v


FORCED = [GONZALEZ, ISOMETRIC, EnergyCollocation(2)]
FORCED_TOO = [MEAN, EnergyCollocation(2, "orthonormal")]


@pytest.mark.slow
@pytest.mark.parametrize(
    "method", FORCED + [pytest.param(m, marks=pytest.mark.all_pairs) for m in FORCED_TOO]
)
def test_the_energy_follows_the_work_of_a_force(method):
    system, q, v = pushed()
    found = measured_order(system, method, q, v, t_end=2.0, steps=(10, 20, 40))
    assert_allclose(found.global_[:2], method.order, atol=0.2)
    advance = jax.jit(lambda state: method.advance(system, state, 0.1)[0])
    state = jax.jit(lambda q, v: method.init(system, q, v, jnp.array(0.0), 0.1))(q, v)
    first = float(state.energy.value)
    for _ in range(60):
        state = advance(state)
        assert abs(system.energy(state.q.value, state.v) - state.energy.value) < 2e-15
    assert abs(state.energy.value - first) > 0.1 * abs(first)


def test_the_work_is_force_times_path_at_the_midpoints():
    system, q, v = pushed()
    run = simulate(system, GONZALEZ, q, v, step_size=0.1, steps=100)
    middle, d, t = (run.q[1:] + run.q[:-1]) / 2, np.diff(run.q, axis=0), (run.t[1:] + run.t[:-1]) / 2
    p = np.asarray(jax.jit(jax.vmap(system.mass_matrix))(run.q)) @ run.v[:, :, None]

    @jax.jit
    @jax.vmap
    def force(q, p0, p1, t):  # with the mean momentum, seen in the middle
        P = system.projectors(q)[0]  # p1 counts modulo mu_m^T, which P takes away
        velocity = P @ jnp.linalg.solve(system.mass_matrix(q), (p0 + p1) / 2)
        return system.force(q, velocity, t, None)

    work = np.cumsum(np.sum(np.asarray(force(middle, p[:-1, :, 0], p[1:, :, 0], t)) * d, axis=1))
    assert abs(work[-1]) > 0.05
    assert_allclose(run.energy[1:] - run.energy[0], work, atol=1e-14)


@pytest.mark.slow
@pytest.mark.parametrize("method", [MEAN, EnergyCollocation(2)])
def test_large_steps_are_left_to_newton(method):
    """Nearly a radian of the pair per step: the map does not contract, energy and constraint hold."""
    system, q, v = frameless.charged_pair()
    run = simulate(system, method, q, v, step_size=1.2, steps=100)
    assert run.report.iterations.max() > LIMIT // 2
    assert largest(energy_error(run)) < 1e-14
    assert largest(run.constraint_residual) < 1e-14


@pytest.mark.slow
@pytest.mark.parametrize(
    "method",
    [GONZALEZ, ISOMETRIC, EnergyCollocation(2), pytest.param(Projected(), marks=pytest.mark.all_pairs)],
)
@pytest.mark.thorough
def test_native_code_and_xla_agree(method):
    system, q, v = frameless.charged_pair()
    runs = [simulate(system, method, q, v, step_size=0.1, steps=30, backend=b) for b in ("native", "xla")]
    assert_allclose(runs[0].q, runs[1].q, atol=1e-14)
    assert_allclose(runs[0].v, runs[1].v, atol=1e-14)


@pytest.mark.slow
@pytest.mark.parametrize(
    "method", [GONZALEZ, ISOMETRIC, pytest.param(EnergyCollocation(2), marks=pytest.mark.all_pairs)]
)
def test_derivatives_pass_through_the_step(method):
    system, q0, v0 = frameless.charged_pair()

    @jax.jit
    def end(x):
        q = q0 + x[0]
        v = system.project_velocity(q, v0 * (1 + x[1]))
        run = simulate(system, method, q, v, step_size=0.1, steps=6)
        return jnp.concatenate([run.q[-1], run.v[-1], run.energy[-1:]])

    found, eps = jax.jit(jax.jacfwd(end))(jnp.zeros(2)), 1e-5
    for i, e in enumerate(eps * jnp.eye(2)):
        assert_allclose(found[:, i], (end(e) - end(-e)) / (2 * eps), atol=2e-8)


# ---- what needs a frame -------------------------------------------------------------------------------
def test_what_needs_a_frame_says_so():
    bare, framed = frameless.without_frame(gearbox)[0], gearbox.system()
    for gradient in ("coordinate_increment", "symmetrized_coordinate_increment"):
        reason = DiscreteGradient(gradient).applies_to(bare)
        assert reason == f"`gradient='{gradient}'` needs a frame, but there is none; try frame='householder'"
        assert DiscreteGradient(gradient).applies_to(framed) is None
        assert DiscreteGradient(gradient, "householder").applies_to(bare) is None
        assert DiscreteGradient(gradient, "none").applies_to(framed) == reason
    reason = DiscreteGradient(frame_derivative="finite_difference").applies_to(bare)
    assert reason == "`frame_derivative='finite_difference'` needs a frame, but there is none"
    assert DiscreteGradient(frame="none").applies_to(framed) is None


@pytest.mark.slow
def test_the_isometric_form_keeps_both_parts_of_the_gearbox():
    system, q, v = frameless.without_frame(gearbox)
    run = simulate(system, ISOMETRIC, q, v, step_size=0.1, steps=100_000, save_every=100)
    assert max(map(largest, first_integral_errors(run).values())) < 3e-12
    other = simulate(system, MEAN, q, v, step_size=0.1, steps=100_000, save_every=100)
    assert largest(first_integral_errors(other)["oscillator_energy"]) > 1e-4
