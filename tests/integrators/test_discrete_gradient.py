"""What CFHM says of discrete gradient methods on D*, and what section 4 of the design adds to it."""

from itertools import pairwise

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from numpy.testing import assert_allclose

from catalogue_by_size import LARGE
from noslip import System, simulate, systems
from noslip.analysis import energy_error, first_integral_errors, measured_order
from noslip.geometry import frames
from noslip.geometry.frames import Frame
from noslip.integrators.composition import Composition
from noslip.integrators.discrete_gradient import DiscreteGradient
from noslip.integrators.energy_collocation import EnergyCollocation
from noslip.integrators.full_space_discrete_gradient import FullSpaceDiscreteGradient
from noslip.integrators.projected import Projected
from noslip.integrators.solve import LIMIT
from noslip.run.choose import trajectory_runner
from noslip.run.pairing import pairing_of
from noslip.systems import (
    appell_hamel,
    chaplygin_sleigh,
    gearbox,
    quartic,
    rolling_disk,
    suslov,
    turntable_ball,
)
from noslip.testing.integrators import defect, perturbed_case

GONZALEZ_R = DiscreteGradient(frame="householder")


def largest(x):
    return float(np.max(np.abs(x)))


ORDERS = [
    (DiscreteGradient(), quartic, 2),
    (DiscreteGradient("coordinate_increment"), quartic, 1),
    (DiscreteGradient("symmetrized_coordinate_increment"), quartic, 2),
    (DiscreteGradient("mean_value"), quartic, 2),
    (GONZALEZ_R, quartic, 2),
    (DiscreteGradient(frame="householder", frame_derivative="finite_difference"), chaplygin_sleigh, 2),
    (DiscreteGradient("coordinate_increment"), gearbox, 1),
    (DiscreteGradient("symmetrized_coordinate_increment", "householder"), chaplygin_sleigh, 2),
    # a mass matrix that varies, and a frame in which H has mixed terms
    (GONZALEZ_R, suslov, 2),
    (DiscreteGradient("mean_value", "householder"), suslov, 2),
    (DiscreteGradient("coordinate_increment", "householder"), suslov, 1),
    (DiscreteGradient("symmetrized_coordinate_increment", "householder"), suslov, 2),
]


@pytest.mark.thorough
@pytest.mark.parametrize(("method", "module", "order"), ORDERS)
def test_order_energy_and_constraint(method, module, order):
    case = perturbed_case(module)
    steps = (80, 160, 320) if order == 1 else (20, 40, 80)
    found = measured_order(case.system, method, case.q0, case.v0, t_end=2.0, steps=steps)
    assert method.order == order
    assert_allclose(found.global_[:2], order, atol=0.15)
    run = simulate(case.system, method, case.q0, case.v0, step_size=0.1, steps=1000)
    assert largest(energy_error(run)) < 5e-15  # 3e-15 for Suslov's problem near a singular angle, else 1e-15
    assert largest(run.constraint_residual) < 3e-15


SMALL = [name for name in systems.discover() if name not in LARGE]
LINEAR = [name for name in SMALL if systems.find(name).system().kind == "linear"]


@pytest.mark.thorough
@pytest.mark.matrix
@pytest.mark.parametrize("name", LINEAR)
@pytest.mark.parametrize("method", [DiscreteGradient(), EnergyCollocation(2), GONZALEZ_R])
def test_energy_and_constraint_on_every_linear_system(method, name):
    case = perturbed_case(systems.find(name))
    if reason := method.refusal(case.system):
        pytest.skip(reason)
    run = simulate(case.system, method, case.q0, case.v0, step_size=0.05, steps=2000)
    if case.system.force is None:  # motors and torques change it
        assert defect("energy", method, case, run) < 1e-14
    assert defect("constraint", method, case, run) < 1e-14


def test_the_sleigh_is_stepped_by_23():
    """(23a)-(23e) with x2' on the left of (23b): the implicit midpoint rule."""
    m, J, a, h = 1.0, 8.0, 1.0, 0.5
    system, (q, v) = chaplygin_sleigh.system(m, J, a), chaplygin_sleigh.typical_state()
    run = simulate(system, DiscreteGradient(), q, v, step_size=h, steps=3)
    k = np.sqrt(J + m * a**2)
    rho1 = k * run.v[:, 2]
    rho2 = np.sqrt(m) * (run.v[:, 0] * np.cos(run.q[:, 2]) + run.v[:, 1] * np.sin(run.q[:, 2]))
    s1, s2 = rho1[1:] + rho1[:-1], rho2[1:] + rho2[:-1]
    middle, d, c = (run.q[1:, 2] + run.q[:-1, 2]) / 2, np.diff(run.q, axis=0), a * np.sqrt(m) / k**2
    assert_allclose(d[:, 0], h / 2 / np.sqrt(m) * np.cos(middle) * s2, atol=1e-14)
    assert_allclose(d[:, 1], h / 2 / np.sqrt(m) * np.sin(middle) * s2, atol=1e-14)
    assert_allclose(d[:, 2], h / 2 / k * s1, atol=1e-14)
    assert_allclose(np.diff(rho1), -h / 4 * c * s1 * s2, atol=1e-14)
    assert_allclose(np.diff(rho2), h / 4 * c * s1**2, atol=1e-14)


