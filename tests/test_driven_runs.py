"""Time and inputs with save_at, events, stores, steppers and resumption: one motion, whichever way."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import driven
import moving
from noslip import Event, Interrupted, Trajectory, ensemble, error_estimate, prepare, resume, simulate
from noslip.integrators import (
    DiscreteGradient,
    DiscreteLagrangeDAlembert,
    EnergyCollocation,
    ReferenceFlow,
    RungeKutta4,
    SemiImplicitDLA,
    VariableStep,
)

H, STEPS = 0.05, 12
START = driven.ROBOT, SemiImplicitDLA(), driven.Q0, driven.V0
SMALL = driven.PUSHED, SemiImplicitDLA(), driven.PUSHED_Q0, driven.PUSHED_V0
TORQUES = {"left": np.repeat([1.0, -2.0, 0.4], 4), "right": np.repeat([0.3, 0.8, -0.5], 4)}
RAMPS = {"left": np.sin(np.arange(13.0)), "right": np.cos(np.arange(13.0))}
WAYS = {"hold": TORQUES, "linear": RAMPS}
SLEIGH_INPUTS = {
    "load": np.repeat([0.2, 0.6, 0.3], 4),
    "push": np.repeat([0.5, -0.5, 0.1], 4),
    "angle": np.repeat([0.1, 0.4, 0.2], 4),
}


def sleigh_start(inputs):
    system = driven.SLEIGH.with_parameters({name: float(x[0]) for name, x in inputs.items()})
    return driven.SLEIGH_Q0, np.asarray(system.project_velocity(driven.SLEIGH_Q0, driven.SLEIGH_V0))


def independent(times):
    """q of the robot under TORQUES, from one switch to the next."""
    found, q0, speeds = [], driven.Q0, (-0.5, 0.7)
    for first in (0, 4, 8):
        torque = TORQUES["left"][first], TORQUES["right"][first]
        inside = [t for t in times if first * H < t <= (first + 4) * H]
        stops = np.unique([first * H, *inside, (first + 4) * H])
        q, v = driven.robot_motion(lambda t, torque=torque: torque, stops, speeds, q0)
        found += list(q[np.searchsorted(stops, inside)])
        q0, speeds = q[-1], (v[-1, 0] * np.cos(q[-1, 2]) + v[-1, 1] * np.sin(q[-1, 2]), v[-1, 2])
    return np.array(found)


def assert_same(a, b, names=("t", "q", "v", "multipliers", "energy")):
    for name in names:
        np.testing.assert_array_equal(getattr(a, name), getattr(b, name), err_msg=name)


# ---- save_at ----------------------------------------------------------------------------------------------
TIMES = np.array([0.0, 0.03, 4 * H, 0.21, 0.37, 8 * H, 12 * H])


@pytest.mark.parametrize("backend", ["native", pytest.param("xla", marks=pytest.mark.slow)])
@pytest.mark.parametrize("between", ["hold", "linear"])
def test_times_asked_for_meet_the_inputs_of_their_steps(between, backend):
    given = {"inputs": WAYS[between], "inputs_between": between, "step_size": H, "steps": STEPS}
    run = simulate(*START, backend=backend, save_at=TIMES, **given)
    rows = simulate(*START, backend=backend, **given)
    for i, k in ((0, 0), (2, 4), (5, 8), (6, 12)):
        np.testing.assert_array_equal(run.q[i], rows.q[k])
    fine = simulate(driven.ROBOT, ReferenceFlow(), driven.Q0, driven.V0, save_at=TIMES, **given)
    np.testing.assert_allclose(run.q, fine.q, atol=2e-3)
    np.testing.assert_allclose(run.multipliers, fine.multipliers, atol=2e-2)


@pytest.mark.parametrize("between", ["hold", pytest.param("linear", marks=pytest.mark.slow)])
def test_times_asked_for_in_a_traced_run_meet_the_inputs_of_their_steps(between):
    inputs = {"push": WAYS[between]["left"], "lift": WAYS[between]["right"]}
    given = {"inputs": inputs, "inputs_between": between, "step_size": H, "steps": STEPS, "save_at": TIMES}
    run = simulate(driven.PUSHED, RungeKutta4(), driven.PUSHED_Q0, driven.PUSHED_V0, **given)
    names = ("q", "v", "multipliers")

    @jax.jit
    def traced(q):
        found = simulate(driven.PUSHED, RungeKutta4(), q, driven.PUSHED_V0, **given)
        return [getattr(found, name) for name in names]

    for name, x in zip(names, traced(driven.PUSHED_Q0), strict=True):
        np.testing.assert_allclose(x, getattr(run, name), atol=1e-11)


def test_the_flow_lands_on_times_asked_for_between_switches():
    times = TIMES[1:-1]
    given = {"inputs": TORQUES, "step_size": H, "steps": STEPS}
    run = simulate(driven.ROBOT, ReferenceFlow(), driven.Q0, driven.V0, save_at=times, **given)
    np.testing.assert_allclose(run.q, independent(times), atol=1e-10)


# ---- events -----------------------------------------------------------------------------------------------
EVENTS = {
    "turned": Event(lambda q, v, p: q[2] - 0.61),
    "far": Event(lambda q, v, t, p: q[0] - 0.15 - 0.1 * t),
}
WATCHED = {"inputs": TORQUES, "step_size": H, "steps": STEPS, "events": EVENTS}


def test_events_meet_the_inputs_of_their_steps():
    run = simulate(*START, **WATCHED)
    plain = simulate(*START, step_size=H, steps=STEPS, inputs=TORQUES)
    np.testing.assert_allclose(run.q, plain.q, rtol=0, atol=1e-14)
    for there in run.events.values():
        assert len(there)
        np.testing.assert_allclose(there.q, independent(there.t), atol=2e-3)
    many = ensemble(*START[:2], np.tile(driven.Q0, (3, 1)), driven.V0, **WATCHED)
    assert many.events["turned"].t[1] == run.events["turned"].t[0]


@pytest.mark.slow
def test_events_with_inputs_are_the_same_on_every_backend():
    run, other = simulate(*START, **WATCHED), simulate(*START, backend="xla", **WATCHED)

    @jax.jit
    def traced(q):
        return {k: x.t for k, x in simulate(*START[:2], q, driven.V0, **WATCHED).events.items()}

    first = traced(driven.Q0)
    for name, there in run.events.items():
        np.testing.assert_allclose(other.events[name].t, there.t, atol=1e-12)
        np.testing.assert_allclose(first[name][0], there.t[0], atol=1e-12)


@pytest.mark.slow
def test_events_with_inputs_are_those_of_the_motion():
    inputs = {name: np.repeat(x, 4) for name, x in TORQUES.items()}
    given = {"inputs": inputs, "step_size": H / 4, "steps": 4 * STEPS, "events": EVENTS}
    run = simulate(driven.ROBOT, EnergyCollocation(2), driven.Q0, driven.V0, **given)
    for there in run.events.values():
        np.testing.assert_allclose(there.q, independent(there.t), atol=1e-8)


def test_a_function_of_the_inputs_is_an_event_where_they_cross():
    ramp = {"push": np.linspace(-1, 1.4, STEPS + 1)}
    events = {"zero": Event(lambda q, v, p: p["push"], direction=1)}
    given = {"inputs": ramp, "inputs_between": "linear", "step_size": H, "steps": STEPS}
    run = simulate(*SMALL, events=events, **given)
    np.testing.assert_allclose(run.events["zero"].t, [5 * H], atol=1e-12)


@pytest.mark.slow
def test_a_reset_goes_on_with_the_inputs_of_its_step():
    turn = Event(lambda q, v, p: q[2] - 0.61, terminal=False, reset=lambda q, v, p: (q, -v))
    given = {"inputs": TORQUES, "step_size": H, "steps": STEPS, "events": {"turn": turn}}
    run = simulate(driven.ROBOT, EnergyCollocation(3), driven.Q0, driven.V0, **given)
    (t,), (q,), (v,) = (getattr(run.events["turn"], name) for name in "tqv")
    k = int(t / H)
    torque = {name: x[k] for name, x in TORQUES.items()}
    after = simulate(
        driven.ROBOT.with_parameters(torque), ReferenceFlow(), q, -v, t0=t, step_size=(k + 1) * H - t, steps=1
    )
    np.testing.assert_allclose(run.q[k + 1], after.q[-1], atol=1e-9)


def test_events_and_times_of_a_moving_system_are_those_of_its_motion():
    q, v = moving.start("affine")
    given = {"parameters": moving.PARAMETERS, "t0": moving.T0, "step_size": 0.02}
    event = Event(lambda q, v, t, p: q[0] - 0.4 - 0.3 * (t - moving.T0), terminal=True)
    exactly = simulate(moving.AFFINE, ReferenceFlow(), q, v, events={"there": event}, max_steps=200, **given)
    times = np.array([moving.T0, exactly.t[-1]])
    exact = moving.truth("affine", times, q, v)
    np.testing.assert_allclose(exact[0][-1][0], 0.4 + 0.3 * (times[-1] - moving.T0), atol=1e-10)
    run = simulate(moving.AFFINE, SemiImplicitDLA(), q, v, events={"there": event}, max_steps=200, **given)
    assert run.stopped_by == "there"
    np.testing.assert_allclose(run.t[-1], times[-1], atol=2e-3)


def test_states_between_rows_of_a_moving_system_are_on_its_constraint():
    q, v = moving.start("affine")
    given = {"parameters": moving.PARAMETERS, "t0": moving.T0, "step_size": 0.05, "steps": 10}
    run = simulate(moving.AFFINE, ReferenceFlow(), q, v, **given)
    times = np.array([moving.T0, 0.713, 0.88, 1.01])
    found, exact = run.at(times), moving.truth("affine", times, q, v)
    np.testing.assert_allclose(found.q, exact[0], atol=1e-8)
    np.testing.assert_allclose(found.multipliers, exact[2], atol=1e-4)
    system = moving.AFFINE.with_parameters(moving.PARAMETERS)
    for x, u, t in zip(found.q, found.v, times, strict=True):
        np.testing.assert_allclose(system.phi(x, u, t), 0, atol=1e-13)


# ---- the same run, taken otherwise ------------------------------------------------------------------------
@pytest.mark.parametrize("backend", ["native", pytest.param("xla", marks=pytest.mark.slow)])
@pytest.mark.parametrize("between", ["hold", "linear"])
def test_a_run_goes_on_with_further_inputs(between, backend):
    inputs, linear = WAYS[between], between == "linear"
    given = {"inputs_between": between, "step_size": H, "backend": backend, "save_every": 2}
    whole = simulate(*START, inputs=inputs, steps=STEPS, **given)
    first = simulate(*START, inputs={k: x[: 5 + linear] for k, x in inputs.items()}, steps=5, **given)
    run = resume(first, steps=7, inputs={k: x[5:] for k, x in inputs.items()})
    assert run == whole
    if backend == "xla":
        return
    with pytest.raises(ValueError, match=r"`inputs` must be those of the steps to come .* 'left', 'right'"):
        resume(first, steps=7)
    if linear:
        with pytest.raises(ValueError, match="must begin with the last node of the run"):
            resume(first, steps=1, inputs={"left": [0.0, 1.0], "right": [0.0, 1.0]})


@pytest.mark.parametrize("method", [SemiImplicitDLA(), DiscreteLagrangeDAlembert(), ReferenceFlow()], ids=str)
@pytest.mark.parametrize("backend", ["native", pytest.param("xla", marks=pytest.mark.slow)])
def test_a_stepper_takes_inputs_step_by_step(method, backend):
    q, v = sleigh_start(SLEIGH_INPUTS)
    run = simulate(
        driven.SLEIGH, method, q, v, step_size=H, steps=STEPS, inputs=SLEIGH_INPUTS, backend=backend
    )
    columns = [{name: float(x[k]) for name, x in SLEIGH_INPUTS.items()} for k in range(STEPS)]
    stepper = prepare(driven.SLEIGH, method, step_size=H, steps=1, backend=backend).start(
        q, v, inputs=columns[0]
    )
    for k in range(STEPS):
        stepper.step(columns[k] if k % 4 == 0 else None)  # what is not given stays
        if method.host_driven:
            np.testing.assert_allclose(stepper.q, run.q[k + 1], atol=1e-12)
        else:
            np.testing.assert_array_equal(stepper.q, run.q[k + 1])
            np.testing.assert_array_equal(stepper.v, run.v[k + 1])
    with pytest.raises(ValueError, match="lod"):
        stepper.step({"lod": 1.0})
    with pytest.raises(ValueError, match=r"`inputs\['load'\]` must be finite"):
        stepper.step({"load": np.nan})


@pytest.mark.parametrize("between", ["hold", "linear"])
def test_a_prepared_run_takes_inputs(between, monkeypatch):
    prepared = prepare(*START[:2], step_size=H, steps=STEPS, inputs_between=between)
    how = {"inputs_between": between, "step_size": H, "steps": STEPS}
    both, one = WAYS[between], {"right": WAYS[between]["right"]}
    lists = {name: x.tolist() for name, x in both.items()}
    calls = [
        (None, None), (both, None), (one, {"m": 1.4}), ({**both, "left": -both["left"]}, {"m": 1.1}),
        (lists, None), (one, None), (None, {"m": 1.2}),
    ]  # fmt: skip
    plain = [simulate(*START, inputs=inputs, parameters=p, **how) for inputs, p in calls]
    for again in range(2):
        for (inputs, p), expected in zip(calls, plain, strict=True):
            assert prepared(driven.Q0, driven.V0, p, inputs) == expected
        if not again:  # from now on nothing but machine code
            monkeypatch.setattr("noslip.prepared.simulate", None)
    run = prepared(driven.Q0, driven.V0, inputs=both)
    more = {name: x[-1:] if between == "hold" else x[-1:].repeat(2) for name, x in both.items()}
    longer = {name: np.append(x, x[-1]) for name, x in both.items()}
    whole = simulate(*START, inputs=longer, inputs_between=between, step_size=H, steps=STEPS + 1)
    assert resume(run, steps=1, inputs=more) == whole
    bad = {**both, "left": np.where(np.arange(len(both["left"])) == 3, np.nan, both["left"])}
    with pytest.raises(ValueError, match=r"`inputs\['left'\]` must be finite"):
        prepared(driven.Q0, driven.V0, inputs=bad)
    with pytest.raises(ValueError, match=r"`inputs\['left'\]` must have shape"):
        prepared(driven.Q0, driven.V0, inputs={**both, "left": both["left"][1:]})


@pytest.mark.slow
def test_value_and_gradient_of_a_prepared_run_go_through_its_inputs():
    prepared = prepare(driven.ROBOT, RungeKutta4(), step_size=H, steps=STEPS)
    f = prepared.value_and_gradient(lambda run: run.q[-1, 0] ** 2 + run.q[-1, 1])
    value, gradient = f(driven.Q0, driven.V0, {"m": 1.2}, TORQUES)
    end = prepared(driven.Q0, driven.V0, {"m": 1.2}, TORQUES).q[-1]
    assert abs(value - (end[0] ** 2 + end[1])) < 1e-13
    for name, k in (("left", 0), ("right", 7), ("left", 11)):
        d = 1e-5 * (np.arange(STEPS) == k)
        high, low = (
            f(driven.Q0, driven.V0, {"m": 1.2}, {**TORQUES, name: TORQUES[name] + x})[0] for x in (d, -d)
        )
        assert abs(gradient.inputs[name][k] - (high - low) / 2e-5) < 1e-9
    high, low = (f(driven.Q0, driven.V0, {"m": 1.2 + x}, TORQUES)[0] for x in (1e-5, -1e-5))
    assert abs(gradient.parameters["m"] - (high - low) / 2e-5) < 1e-9


def test_a_prepared_run_of_a_moving_system_is_that_of_simulate():
    q, v = moving.start("affine")
    given = {"step_size": 0.05, "steps": 10, "t0": moving.T0}
    prepared = prepare(moving.AFFINE, SemiImplicitDLA(), **given)
    plain = simulate(moving.AFFINE, SemiImplicitDLA(), q, v, parameters=moving.PARAMETERS, **given)
    for _ in range(3):
        assert_same(prepared(q, v, moving.PARAMETERS), plain)
    with pytest.raises(ValueError, match="constraint"):
        prepared(q, v + 0.1, moving.PARAMETERS)


def test_a_stored_run_with_inputs_goes_on_and_has_the_bits_of_one_in_memory(tmp_path, monkeypatch):
    given = {"inputs": WAYS["linear"], "inputs_between": "linear", "step_size": H, "steps": STEPS}
    store = tmp_path / "driven"

    def stop(done, steps):
        if 0 < done < steps:
            raise KeyboardInterrupt

    monkeypatch.setattr("noslip.run.one_native.NativeTrajectory.first_piece", 3)
    with pytest.raises(Interrupted):
        simulate(*START, store=store, progress=stop, **given)
    assert 1 < len(Trajectory.open(store).t) < STEPS + 1
    run, plain = simulate(*START, store=store, **given), simulate(*START, **given)
    for name in ("t", "q", "v", "multipliers", "energy"):
        np.testing.assert_array_equal(np.asarray(getattr(run, name)), getattr(plain, name))
    np.testing.assert_array_equal(run.inputs["left"], RAMPS["left"])
    with pytest.raises(ValueError, match="another call"):
        simulate(*START, store=store, **given | {"inputs": RAMPS | {"left": np.zeros(13)}})
    functions = {"push": lambda t: jnp.sin(t), "lift": lambda t: 0.1 * t}
    simulate(*SMALL, store=tmp_path / "of t", step_size=H, steps=3, inputs=functions)
    again = functions | {"lift": lambda t: 0.2 * t}
    with pytest.raises(ValueError, match="another call: functions"):
        simulate(*SMALL, store=tmp_path / "of t", step_size=H, steps=3, inputs=again)


@pytest.mark.parametrize("between", ["hold", "linear"])
def test_an_error_estimate_keeps_the_inputs(between):
    given = {"inputs": WAYS[between], "inputs_between": between, "step_size": H, "steps": STEPS}
    run = simulate(*START, **given)
    exact = simulate(driven.ROBOT, ReferenceFlow(), driven.Q0, driven.V0, **given)
    true = np.max(np.abs(run.q - exact.q), axis=1)
    np.testing.assert_allclose(error_estimate(run)[4:], true[4:], rtol=0.2)


# ---- what does not make sense -----------------------------------------------------------------------------
def test_what_cannot_be_had_with_inputs_is_refused_in_one_sentence():
    ahead = {"far": Event(lambda q, v, p: q[0] - 9.0, terminal=True)}
    with pytest.raises(ValueError, match="`max_steps` must be given to a run with arrays of `inputs`"):
        simulate(*START, step_size=H, events=ahead, inputs={"left": np.ones(3)})
    flow = driven.ROBOT, ReferenceFlow(), driven.Q0, driven.V0
    with pytest.raises(
        ValueError, match="must be functions of t or numbers, not arrays, where events are looked for"
    ):
        simulate(*flow, step_size=H, steps=STEPS, events=ahead, inputs=TORQUES)
    own = driven.PUSHED, VariableStep(), driven.PUSHED_Q0, driven.PUSHED_V0
    for length in ({"steps": STEPS}, {"t_end": 0.3}):
        with pytest.raises(ValueError, match="not arrays, where a method makes its own time"):
            simulate(*own, step_size=H, inputs={"push": TORQUES["left"]}, **length)
    with pytest.raises(ValueError, match="unknown input 'pull'"):
        simulate(*own, step_size=H, inputs={"pull": 1.0}, steps=STEPS)
    functions = {"push": lambda t: jnp.sin(t), "lift": lambda t: 0.1 * t}
    until = simulate(*own, step_size=H, inputs=functions, t_end=0.3)
    assert until.t[-2] < 0.3 <= until.t[-1]


@pytest.mark.parametrize(
    ("method", "more"),
    [
        (VariableStep(), {"steps": 20}),
        (ReferenceFlow(), {"steps": 20, "events": {"far": Event(lambda q, v, p: q[0] - 0.6)}}),
        (DiscreteGradient(), {"events": {"far": Event(lambda q, v, p: q[0] - 0.6, terminal=True)}}),
    ],
    ids=["own time", "flow", "until"],
)
def test_one_number_for_a_whole_run_goes_where_functions_of_t_go(method, more):
    start = driven.PUSHED, method, driven.PUSHED_Q0, driven.PUSHED_V0
    number, function = (
        simulate(*start, step_size=0.05, inputs={"push": x, "lift": lambda t: 0.1 * t}, **more)
        for x in (0.7, lambda t: 0.7 + 0.0 * t)
    )
    other = simulate(*start, step_size=0.05, inputs={"push": -0.7, "lift": lambda t: 0.1 * t}, **more)
    np.testing.assert_allclose(number.q, function.q, rtol=0, atol=1e-12)
    assert np.max(np.abs(number.v[-1] - other.v[-1])) > 0.1
    assert number.info.parameters["push"] == 0.7
