"""What is asked of every saved row, whoever made it: that all of it is finite, that the energy is still of
its size where the motion conserves it, and, after a run, that the system was what it must be where it was."""

from __future__ import annotations

import math
from types import ModuleType
from typing import Any

import jax
import numpy as np
from jax import Array

from noslip.integrators.solve import Status
from noslip.numerics.linear import independence
from noslip.numerics.tracing import Values
from noslip.run.member import MemberRow
from noslip.run.pairing import Pairing
from noslip.run.step import Row
from noslip.system import System
from noslip.system.conditions import broken_along, parallel_along

FEW = 3  # rows that a short program looks at, one by one
BLOWN_UP = 1e9
"""So many times the size of the energy at the start is no error of a method any more. Real growth of an
error, as in CFHM figure 4, is by a factor of 1e4 in 5e5 steps."""


def failed_rows(
    row: Row | MemberRow, first: Row | MemberRow, size: Values, conserved: bool, xp: ModuleType = np
) -> Any:
    """The status of each row by what it shows. `size` is |T| + |V| at the start; where that vanishes, or
    where the energy is the small difference of terms that have grown, nothing is said of its growth."""
    shown = [row.q, row.v, row.multipliers, row.energy, row.constraint, *_integrals(row).values()]
    lead = row.energy.ndim
    each = [xp.all(xp.isfinite(x), axis=tuple(range(lead, x.ndim))) for x in shown]
    finite = xp.all(xp.stack(each), axis=0)
    status = xp.where(finite, int(Status.SOLVED), int(Status.NOT_FINITE))
    if not conserved:
        return status
    change = xp.abs(row.energy - first.energy)
    gone = finite & (size > 0) & (change > BLOWN_UP * size) & (change > 0.5 * row.energy_scale)
    return xp.where(gone, int(Status.BLOWN_UP), status)


def _integrals(row: Row | MemberRow) -> dict[str, Array]:
    return getattr(row, "first_integrals", {})


def conserves_energy(system: System) -> bool:
    """Whether the motion does: no force, no inputs, nothing that contains t, constraints that do no work."""
    return system.kind == "linear" and system.force is None and not system.moving and not system.inputs


def up_to_a_failed_row(rows: Row, conserved: bool) -> Row:
    """The rows before the first that is itself a failure; the record of that one joins the last of them."""
    if surely_good(rows, conserved, rows):
        return rows
    first = jax.tree.map(lambda x: x[:1], rows)
    scales = rows.energy_scale[:2]
    size = scales[0] if scales[0] > 0 else scales[-1]  # of what has become of rest where V = 0
    with np.errstate(all="ignore"):
        status = failed_rows(rows, first, size, conserved)
    bad = np.flatnonzero(status[1:])
    if not len(bad):
        return rows
    k = int(bad[0]) + 1
    return _ended(rows, k, Status(int(status[k])))


def surely_good(rows: Row, conserved: bool, begun: Row) -> bool:
    """Whether a few sums can tell that no row of a run that has `begun` so is a failure, which is the usual
    case: a sum is finite only if all its terms are."""
    shown = (rows.q, rows.v, rows.multipliers, rows.energy, rows.constraint, *rows.first_integrals.values())
    with np.errstate(all="ignore"):
        if not math.isfinite(sum(float(np.add.reduce(x, axis=None)) for x in shown)):
            return False
        change = float(np.max(np.abs(rows.energy - begun.energy[0]), initial=0.0)) if conserved else 0.0
    return change <= BLOWN_UP * float(begun.energy_scale[0])


def _ended(rows: Row, k: int, status: Status) -> Row:
    kept = jax.tree.map(lambda x: np.array(x[:k]), rows)
    kept.interval.status[-1], kept.interval.failed_step[-1] = status, rows.step[k]
    return kept


def up_to_a_broken_condition(system: System, rows: Row) -> tuple[Row, str]:
    """The rows before the first, of those looked at, where a condition of the system fails, and why; all of
    them, and nothing, where none does."""
    if len(rows.step) < 2:
        return rows, ""
    found = broken_along(system, *(np.asarray(x)[1:] for x in (rows.q, rows.v, rows.t)))
    return (
        (rows, "")
        if found is None
        else (_ended(rows, found[0] + 1, Status.BROKEN_CONDITION), f": {found[1]}")
    )


def forms_become_parallel(pairing: Pairing, rows: Row) -> bool:
    """Whether the one-forms are nearly parallel at some of the rows."""
    q, v, t = (np.asarray(x) for x in (rows.q, rows.v, rows.t))
    few = len(q) <= FEW and all(_surely_apart(pairing, *row) for row in zip(q, v, strict=True))
    return not few and parallel_along(pairing.system, q, v, t)


def parallel_at(pairing: Pairing, q: np.ndarray, v: np.ndarray, t: float) -> bool:
    """Whether the one-forms are nearly parallel at this state."""
    when = np.full(1, t)
    return not _surely_apart(pairing, q, v) and parallel_along(pairing.system, q[None], v[None], when)


def _surely_apart(pairing: Pairing, q: np.ndarray, v: np.ndarray) -> bool:
    """Whether a short program can tell that they are not."""
    if pairing.system.rows < 2:
        return True
    return not pairing.clocked and (apart := pairing.at_state(_apart, q, v)) is not None and apart[0] > 0


def _apart(system: System, q: Array, v: Array) -> Array:
    return independence(system.mu(q, v))
