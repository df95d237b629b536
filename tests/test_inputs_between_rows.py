"""Runs with arrays of inputs between their rows: states at any time, and the balance of energy."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import driven
from driven import given, slow, steered
from noslip import Event, System, analysis, load, simulate
from noslip.integrators import LobattoSpark, ReferenceFlow, RungeKutta4

TIMES = np.linspace(0.013, 0.987, 61)
BALL = System(
    lambda q, v, p: 0.5 * jnp.dot(v, v) - p["g"] * q[1] * (1 + 0.1 * q[1]),
    coordinates=("x", "y"),
    inputs={"g": 1.0},
)
CASES = [("affine", "hold"), *slow([("affine", "linear"), ("nonlinear", "hold"), ("linear", "linear")])]


def phi_at(kind, between, steps, seen):
    """The constraint at each of these times, with the inputs there."""
    values = given(kind, between, steps)
    for q, v, t in zip(seen.q, seen.v, seen.t, strict=True):
        where = t * steps if between == "linear" else np.ceil(t * steps) - 1
        p = {name: np.interp(where, np.arange(len(x)), x) for name, x in values.items()}
        yield driven.STEERED[kind].with_parameters(p).phi(q, v)


@pytest.mark.parametrize(("kind", "between"), CASES)
@pytest.mark.parametrize("every", [1, 4])
def test_between_the_rows_a_switch_costs_no_order(kind, between, every):
    exact, errors = steered(ReferenceFlow(), kind, between, 2, save_at=TIMES), []
    for steps in (18, 36):  # the switch is between rows, where there is one for every fourth step
        run = steered(RungeKutta4(), kind, between, steps, save_every=every)
        seen = run.at(TIMES)
        found = (seen.q, exact.q), (seen.v, exact.v), (seen.multipliers, exact.multipliers)
        errors.append([np.max(np.abs(x - y)) for x, y in found])
        assert np.max(np.abs(list(phi_at(kind, between, steps, seen)))) < 1e-14
    assert np.all(np.log2(np.array(errors[0]) / errors[1]) > 3.5)
    rows = run.at(run.t)
    np.testing.assert_allclose(rows.q, run.q, atol=1e-14)
    np.testing.assert_allclose(rows.v, run.v, atol=1e-6)  # this method leaves the constraint


def test_a_loaded_run_is_seen_between_its_rows_with_its_inputs(tmp_path):
    how = {"step_size": 0.1, "steps": 4}
    for name, g in (("held", np.array([1.0, 3.0, 2.0, 0.5])), ("waves", lambda t: jnp.sin(t))):
        run = simulate(BALL, RungeKutta4(), [0.0, 1.0], [0.3, 0.0], inputs={"g": g}, **how)
        run.save(tmp_path / f"{name}.nc")
        loaded, system = load(tmp_path / f"{name}.nc"), BALL
        if name == "waves":
            with pytest.raises(ValueError, match="does not know the function of t that its input 'g' was"):
                loaded.at([0.1], system=system)
            system = BALL.with_signals({"g": g})
        np.testing.assert_array_equal(loaded.at([0.13, 0.4], system=system).v, run.at([0.13, 0.4]).v)


def test_states_between_rows_can_be_differentiated_with_respect_to_inputs():
    def seen(g):
        how = {"step_size": 0.1, "steps": 4, "inputs": {"g": g}, "save_every": 2}
        return simulate(BALL, RungeKutta4(), [0.0, 1.0], [0.3, 0.0], **how).at([0.25, 0.31]).q[:, 1]

    g, change = np.array([0.3, -0.5, 0.8, 0.1]), np.array([0.2, 0.1, -0.4, 0.3])
    slope = jax.jit(lambda g: jax.jvp(seen, (g,), (change,))[1])(g)
    difference = (seen(g + 1e-5 * change) - seen(g - 1e-5 * change)) / 2e-5
    np.testing.assert_allclose(slope, difference, rtol=1e-8)


def test_resets_and_switches_of_one_step_are_both_met():
    floor = Event(lambda q, v, p: q[1], direction=-1, reset=lambda q, v, p: (q, v * jnp.array([1.0, -1.0])))
    how = {
        "step_size": 0.1,
        "steps": 20,
        "events": {"floor": floor},
        "inputs": {"g": np.repeat([4.0, 9.0], 10)},
    }
    times = np.linspace(0.0, 2.0, 41)
    run, rows = (
        simulate(BALL, LobattoSpark(3), [0.0, 1.0], [0.3, 0.0], **how, **more)
        for more in ({"save_every": 5}, {"save_at": times})
    )
    assert len(run.events["floor"]) == 2
    np.testing.assert_allclose(run.at(times).q, rows.q, atol=2e-5)
    put_in, y = analysis.energy_of_switches(BALL, run), rows.q[20, 1]
    np.testing.assert_allclose(put_in[[1, 2, 4]], [0.0, 0.0, 5.0 * y * (1 + 0.1 * y)], rtol=1e-5)
    assert np.max(np.abs(analysis.energy_balance(BALL, run))) < 1e-5


# ---- the balance of energy --------------------------------------------------------------------------------
@pytest.mark.parametrize(("kind", "between"), CASES)
@pytest.mark.parametrize("every", [1, *slow([(4,)])])
def test_the_energy_changes_by_the_work_of_inputs_and_by_their_switches(kind, between, every):
    system, run = driven.STEERED[kind], steered(ReferenceFlow(), kind, between, 20, save_every=every)
    assert np.ptp(run.energy) > 0.05
    assert np.max(np.abs(analysis.energy_balance(system, run))) < (1e-9 if every == 1 else 1e-5)
    put_in = analysis.energy_of_switches(system, run)
    if between == "linear":
        assert not put_in.any()
        return
    k, values = len(run.t) // 2, given(kind, between, 20)
    before, after = (system.with_parameters({name: x[i] for name, x in values.items()}) for i in (9, 10))
    middle = steered(ReferenceFlow(), kind, between, 20, save_at=[0.5])
    q, v = middle.q[0], middle.v[0]
    jump = after.energy(q, after.project_velocity(q, v)) - before.energy(q, v)
    assert abs(jump) > 0.01
    assert not put_in[: k if every == 1 else k - 1].any()
    np.testing.assert_allclose(put_in[-1], jump, rtol=1e-9 if every == 1 else 1e-5)


def test_torques_that_are_functions_of_t_do_work():
    torques = {"left": lambda t: 2 * jnp.sin(2 * jnp.pi * t), "right": lambda t: 2 * jnp.cos(2 * jnp.pi * t)}
    how = {"step_size": 0.05, "steps": 20, "inputs": torques}
    run = simulate(driven.ROBOT, ReferenceFlow(), driven.Q0, driven.V0, **how)
    assert np.ptp(run.energy) > 0.1
    assert np.max(np.abs(analysis.energy_balance(driven.ROBOT, run))) < 1e-7
    assert not analysis.energy_of_switches(driven.ROBOT, run).any()
