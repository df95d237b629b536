"""The derivative of each operation by its operands: a rule is f(builder, its node, its operands)."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import TypeAlias

from noslip.engine.program import CannotTranslate
from noslip.engine.translate.builder import Builder

TWO_OVER_ROOT_PI = 2 / math.sqrt(math.pi)
Rule: TypeAlias = Callable[..., Iterable[int]]


def _one(b: Builder) -> int:
    return b.const(1.0)


def _inverse(b: Builder, x: int) -> int:
    return b.div(_one(b), x)


def _divided(b: Builder, k: int, x: int, y: int) -> tuple[int, int]:
    inverse = _inverse(b, y)
    return inverse, b.neg(b.mul(k, inverse))


def _sign(b: Builder, k: int, x: int) -> tuple[int]:
    """1 at 0, as JAX has it."""
    return (b.select(b.compare("ge", x, b.const(0.0)), _one(b), b.const(-1.0)),)


def _extreme(wins: str) -> Rule:
    def rule(b: Builder, k: int, x: int, y: int) -> tuple[int, int]:
        """A half for each of two that are equal, as JAX has it."""
        half = b.select(b.compare("eq", x, y), b.const(0.5), b.const(0.0))
        return tuple(b.select(b.compare(wins, p, q), _one(b), half) for p, q in ((x, y), (y, x)))  # type: ignore[return-value]

    return rule


def _root(b: Builder, square: int, sign: float) -> int:
    """1 / sqrt(1 + sign x^2) of the given x^2."""
    return _inverse(b, b.sqrt(b.add(_one(b), b.mul(b.const(sign), square))))


def _atan2(b: Builder, k: int, y: int, x: int) -> tuple[int, int]:
    square = b.add(b.mul(x, x), b.mul(y, y))
    return b.div(x, square), b.neg(b.div(y, square))


def _pow(b: Builder, k: int, x: int, y: int) -> tuple[int, int]:
    exponent = b.value(y)
    if exponent is None:
        raise CannotTranslate("a power whose exponent varies is not differentiated as a scalar program")
    return b.mul(y, b.raw("pow", "f", x, b.const(exponent - 1.0))), b.const(0.0)


def _remainder(b: Builder, k: int, x: int, y: int) -> tuple[int, int]:
    if b.value(y) is None:
        raise CannotTranslate("a remainder whose divisor varies is not differentiated as a scalar program")
    return _one(b), b.const(0.0)


def _call(name: str) -> Callable[[Builder, int], int]:
    return lambda b, x: b.raw(name, "f", x)


_sin, _cos, _exp, _sinh, _cosh = map(_call, ("sin", "cos", "exp", "sinh", "cosh"))
RULES: dict[str, Rule] = {
    "add": lambda b, k, x, y: (_one(b), _one(b)),
    "sub": lambda b, k, x, y: (_one(b), b.const(-1.0)),
    "neg": lambda b, k, x: (b.const(-1.0),),
    "mul": lambda b, k, x, y: (y, x),
    "div": _divided,
    "abs": _sign,
    "sqrt": lambda b, k, x: (b.div(b.const(0.5), k),),
    "max": _extreme("gt"),
    "min": _extreme("lt"),
    "libm:fmod": _remainder,
    "sin": lambda b, k, x: (_cos(b, x),),
    "cos": lambda b, k, x: (b.neg(_sin(b, x)),),
    "tan": lambda b, k, x: (b.add(_one(b), b.mul(k, k)),),
    "exp": lambda b, k, x: (k,),
    "log": lambda b, k, x: (_inverse(b, x),),
    "exp2": lambda b, k, x: (b.mul(b.const(math.log(2.0)), k),),
    "expm1": lambda b, k, x: (b.add(k, _one(b)),),
    "log1p": lambda b, k, x: (_inverse(b, b.add(_one(b), x)),),
    "sinh": lambda b, k, x: (_cosh(b, x),),
    "cosh": lambda b, k, x: (_sinh(b, x),),
    "tanh": lambda b, k, x: (b.sub(_one(b), b.mul(k, k)),),
    "asin": lambda b, k, x: (_root(b, b.mul(x, x), -1.0),),
    "acos": lambda b, k, x: (b.neg(_root(b, b.mul(x, x), -1.0)),),
    "atan": lambda b, k, x: (_inverse(b, b.add(_one(b), b.mul(x, x))),),
    "atan2": _atan2,
    "asinh": lambda b, k, x: (_root(b, b.mul(x, x), 1.0),),
    "atanh": lambda b, k, x: (_inverse(b, b.sub(_one(b), b.mul(x, x))),),
    "erf": lambda b, k, x: (b.mul(b.const(TWO_OVER_ROOT_PI), _exp(b, b.neg(b.mul(x, x)))),),
    "erfc": lambda b, k, x: (b.mul(b.const(-TWO_OVER_ROOT_PI), _exp(b, b.neg(b.mul(x, x)))),),
    "logistic": lambda b, k, x: (b.mul(k, b.sub(_one(b), k)),),
    "pow": _pow,
}
