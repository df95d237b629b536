"""Expressions as sums of products, in which what cancels is seen: for algebras that pay for each operation.

A sum has terms, each a number times powers of atoms: inputs, functions of sums, and sums of several terms,
which are never multiplied out, so that no expression grows. Equal terms are one, opposite ones none, and
T sin(x)^2 + T cos(x)^2 is T. What is written in the end are the products that several terms share, once, and
apart from the factors that stay.
"""

from __future__ import annotations

import functools
import operator
from collections import Counter
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any, Generic, NamedTuple, TypeVar

import numpy as np

from noslip.engine.backends.expressions import Algebra, Expression, NotExpressible
from noslip.engine.program import Number

Monomial = tuple[tuple[int, int], ...]  # atoms with their powers, in order
ONE: Monomial = ()
Factor = tuple[int, bool]  # an atom, and whether it is above the line
LONGEST = 32  # terms of a sum that another is merged into
E = TypeVar("E", bound=Expression)


class Atom(NamedTuple):
    """An input by its number, a function of sums, or a sum; whether it stays while the others vary."""

    name: str
    parts: tuple[Any, ...]
    stays: bool


@dataclass(frozen=True, eq=False)
class Polynomial:
    """Terms with the numbers before them, none of which is zero."""

    all: Atoms
    terms: dict[Monomial, float]

    def __add__(self, other: Polynomial) -> Polynomial:
        return self.all.added(self, other, 1.0)

    def __sub__(self, other: Polynomial) -> Polynomial:
        return self.all.added(self, other, -1.0)

    def __neg__(self) -> Polynomial:
        return self.times(-1.0)

    def __mul__(self, other: Polynomial) -> Polynomial:
        return self.all.multiplied(self, other)

    def __truediv__(self, other: Polynomial) -> Polynomial:
        return self.all.multiplied(self, self.all.inverse(other))

    def times(self, factor: float) -> Polynomial:
        return Polynomial(self.all, {monomial: factor * number for monomial, number in self.terms.items()})

    @property
    def single(self) -> bool:
        return len(self.terms) == 1


