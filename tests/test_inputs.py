"""Inputs of a run: held over steps, linear between nodes, functions of t; in forces, L and constraints."""

import jax.numpy as jnp
import numpy as np
import pytest
import sympy as sp

import driven
import moving
from driven import TORQUES, given, slow, steered
from noslip import integrators, simulate
from noslip.analysis.reversibility import travelled
from noslip.geometry.finite_difference_map import RhoFunctions
from noslip.integrators import (
    Composition,
    DiscreteGradient,
    DiscreteLagrangeDAlembert,
    EnergyCollocation,
    GeometricNonholonomic,
    LobattoSpark,
    Projected,
    ReducedDLA,
    ReferenceFlow,
    RungeKutta4,
    SemiImplicitDLA,
    VariableStep,
    VelocityNonholonomic,
)

METHODS = [
    v
    for cls in integrators.discover().values()
    for v in cls.variants()
    if not v.exact and v.symmetry is None and v.applies_to(driven.SLEIGH) is None
]


# ---- the wheel set ----------------------------------------------------------------------------------------
def both_ways(t, xp=jnp):
    return 2 * xp.sin(2 * np.pi * t), 2 * xp.cos(2 * np.pi * t)


@pytest.mark.parametrize(
    ("method", "h"),
    [
        (ReferenceFlow(), 0.1),
        (EnergyCollocation(3), 0.02),
        *slow([(LobattoSpark(4), 0.02), (Composition(SemiImplicitDLA(), "kahan_li8"), 0.02)]),
    ],
    ids=str,
)
def test_the_driven_wheel_set_follows_an_independent_flow(method, h):
    torques = {"left": lambda t: both_ways(t)[0], "right": lambda t: both_ways(t)[1]}
    every = round(0.1 / h)
    run = simulate(
        driven.ROBOT, method, driven.Q0, driven.V0, step_size=h, t_end=3.0, inputs=torques, save_every=every
    )
    q, v = driven.robot_motion(lambda t: both_ways(t, np), run.t)
    np.testing.assert_allclose(run.q, q, atol=1e-10)
    np.testing.assert_allclose(run.v, v, atol=1e-10)
    assert np.ptp(run.v[:, 3]) > 1


# ---- switches ---------------------------------------------------------------------------------------------
ROBOT = driven.ROBOT, driven.Q0, driven.V0, TORQUES
PUSHES = {"push": TORQUES["left"], "lift": TORQUES["right"]}
PUSHED = driven.PUSHED, driven.PUSHED_Q0, driven.PUSHED_V0, PUSHES


def split(system, method, q, v, inputs, h):
    """The run of these inputs as two runs with constant ones."""
    states = []
    for k in (0, 5):
        bound = system.with_parameters({name: x[k] for name, x in inputs.items()})
        q, v = travelled(bound, method, q, v, k * h, h, 5)
        states.append((q, v))
    return states


def check_switch(method, case=ROBOT, atol=1e-12):
    system, q0, v0, inputs = case
    run = simulate(system, method, q0, v0, step_size=0.05, steps=10, inputs=inputs)
    for row, (q, v) in zip((5, 10), split(system, method, q0, v0, inputs, 0.05), strict=True):
        np.testing.assert_allclose(run.q[row], q, atol=atol)
        np.testing.assert_allclose(run.v[row], v, atol=atol)


MAPPED = VelocityNonholonomic(
    rho=RhoFunctions(lambda q, r: (q + r) / 2, lambda q, r, h: (r - q) / h, (0.0,) * 5)
)
WITHOUT_MEMORY = [
    m for m in METHODS if not isinstance(m, DiscreteLagrangeDAlembert | Projected | VariableStep)
]


@pytest.mark.parametrize(
    ("method", "case"),
    [
        (SemiImplicitDLA(), PUSHED),
        (GeometricNonholonomic(), PUSHED),
        (DiscreteGradient(), PUSHED),
        (ReducedDLA(group="planar"), ROBOT),
    ],
    ids=lambda x: "" if isinstance(x, tuple) else str(x),
)
def test_switched_torques_are_exact(method, case):
    check_switch(method, case)


@pytest.mark.slow
@pytest.mark.parametrize("method", [*WITHOUT_MEMORY, MAPPED, Composition(SemiImplicitDLA())], ids=str)
def test_switched_torques_are_exact_for_every_method(method):
    check_switch(method)


