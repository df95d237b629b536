"""After a run: whether the system was, where it has been, what it must be. A violation would be silent."""

from __future__ import annotations

import jax
import numpy as np

from noslip.integrators.solve import Status
from noslip.run.step import Row
from noslip.system import System
from noslip.system.conditions import broken_along


def up_to_a_broken_condition(system: System, rows: Row) -> tuple[Row, str]:
    """The rows before the first, of those looked at, where a condition of the system fails, and why; all of
    them, and nothing, where none does."""
    if (
        len(rows.step) < 2
        or (found := broken_along(system, *map(np.asarray, (rows.q, rows.v, rows.t)))) is None
    ):
        return rows, ""
    row, reason = found
    row = max(row, 1)
    kept = jax.tree.map(lambda x: x[:row].copy(), rows)
    kept.interval.status[-1] = Status.BROKEN_CONDITION
    kept.interval.failed_step[-1] = rows.step[row]
    return kept, f": {reason}"