def test_the_rolling_disk_is_stepped_by_the_midpoint_rule_and_keeps_the_discrete_constraint():
    """CFHM section 3.2, example: also the difference quotients are admissible, at the midpoint."""
    h, system, (q, v) = 0.3, rolling_disk.system(r=1.0), rolling_disk.typical_state()
    run = simulate(system, DiscreteGradient("mean_value"), q, v, step_size=h, steps=5)
    quotient, middle = np.diff(run.q, axis=0) / h, (run.q[1:, 2] + run.q[:-1, 2]) / 2
    assert_allclose(quotient[:, 0], quotient[:, 3] * np.cos(middle), atol=1e-14)
    assert_allclose(quotient[:, 1], quotient[:, 3] * np.sin(middle), atol=1e-14)
    assert_allclose(run.v[:, 2:], np.broadcast_to(run.v[0, 2:], (6, 2)), atol=1e-15)


def test_energy_constraint_and_order_stay_where_the_signs_of_the_householder_frame_change():
    """A skate on a bumpy floor turns three times. On a knife edge the two frames differ by a sign only; here
    they differ in earnest, so that a change of signs is a change of the method, and happens between steps."""
    system = System(
        lambda q, v, p: (
            0.5 * (v[0] ** 2 + 1.5 * v[1] ** 2 + 0.7 * v[2] ** 2 + 0.3 * v[0] * v[2])
            + 0.3 * jnp.cos(q[0]) * jnp.cos(q[1])
        ),
        one_forms=lambda q, p: jnp.array([[jnp.sin(q[2]), -jnp.cos(q[2]), 0.1 * jnp.sin(q[0])]]),
        coordinates=("x", "y", "phi"),
        angles=("phi",),
    )
    q, v = np.array([0.4, -0.2, 0.3]), system.project_velocity([0.4, -0.2, 0.3], [0.6, 0.3, 1.0])
    runs = [
        simulate(system, GONZALEZ_R, q, v, step_size=0.05 / n, t_end=20.0, save_every=n) for n in (1, 2, 4)
    ]
    signs = jax.jit(jax.vmap(lambda x: frames.initial_signs(system, x)[0]))(runs[0].q[::10])
    assert np.sum(np.diff(signs) != 0) == 6
    frame = jax.jit(lambda s, q: Frame(system, "householder", s)(q))
    one, other = (np.asarray(frame(np.array([s]), runs[0].q[10])) for s in (1.0, -1.0))
    assert largest(np.abs(one) - np.abs(other)) > 0.01
    for run in runs:
        assert largest(energy_error(run)) < 1e-14
        assert largest(run.constraint_residual) < 3e-15
    far, near = (largest(a.q[-1] - b.q[-1]) for a, b in pairwise(runs))
    assert 3 < far / near < 5.5  # 4 for order 2


@pytest.mark.thorough
@pytest.mark.parametrize(
    "method",
    [
        DiscreteGradient(),
        DiscreteGradient("mean_value", "orthonormal"),
        DiscreteGradient("coordinate_increment"),
        GONZALEZ_R,
    ],
)
def test_the_energy_of_the_rotating_gearbox_stays_at_round_off(method):
    system, (q, v) = gearbox.system(epsilon=0.2), gearbox.typical_state()
    run = simulate(system, method, q, v, step_size=0.1, steps=100_000, save_every=10)
    assert largest(run.energy / run.energy[0] - 1) <= 4e-15
    assert largest(run.constraint_residual) < 2e-15
    if method.frame == "orthonormal":
        assert max(map(largest, first_integral_errors(run).values())) < 1e-13


