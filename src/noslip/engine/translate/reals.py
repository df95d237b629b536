"""Real numbers as nodes, with the arithmetic that functions of a library are made of."""

from __future__ import annotations

import math

from noslip.engine.translate import functions
from noslip.engine.translate.builder import Builder
from noslip.engine.translate.functions import LN2_HIGH, LN2_LOW, MAGIC

LN2 = 0.6931471805599453
EXP_TERMS = [1 / math.factorial(n) for n in range(2, 18)]


class Real:
    """A node with arithmetic that is written as it stands: nothing is simplified, exact sums stay exact."""

    def __init__(self, b: Builder, node: int):
        self.b, self.node = b, node

    def of(self, x: Real | float) -> Real:
        return x if isinstance(x, Real) else Real(self.b, self.b.const(float(x)))

    def _op(self, op: str, x: Real | float, y: Real | float) -> Real:
        return Real(self.b, self.b.raw(op, "f", self.of(x).node, self.of(y).node))

    def __add__(self, y: Real | float) -> Real:
        return self._op("add", self, y)

    def __radd__(self, y: float) -> Real:
        return self._op("add", y, self)

    def __sub__(self, y: Real | float) -> Real:
        return self._op("sub", self, y)

    def __rsub__(self, y: float) -> Real:
        return self._op("sub", y, self)

    def __mul__(self, y: Real | float) -> Real:
        return self._op("mul", self, y)

    def __rmul__(self, y: float) -> Real:
        return self._op("mul", y, self)

    def __truediv__(self, y: Real | float) -> Real:
        return self._op("div", self, y)

    def __rtruediv__(self, y: float) -> Real:
        return self._op("div", y, self)

    def __neg__(self) -> Real:
        return Real(self.b, self.b.raw("neg", "f", self.node))

    def __abs__(self) -> Real:
        return Real(self.b, self.b.raw("abs", "f", self.node))

    def sqrt(self) -> Real:
        return Real(self.b, self.b.raw("sqrt", "f", self.node))

    def fma(self, y: Real | float, z: Real | float) -> Real:
        """self y + z, rounded once."""
        return Real(self.b, self.b.fma(self.node, self.of(y).node, self.of(z).node))

    def is_(self, relation: str, y: Real | float) -> int:
        return self.b.compare(relation, self.node, self.of(y).node)

    def where(self, condition: int, yes: Real | float) -> Real:
        """`yes` where the condition holds, else this."""
        return Real(self.b, self.b.select(condition, self.of(yes).node, self.node))

    def with_sign_of(self, x: Real) -> Real:
        """|self|, negative where x is, -0 included."""
        b = self.b
        sign = b.bits("iand", b.raw("ftobits", "i", x.node), b.const(-(1 << 63)))
        return Real(b, b.raw("bitstof", "f", b.bits("ior", b.raw("ftobits", "i", abs(self).node), sign)))

    def scaled(self, power: int) -> Real:
        """self 2^power, for a node of a whole number between -1022 and 1023."""
        b = self.b
        bits = b.bits("ishl", b.add(power, b.const(1023)), b.const(52))
        return self * Real(b, b.raw("bitstof", "f", bits))

    def polynomial(self, coefficients: list[float] | tuple[float, ...]) -> Real:
        total = self.of(coefficients[-1])
        for c in reversed(coefficients[:-1]):
            total = total.fma(self, c)
        return total


def two_sum(x: Real, y: Real | float) -> tuple[Real, Real]:
    """x + y as a double and what its rounding cut off."""
    total = x + y
    back = total - x
    return total, (x - (total - back)) + (x.of(y) - back)


def two_product(x: Real, y: Real | float) -> tuple[Real, Real]:
    product = x * y
    return product, x.fma(y, -product)


def nearest(x: Real) -> tuple[Real, int]:
    """The whole number nearest to x, |x| < 2^51, as a double and as a node of a whole number."""
    shifted = x + MAGIC
    b = x.b
    return shifted - MAGIC, b.sub(b.raw("ftobits", "i", shifted.node), b.const(functions.bits_of(MAGIC)))


def expm1_of_small(r: Real, tail: Real) -> tuple[Real, Real]:
    """exp(r + tail) - 1 for |r| <= ln 2 / 2, as two doubles."""
    return r, (r * r).fma(r.polynomial(EXP_TERMS), tail.fma(r, tail))


def reduced(x: Real) -> tuple[Real, Real, int]:
    """x = k ln 2 + r + tail."""
    k, whole = nearest(x * (1 / LN2))
    exact = k.fma(-LN2_HIGH, x)
    r, tail = two_sum(exact, k * -LN2_LOW)
    return r, tail, whole


def exp_of_two(high: Real, low: Real) -> Real:
    """exp(high + low) for |high| < 800, the second number far smaller than the first."""
    r, tail, whole = reduced(high)
    first, second = expm1_of_small(*two_sum(r, tail + low))
    b, value = high.b, 1.0 + (first + second)
    half = b.bits("iashr", whole, b.const(1))
    return value.scaled(half).scaled(b.sub(whole, half))
