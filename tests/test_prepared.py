"""Runs that are prepared, taken step by step, or continued: the bits of `simulate`, without its cost."""

import copy
import pickle
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from models import OF_EVERY_KIND, kepler, two_forms
from noslip import Event, SolveFailed, System, ensemble, load, prepare, resume, simulate
from noslip.integrators import (
    DiscreteGradient,
    DiscreteLagrangeDAlembert,
    EnergyCollocation,
    HamiltonizedDEL,
    LobattoSpark,
    ReferenceFlow,
    RungeKutta4,
    SemiImplicitDLA,
    VelocityNonholonomic,
)
from noslip.systems import chaplygin_sleigh, fbo_particle

METHODS = [SemiImplicitDLA(), DiscreteGradient(), DiscreteLagrangeDAlembert(), LobattoSpark(3)]


@pytest.mark.parametrize("method", METHODS, ids=str)
@pytest.mark.parametrize("case", [two_forms, kepler])
def test_a_prepared_call_has_the_bits_of_simulate(method, case):
    system, q, v = case()
    prepared = prepare(system, method, step_size=0.1, steps=23, save_every=5)
    expected = simulate(system, method, q, v, step_size=0.1, steps=23, save_every=5)
    for _ in range(3):
        assert prepared(q, v) == expected
    q, v = np.asarray(q) + 0.1, np.asarray(system.project_velocity(np.asarray(q) + 0.1, v))
    assert prepared(q.tolist(), v) == simulate(system, method, q, v, step_size=0.1, steps=23, save_every=5)


def test_parameters_of_a_call_are_those_of_simulate():
    system, q, v = kepler()
    prepared = prepare(system, SemiImplicitDLA(), step_size=0.05, steps=20, t0=0.3)
    how = {"step_size": 0.05, "steps": 20, "t0": 0.3}
    prepared(q, v)
    for parameters in ({"k": 2.5}, {"m": 1, "k": np.float64(1.9)}):
        run = prepared(q, v, parameters=parameters)
        assert run == simulate(system, SemiImplicitDLA(), q, v, parameters=parameters, **how)
        assert run.origin.pairing.system.parameters["k"] == parameters["k"]
    assert prepared(q, v) == simulate(system, SemiImplicitDLA(), q, v, **how)
    with pytest.raises(ValueError, match="unknown parameter 'l'"):
        prepared(q, v, parameters={"l": 1.0})
    with pytest.raises(ValueError, match="must be finite"):
        prepared(q, v, parameters={"k": np.nan})


def test_threads_that_share_a_prepared_run_do_not_meet():
    system, q, v = (np.asarray(x) if k else x for k, x in enumerate(kepler()))
    prepared = prepare(system, RungeKutta4(), step_size=0.01, steps=300)
    starts = [q + np.array([0.05 * k, 0.0]) for k in range(8)]
    expected = [prepared(start, v).q.tobytes() for start in starts]
    with ThreadPoolExecutor(4) as pool:
        for _ in range(10):
            found = list(pool.map(lambda start: prepared(start, v).q.tobytes(), starts))
            assert found == expected


def test_a_prepared_call_costs_a_fraction_of_a_plain_one():
    system, (q, v) = chaplygin_sleigh.system(), map(np.asarray, chaplygin_sleigh.typical_state())
    prepared = prepare(system, DiscreteGradient(), step_size=0.01, steps=1)

    def quickest(call):
        times = []
        for _ in range(50):
            began = time.perf_counter()
            call()
            times.append(time.perf_counter() - began)
        return min(times)

    prepared(q, v)
    plain = quickest(lambda: simulate(system, DiscreteGradient(), q, v, step_size=0.01, steps=1))
    assert quickest(lambda: prepared(q, v)) < plain / 4


@pytest.mark.parametrize("bad", ["state", "velocity", "shape", "kind"])
def test_bad_states_are_refused_also_in_later_calls(bad):
    system, q, v = (np.asarray(x) if k else x for k, x in enumerate(two_forms()))
    prepared = prepare(system, SemiImplicitDLA(), step_size=0.1, steps=3)
    prepared(q, v)
    given, words = {
        "state": ((q + np.nan, v), "`q0` must be finite"),
        "velocity": ((q, v + 0.1), "must satisfy the constraint"),
        "shape": ((q[:3], v), "must have shape"),
        "kind": ((["a"] * 4, v), "real numbers"),
    }[bad]
    with pytest.raises(ValueError, match=words):
        prepared(*given)