@pytest.mark.slow
@pytest.mark.parametrize("method", [Projected(), DiscreteGradient("mean_value", "orthonormal")])
def test_methods_that_keep_both_parts_of_the_energy_for_500000_steps(method):
    """t = 5e4, the table of docs/energy_and_first_integrals.md: changes relative to the total energy."""
    system, (q, v) = gearbox.system(epsilon=0.2), gearbox.typical_state()
    run = simulate(system, method, q, v, step_size=0.1, t_end=5e4, save_every=5)
    for values in (run.energy, *run.first_integrals.values()):
        assert largest(values - values[0]) < 1e-13 * run.energy[0]
    assert largest(run.constraint_residual) < 1e-15


def test_exact_energy_is_not_the_whole_truth():
    """Gonzalez in the paper's frame loses the oscillator's energy, a first integral, all the same."""
    system, (q, v) = gearbox.system(epsilon=0.2), gearbox.typical_state()
    run = simulate(system, DiscreteGradient(), q, v, step_size=0.1, t_end=1000.0, save_every=10)
    assert largest(energy_error(run)) < 3e-15
    assert largest(first_integral_errors(run)["oscillator_energy"]) > 1e-2


@pytest.mark.thorough
@pytest.mark.parametrize("method", [DiscreteGradient(), DiscreteGradient("mean_value"), EnergyCollocation(2)])
@pytest.mark.parametrize("what", ["lagrangian", "length", "time"])
@pytest.mark.parametrize("factor", [1e3, 1e-3])
def test_other_units_are_solved_too(factor, what, method):
    """L, length or time in other units: the solve may fall back to Newton, energy and constraint hold."""
    L, X, T = (factor if name == what else 1.0 for name in ("lagrangian", "length", "time"))
    system = System(
        lambda q, v, p: (
            p["L"]
            * (0.5 * (v @ v) * (p["T"] / p["X"]) ** 2 - jnp.sum((q / p["X"]) ** 2) + q[1] ** 4 / p["X"] ** 4)
        ),
        one_forms=lambda q, p: jnp.array([[-q[1] / p["X"], 0.0, 1.0]]),
        frame=lambda q, p: jnp.array([[1.0, 0.0], [0.0, 1.0], [q[1] / p["X"], 0.0]]),
        coordinates=("x", "y", "z"),
        parameters={"L": L, "X": X, "T": T},
    )
    q, v = X * np.array([0.2, 0.3, -0.1]), X / T * np.array([0.4, 0.3, 0.12])
    run = simulate(system, method, q, v, step_size=0.1 * T, steps=200)
    assert largest(energy_error(run)) < 1e-14
    assert largest(run.constraint_residual) < 1e-15 * X / T
    assert run.report.increment.max() < 2e-14


def test_large_steps_are_solved_by_newton_where_the_map_does_not_contract():
    """A third of a turn of the pendulum per step: no accuracy, but energy, constraint, and a report."""
    system, (q, v) = gearbox.system(), gearbox.typical_state()
    run = simulate(system, DiscreteGradient("mean_value"), q, v, step_size=1.0, steps=300)
    assert run.report.iterations.max() >= LIMIT  # the fixed point gave up, Newton went on
    assert largest(energy_error(run)) < 2e-14
    assert largest(run.constraint_residual) < 3e-15


def test_a_step_without_a_solution_is_reported():
    """With L in units a thousand times smaller Gonzalez, which measures d by its Euclidean length, meets
    a step that has no solution; the mean value has no such length in it."""
    system = System(
        lambda q, v, p: 1e3 * gearbox.lagrangian(q, v, p),
        one_forms=gearbox.one_forms,
        frame=gearbox.frame,
        coordinates=("q1", "q2", "q3"),
        angles=("q3",),
        parameters={"epsilon": 0.2},
    )
    start = gearbox.typical_state()
    failed = simulate(system, DiscreteGradient(), *start, step_size=0.1, steps=200, throw=False)
    assert not failed.success
    assert largest(energy_error(failed)) < 3e-15  # of the steps before it
    run = simulate(system, DiscreteGradient("mean_value"), *start, step_size=0.1, steps=200)
    assert largest(energy_error(run)) < 3e-15


def damped(q, v, t, p):
    return -p["c"] * v + jnp.array([0.0, 0.2 * jnp.cos(t), 0.0])


def friction(module, **parameters):
    plain = module.system(**parameters)
    return System(
        plain.lagrangian,
        one_forms=plain.one_forms,
        frame=plain.frame,
        coordinates=plain.coordinates,
        parameters={**plain.parameters, "c": 0.1},
        force=damped,
    )