class Atoms:
    """The atoms that sums are made of, each of them once."""

    def __init__(self) -> None:
        self.atoms: list[Atom] = []
        self._known: dict[Hashable, int] = {}

    def atom(self, name: str, parts: tuple[Any, ...], key: Hashable, stays: bool) -> int:
        if (name, key) not in self._known:
            self._known[name, key] = len(self.atoms)
            self.atoms.append(Atom(name, parts, stays))
        return self._known[name, key]

    def input(self, number: int, stays: bool) -> Polynomial:
        return Polynomial(self, {((self.atom("input", (number,), number, stays), 1),): 1.0})

    def number(self, value: Number) -> Polynomial:
        return Polynomial(self, {ONE: float(value)} if value != 0 else {})

    def function(self, name: str, *parts: Polynomial) -> Polynomial:
        stays = all(self.atoms[a].stays for part in parts for a in _atoms(part))
        return Polynomial(self, {((self.atom(name, parts, tuple(map(_key, parts)), stays), 1),): 1.0})

    def added(self, x: Polynomial, y: Polynomial, sign: float) -> Polynomial:
        if len(x.terms) + len(y.terms) > LONGEST:
            x, y = (self._factor(z) if len(z.terms) > LONGEST // 2 else z for z in (x, y))
        terms = dict(x.terms)
        for monomial, number in y.terms.items():
            _add(terms, monomial, sign * number)
        return Polynomial(self, self._round_circles(terms))

    def multiplied(self, x: Polynomial, y: Polynomial) -> Polynomial:
        if not (x.terms and y.terms):
            return self.number(0.0)
        for one, other in ((x, y), (y, x)):
            if one.single and ONE in one.terms and one.terms[ONE] in (1.0, -1.0):
                return other.times(one.terms[ONE])
        (m, a), (n, b) = (next(iter(self._factor(z).terms.items())) for z in (x, y))
        terms: dict[Monomial, float] = {}
        _add(terms, _product(m, n), a * b)
        return Polynomial(self, terms)

    def inverse(self, x: Polynomial) -> Polynomial:
        if not x.terms:
            raise NotExpressible("a division by zero has no analytic expression")
        ((monomial, number),) = self._factor(x).terms.items()
        return Polynomial(self, {tuple((a, -power) for a, power in monomial): 1.0 / number})

    def _factor(self, x: Polynomial) -> Polynomial:
        """As one term, whatever it is; the first number of a sum inside is positive."""
        if x.single:
            return x
        sign = 1.0 if x.terms[min(x.terms)] > 0 else -1.0
        x = x.times(sign)
        stays = all(self.atoms[a].stays for a in _atoms(x))
        return Polynomial(self, {((self.atom("sum", (x,), _key(x), stays), 1),): sign})

    def _round_circles(self, terms: dict[Monomial, float]) -> dict[Monomial, float]:
        """T sin^2 + T cos^2 = T."""
        again = True
        while again:
            again = False
            for monomial, rest, other in list(self._squares(terms)):
                if monomial in terms and terms.get(other) == terms[monomial]:
                    number = terms.pop(other)
                    del terms[monomial]
                    _add(terms, rest, number)
                    again = True
        return terms

    def _squares(self, terms: dict[Monomial, float]) -> Iterable[tuple[Monomial, Monomial, Monomial]]:
        """Polynomial T sin^2, with T and T cos^2."""
        for monomial in terms:
            for a, power in monomial:
                if power >= 2 and self.atoms[a].name == "sin":
                    angle = tuple(map(_key, self.atoms[a].parts))
                    if (b := self._known.get(("cos", angle))) is not None:
                        rest = _product(monomial, ((a, -2),))
                        yield monomial, rest, _product(rest, ((b, 2),))


def _add(terms: dict[Monomial, float], monomial: Monomial, number: float) -> None:
    total = terms.pop(monomial, 0.0) + number
    if total != 0:
        terms[monomial] = total


def _product(x: Monomial, y: Monomial) -> Monomial:
    powers = dict(x)
    for a, power in y:
        powers[a] = powers.get(a, 0) + power
    return tuple(sorted((a, power) for a, power in powers.items() if power))


def _key(x: Polynomial) -> Hashable:
    return tuple(sorted(x.terms.items()))


def _atoms(x: Polynomial) -> Iterable[int]:
    return (a for monomial in x.terms for a, _ in monomial)


ENTIRE = ("input", "sum", "sin", "cos", "exp")


def keeps_rank(rows: Sequence[Sequence[Polynomial]]) -> bool:
    """Whether a matrix X surely has no poles, and everywhere the rank that it has somewhere: X^T X stays, or
    rows of numbers alone have it."""
    if not all(_is_entire(x) for row in rows for x in row):
        return False
    columns = list(zip(*rows, strict=True))
    products = [functools.reduce(operator.add, map(operator.mul, x, y)) for x in columns for y in columns]
    if all(x.all.atoms[a].stays for x in products for a in _atoms(x)):
        return True
    numbers = [[x.terms.get(ONE, 0.0) for x in row] for row in rows if not any(map(list, map(_atoms, row)))]
    return bool(numbers) and np.linalg.matrix_rank(np.array(numbers)) == len(columns)


def _is_entire(x: Polynomial) -> bool:
    """Whether it is a function without poles of what varies."""
    varying = [(x.all.atoms[a], power) for monomial in x.terms for a, power in monomial]
    return all(
        atom.stays
        or (
            power > 0
            and atom.name in ENTIRE
            and all(_is_entire(y) for y in atom.parts if atom.name != "input")
        )
        for atom, power in varying
    )


# ---- writing ----------------------------------------------------------------------------------------------


def written(sums: Sequence[Polynomial], inputs: Sequence[E], algebra: Algebra[E]) -> list[E]:
    """Atoms as expressions of another algebra."""
    writer = _Writer(sums, inputs, algebra)
    return [writer.sum(x) for x in sums]


class _Writer(Generic[E]):
    def __init__(self, sums: Sequence[Polynomial], inputs: Sequence[E], algebra: Algebra[E]):
        self.inputs, self.algebra, self.number = inputs, algebra, algebra.number
        self.atoms: list[Atom] = list(sums[0].all.atoms) if sums else []
        self.made: dict[Hashable, E] = {}
        self.varying: dict[Monomial, list[Factor]] = {}  # factors of each term, those that stay excepted
        seen: set[Hashable] = set()
        for x in sums:
            self._collect(x, seen)
        self._share()

    def _collect(self, x: Polynomial, seen: set[Hashable]) -> None:
        if (key := _key(x)) in seen:
            return
        seen.add(key)
        for monomial in x.terms:
            for a, _ in monomial:
                for part in self.atoms[a].parts:
                    if isinstance(part, Polynomial):
                        self._collect(part, seen)
            varying = [(a, power) for a, power in monomial if not self.atoms[a].stays]
            self.varying[monomial] = [(a, power > 0) for a, power in varying for _ in range(abs(power))]

    def _share(self) -> None:
        """The pair of factors that is in most products becomes an atom, again and again."""
        counts: Counter[tuple[Factor, Factor]] = Counter()
        for factors in self.varying.values():
            counts.update(_pairs(factors))
        while counts:
            pair = max(counts, key=lambda p: (counts[p], p))
            if counts[pair] < 2:
                return
            made = (len(self.atoms), pair[0][1] or pair[1][1])
            self.atoms.append(Atom("product", pair, stays=False))
            for factors in self.varying.values():
                while pair in (before := _pairs(factors)):
                    for factor in pair:
                        factors.remove(factor)
                    factors.append(made)
                    counts.subtract(before)
                    counts.update(_pairs(factors))
            counts = +counts

    def sum(self, x: Polynomial) -> E:
        if (key := _key(x)) not in self.made:
            plus = [self._term(m, c) for m, c in x.terms.items() if c != -1.0]
            minus = [self._term(m, 1.0) for m, c in x.terms.items() if c == -1.0]
            value = self.algebra.total(plus) if plus else None
            if minus:
                off = self.algebra.total(minus)
                value = -off if value is None else value - off
            self.made[key] = self.number(0.0) if value is None else value
        return self.made[key]

    def _term(self, monomial: Monomial, number: float) -> E:
        stays = [(a, power > 0) for a, power in monomial if self.atoms[a].stays for _ in range(abs(power))]
        parts = [self._quotient(factors) for factors in (stays, self.varying[monomial]) if factors]
        if number != 1.0 or not parts:
            parts.insert(0, self.number(number))
        return functools.reduce(operator.mul, parts)

    def _quotient(self, factors: Sequence[Factor]) -> E:
        above, below = ([self._atom(a) for a, up in factors if up == side] for side in (True, False))
        value = functools.reduce(operator.mul, above) if above else self.number(1.0)
        return value / functools.reduce(operator.mul, below) if below else value

    def _atom(self, a: int) -> E:
        if a not in self.made:
            name, parts, _ = self.atoms[a]
            if name == "input":
                self.made[a] = self.inputs[parts[0]]
            elif name == "product":
                up = any(above for _, above in parts)  # two that are below stay there as their product
                self.made[a] = self._quotient([(x, above or not up) for x, above in parts])
            else:
                values = [self.sum(part) for part in parts]
                self.made[a] = values[0] if name == "sum" else self.algebra.apply(name, *values)
        return self.made[a]


def _pairs(factors: list[Factor]) -> set[tuple[Factor, Factor]]:
    return set(combinations(sorted(factors), 2))
