"""Scalar programs as expressions of an algebra (heyoka's, SymPy's): one expression per output.

Fused operations are products and sums here, rolled loops are written out turn by turn, and so are dense
solves. What chooses by a condition, or repeats until one holds, has no analytic expression, but for a choice
among numbers that stay: the setup of a program, where the algebra has choices.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, Protocol, Self, TypeVar

from noslip.engine.program import CannotTranslate, Dense, Evaluation, Loop, Number, Program


class Expression(Protocol):
    """What is written with the signs of Python."""

    def __add__(self, other: Self, /) -> Self: ...
    def __sub__(self, other: Self, /) -> Self: ...
    def __mul__(self, other: Self, /) -> Self: ...
    def __truediv__(self, other: Self, /) -> Self: ...
    def __neg__(self) -> Self: ...


E = TypeVar("E", bound=Expression)
ARITHMETIC: Mapping[str, Callable[..., Any]] = {
    "add": operator.add,
    "sub": operator.sub,
    "mul": operator.mul,
    "div": operator.truediv,
    "neg": operator.neg,
    "fma": lambda x, y, z: x * y + z,
    "fnma": lambda x, y, z: z - x * y,
    "fms": lambda x, y, z: x * y - z,
}
COFACTORS = 4  # unknowns of a solve with any matrix; the terms of a determinant are too many beyond


class NotExpressible(CannotTranslate):
    """A program with an operation that has no analytic expression; the text says which."""


@dataclass(frozen=True)
class Algebra(Generic[E]):
    """Where expressions live: `number` makes a constant, `functions` are those by name, and `choices` those
    that decide, for numbers that stay."""

    number: Callable[[Number], E]
    functions: Mapping[str, Callable[..., E]]
    choices: Mapping[str, Callable[..., E]] = field(default_factory=dict)
    total: Callable[[list[E]], E] = lambda terms: functools.reduce(operator.add, terms)

    def apply(self, name: str, *values: E) -> E:
        return (self.functions.get(name) or self.choices[name])(*values)


def expressions(program: Program, inputs: Sequence[E], algebra: Algebra[E]) -> list[E]:
    """The outputs of a program for these inputs."""
    writer = _Expressions(program, inputs, algebra)
    return [writer.value(o) for o in program.outputs]


class _Expressions(Evaluation[E]):
    def __init__(self, program: Program, inputs: Sequence[E], algebra: Algebra[E]):
        self.program, self.number = program, algebra.number
        self.values: dict[int, E] = dict(zip(program.inputs, inputs, strict=True))
        operations = {**ARITHMETIC, **algebra.functions}
        self.operations = {**operations, **algebra.choices}
        self.block(program.setup)
        self.operations = operations
        self.block(program.main)

    def value(self, node: int) -> E:
        if node not in self.values:
            made = self.program.nodes[node]
            if made.value is None:
                raise NotExpressible(f"the operation '{made.op}' has no analytic expression")
            self.values[node] = self.number(made.value)
        return self.values[node]

    def operation(self, number: int) -> None:
        node = self.program.nodes[number]
        if node.op not in self.operations:
            if node.kind != "f":
                return  # truths and whole numbers: what they decide is refused
            raise NotExpressible(f"the operation '{node.op}' has no analytic expression")
        self.values[number] = self.operations[node.op](*map(self.value, node.args))

    def loop(self, loop: Loop) -> None:
        raise NotExpressible("a loop that ends by a condition has no analytic expression")

    def dense(self, item: Dense) -> None:
        n, flat = item.size[0], [self.value(a) for a in item.inputs]
        wide = len(flat) // n
        rows = [flat[i * wide : (i + 1) * wide] for i in range(n)]
        if item.routine == "inverse":
            unit = [[self.number(float(i == j)) for j in range(n)] for i in range(n)]
            rows = [[*row, *right] for row, right in zip(rows, unit, strict=True)]
        if item.definite:
            found = _eliminated(rows)
        elif n <= COFACTORS:
            found = _by_cofactors(rows)
        else:
            raise NotExpressible(f"a solve of {n} unknowns that chooses pivots has no analytic expression")
        self.values.update(zip(item.results, (x for row in found for x in row), strict=True))


def _eliminated(rows: list[list[E]]) -> list[list[E]]:
    """A^-1 B of the rows of [A | B] by elimination without exchanges: no pivot of a definite A is zero."""
    n = len(rows)
    for k in range(n):
        for i in range(k + 1, n):
            factor = rows[i][k] / rows[k][k]
            rows[i] = [*rows[i][: k + 1], *_minus(rows[i][k + 1 :], factor, rows[k][k + 1 :])]
    found: list[list[E]] = []
    for i in reversed(range(n)):
        right = rows[i][n:]
        for coefficient, x in zip(rows[i][i + 1 : n], found, strict=True):
            right = _minus(right, coefficient, x)
        found.insert(0, [x / rows[i][i] for x in right])
    return found


def _minus(x: Sequence[E], factor: E, y: Sequence[E]) -> list[E]:
    return [a - factor * b for a, b in zip(x, y, strict=True)]


def _by_cofactors(rows: list[list[E]]) -> list[list[E]]:
    """A^-1 B of the rows of [A | B] by Cramer's rule, which divides by the determinant of A alone."""
    n = len(rows)
    every = tuple(range(n))

    @functools.cache
    def minor(own: tuple[int, ...], columns: tuple[int, ...]) -> E:
        if len(own) == 1:
            return rows[own[0]][columns[0]]
        terms = [rows[own[0]][c] * minor(own[1:], _without(columns, c)) for c in columns]
        return _alternating(terms)

    def entry(j: int, right: int) -> E:
        """det A times unknown j of a right side."""
        total = _alternating([minor(_without(every, i), _without(every, j)) * rows[i][right] for i in every])
        return -total if j % 2 else total

    whole = minor(every, every)
    return [[entry(j, right) / whole for right in range(n, len(rows[0]))] for j in every]


def _without(numbers: tuple[int, ...], left_out: int) -> tuple[int, ...]:
    return tuple(k for k in numbers if k != left_out)


def _alternating(terms: Sequence[E]) -> E:
    total = terms[0]
    for k, term in enumerate(terms[1:], 1):
        total = total - term if k % 2 else total + term
    return total