def test_with_damping_the_anchor_follows_the_work():
    """E_n = E_0 + sum of force . d_q at the midpoints, to round-off, at order 2."""
    system, (q, v), h = friction(gearbox, epsilon=0.2), gearbox.typical_state(), 0.05
    run = simulate(system, DiscreteGradient(), q, v, step_size=h, steps=400)
    # at the middle y solves the reduced equations with the mean of rho
    rho = np.stack([run.v[:, 1] * (1 + np.sin(run.q[:, 2]) ** 2), run.v[:, 2]], axis=1)
    middle, mean = (run.q[1:] + run.q[:-1]) / 2, (rho[1:] + rho[:-1]) / 2
    s = np.sin(middle[:, 2])
    y = mean[:, 0] / (1 + s**2)
    v_mid = np.stack([-s * y, y, mean[:, 1]], axis=1)
    t = (run.t[1:] + run.t[:-1]) / 2
    force = np.asarray(jax.jit(jax.vmap(lambda v, t: damped(None, v, t, {"c": 0.1})))(v_mid, t))
    work = np.cumsum(np.sum(force * np.diff(run.q, axis=0), axis=1))
    assert abs(work[-1]) > 0.5
    assert largest(run.energy[1:] - run.energy[0] - work) < 1e-13
    found = measured_order(system, DiscreteGradient(), q, v, t_end=2.0, steps=(40, 80, 160))
    assert_allclose(found.global_[:2], 2, atol=0.1)


@pytest.mark.parametrize("method", [DiscreteGradient(), EnergyCollocation(2), FullSpaceDiscreteGradient()])
@pytest.mark.thorough
def test_the_energy_is_where_the_anchor_is_while_a_force_does_work(method):
    """Of a damped and driven system, on which the anchor moves by a good part of the energy."""
    system, (q, v), h = friction(gearbox, epsilon=0.2), gearbox.typical_state(), 0.1
    runner = trajectory_runner(pairing_of(system, method), np.asarray(q), np.asarray(v), 0.0, h)
    first = float(runner.snapshot().state.energy.value)
    for step in range(1, 101):
        runner.to(step, step, step)
        state = runner.snapshot().state
        anchor = float(state.energy.value)
        assert abs(float(system.energy(state.q.value, state.v)) - anchor) < 4e-15 * abs(first)
    assert abs(anchor - first) > 0.1 * abs(first)


@pytest.mark.slow
@pytest.mark.thorough
@pytest.mark.parametrize(
    "method",
    [DiscreteGradient(), DiscreteGradient("mean_value", "orthonormal"), EnergyCollocation(2), Composition()],
)
def test_gradients_pass_through_the_anchor(method):
    """The final state and energy by the initial state and a parameter, against central differences."""
    q0, v0 = gearbox.typical_state()

    @jax.jit
    def end(x):
        q = q0 + jnp.array([x[0], 0.0, 0.0])
        v = v0 * (1 + x[1])
        system = gearbox.system().with_parameters({"epsilon": 0.2 + x[2]})
        run = simulate(system, method, q, v, step_size=0.1, steps=12)
        return jnp.concatenate([run.q[-1], run.v[-1], run.energy[-1:]])

    found = jax.jit(jax.jacfwd(end))(jnp.zeros(3))
    eps = 1e-5
    for i in range(3):
        e = eps * jnp.eye(3)[i]
        assert_allclose(found[:, i], (end(e) - end(-e)) / (2 * eps), atol=2e-8)
    q_dot_energy = jax.jacfwd(lambda x: gearbox.system().energy(q0 + jnp.array([x, 0, 0]), v0))(0.0)
    assert_allclose(found[-1, 0], q_dot_energy, atol=1e-12)


@pytest.mark.parametrize(
    "method",
    [DiscreteGradient(), EnergyCollocation(), FullSpaceDiscreteGradient(), Composition(), Projected()],
)
def test_other_constraints_are_refused_in_one_sentence(method):
    for module in (turntable_ball, appell_hamel):
        reason = method.applies_to(module.system())
        assert reason is not None
        assert "needs linear constraints mu(q) v = 0, but these are" in reason
        assert "\n" not in reason


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"gradient": "midpoint"}, "`gradient` must be one of 'gonzalez', 'mean_value'"),
        ({"frame": "moving"}, "`frame` must be one of 'system', 'householder', 'orthonormal'"),
        ({"frame_derivative": "none"}, "`frame_derivative` must be one of 'exact', 'finite_difference'"),
        ({"nodes": 0}, r"`nodes` must be in \[1, 12\]"),
    ],
)
def test_bad_parameters_are_named(wrong, message):
    with pytest.raises(ValueError, match=message):
        DiscreteGradient(**wrong)