def test_a_failed_step_of_a_prepared_run_is_never_dropped():
    system = System(lambda q, v, p: 0.5 * v[0] ** 2 - jnp.sqrt(1 - q[0]), coordinates=("x",))
    prepared = prepare(system, RungeKutta4(), step_size=0.1, steps=10)
    prepared([-9.0], [0.1])
    with pytest.raises(SolveFailed, match="NaN or infinity"):
        prepared([0.0], [2.0])
    stepper = prepared.start([0.0], [2.0])
    with pytest.raises(SolveFailed, match="failed"):
        any(stepper.step() is None for _ in range(10))
    assert stepper.steps < 10


def test_what_cannot_be_prepared_is_said_at_once():
    system, _, _ = OF_EVERY_KIND["spring"]()
    with pytest.raises(ValueError, match="DiscreteGradient cannot run"):
        prepare(system, DiscreteGradient(), step_size=0.1, steps=3)
    with pytest.raises(ValueError, match="must be positive"):
        prepare(system, SemiImplicitDLA(), step_size=0.0, steps=3)
    with pytest.raises(TypeError, match="must be an integrator"):
        prepare(system, SemiImplicitDLA, step_size=0.1, steps=3)


@pytest.mark.parametrize("method", [*METHODS, ReferenceFlow()], ids=str)
def test_a_stepper_keeps_the_whole_state_of_its_method(method):
    system, q, v = kepler()
    run = simulate(system, method, q, v, step_size=0.1, steps=30)
    stepper = prepare(system, method, step_size=0.1, steps=30).start(q, v)
    assert np.array_equal(stepper.q, run.q[0])
    for k in range(1, 31):
        stepper.step()
        assert stepper.t == run.t[k]
        if method.exact:
            assert np.max(np.abs(stepper.q - run.q[k])) < 1e-12
        else:
            assert np.array_equal(stepper.q, run.q[k])
            assert np.array_equal(stepper.v, run.v[k])


def test_a_stepper_of_a_method_that_makes_its_own_time_tells_it():
    system, (q, v) = fbo_particle.system(), fbo_particle.typical_state()
    run = simulate(system, HamiltonizedDEL(), q, v, step_size=0.1, steps=5)
    stepper = prepare(system, HamiltonizedDEL(), step_size=0.1, steps=5).start(q, v)
    assert [stepper.step().t for _ in range(5)] == run.t[1:].tolist()


@pytest.mark.parametrize("backend", ["native", "xla"])
@pytest.mark.parametrize("method", [EnergyCollocation(2), DiscreteLagrangeDAlembert()], ids=str)
def test_a_resumed_run_is_the_run_that_was_not_interrupted(method, backend):
    system, q, v = OF_EVERY_KIND["particle"]()
    how = {"step_size": 0.1, "save_every": 4, "backend": backend}
    for first, more in ((10, 7), (12, 4), (9, 1), (3, 0)):
        run = simulate(system, method, q, v, steps=first, **how)
        assert resume(run, steps=more) == simulate(system, method, q, v, steps=first + more, **how)
    again = resume(resume(simulate(system, method, q, v, steps=5, **how), steps=5), steps=5)
    assert again == simulate(system, method, q, v, steps=15, **how)


def test_the_motion_itself_is_resumed_with_its_bits():
    system, q, v = two_forms()
    run = simulate(system, ReferenceFlow(), q, v, step_size=0.01, steps=30)
    assert resume(run, steps=20) == simulate(system, ReferenceFlow(), q, v, step_size=0.01, steps=50)


def test_angles_are_counted_on_by_a_resumed_run():
    system, q, v = kepler()
    run = resume(simulate(system, SemiImplicitDLA(), q, v, step_size=0.1, steps=200), steps=200)
    assert run == simulate(system, SemiImplicitDLA(), q, v, step_size=0.1, steps=400)
    assert np.max(run.q[:, 1]) > 2 * np.pi


