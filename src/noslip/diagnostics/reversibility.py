"""Whether a step of -h undoes a step of h."""

from __future__ import annotations

from typing import Any

import numpy as np

from noslip import _loop
from noslip.integrators._base import Integrator
from noslip.simulate import make_runner, on_cpu
from noslip.system import System


def reversibility_defect(
    system: System, integrator: Integrator, q0: Any, v0: Any, *, step_size: float, steps: int, t0: float = 0.0
) -> float:
    """Go `steps` steps forth and as many back; the largest difference to the start, relative to the
    largest component of state along the way. NaN if a solve fails."""
    q, v, t = (np.asarray(x, dtype=float) for x in (q0, v0, t0))
    there = _travel(system, integrator, q, v, t, step_size, steps)
    back = _travel(system, integrator, *there, t + steps * step_size, -step_size, steps)
    size = max(float(np.max(np.abs(x))) for x in (q, v, *there))
    return max(float(np.max(np.abs(a - b))) for a, b in zip(back, (q, v), strict=True)) / (size or 1.0)


def _travel(
    system: System, integrator: Integrator, q: Any, v: Any, t: Any, h: float, steps: int
) -> tuple[np.ndarray, np.ndarray]:
    with on_cpu():
        start = [np.asarray(x, dtype=float) for x in (q, v, t, h)]
        runner = make_runner(system, integrator, *start)  # type: ignore[arg-type]
        rows, _, failed = runner.to(steps, steps, steps)
    if failed:
        return np.full(system.n, np.nan), np.full(system.n, np.nan)
    return rows.q[-1] + _loop.TURN * rows.turns[-1], rows.v[-1]
