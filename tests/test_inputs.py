"""Inputs of a run: held over steps, linear between nodes, functions of t; in forces, L and constraints."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import sympy as sp

import driven
import moving
import noslip
from noslip import System, ensemble, integrators, simulate
from noslip.analysis.reversibility import travelled
from noslip.integrators import (
    Composition,
    DiscreteGradient,
    DiscreteLagrangeDAlembert,
    EnergyCollocation,
    GeneratingFunction,
    GeometricNonholonomic,
    HamiltonizedDEL,
    LobattoSpark,
    Projected,
    ReducedDLA,
    ReferenceFlow,
    RungeKutta4,
    SemiImplicitDLA,
    VelocityNonholonomic,
)

METHODS = [
    v
    for cls in integrators.discover().values()
    for v in cls.variants()
    if not v.exact and v.symmetry is None and v.applies_to(driven.SLEIGH) is None
]
TORQUES = {"left": np.repeat([1.0, -2.0], 5), "right": np.repeat([0.3, 0.8], 5)}
VALUES = {
    "load": [0.2, 0.6, 0.3],
    "push": [0.5, -0.5, 0.1],
    "angle": [0.1, 0.4, 0.2],
    "rate": [0.3, -0.6, 0.2],
}


def slow(cases):
    return [pytest.param(*case, marks=pytest.mark.slow) for case in cases]


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
def split(system, method, q, v, h):
    """The run of TORQUES as two runs with constant ones."""
    states = []
    for k in (0, 5):
        bound = system.with_parameters({name: x[k] for name, x in TORQUES.items()})
        q, v = travelled(bound, method, q, v, k * h, h, 5)
        states.append((q, v))
    return states


def check_switch(method, atol=1e-12):
    run = simulate(driven.ROBOT, method, driven.Q0, driven.V0, step_size=0.05, steps=10, inputs=TORQUES)
    for row, (q, v) in zip((5, 10), split(driven.ROBOT, method, driven.Q0, driven.V0, 0.05), strict=True):
        np.testing.assert_allclose(run.q[row], q, atol=atol)
        np.testing.assert_allclose(run.v[row], v, atol=atol)


WITHOUT_MEMORY = [m for m in METHODS if not isinstance(m, DiscreteLagrangeDAlembert | Projected)]


@pytest.mark.parametrize(
    "method",
    [SemiImplicitDLA(), GeometricNonholonomic(), EnergyCollocation(2), ReducedDLA(group="planar")],
    ids=str,
)
def test_switched_torques_are_exact(method):
    check_switch(method)


@pytest.mark.slow
@pytest.mark.parametrize("method", [*WITHOUT_MEMORY, Composition(SemiImplicitDLA())], ids=str)
def test_switched_torques_are_exact_for_every_method(method):
    check_switch(method)


def test_a_switched_torque_is_met_at_its_node_to_the_order_of_two_point_methods():
    # q is of order 2; the velocity that they save is that of the pair, of order 1
    errors = []
    for factor in (1, 2):
        torques = {name: np.repeat(x, 2 * factor) for name, x in TORQUES.items()}
        options = {"step_size": 0.05 / factor, "steps": 20 * factor, "inputs": torques}
        run, exact = (
            simulate(driven.ROBOT, m, driven.Q0, driven.V0, **options)
            for m in (DiscreteLagrangeDAlembert(), ReferenceFlow())
        )
        errors.append(np.max(np.abs(run.q - exact.q)))
    assert np.log2(errors[0] / errors[1]) > 1.9


# ---- inputs in the Lagrangian and in the constraints ------------------------------------------------------
def given(kind, between, steps):
    """Values that switch, or bend, in the middle of the run."""
    nodes = np.arange(steps + 1) / (steps // 2)
    names = driven.STEERED[kind].inputs
    if between == "hold":
        return {name: np.repeat(VALUES[name][:2], steps // 2) for name in names}
    return {name: np.interp(nodes, [0, 1, 2], VALUES[name]) for name in names}


def steered(method, kind, between, steps, **more):
    system, first = driven.STEERED[kind], {name: VALUES[name][0] for name in driven.STEERED[kind].inputs}
    v = system.project_velocity(driven.SLEIGH_Q0, driven.SLEIGH_V0, parameters=first)
    options = {"inputs": given(kind, between, steps), "inputs_between": between} | more
    return simulate(
        system, method, driven.SLEIGH_Q0, v, **({"step_size": 1 / steps, "steps": steps} | options)
    )


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


# ---- backends, members, derivatives -----------------------------------------------------------------------
@pytest.mark.parametrize("between", ["hold", "linear"])
def test_native_code_and_xla_agree(between):
    runs = [steered(SemiImplicitDLA(), "affine", between, 8, backend=b) for b in ("native", "xla")]
    for name in ("q", "v", "multipliers", "energy", "constraint_residual"):
        np.testing.assert_allclose(getattr(runs[0], name), getattr(runs[1], name), atol=1e-11)


def test_members_have_inputs_of_their_own_and_the_bits_of_their_runs():
    rng = np.random.default_rng(0)
    left, right = rng.normal(size=(11, 6)), rng.normal(size=6)
    options = {"step_size": 0.1, "steps": 6, "save_every": 1}
    start = driven.ROBOT, SemiImplicitDLA(), driven.Q0, driven.V0
    runs = [simulate(*start, inputs={"left": left[k], "right": right}, **options) for k in (0, 9)]
    for backend in ("native", "xla"):
        # on one thread, which takes several groups of lanes in one call
        given = {"inputs": {"left": left, "right": right}, "backend": backend, "threads": 1}
        many = ensemble(*start, **given, **options)
        for k, run in zip((0, 9), runs, strict=True):
            if backend == "native":
                np.testing.assert_array_equal(many.q[k], run.q)
            np.testing.assert_allclose(many.q[k], run.q, atol=1e-12)
            np.testing.assert_allclose(many.energy[k], run.energy, atol=1e-12)
    assert many.to_xarray()["input_left"].shape == (11, 6)


def test_members_may_share_inputs_and_differ_in_parameters():
    options = {"step_size": 0.1, "steps": 10, "save_every": 5, "inputs": TORQUES}
    start = driven.ROBOT, SemiImplicitDLA(), driven.Q0, driven.V0
    many = ensemble(*start, parameters={"m": np.linspace(1, 2, 9)}, **options)
    one = simulate(*start, parameters={"m": 1.125}, **options)
    np.testing.assert_array_equal(many.q[1], one.q)


def test_an_ensemble_on_disk_remembers_its_inputs(tmp_path):
    start = driven.ROBOT, SemiImplicitDLA(), np.tile(driven.Q0, (3, 1)), driven.V0
    options = {"step_size": 0.1, "steps": 10, "store": tmp_path / "driven"}
    stored = ensemble(*start, inputs=TORQUES, **options)
    np.testing.assert_array_equal(stored.inputs["left"], TORQUES["left"])
    plain = simulate(
        driven.ROBOT, SemiImplicitDLA(), driven.Q0, driven.V0, step_size=0.1, steps=10, inputs=TORQUES
    )
    np.testing.assert_array_equal(stored.q[1, -1], plain.q[-1])
    with pytest.raises(ValueError, match="another call: inputs right"):
        ensemble(*start, inputs=TORQUES | {"right": np.zeros(10)}, **options)
    with pytest.raises(ValueError, match="`inputs` must be shared by all members"):
        ensemble(*start, inputs={"left": np.zeros((3, 10))}, **options)


@pytest.mark.parametrize("between", ["hold", "linear"])
def test_runs_are_differentiable_with_respect_to_inputs(between):
    pushed = System(
        lambda q, v, p: 0.5 * (1 + 0.2 * jnp.cos(q[0])) * jnp.dot(v, v),
        one_forms=lambda q, p: jnp.array([[-jnp.sin(q[0]), jnp.cos(q[0])]]),
        coordinates=("x", "y"),
        force=lambda q, v, t, p: p["push"] * jnp.array([1.0, 0.0]),
        inputs={"push": 0.0},
    )
    count = 5 + (between == "linear")

    def end(push):
        run = simulate(
            pushed, SemiImplicitDLA(), [0.0, 0.1], [1.0, 0.0], step_size=0.1, steps=5,
            inputs={"push": push}, inputs_between=between,
        )  # fmt: skip
        return run.q[-1, 1]

    push = np.linspace(0.5, 1.5, count)
    slopes, d = jax.grad(end)(push), 1e-5
    for k in (0, 2, count - 1):
        e = d * (np.arange(count) == k)
        np.testing.assert_allclose(slopes[k], (end(push + e) - end(push - e)) / (2 * d), rtol=1e-6)


# ---- files and errors -------------------------------------------------------------------------------------
@pytest.mark.parametrize("between", ["hold", "linear"])
def test_a_saved_run_remembers_its_inputs_and_can_be_repeated(between, tmp_path):
    run = steered(SemiImplicitDLA(), "linear", between, 8)
    run.save(tmp_path / "run.nc")
    again = noslip.load(tmp_path / "run.nc")
    assert again == run
    np.testing.assert_array_equal(again.inputs["angle"], given("linear", between, 8)["angle"])
    assert noslip.rerun(tmp_path / "run.nc", system=driven.SLEIGH).identical


def test_a_run_whose_inputs_were_functions_is_not_repeated_from_a_file(tmp_path):
    run = simulate(
        driven.ROBOT, RungeKutta4(), driven.Q0, driven.V0, step_size=0.1, steps=2, inputs={"left": jnp.sin}
    )
    run.save(tmp_path / "run.nc")
    with pytest.raises(ValueError, match="'left' of this run were functions of t"):
        noslip.rerun(tmp_path / "run.nc", system=driven.ROBOT)


def attempt(**more):
    options = {"step_size": 0.1, "steps": 4} | more
    return simulate(driven.ROBOT, SemiImplicitDLA(), driven.Q0, driven.V0, **options)


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ({"inputs": {"lift": np.zeros(4)}}, "'lift'.*left"),
        ({"inputs": {"left": np.zeros(5)}}, r"must have shape \(4,\), one per step, but \(5,\)"),
        (
            {"inputs": {"left": np.zeros(4)}, "inputs_between": "linear"},
            r"must have shape \(5,\), one per node, but \(4,\)",
        ),
        ({"inputs": {"left": [0, 1, np.nan, 0]}}, "must be finite"),
        ({"inputs": {"left": ["a"] * 4}}, "must be real numbers"),
        ({"inputs": {"left": lambda t: jnp.array([t, t])}}, "must be a number, but"),
        ({"inputs": {"left": np.zeros(4)}, "inputs_between": "cubic"}, "'cubic'.*hold"),
    ],
)
def test_bad_inputs_get_one_sentence(more, words):
    with pytest.raises(ValueError, match=words):
        attempt(**more)


def test_a_number_is_an_input_for_the_whole_run_and_a_parameter_as_well():
    run = attempt(inputs={"left": 1.5})
    np.testing.assert_allclose(run.q, attempt(parameters={"left": 1.5}).q, rtol=1e-14)
    np.testing.assert_array_equal(run.inputs["left"], np.full(4, 1.5))
    with pytest.raises(ValueError, match="input 'u' must have a number as its default"):
        System(lambda q, v, p: 0.5 * jnp.dot(v, v), coordinates=("x",), inputs={"u": np.zeros(2)})
    with pytest.raises(TypeError, match="`inputs` must be a mapping"):
        attempt(inputs=[1.0])


def test_arrays_of_inputs_need_steps_of_equal_length():
    from noslip.systems import fbo_particle

    q, v = fbo_particle.typical_state()
    particle = fbo_particle.system()
    own = System(
        particle.lagrangian, one_forms=particle.one_forms, coordinates=particle.coordinates,
        parameters=particle.parameters, fibre=particle.fibre, multiplier=particle.multiplier,
        inputs={"none": 0.0},
    )  # fmt: skip
    with pytest.raises(ValueError, match="`inputs` must be functions of t, not arrays"):
        simulate(own, HamiltonizedDEL(), q, v, step_size=0.1, steps=2, inputs={"none": np.zeros(2)})


def test_rows_show_the_inputs_of_the_step_that_led_to_them():
    run = steered(SemiImplicitDLA(), "linear", "hold", 4)
    values = given("linear", "hold", 4)
    for row, step in ((0, 0), (2, 1), (3, 2)):
        bound = driven.SLEIGH.with_parameters({name: x[step] for name, x in values.items()})
        np.testing.assert_allclose(run.energy[row], bound.energy(run.q[row], run.v[row]), rtol=1e-13)
    assert GeneratingFunction() in METHODS
    assert VelocityNonholonomic() in METHODS