def switched_orders(method):
    """Of q and v at the end of a run whose torques switch in its middle, against the exact motion."""

    def torques(steps):
        return {"left": np.repeat([1.0, -2.0], steps // 2), "right": np.repeat([0.3, 0.8], steps // 2)}

    def end(method, steps):
        options = {"step_size": 1 / steps, "steps": steps, "inputs": torques(steps), "save_every": steps}
        run = simulate(driven.ROBOT, method, driven.Q0, driven.V0, **options)
        return np.array([run.q[-1], run.v[-1]])

    exact, counts = end(ReferenceFlow(), 2), (40, 80) if method.order < 3 else (8, 16)
    errors = [np.max(np.abs(end(method, steps) - exact), axis=1) for steps in counts]
    return np.log2(errors[0] / errors[1])


TWO_POINT = [DiscreteLagrangeDAlembert(), DiscreteLagrangeDAlembert(beta=0.3, symmetrized=True)]
NO_TORQUES = (Projected, VariableStep)  # one takes no forces, the other no arrays


@pytest.mark.parametrize(
    "method", [TWO_POINT[0], *(pytest.param(m, marks=pytest.mark.slow) for m in TWO_POINT[1:])]
)
def test_a_switch_costs_two_point_methods_no_order(method):
    """They carry the force of the last step into the next, each with its own inputs, so that two runs are not
    one, but q has its order 2; the velocity that they save is that of the pair, of order 1."""
    q, v = switched_orders(method)
    assert abs(q - 2) < 0.1
    assert abs(v - 1) < 0.1


@pytest.mark.slow
@pytest.mark.parametrize(
    "method",
    [
        *(m for m in METHODS if not isinstance(m, NO_TORQUES)),
        MAPPED,
        ReducedDLA(group="planar"),
        LobattoSpark(4),
    ],
    ids=str,
)
def test_a_switched_torque_costs_no_method_its_order(method):
    assert np.all(switched_orders(method) > method.order - 0.15)


# ---- inputs in the Lagrangian and in the constraints ------------------------------------------------------
def check_order(method, kind, between):
    exact, errors = steered(ReferenceFlow(), kind, between, 2), []
    counts = (
        np.array([24, 48, 96]) if method.order < 4 else np.array([4, 8, 16]) * (2 if method.order < 6 else 1)
    )
    for count in counts.tolist():
        run = steered(method, kind, between, count)
        errors.append(max(np.max(np.abs(run.q[-1] - exact.q[-1])), np.max(np.abs(run.v[-1] - exact.v[-1]))))
        if "constraint" in method.preserves:
            assert np.max(np.abs(run.constraint_residual)) < 1e-13
    assert -np.polyfit(np.log(counts), np.log(errors), 1)[0] > method.order - 0.15


@pytest.mark.parametrize(
    ("method", "kind", "between"),
    [
        (SemiImplicitDLA(), "affine", "hold"),
        (DiscreteGradient(), "linear", "hold"),
        (DiscreteLagrangeDAlembert(), "nonlinear", "hold"),
        (GeometricNonholonomic(), "affine", "linear"),
    ],
    ids=str,
)
def test_methods_keep_their_order_with_inputs_in_all_places(method, kind, between):
    check_order(method, kind, between)


@pytest.mark.slow
@pytest.mark.matrix
@pytest.mark.parametrize("between", ["hold", "linear"])
@pytest.mark.parametrize("kind", list(driven.STEERED))
@pytest.mark.parametrize("method", [*METHODS, Composition(SemiImplicitDLA()), LobattoSpark(4)], ids=str)
def test_every_method_keeps_its_order_with_inputs_in_all_places(method, kind, between):
    try:
        steered(method, kind, between, 2)
    except ValueError as reason:
        pytest.skip(str(reason))
    check_order(method, kind, between)


def test_inputs_in_the_lagrangian_and_the_constraint_follow_an_independent_flow():
    t = sp.Symbol("t")
    q, v = sp.symbols("q:3"), sp.symbols("v:3")
    u = {"load": 0.2 + 0.4 * t, "push": 0.5 - 0.8 * t, "angle": 0.1 + 0.6 * t}
    phi = sp.Matrix([driven.blade_row(q, u, sp)]) * sp.Matrix(v)
    field = moving.equations(driven.sleigh_lagrangian(q, v, u, sp), phi, q, v, t)
    nodes = np.linspace(0.0, 1.0, 11)
    inputs = {name: sp.lambdify(t, x)(nodes) for name, x in u.items()}
    start = driven.SLEIGH.project_velocity(
        driven.SLEIGH_Q0, driven.SLEIGH_V0, parameters={name: x[0] for name, x in inputs.items()}
    )
    exact = moving.flow(field, nodes, driven.SLEIGH_Q0, np.asarray(start))
    options = {"step_size": 0.1, "steps": 10, "inputs": inputs, "inputs_between": "linear"}
    run = simulate(driven.SLEIGH, ReferenceFlow(), driven.SLEIGH_Q0, start, **options)
    np.testing.assert_allclose(run.q, exact[0], atol=1e-12)
    np.testing.assert_allclose(run.v, exact[1], atol=1e-12)
    np.testing.assert_allclose(run.multipliers, exact[2], atol=1e-11)
    functions = {
        "inputs": {name: sp.lambdify(t, x, "jax") for name, x in u.items()},
        "inputs_between": "hold",
    }
    line = simulate(driven.SLEIGH, SemiImplicitDLA(), driven.SLEIGH_Q0, start, **options)
    same = simulate(driven.SLEIGH, SemiImplicitDLA(), driven.SLEIGH_Q0, start, **(options | functions))
    np.testing.assert_allclose(line.q, same.q, atol=1e-13)
    np.testing.assert_allclose(line.multipliers, same.multipliers, atol=1e-12)


def test_a_switched_constraint_gives_the_velocity_the_shortest_jump():
    run = steered(RungeKutta4(), "affine", "hold", 2, step_size=1e-9)
    system, values = driven.TURNED, given("affine", "hold", 2)
    after = {name: x[1] for name, x in values.items()}
    jumped = system.project_velocity(run.q[1], run.v[1], parameters=after)
    assert np.max(np.abs(jumped - run.v[1])) > 0.1
    np.testing.assert_allclose(run.v[2], jumped, atol=1e-7)


def test_energy_methods_refuse_inputs_that_move_the_lagrangian_within_a_step():
    with pytest.raises(ValueError, match="stay the same during a step, but these contain t, or inputs"):
        steered(DiscreteGradient(), "linear", "linear", 4)


# ---- promises ---------------------------------------------------------------------------------------------
PROMISING = [
    variant
    for cls in integrators.discover().values()
    for variant in cls.variants()
    if variant.applies_to(driven.ROBOT) is None and not variant.own_time
]


def _named(word):
    """The default tests take the first."""
    return sorted((v for v in PROMISING if word in v.preserves), key=lambda v: v != DiscreteGradient())


@pytest.mark.thorough
@pytest.mark.parametrize("method", [v for v in _named("energy") if not v.exact], ids=str)
def test_the_energy_changes_by_the_torques_times_the_turns_of_their_wheels(method):
    """Torques that are held over steps do exactly this work, whatever the path within a step."""
    rng = np.random.default_rng(3)
    torques = {"left": rng.normal(size=50), "right": 2 * rng.normal(size=50)}
    run = simulate(driven.ROBOT, method, driven.Q0, driven.V0, step_size=0.05, steps=50, inputs=torques)
    turns = np.diff(run.q[:, 3:], axis=0)
    work = np.cumsum(np.sum(turns * np.stack([torques["left"], torques["right"]], axis=1), axis=1))
    assert np.max(np.abs(work)) > 0.5
    np.testing.assert_allclose(run.energy[1:] - run.energy[0], work, rtol=0, atol=1e-13)


@pytest.mark.thorough
@pytest.mark.parametrize("method", _named("constraint"), ids=str)
def test_the_constraint_is_kept_under_torques_that_switch(method):
    rng = np.random.default_rng(4)
    torques = {"left": rng.normal(size=30), "right": 2 * rng.normal(size=30)}
    run = simulate(driven.ROBOT, method, driven.Q0, driven.V0, step_size=0.05, steps=30, inputs=torques)
    assert np.max(np.abs(run.constraint_residual)) < 1e-13
