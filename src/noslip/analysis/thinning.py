"""Long runs on disk, small enough to be looked at: fewer rows, none of whose extremes is lost."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from noslip.run.columns import Column
from noslip.trajectory import Trajectory

ROWS = 100_000
Choice = Callable[[np.ndarray, np.ndarray], np.ndarray]  # of rows, and where each group of them begins


def thinned(run: Trajectory, rows: int = ROWS) -> Trajectory:
    """A run in memory as it is; of one on disk about so many rows, read some at a time.

    Rows are put together in groups of the same number, the first and the last are alone. Each group shows the
    time, positions, velocities and multipliers of its first row; of energy and first integrals the value
    farthest from that at the start, of the constraint the largest, of the report the worst, and the sum of
    the steps. So largest errors are those of the whole run.
    """
    if not isinstance(run.t, Column):
        return run
    count = len(run.t)
    size = max(1, -(-count // rows))
    starts = np.unique(np.array([0, *range(1, max(count - 1, 1), size), count - 1]))
    values = {
        name: _grouped(x, starts, _choice(name, x)) if isinstance(x, Column) and dims[0] == "time" else x
        for name, (dims, x) in run.columns().items()
    }
    return Trajectory.of_columns(values, run.info)


def _choice(name: str, column: Column) -> Choice:
    if name == "energy" or name.startswith("integral_"):
        return _farthest(column[0])
    if name in ("constraint_residual", "holonomic_residual", "holonomic_rate"):
        return _farthest(0.0)
    if name == "report_steps":
        return np.add.reduceat
    if name == "energy_scale" or name.startswith("report_"):
        return np.maximum.reduceat
    return lambda rows, starts: rows[starts]


def _farthest(centre: float) -> Choice:
    def choose(rows: np.ndarray, starts: np.ndarray) -> np.ndarray:
        high, low = np.maximum.reduceat(rows, starts), np.minimum.reduceat(rows, starts)
        return np.where(high - centre >= centre - low, high, low)

    return choose


def _grouped(column: Column, starts: np.ndarray, choose: Choice) -> np.ndarray:
    """What is chosen of each group; as many groups at a time as there are in a block on disk."""
    ends, parts, k = np.append(starts[1:], len(column)), [], 0
    while k < len(starts):
        last = max(k, int(np.searchsorted(ends, starts[k] + column.block, side="right")) - 1)
        rows = column[int(starts[k]) : int(ends[last])]
        parts.append(choose(rows, starts[k : last + 1] - starts[k]))
        k = last + 1
    return np.concatenate(parts)
