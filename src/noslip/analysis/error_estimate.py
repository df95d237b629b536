"""How good a run is: its global error, from the same run with half the step.

A method of order p at steps h and h/2 has errors e and about e / 2^p, so that e is the difference of the two
runs times 2^p / (2^p - 1). p is that of q: of the orders 1 and 2 of a method whose positions are better than
its velocities the estimate says at most twice too much. It is of no use where the step is too large for the
order to show, and says nothing of errors below round-off.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from noslip.errors import SolveFailed
from noslip.integrators.base import Integrator
from noslip.saved import integrator_of, system_of
from noslip.simulate import simulate
from noslip.system import System
from noslip.trajectory import Trajectory


def error_estimate(
    run: Trajectory, *, system: System | None = None, integrator: Integrator | None = None
) -> np.ndarray:
    """For each saved row the largest estimated error over the coordinates q: one more run, of twice the cost.

    A run that was loaded needs its `system` and `integrator` where their names do not tell them. NaN where
    the finer run has no such row: it failed before, or an event happens another number of times.
    """
    events: dict[str, Any] = {}
    if run.origin is not None:
        system, integrator = run.origin.pairing.system, run.origin.pairing.integrator
        events = dict(run.origin.pairing.events)
    elif run.info.events:
        raise ValueError("the events of a loaded run are functions, which its file does not have")
    info = run.info
    if run.origin is None and info.input_functions:
        raise ValueError("the inputs of a loaded run that were functions of t are not in its file")
    system = system_of(info) if system is None else system
    integrator = integrator_of(info) if integrator is None else integrator
    rows = {"save_at": run.t} if info.save_at else {"save_every": 2 * info.save_every}
    steps = 2 * info.steps + 2 * bool(events)  # a terminal event may come a little later
    if integrator.own_time:
        steps += 2 + info.steps // 8  # as many may end a little before the last row
    inputs = {name: _for_half_steps(x, info.inputs_between, steps) for name, x in run.inputs.items()}
    try:
        finer = simulate(
            system, integrator, run.q0, run.v0, step_size=info.step_size / 2, steps=steps,
            t0=info.t0, backend=info.backend if info.backend in ("native", "xla") else "auto",
            inputs=inputs, inputs_between=info.inputs_between, events=events or None, **rows,
        )  # fmt: skip
    except SolveFailed as failed:
        finer = failed.trajectory
    difference = _largest_differences(system, run, finer, integrator.own_time and not info.save_at)
    factor = 2.0**integrator.order
    return difference * factor / (factor - 1)


def _for_half_steps(values: ArrayLike, between: str, steps: int) -> np.ndarray:
    """The same inputs for steps of half the length, so many; the last ones stay."""
    x = np.asarray(values)
    finer = np.repeat(x, 2)
    if between == "linear":
        finer = np.interp(np.arange(2 * len(x) - 1) / 2, np.arange(len(x)), x)
    count = steps + (between == "linear")
    return np.append(finer, np.full(max(count - len(finer), 0), finer[-1]))[:count]


def _largest_differences(system: System, run: Trajectory, finer: Trajectory, own_time: bool) -> np.ndarray:
    """Of q at the rows of the run. Methods that make their own time are compared at the same times."""

    def largest(q: np.ndarray, other: np.ndarray) -> np.ndarray:
        return np.max(np.abs(np.asarray(system.alike(other, other, q)[0]) - q), axis=-1)

    found = np.full(len(run.t), np.nan)
    if own_time:
        inside = (run.t >= finer.t[0]) & (run.t <= finer.t[-1])
        found[inside] = largest(run.q[inside], finer.at(run.t[inside]).q)
        return found
    whole = len(run.t) - bool(run.stopped_by)
    same = min(whole, len(finer.t) - bool(finer.stopped_by))
    found[:same] = largest(run.q[:same], finer.q[:same])
    if run.stopped_by and run.stopped_by == finer.stopped_by:
        found[-1] = largest(run.q[-1], finer.q[-1])
    return found
