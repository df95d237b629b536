"""Is an expression zero, what rank has a matrix: decided at random points with 50 digits, proved by SymPy.

A value that is not zero at one point is a proof. A value that is zero at all points is confirmed by
`simplify` where it can, and otherwise rests on the points.
"""

from __future__ import annotations

import random
from collections.abc import Sequence

import mpmath  # type: ignore[import-untyped]
import sympy as sp

from noslip.symbolic._tidy import tidy

DIGITS = 50
TINY = mpmath.mpf(10) ** -30
POINTS = 4
SIMPLIFY_LIMIT = 600  # operations; `simplify` may take minutes above


class Undecided(ValueError):
    """No value of an expression could be had."""


def sample(expressions: Sequence[sp.Expr], points: int = POINTS) -> list[list[mpmath.mpc]]:
    """Values of all expressions at random points where every one of them is finite."""
    symbols = sorted(set().union(*(e.free_symbols for e in expressions)), key=str)
    try:
        function = sp.lambdify(symbols, list(expressions), modules="mpmath", cse=True)
    except NotImplementedError:  # the derivative of a function that has none
        return []
    rng = random.Random(0)
    found: list[list[mpmath.mpc]] = []
    with mpmath.workdps(DIGITS):
        for attempt in range(5 * points):
            at = []
            for symbol in symbols:
                positive = symbol.is_positive or attempt == 0 or rng.random() < 0.5
                size = mpmath.mpf(rng.randint(200, 1800)) / 1000
                at.append(size if positive else -size)
            try:
                values = [mpmath.mpmathify(x) for x in function(*at)]
            except (ArithmeticError, ValueError, TypeError, NameError):
                continue  # outside the domain, or a function that mpmath lacks
            if all(mpmath.isfinite(x) for x in values):
                found.append(values)
            if len(found) == points:
                break
    return found


def is_zero(expression: sp.Expr) -> bool:
    """Whether the expression vanishes identically."""
    return zero(expression)[0]


def zero(expression: sp.Expr) -> tuple[bool, bool]:
    """(vanishes identically, and this is proved and not only seen at the sample points)."""
    if expression.is_number or not expression.free_symbols:
        return bool(sp.simplify(expression) == 0), True
    values = sample([expression])
    if any(abs(row[0]) > TINY for row in values):
        return False, True
    if tidy(expression) == 0:
        return True, True
    proved = expression.count_ops() <= SIMPLIFY_LIMIT and sp.simplify(expression) == 0
    return proved or bool(values), proved


def generic_rank(matrix: sp.MatrixBase) -> int:
    """The rank at almost every point."""
    return len(generic_pivots(matrix))


def generic_pivots(matrix: sp.MatrixBase) -> list[int]:
    """Columns, the simplest first, that are independent at almost every point."""
    order = sorted(range(matrix.cols), key=lambda j: sum(e.count_ops() for e in matrix[:, j]))
    values = sample(list(matrix.extract(list(range(matrix.rows)), order)), 3)
    if not values:
        raise Undecided("ranks must be found at sample points, but the functions had no value at any of them")
    best = max((_pivots(row, matrix.shape) for row in values), key=len)
    return sorted(order[j] for j in best)


def _pivots(values: list[mpmath.mpc], shape: tuple[int, int]) -> list[int]:
    """Pivot columns of a numerical matrix given by rows."""
    rows, cols = shape
    with mpmath.workdps(DIGITS):
        table = [values[i * cols : (i + 1) * cols] for i in range(rows)]
        tolerance = TINY * (1 + max((abs(x) for x in values), default=0))
        pivots: list[int] = []
        for j in range(cols):
            k = len(pivots)
            if k == rows:
                break
            best = max(range(k, rows), key=lambda i: abs(table[i][j]))
            if abs(table[best][j]) <= tolerance:
                continue
            table[k], table[best] = table[best], table[k]
            for i in range(k + 1, rows):
                factor = table[i][j] / table[k][j]
                table[i] = [x - factor * y for x, y in zip(table[i], table[k], strict=True)]
            pivots.append(j)
    return pivots
