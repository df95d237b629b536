"""Operations of JAX that act on each element by itself."""

from __future__ import annotations

import math
from collections.abc import Callable

from noslip.engine.translate.builder import Builder


def round_away(b: Builder, a: int) -> int:
    size = b.unary("floor", b.add(b.abs(a), b.const(0.5)), lambda v: float(math.floor(v)))
    return b.select(b.compare("lt", a, b.const(0.0)), b.neg(size), size)


def _finite(b: Builder, a: int) -> int:
    return b.compare("lt", b.abs(a), b.const(math.inf))


def _sign(b: Builder, a: int) -> int:
    one, zero = (b.const(1), b.const(0)) if b.nodes[a].kind == "i" else (b.const(1.0), b.const(0.0))
    below = b.select(b.compare("lt", a, zero), b.neg(one), a)
    return b.select(b.compare("gt", a, zero), one, below)


def _logical(truth: Callable[..., int], bits: str) -> Callable[..., int]:
    return lambda b, x, y: truth(b, x, y) if b.nodes[x].kind == "b" else b.bits(bits, x, y)


def _not(b: Builder, a: int) -> int:
    return b.invert(a) if b.nodes[a].kind == "b" else b.bits("ixor", a, b.const(-1))


ELEMENTWISE: dict[str, Callable[..., int]] = {
    "add": Builder.add,
    "add_any": Builder.add,
    "sub": Builder.sub,
    "mul": Builder.mul,
    "div": Builder.div,
    "rem": Builder.rem,
    "neg": Builder.neg,
    "abs": Builder.abs,
    "sqrt": Builder.sqrt,
    "square": lambda b, a: b.mul(a, a),
    "rsqrt": lambda b, a: b.div(b.const(1.0), b.sqrt(a)),
    "max": Builder.larger,
    "min": Builder.smaller,
    "floor": lambda b, a: b.unary("floor", a, lambda v: float(math.floor(v))),
    "ceil": lambda b, a: b.unary("ceil", a, lambda v: float(math.ceil(v))),
    "sign": _sign,
    "is_finite": _finite,
    "lt": lambda b, x, y: b.compare("lt", x, y),
    "lt_to": lambda b, x, y: b.compare("lt", x, y),
    "le_to": lambda b, x, y: b.compare("le", x, y),
    "le": lambda b, x, y: b.compare("le", x, y),
    "gt": lambda b, x, y: b.compare("gt", x, y),
    "ge": lambda b, x, y: b.compare("ge", x, y),
    "eq": lambda b, x, y: b.compare("eq", x, y),
    "ne": lambda b, x, y: b.compare("ne", x, y),
    "and": _logical(Builder.both, "iand"),
    "or": _logical(Builder.either, "ior"),
    "xor": _logical(Builder.xor, "ixor"),
    "not": _not,
}
