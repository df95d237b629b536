"""Linear solves in scalar programs: written out where they are tiny or sparse, rolled loops otherwise.

Rolled routines work on an array in memory with partial pivoting, one pivot row per lane; their arithmetic
does not depend on the number of lanes.
"""

from __future__ import annotations

import numpy as np

from noslip.engine.translate import sparse
from noslip.engine.translate.arrays import Nodes
from noslip.engine.translate.builder import Builder

WRITTEN_OUT = 12  # symmetric solves up to this size, whatever their zeros


def solve(b: Builder, a: Nodes, y: Nodes) -> Nodes:
    """By elimination with known places where that pays; densely where that is not accurate."""
    # an inverse is full
    found = sparse.checked_solve(b, a, y) if y.shape[1] < len(a) else None
    if found is None:
        return dense_solve(b, a, y)
    x, accurate = found

    def once(_: list[int]) -> list[int]:
        return [b.const(False), *dense_solve(b, a, y).ravel().tolist()]

    results = b.loop([b.invert(accurate), *x.ravel().tolist()], lambda values: values[0], once)
    return np.array(results[1:], dtype=np.int64).reshape(y.shape)


def known_solve(b: Builder, a: Nodes, y: Nodes, sizes: Nodes) -> Nodes | None:
    """By elimination with known places, for one of many increments of unknowns of these sizes; no number
    where that is not accurate, and None where it does not pay."""
    made = sparse.tried(b, a, sizes)
    return None if made is None else np.array(made.solve(y.tolist()), dtype=np.int64)


def dense_solve(b: Builder, a: Nodes, y: Nodes, definite: bool = False) -> Nodes:
    """Gauss-Jordan with partial pivoting; with the identity on the right, in place."""
    n, k = y.shape
    if n == 1:
        return np.array([[b.div(int(x), int(a[0, 0])) for x in y[0]]], dtype=np.int64)
    if k == n and all(b.value(int(y[i, j])) == (i == j) for i, j in np.ndindex(n, n)):
        found = b.dense("inverse", (n, n), a.ravel().tolist(), n * n, definite)
    else:
        inputs = np.concatenate([a, y], axis=1).ravel().tolist()
        found = b.dense("solve", (n, k, n + k), inputs, n * k, definite)
    return np.array(found, dtype=np.int64).reshape(n, k)


def spd_solve(b: Builder, a: Nodes, y: Nodes) -> Nodes:
    """LDL^T without pivoting; products with exact zeros vanish while it is written."""
    n = len(a)
    if n > WRITTEN_OUT:
        found = sparse.spd_solve(b, a, y)
        return dense_solve(b, a, y, definite=True) if found is None else found
    low: list[list[int]] = [[] for _ in range(n)]
    diagonal: list[int] = []
    reciprocal: list[int] = []
    for j in range(n):
        scaled = [b.mul(low[j][k], diagonal[k]) for k in range(j)]
        diagonal.append(_minus_dot(b, int(a[j, j]), low[j], scaled))
        reciprocal.append(b.div(b.const(1.0), diagonal[j]))
        for i in range(j + 1, n):
            low[i].append(b.mul(_minus_dot(b, int(a[i, j]), low[i], scaled), reciprocal[j]))
    out = np.empty_like(y)
    for c in range(y.shape[1]):
        z: list[int] = []
        for i in range(n):
            z.append(_minus_dot(b, int(y[i, c]), low[i], z))
        x = [0] * n
        for i in reversed(range(n)):
            above = [low[k][i] for k in range(i + 1, n)]
            x[i] = _minus_dot(b, b.mul(z[i], reciprocal[i]), above, x[i + 1 :])
        out[:, c] = x
    return out


def _minus_dot(b: Builder, start: int, xs: list[int], ys: list[int]) -> int:
    for x, y in zip(xs, ys, strict=False):
        start = b.sub(start, b.mul(x, y))
    return start