def test_what_cannot_be_resumed_says_why(tmp_path):
    system, (q, v) = chaplygin_sleigh.system(), chaplygin_sleigh.typical_state()
    run = simulate(system, SemiImplicitDLA(), q, v, step_size=0.1, steps=3)
    run.save(tmp_path / "run.nc")
    with pytest.raises(ValueError, match="no state of its method"):
        resume(load(tmp_path / "run.nc"), steps=3)
    with pytest.raises(ValueError, match="save_at"):
        resume(simulate(system, SemiImplicitDLA(), q, v, step_size=0.1, save_at=[0.2]), steps=3)
    with pytest.raises(ValueError, match="whole number"):
        resume(run, steps=-1)


def test_value_and_gradient_of_a_prepared_run_agree_with_differences():
    system, q, v = (np.asarray(x) if k else x for k, x in enumerate(kepler()))
    prepared = prepare(system, VelocityNonholonomic(), step_size=0.1, steps=12)
    f = prepared.value_and_gradient(lambda run: jnp.sum(run.q[-1] ** 2) + run.energy[-1])
    value, gradient = f(q, v)
    run = prepared(q, v)
    assert abs(value - (np.sum(run.q[-1] ** 2) + run.energy[-1])) < 1e-12
    for k, e in enumerate(np.eye(2)):
        d = 1e-6 * e
        by_q, by_v = f(q + d, v)[0] - f(q - d, v)[0], f(q, v + d)[0] - f(q, v - d)[0]
        for slope, difference in ((gradient.q0, by_q / 2e-6), (gradient.v0, by_v / 2e-6)):
            assert abs(slope[k] - difference) < 1e-6 * max(1.0, abs(difference))
    high, low = (f(q, v, parameters={"k": 2.3 + d})[0] for d in (1e-6, -1e-6))
    assert abs(gradient.parameters["k"] - (high - low) / 2e-6) < 1e-6
    with pytest.raises(ValueError, match="must be finite"):
        f(q + np.nan, v)


def test_runs_can_be_copied_and_sent_elsewhere():
    system, q, v = kepler()
    prepared = prepare(system, SemiImplicitDLA(), step_size=0.1, steps=5)
    plain = prepared(q, v)
    assert pickle.loads(pickle.dumps(plain)) == plain
    for change in (lambda run: pickle.loads(pickle.dumps(run)), copy.copy, lambda run: replace(run)):
        unread = prepared(q, v)
        assert np.array_equal(unread.q, plain.q)
        assert change(unread) == plain
    assert prepared(q, v).with_source("here", {}).info.source == "here"


def test_a_prepared_run_can_be_traced():
    system, q, v = OF_EVERY_KIND["particle"]()
    prepared = prepare(system, RungeKutta4(), step_size=0.1, steps=5)
    prepared(q, v)
    last = jax.jit(lambda q, v: prepared(q, v).q[-1])(jnp.asarray(q), jnp.asarray(v))
    assert np.max(np.abs(last - prepared(q, v).q[-1])) < 1e-14


def test_notebooks_show_runs_systems_and_reports():
    system, q, v = OF_EVERY_KIND["disk"]()
    run = simulate(system, SemiImplicitDLA(), q, v, step_size=0.1, steps=3)
    for shown, words in ((run, "SemiImplicitDLA"), (system, "2, linear"), (run.report, "solved")):
        page = shown._repr_html_()
        assert page.startswith("<table>")
        assert words in page


def test_notebooks_show_hostile_names_as_text():
    bad = "<script>alert(1)<b>"
    system = System(
        lambda q, v, p: 0.5 * v[0] ** 2 - p[bad] * q[0],
        coordinates=(bad,),
        parameters={bad: 1.0},
        first_integrals={bad: lambda q, v, p: 0.5 * v[0] ** 2 + p[bad] * q[0]},
    )
    wall = {bad: Event(lambda q, v, p: q[0] + 0.1, terminal=True)}
    run = simulate(system, RungeKutta4(), [0.0], [0.1], step_size=0.1, max_steps=9, events=wall)
    assert run.stopped_by == bad
    how = {"step_size": 0.1, "steps": 2, "parameters": {bad: np.ones(3)}}
    many = ensemble(system, RungeKutta4(), [0.0], [0.1], observables=[bad], **how)
    for shown in (run, system, run.report, many):
        page = shown._repr_html_()
        assert "<script" not in page
        assert shown is run.report or "&lt;script&gt;" in page
