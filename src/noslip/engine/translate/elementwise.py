"""Operations of JAX that act on each element by itself."""

from __future__ import annotations

import math
from collections.abc import Callable

from jax import lax
from jax.extend.core import JaxprEqn

from noslip.engine.translate.arrays import ArrayOperations, Nodes, kind_of
from noslip.engine.translate.builder import Builder
from noslip.engine.translate.jaxprs import array_of


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


class EachOperations(ArrayOperations):
    """Those that have more to know than their operands."""

    def _select_n(self, eqn: JaxprEqn, which: Nodes, *cases: Nodes) -> Nodes:
        if len(cases) == 2 and kind_of(array_of(eqn.invars[0]).dtype) == "b":
            return self.each(lambda b, c, no, yes: b.select(c, yes, no), which, *cases)
        out = cases[-1]
        for k in reversed(range(len(cases) - 1)):
            out = self.each(
                lambda b, w, this, rest, k=k: b.select(b.compare("le", w, b.const(k)), this, rest),
                which,
                cases[k],
                out,
            )
        return out

    def _clamp(self, eqn: JaxprEqn, low: Nodes, x: Nodes, high: Nodes) -> Nodes:
        return self.each(lambda b, l, a, h: b.smaller(b.larger(a, l), h), low, x, high)

    def _integer_pow(self, eqn: JaxprEqn, x: Nodes) -> Nodes:
        return self.each(lambda b, a: b.power(a, eqn.params["y"]), x)

    def _round(self, eqn: JaxprEqn, x: Nodes) -> Nodes:
        if eqn.params["rounding_method"] != lax.RoundingMethod.TO_NEAREST_EVEN:
            return self.each(round_away, x)
        return self.each(lambda b, a: b.unary("rint", a, lambda v: float(round(v))), x)
