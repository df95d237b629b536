"""Scalar programs as heyoka expressions, for its Taylor integrator."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from noslip.engine.backends.expressions import Algebra, Expression, NotExpressible, expressions
from noslip.engine.backends.polynomials import Atoms, Polynomial, written
from noslip.engine.backends.priced import Prices
from noslip.engine.program import Program

if TYPE_CHECKING:
    from heyoka import expression

OWN = (
    "sqrt", "exp", "log", "sin", "cos", "tan", "asin", "acos", "atan", "atan2",
    "sinh", "cosh", "tanh", "asinh", "acosh", "atanh", "erf",
)  # fmt: skip
OTHER = ("pow", "exp2", "logistic", "expm1", "log1p")
CHOICES = {"select": "select", "lt": "lt", "le": "lte", "eq": "eq", "ne": "neq"}
SUMS = 400  # operations up to which sums of products are tried: their number is soon found
E = TypeVar("E", bound=Expression)
Write = Callable[[Program, Sequence[E], Algebra[E]], list[E]]


class Way(NamedTuple):
    """How to write a program, and how many operations it has then, the dear ones and all."""

    program: Program
    write: Write[expression]
    dear: int
    operations: int

    def expressions(self, inputs: Sequence[expression]) -> list[expression]:
        """The outputs for these inputs."""
        return self.write(self.program, inputs, _heyoka())


def heyoka_expressions(program: Program, inputs: Sequence[expression]) -> list[expression]:
    """The outputs of a program, translated with `expand=False`, for these inputs."""
    return cheapest(program).expressions(inputs)


def cheapest(program: Program) -> Way:
    """A program in sums of products where that has not more operations, neither dear ones nor in all; else
    as it stands."""
    way = Way(program, expressions, *_price(program, expressions))
    if program.operations() > SUMS:
        return way
    try:
        return cheaper(Way(program, _in_sums, *_price(program, _in_sums)), way)
    except NotExpressible:  # a quotient whose divisor cancels
        return way


def cheaper(one: Way, other: Way) -> Way:
    """The one, if it has not more operations of either kind than the other."""
    return one if one.dear <= other.dear and one.operations <= other.operations else other


def _in_sums(program: Program, inputs: Sequence[E], algebra: Algebra[E]) -> list[E]:
    return written(polynomials(program), inputs, algebra)


def polynomials(program: Program) -> list[Polynomial]:
    """The outputs of a program as sums of products."""
    atoms = Atoms()
    symbols = [atoms.input(k, k < program.fixed) for k in range(len(program.inputs))]
    return expressions(program, symbols, _named(atoms.number, atoms.function))


def _price(program: Program, write: Callable[..., object]) -> tuple[int, int]:
    prices = Prices()
    inputs = [prices.input(k >= program.fixed) for k in range(len(program.inputs))]
    write(program, inputs, _named(prices.number, prices.function))
    return prices.dear, len(prices.known)


def _named(number: Callable[..., E], function: Callable[..., E]) -> Algebra[E]:
    """With the functions of heyoka, by their names."""
    functions, choices = ({name: partial(function, name) for name in x} for x in ((*OWN, *OTHER), CHOICES))
    return Algebra(number, functions, choices)


def _heyoka() -> Algebra[expression]:
    import heyoka as hy

    functions = {name: getattr(hy, name) for name in OWN} | {
        "pow": lambda x, y: x**y,
        "exp2": lambda x: hy.expression(2.0) ** x,
        "logistic": hy.sigmoid,
        # these keep the digits of small arguments
        "expm1": lambda x: 2.0 * hy.sinh(0.5 * x) * hy.exp(0.5 * x),
        "log1p": lambda x: 2.0 * hy.atanh(x / (2.0 + x)),
    }
    choices = {name: getattr(hy, own) for name, own in CHOICES.items()}
    return Algebra(lambda value: hy.expression(float(value)), functions, choices, hy.sum)
