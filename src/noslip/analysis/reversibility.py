"""Whether a step of -h undoes a step of h."""

from __future__ import annotations

from typing import Any

import numpy as np

from noslip.integrators.base import Integrator
from noslip.run.choose import on_cpu, trajectory_runner
from noslip.run.pairing import pairing_of
from noslip.run.runner import TrajectoryRunner
from noslip.run.step import TURN
from noslip.system import System


def reversibility_defect(
    system: System, integrator: Integrator, q0: Any, v0: Any, *, step_size: float, steps: int, t0: float = 0.0
) -> float:
    """Go `steps` steps forth and as many back; the largest difference to the start, relative to the
    largest component of state along the way. NaN if a solve fails."""
    q, v, t = (np.asarray(x, dtype=float) for x in (q0, v0, t0))
    with on_cpu():
        runner = _runner(system, integrator, q, v, t, step_size)
        there = _travel(system, runner, steps)
        if integrator.remembers_start:  # what the state at the end still knows
            runner.step_size(-step_size)
            back = _travel(system, runner, 2 * steps)
        else:
            runner = _runner(system, integrator, *there, t + steps * step_size, -step_size)
            back = _travel(system, runner, steps)
    size = max(float(np.max(np.abs(x))) for x in (q, v, *there))
    return max(float(np.max(np.abs(a - b))) for a, b in zip(back, (q, v), strict=True)) / (size or 1.0)


def travelled(
    system: System, integrator: Integrator, q: Any, v: Any, t: Any, h: float, steps: int
) -> tuple[np.ndarray, np.ndarray]:
    """q and v after that many steps; h may be negative. NaN if a solve fails."""
    with on_cpu():
        return _travel(system, _runner(system, integrator, q, v, t, h), steps)


def _runner(
    system: System, integrator: Integrator, q: Any, v: Any, t: Any, h: float
) -> TrajectoryRunner[Any]:
    q, v = np.asarray(q, dtype=float), np.asarray(v, dtype=float)
    return trajectory_runner(pairing_of(system, integrator), q, v, float(t), float(h))


def _travel(system: System, runner: TrajectoryRunner[Any], stop: int) -> tuple[np.ndarray, np.ndarray]:
    """The state at step `stop`."""
    part, _, failed = runner.to(stop, stop, stop)
    if failed:
        return np.full(system.n, np.nan), np.full(system.n, np.nan)
    rows = runner.join([part])
    return np.asarray(rows.q[-1] + TURN * rows.turns[-1]), np.asarray(rows.v[-1])
