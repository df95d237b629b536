"""Rows at given times of runs with events: on the right side of every reset, up to a terminal event."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from models import OF_EVERY_KIND
from noslip import Event, System, simulate
from noslip.integrators import DiscreteGradient, ReferenceFlow, SemiImplicitDLA

G = 9.81
BALL = System(
    lambda q, v, p: 0.5 * p["m"] * jnp.dot(v, v) - p["m"] * (G * q[1] - p["push"] * q[0]),
    coordinates=("x", "y"),
    parameters={"m": 1.3},
    inputs={"push": 0.0},
)
STATE = [0.0, 1.0], [0.3, 0.0]
BOUNCE = Event(lambda q, v, p: q[1], direction=-1, reset=lambda q, v, p: (q, v * jnp.array([1.0, -1.0])))
TOP = Event(lambda q, v, p: v[1], direction=-1)
STOP = Event(lambda q, v, p: q[0] - 0.7, terminal=True)


@pytest.mark.parametrize(
    "how",
    [
        {"step_size": 0.03},
        {"step_size": 1.5},  # up to two bounces in a step
        pytest.param({"step_size": 0.03, "backend": "xla"}, marks=pytest.mark.slow),
    ],
    ids=["short", "long", "xla"],
)
@pytest.mark.parametrize(
    "method", [SemiImplicitDLA(), pytest.param(DiscreteGradient(), marks=pytest.mark.slow), ReferenceFlow()]
)
def test_rows_lie_on_the_right_side_of_every_bounce(method, how):
    """Of a fall, which all of these methods follow exactly."""
    quarter = np.sqrt(2 / G)
    around = (quarter * np.arange(1, 13, 2)[:, None] + [-1e-6, 0.0, 1e-6]).ravel()
    times = np.sort(np.concatenate([around, np.linspace(0, 6, 41)]))
    run = simulate(BALL, method, *STATE, save_at=times, events={"floor": BOUNCE, "top": TOP}, **how)
    phase = (times + quarter) % (2 * quarter) - quarter
    assert np.array_equal(run.t, times)
    assert np.max(np.abs(run.q[:, 1] - (1 - G / 2 * phase**2))) < 1e-9
    clear = np.abs(np.abs(phase) - quarter) > 1e-9
    assert np.max(np.abs(run.v[clear, 1] + G * phase[clear])) < 1e-9
    assert len(run.events["floor"]) == 7
    assert len(run.events["top"]) == 6


@pytest.mark.parametrize("method", [SemiImplicitDLA(), ReferenceFlow()])
def test_a_terminal_event_is_the_last_row_after_those_that_were_asked_for(method):
    times = np.array([0.0, 0.5, 1.7, 2.1, 2.33, 2.34, 2.5, 7.0])
    run = simulate(BALL, method, *STATE, step_size=0.4, save_at=times, events={"stop": STOP, "floor": BOUNCE})
    assert run.stopped_by == "stop"
    assert run.t[:-1].tolist() == times[times < 0.7 / 0.3].tolist()
    assert abs(run.t[-1] - 0.7 / 0.3) < 1e-12
    assert abs(run.q[-1, 0] - 0.7) < 1e-12
    assert run.info.steps == 6
    first = simulate(BALL, method, *STATE, step_size=0.4, save_at=[3.0], events={"stop": STOP})
    assert len(first.t) == 1
    assert abs(first.q[0, 0] - 0.7) < 1e-12
    assert np.sum(run.report.steps) == np.sum(first.report.steps) == 6


@pytest.mark.slow
def test_rows_between_resets_have_the_order_and_the_promises_of_the_method():
    system, q, v = OF_EVERY_KIND["sleigh"]()
    wall = float(q[0]) + 0.3 * float(np.sign(v[0]))
    back = Event(
        lambda q, v, p: q[0] - wall, reset=lambda q, v, p: (q, -0.5 * v + jnp.array([0.1, 0.2, 0.0]))
    )
    times = np.linspace(0.05, 1.9, 23)
    how: dict[str, Any] = {"save_at": times, "events": {"wall": back}}
    exact = simulate(system, ReferenceFlow(), q, v, step_size=0.05, **how)
    assert len(exact.events["wall"]) == 1
    errors = []
    for h in (0.1, 0.05):
        run = simulate(system, DiscreteGradient(), q, v, step_size=h, **how)
        errors.append(np.max(np.abs(run.q - exact.q)) + np.max(np.abs(run.v - exact.v)))
        assert np.max(np.abs(run.constraint_residual)) < 1e-14
        after = run.t > run.events["wall"].t[0]
        assert np.ptp(run.energy[after]) < 1e-13
        assert np.ptp(run.energy[~after]) < 1e-13
    assert np.log2(errors[0] / errors[1]) > 1.8
    plain = simulate(system, DiscreteGradient(), q, v, step_size=0.05, steps=38, events={"wall": back})
    nodes = simulate(system, DiscreteGradient(), q, v, step_size=0.05, save_at=plain.t, events={"wall": back})
    assert np.array_equal(nodes.q, plain.q)  # the run does not notice that it is looked at


def test_inputs_of_the_step_act_after_a_reset():
    """A push that is switched in the step of a bounce, against the same run with short steps."""
    push = np.where(np.arange(6) % 2 == 0, 0.5, -2.0)
    times = [0.43, 0.46, 0.59, 0.85, 1.3, 1.36, 1.4, 1.75]
    how: dict[str, Any] = {"save_at": times, "events": {"floor": BOUNCE}}
    run = simulate(BALL, SemiImplicitDLA(), *STATE, step_size=0.3, steps=6, inputs={"push": push}, **how)
    fine = simulate(
        BALL,
        SemiImplicitDLA(),
        *STATE,
        step_size=0.01,
        steps=180,
        inputs={"push": np.repeat(push, 30)},
        **how,
    )
    assert np.max(np.abs(run.q - fine.q)) < 1e-12
    assert np.max(np.abs(run.v - fine.v)) < 1e-12


def test_a_traced_run_says_that_it_cannot():
    def end(x):
        start = jnp.array([x, 1.0])
        run = simulate(
            BALL, SemiImplicitDLA(), start, STATE[1], step_size=0.1, save_at=[0.3], events={"top": TOP}
        )
        return run.q[-1, 0]

    with pytest.raises(ValueError, match="cannot both be given to a traced run"):
        jax.grad(end)(0.0)
