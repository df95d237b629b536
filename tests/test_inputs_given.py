"""Inputs as they are given and run: backends, members, derivatives, files, and what is refused."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import sympy as sp
from sympy.physics.mechanics import dynamicsymbols

import driven
import noslip
from driven import TORQUES, given, slow, steered
from noslip import System, ensemble, simulate, symbolic
from noslip.integrators import (
    HamiltonizedDEL,
    RungeKutta4,
    SemiImplicitDLA,
)


# ---- backends, members, derivatives -----------------------------------------------------------------------
@pytest.mark.parametrize(
    ("method", "between"),
    [(RungeKutta4(), "linear"), *slow([(SemiImplicitDLA(), "hold"), (SemiImplicitDLA(), "linear")])],
    ids=str,
)
def test_native_code_and_xla_agree(method, between):
    runs = [steered(method, "affine", between, 8, backend=b) for b in ("native", "xla")]
    for name in ("q", "v", "multipliers", "energy", "constraint_residual"):
        np.testing.assert_allclose(getattr(runs[0], name), getattr(runs[1], name), atol=1e-11)


def test_members_have_inputs_of_their_own_and_the_bits_of_their_runs():
    rng = np.random.default_rng(0)
    push, lift = rng.normal(size=(11, 6)), rng.normal(size=6)
    options = {"step_size": 0.1, "steps": 6, "save_every": 1}
    start = driven.PUSHED, RungeKutta4(), driven.PUSHED_Q0, driven.PUSHED_V0
    runs = [simulate(*start, inputs={"push": push[k], "lift": lift}, **options) for k in (0, 9)]
    for backend in ("native", "xla"):
        # on one thread, which takes several groups of lanes in one call
        given = {"inputs": {"push": push, "lift": lift}, "backend": backend, "threads": 1}
        many = ensemble(*start, **given, **options)
        for k, run in zip((0, 9), runs, strict=True):
            if backend == "native":
                np.testing.assert_array_equal(many.q[k], run.q)
            np.testing.assert_allclose(many.q[k], run.q, atol=1e-12)
            np.testing.assert_allclose(many.energy[k], run.energy, atol=1e-12)
    assert many.to_xarray()["input_push"].shape == (11, 6)


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


@pytest.mark.parametrize("between", [*slow([("hold",)]), "linear"])
def test_runs_are_differentiable_with_respect_to_inputs(between):
    count = 5 + (between == "linear")

    def end(push):
        run = simulate(
            driven.PUSHED, RungeKutta4(), driven.PUSHED_Q0, driven.PUSHED_V0, step_size=0.1, steps=5,
            inputs={"push": push}, inputs_between=between,
        )  # fmt: skip
        return run.q[-1, 1]

    push = np.linspace(0.5, 1.5, count)
    slopes, d = np.asarray(jax.jit(jax.grad(end))(push)), 1e-5
    for k in (0, 2, count - 1):
        e = d * (np.arange(count) == k)
        np.testing.assert_allclose(slopes[k], (end(push + e) - end(push - e)) / (2 * d), rtol=1e-6)


def test_the_first_inputs_decide_whether_a_velocity_is_admissible():
    q, v = driven.SLEIGH_Q0, driven.SLEIGH_V0
    still = driven.SLEIGH.project_velocity(q, v)
    options = {"step_size": 0.1, "steps": 2}
    with pytest.raises(ValueError, match="`v0` must satisfy the constraint"):
        simulate(driven.SLEIGH, RungeKutta4(), q, still, inputs={"angle": lambda t: 0.3 + t}, **options)
    with pytest.raises(ValueError, match="`v0` must satisfy the constraint"):
        simulate(driven.SLEIGH, RungeKutta4(), q, still, inputs={"angle": [0.3, 0.0]}, **options)
    angles = np.array([[0.0, 0.1], [0.2, 0.1], [0.0, 0.3]])
    with pytest.raises(ValueError, match="1 of 3 members do not, first member 1"):
        ensemble(driven.SLEIGH, RungeKutta4(), q, still, inputs={"angle": angles}, **options)
    turned = [driven.SLEIGH.project_velocity(q, v, parameters={"angle": x}) for x in angles[:, 0]]
    many = ensemble(driven.SLEIGH, RungeKutta4(), q, turned, inputs={"angle": angles}, **options)
    one = simulate(driven.SLEIGH, RungeKutta4(), q, turned[1], inputs={"angle": angles[1]}, **options)
    np.testing.assert_array_equal(many.q[1, -1], one.q[-1])


def test_sympy_systems_may_have_inputs():
    x, y, z = dynamicsymbols("x y z")
    push, m = sp.symbols("push m")
    L = m * (x.diff() ** 2 + y.diff() ** 2 + z.diff() ** 2) / 2 + push * x
    made = symbolic.system(L, (x, y, z), [z.diff() - y * x.diff()], {m: 2.0}, inputs={push: 0.5})
    assert dict(made.inputs) == {"push": 0.5}
    options = {"step_size": 0.1, "steps": 2, "inputs": {"push": [2.0, -2.0]}}
    run = simulate(made, RungeKutta4(), [0.0, 0.0, 0.0], [0.0, 0.0, 0.0], **options)
    np.testing.assert_allclose(run.v[:, 0], [0.0, 0.1, 0.0], atol=1e-14)


# ---- files and errors -------------------------------------------------------------------------------------
@pytest.mark.parametrize("between", ["hold", *slow([("linear",)])])
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
        (
            {"inputs": {"left": lambda t: np.sin(t)}},
            "input 'left' as a function of t must be made of jax.numpy",
        ),
        ({"inputs": {"left": lambda q, t: t}}, "input 'left' as a function of t failed with TypeError"),
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
    with pytest.raises(ValueError, match="`inputs` must be functions of t or numbers, not arrays"):
        simulate(own, HamiltonizedDEL(), q, v, step_size=0.1, steps=2, inputs={"none": np.zeros(2)})


def test_rows_show_the_inputs_of_the_step_that_led_to_them():
    run = steered(SemiImplicitDLA(), "linear", "hold", 4)
    values = given("linear", "hold", 4)
    for row, step in ((0, 0), (2, 1), (3, 2)):
        bound = driven.SLEIGH.with_parameters({name: x[step] for name, x in values.items()})
        np.testing.assert_allclose(run.energy[row], bound.energy(run.q[row], run.v[row]), rtol=1e-13)
