"""Elimination with known places: of matrices whose exact zeros are known while a program is written.

The order of the pivots is that of least degree, chosen from the places alone. No rows are exchanged: a
symmetric positive definite matrix needs none. In a general one an unknown with an exact zero on the diagonal,
such as a multiplier in [[A, B], [C, 0]], waits until all those that it is coupled to have gone, so that its
pivot is one of the Schur complement -C A^-1 B; and solutions z of a z = y are checked row by row,

    |y - a z| <= e |a| |z|,

whatever the scales of rows and columns, so that the caller can do without one that is not accurate. For what
counts itself e is ROUND_OFF, and every solution is checked. An iteration that solves for many increments with
one matrix checks one solution before it begins, that with z near the sizes of its unknowns, and with
e = ACCURATE: it is the elimination that is accurate or not, and inaccurate increments only slow it down.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from noslip.engine.translate.arrays import Nodes
from noslip.engine.translate.builder import Builder

GAIN = 5  # written out where that takes so many times fewer operations than rolled loops over all places
LONGEST = 20_000  # operations
ACCURATE = 1e-10
ROUND_OFF = 64 * float(np.finfo(float).eps)  # what partial pivoting leaves, and a few times more
Places: TypeAlias = list[set[int]]  # for each row the columns of what is not zero


@dataclass
class Pivots:
    """An order of pivots, and how many operations it costs to eliminate and to solve for one right side."""

    order: list[int]
    eliminate: int
    solve: int

    def pays(self, n: int, columns: int) -> bool:
        whole = self.eliminate + self.solve * columns
        return self.eliminate + self.solve <= LONGEST and GAIN * whole <= n * n * (n + columns)


def pivots(b: Builder, a: Nodes) -> Pivots | None:
    """The order of least degree in the places of a and its transpose; None where a pivot is an exact zero."""
    n = len(a)
    known = a != b.const(0.0)
    filled = known.copy()  # what is not zero, or no more: on one side of the diagonal perhaps
    places: Places = [set(np.flatnonzero(row).tolist()) for row in known | known.T]
    waiting: dict[int, set[int]] = {i: places[i] - {i} for i in range(n) if not known[i, i]}
    left, found = set(range(n)), Pivots([], 0, 0)
    while left:
        ready = [i for i in left if filled[i, i] and not waiting.get(i)]
        if not ready:
            return None
        k = min(ready, key=lambda i: (len(places[i]), i))
        left.remove(k)
        others = places[k] - {k}
        for i in others:
            places[i] = (places[i] | others) - {k}
        filled |= np.outer(filled[:, k], filled[k])
        for rest in waiting.values():
            rest.discard(k)
        found.order.append(k)
        found.eliminate += len(others) * (len(others) + 1)
        found.solve += 2 * len(others)
    return found


class Eliminated:
    """L and U of a matrix with its pivots in a given order, as nodes."""

    def __init__(self, b: Builder, a: Nodes, order: list[int], symmetric: bool):
        self.b, self.order, zero = b, order, b.const(0.0)
        rows = [{j: x for j, x in enumerate(row) if x != zero} for row in a.tolist()]
        at = {k: place for place, k in enumerate(order)}
        columns: list[set[int]] = [set() for _ in rows]
        for i, row in enumerate(rows):
            for j in row:
                columns[j].add(i)
        self.low: list[list[tuple[int, int]]] = []
        self.up: list[list[tuple[int, int]]] = []
        self.reciprocal: list[int] = []
        for place, k in enumerate(order):
            scale = b.div(b.const(1.0), rows[k][k])
            up = sorted((at[j], j, x) for j, x in rows[k].items() if at[j] > place)
            low = sorted((at[i], i, b.mul(rows[i][k], scale)) for i in columns[k] if at[i] > place)
            for there, i, factor in low:
                for also, j, x in up:
                    if symmetric and also < there:  # done as (j, i)
                        continue
                    rows[i][j] = b.sub(rows[i].get(j, zero), b.mul(factor, x))
                    columns[j].add(i)
                    if symmetric:
                        rows[j][i] = rows[i][j]
                        columns[i].add(j)
            self.low.append([(i, x) for _, i, x in low])
            self.up.append([(j, x) for _, j, x in up])
            self.reciprocal.append(scale)

    def solve(self, y: list[int]) -> list[int]:
        """x of a x = y."""
        b, x, zero = self.b, list(y), self.b.const(0.0)
        for k, low in zip(self.order, self.low, strict=True):
            if x[k] != zero:
                for i, factor in low:
                    x[i] = b.sub(x[i], b.mul(factor, x[k]))
        for k, up, scale in zip(self.order[::-1], self.up[::-1], self.reciprocal[::-1], strict=True):
            total = x[k]
            for j, factor in up:
                total = b.sub(total, b.mul(factor, x[j]))
            x[k] = b.mul(total, scale)
        return x


def spd_solve(b: Builder, a: Nodes, y: Nodes) -> Nodes | None:
    """a^-1 y of a symmetric positive definite a; None where it is better done densely."""
    made = _eliminated(b, a, y.shape[1], True)
    if made is None:
        return None
    return np.array([made.solve(column) for column in y.T.tolist()], dtype=np.int64).T


def checked_solve(b: Builder, a: Nodes, y: Nodes) -> tuple[Nodes, int] | None:
    """a^-1 y, and whether every column of it has all its digits; None where it is better done densely."""
    made = _eliminated(b, a, y.shape[1], False)
    if made is None:
        return None
    x, accurate = np.empty_like(y), b.const(True)
    for c, column in enumerate(y.T.tolist()):
        x[:, c] = made.solve(column)
        accurate = b.both(accurate, _is_accurate(b, a, column, x[:, c].tolist(), ROUND_OFF))
    return x, accurate


def tried(b: Builder, a: Nodes, sizes: Nodes) -> Eliminated | None:
    """For many right sides, by solutions of about these sizes: no numbers come of it if that of a z = a sizes
    is not accurate. None where it is better done densely."""
    made = _eliminated(b, a, 1, False)
    if made is None:
        return None
    y = [b.const(0.0)] * len(a)
    for i, row in enumerate(a.tolist()):
        for entry, size in zip(row, sizes.tolist(), strict=True):
            y[i] = b.add(y[i], b.mul(entry, size))
    accurate, nothing = _is_accurate(b, a, y, made.solve(y), ACCURATE), b.const(np.nan)
    made.reciprocal = [b.select(accurate, number, nothing) for number in made.reciprocal]
    return made


def _eliminated(b: Builder, a: Nodes, columns: int, symmetric: bool) -> Eliminated | None:
    n = len(a)
    if symmetric:  # what is below the diagonal counts
        a = np.where(np.tri(n, dtype=bool), a, a.T)
    if (found := pivots(b, a)) is None or not found.pays(n, columns):
        return None
    return Eliminated(b, a, found.order, symmetric)


def _is_accurate(b: Builder, a: Nodes, y: list[int], x: list[int], allowed: float) -> int:
    accurate, zero = b.const(True), b.const(0.0)
    for row, right in zip(a.tolist(), y, strict=True):
        left, size = right, zero
        for entry, value in zip(row, x, strict=True):
            if entry != zero:
                left = b.sub(left, b.mul(entry, value))
                size = b.add(size, b.mul(b.abs(entry), b.abs(value)))
        accurate = b.both(accurate, b.compare("le", b.abs(left), b.mul(b.const(allowed), size)))
    return accurate
