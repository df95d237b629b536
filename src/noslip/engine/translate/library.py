"""The functions of the C library that machine code calls, as programs of our own: the same bits in scalars,
in lanes, on a GPU, on any machine. Errors are below 3 ulp (tested); `fmod` is exact.

They are functions that code calls, not written out at each place as sin, cos, tan, exp and log are.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable

from noslip.engine.program import Block, Program, finish
from noslip.engine.translate import functions
from noslip.engine.translate.builder import Builder
from noslip.engine.translate.error_function import erf, erfc
from noslip.engine.translate.functions import HALF_PI, HALF_PI_LOW, LN2_HIGH, LN2_LOW, LOG
from noslip.engine.translate.huge_angles import cos_of_huge, sin_of_huge
from noslip.engine.translate.reals import (
    LN2,
    Real,
    exp_of_two,
    expm1_of_small,
    nearest,
    reduced,
    two_product,
    two_sum,
)

LN2_TAIL = 2.3190468138462996e-17
THIRD, THIRD_TAIL = 1 / 3, 1.850371707708594e-17
# minimax polynomial of (atan x - x) / x^3 for |x| <= 7/16, as in Sun's freely distributed libm
ATAN = (
    -3.33333333333329318027e-01,
    1.99999999998764832476e-01,
    -1.42857142725034663711e-01,
    1.11111104054623557880e-01,
    -9.09088713343650656196e-02,
    7.69187620504482999495e-02,
    -6.66107313738753120669e-02,
    5.83357013379057348645e-02,
    -4.97687799461593236017e-02,
    3.65315727442169155270e-02,
    -1.62858201153657823623e-02,
)
# from where on atan x = atan c + atan((x - c) / (1 + c x)) is used, c, and atan c in two doubles
CENTRES = (
    (0.4375, 0.5, 4.63647609000806093515e-01, 2.26987774529616870924e-17),
    (0.6875, 1.0, 7.85398163397448278999e-01, 3.06161699786838301793e-17),
    (1.1875, 1.5, 9.82793723247329054082e-01, 1.39033110312309984516e-17),
    (2.4375, math.inf, HALF_PI, HALF_PI_LOW),
)


def _exp(x: Real) -> Real:
    return Real(x.b, functions.exp(x.b, x.node))


def _log(x: Real) -> Real:
    return Real(x.b, functions.log(x.b, x.node))


def exp2(x: Real) -> Real:
    k, whole = nearest(x)
    f = x - k
    r, lost = two_product(f, LN2)
    high, low = expm1_of_small(r, f.fma(LN2_TAIL, lost))
    b, value = x.b, 1.0 + (high + low)
    first = b.bits("iashr", whole, b.const(1))
    value = value.scaled(first).scaled(b.sub(whole, first))
    value = value.where(x.is_("ge", 1024.0), math.inf)
    return value.where(x.is_("lt", -1076.0), 0.0)


def expm1(x: Real) -> Real:
    r, tail, whole = reduced(x)
    high, low = expm1_of_small(r, tail)
    half = x.of(1.0).scaled(x.b.sub(whole, x.b.const(1)))  # 2^k / 2, since 2^1024 is no double
    total, rest = two_sum(half - 0.5, half * high)
    value = 2.0 * (total + half.fma(low, rest))
    value = value.where(x.is_("lt", -40.0), -1.0).where(x.is_("gt", 709.79), math.inf)
    return value.where(abs(x).is_("lt", 2.0**-60), x)


def log1p(x: Real) -> Real:
    s = x / (2.0 + x)
    z, half = s * s, 0.5 * (x * x)
    near = x - (half - s * (half + z * z.polynomial(LOG)))
    u = 1.0 + x
    lost = (x - (u - 1.0)).where(x.is_("gt", 1.0), 1.0 - (u - x))
    far = _log(u) + lost / u
    far = far.where(x.is_("eq", -1.0), -math.inf).where(x.is_("eq", math.inf), math.inf)
    small = x.b.both(x.is_("gt", -0.29), x.is_("lt", 0.41))
    return far.where(small, near)


def sinh(x: Real) -> Real:
    a = abs(x)
    e, root = expm1(a), _exp(0.5 * a)
    value = (0.5 * (e + e / (e + 1.0))).where(a.is_("gt", 22.0), 0.5 * root * root)
    return value.with_sign_of(x)


def cosh(x: Real) -> Real:
    a = abs(x)
    e, t, root = expm1(a), _exp(a), _exp(0.5 * a)
    value = (0.5 * t + 0.5 / t).where(a.is_("lt", 0.35), 1.0 + e * e / (2.0 * (1.0 + e)))
    return value.where(a.is_("gt", 22.0), 0.5 * root * root)


def tanh(x: Real) -> Real:
    a = abs(x)
    e = expm1(2.0 * a)
    value = (e / (e + 2.0)).where(a.is_("gt", 1.0), 1.0 - 2.0 / (e + 2.0))
    return value.where(a.is_("gt", 22.0), 1.0).with_sign_of(x)


def atan(x: Real) -> Real:
    a = abs(x)
    t, high, low = a, a.of(0.0), a.of(0.0)
    for least, c, at_c, tail in CENTRES:
        beyond = a.is_("ge", least)
        t = t.where(beyond, -1.0 / a if c == math.inf else (a - c) / (1.0 + c * a))
        high, low = high.where(beyond, at_c), low.where(beyond, tail)
    z = t * t
    rest = (t * z).fma(z.polynomial(ATAN), low)
    return (high + (t + rest)).with_sign_of(x)


def atan2(y: Real, x: Real) -> Real:
    """By the quotient of smaller by larger, so that it neither overflows nor loses more than a rounding."""
    a, c, b = abs(y), abs(x), x.b
    steep = a.is_("gt", c)
    small, large = a.where(steep, c), c.where(steep, a)
    both_infinite = small.is_("eq", math.inf)
    quotient = (small / large).where(both_infinite, 1.0).where(large.is_("eq", 0.0), 0.0)
    angle = atan(quotient)
    angle = angle.where(steep, (HALF_PI - angle) + HALF_PI_LOW)
    negative = b.compare("lt", b.raw("ftobits", "i", x.node), b.const(0))
    angle = angle.where(negative, (2 * HALF_PI - angle) + 2 * HALF_PI_LOW).with_sign_of(y)
    unknown = b.either(y.is_("ne", y), x.is_("ne", x))
    return angle.where(unknown, math.nan)


def asin(x: Real) -> Real:
    return atan2(x, ((1.0 - x) * (1.0 + x)).sqrt()).where(abs(x).is_("gt", 1.0), math.nan)


def acos(x: Real) -> Real:
    value = 2.0 * atan2((1.0 - x).sqrt(), (1.0 + x).sqrt())
    return value.where(abs(x).is_("gt", 1.0), math.nan)


def asinh(x: Real) -> Real:
    a = abs(x)
    square = a * a
    value = log1p(a + square / (1.0 + (square + 1.0).sqrt()))
    return value.where(a.is_("gt", 2.0**28), _log(a) + LN2).with_sign_of(x)


def acosh(x: Real) -> Real:
    t = x - 1.0
    value = log1p(t + (2.0 * t + t * t).sqrt()).where(x.is_("gt", 2.0**28), _log(x) + LN2)
    return value.where(x.is_("lt", 1.0), math.nan)


def atanh(x: Real) -> Real:
    a = abs(x)
    ratio = a / (1.0 - a)
    value = 0.5 * log1p((2.0 * ratio).where(a.is_("lt", 0.5), 2.0 * a + 2.0 * a * ratio))
    return value.where(a.is_("gt", 1.0), math.nan).with_sign_of(x)


def cbrt(x: Real) -> Real:
    a = abs(x)
    big, tiny = a.is_("gt", 2.0**900), a.is_("lt", 2.0**-900)
    scaled = a.where(big, a * 2.0**-600).where(tiny, a * 2.0**600)
    y = _exp(_log(scaled) / 3.0)
    square, lost = two_product(y, y)  # one step of Newton's method with an exact residual
    cube, rest = two_product(square, y)
    y = y - ((cube - scaled) + lost.fma(y, rest)) / (3.0 * square)
    y = y.where(big, y * 2.0**200).where(tiny, y * 2.0**-200)
    special = x.b.both(a.is_("gt", 0.0), a.is_("lt", math.inf))
    return x.where(special, y.with_sign_of(x))


def power(x: Real, y: Real) -> Real:
    """exp(y log |x|) with log |x| in two doubles, and the rules of IEEE 754."""
    b, a = x.b, abs(x)
    high, low = _log_in_two(a)
    product, lost = two_product(y, high)
    lost = y.fma(low, lost)
    safe = abs(product).is_("lt", 800.0)
    product, lost = product.of(0.0).where(safe, product), lost.of(0.0).where(safe, lost)
    value = exp_of_two(product, lost)
    grows = b.xor(a.is_("lt", 1.0), y.is_("gt", 0.0))
    value = value.where(b.invert(safe), value.of(0.0).where(grows, math.inf))
    value = value.where(a.is_("eq", 0.0), value.of(0.0).where(y.is_("lt", 0.0), math.inf))
    value = value.where(a.is_("eq", math.inf), value.of(math.inf).where(y.is_("lt", 0.0), 0.0))
    value = value.where(abs(y).is_("eq", math.inf), value.of(0.0).where(grows, math.inf))
    whole_y = _floor(y).is_("eq", y)
    half_y = 0.5 * y
    odd = b.both(whole_y, _floor(half_y).is_("ne", half_y))
    negative = b.compare("lt", b.raw("ftobits", "i", x.node), b.const(0))
    value = value.where(b.both(negative, odd), -value)
    broken = b.both(x.is_("lt", 0.0), b.both(b.invert(whole_y), a.is_("lt", math.inf)))
    value = value.where(broken, math.nan).where(b.both(a.is_("eq", 1.0), abs(y).is_("eq", math.inf)), 1.0)
    value = value.where(b.either(x.is_("ne", x), y.is_("ne", y)), math.nan)
    return value.where(b.either(y.is_("eq", 0.0), x.is_("eq", 1.0)), 1.0)


def _floor(x: Real) -> Real:
    return Real(x.b, x.b.raw("floor", "f", x.node))


def _log_in_two(x: Real) -> tuple[Real, Real]:
    """log x of a positive x in two doubles, to some 2^-65 of it: 2 atanh s, s = (m - 1) / (m + 1), m 2^k = x,
    with its first two terms in two doubles."""
    b = x.b
    tiny = x.is_("lt", 2.0**-1022)
    bits = b.raw("ftobits", "i", x.where(tiny, x * 2.0**54).node)
    offset = b.sub(bits, b.const(functions.bits_of(math.sqrt(0.5))))
    exponent = b.bits("iashr", offset, b.const(52))
    m = Real(b, b.raw("bitstof", "f", b.sub(bits, b.bits("ishl", exponent, b.const(52)))))
    k = Real(b, b.convert(b.sub(exponent, b.select(tiny, b.const(54), b.const(0))), "f"))
    f, (down, down_low) = m - 1.0, two_sum(m, 1.0)
    s = f / down
    s_low = ((-s).fma(down, f) - s * down_low) / down
    z, z_low = two_product(s, s)
    z_low = (2.0 * s).fma(s_low, z_low)
    # atanh s / s = 1 + z / 3 + z^2 (1/5 + z/7 + ...)
    rest = z.polynomial([1 / (2 * n + 1) for n in range(2, 14)]) * (z * z)
    third, third_low = two_product(z, THIRD)
    third_low = third_low + z.fma(THIRD_TAIL, z_low * THIRD)
    factor, factor_low = two_sum(third, rest)
    factor_low = factor_low + third_low
    more, more_low = two_product(s, factor)
    more_low = more_low + s.fma(factor_low, s_low * factor)
    total, total_low = two_sum(2.0 * s, 2.0 * more)
    total_low = total_low + 2.0 * (s_low + more_low)
    high, high_low = two_sum(k * LN2_HIGH, total)
    return two_sum(high, high_low + k.fma(LN2_LOW, total_low))


def fmod(x: Real, y: Real) -> Real:
    """What is left of |x| when the largest multiples |y| 2^k below it have been taken off: all exact."""
    b, divisor = x.b, abs(y)

    def exponent(z: Real) -> int:
        tiny = z.is_("lt", 2.0**-1022)
        found = b.bits("iashr", b.raw("ftobits", "i", z.where(tiny, z * 2.0**54).node), b.const(52))
        return b.select(tiny, b.sub(found, b.const(54)), found)

    def turn(now: list[int]) -> list[int]:
        left = Real(b, now[0])
        apart = b.sub(exponent(left), exponent(divisor))
        half = b.bits("iashr", apart, b.const(1))
        quarter = b.bits("iashr", half, b.const(1))
        part = divisor.scaled(quarter).scaled(b.sub(half, quarter)).scaled(quarter)
        part = part.scaled(b.sub(b.sub(apart, half), quarter))  # up to 2^2097 in all
        part = part.where(part.is_("gt", left), 0.5 * part)
        return [(left - part).node]

    finite = b.both(abs(x).is_("lt", math.inf), divisor.is_("gt", 0.0))
    begin = abs(x).where(b.invert(finite), 0.0)

    def enough(now: list[int]) -> int:
        return b.both(b.compare("le", divisor.node, now[0]), b.compare("lt", b.const(0.0), now[0]))

    (left,) = b.loop([begin.node], enough, turn)
    value = Real(b, left).with_sign_of(x)
    return value.of(math.nan).where(b.both(finite, y.is_("eq", y)), value)


UNARY: dict[str, Callable[[Real], Real]] = {
    "exp2": exp2, "expm1": expm1, "log1p": log1p, "sinh": sinh, "cosh": cosh, "tanh": tanh, "atan": atan,
    "asin": asin, "acos": acos, "asinh": asinh, "acosh": acosh, "atanh": atanh, "cbrt": cbrt,
    "erf": erf, "erfc": erfc,
    "sin": lambda x: Real(x.b, sin_of_huge(x.b, x.node)),
    "cos": lambda x: Real(x.b, cos_of_huge(x.b, x.node)),
}  # fmt: skip
BINARY: dict[str, Callable[[Real, Real], Real]] = {"atan2": atan2, "pow": power, "fmod": fmod}


@functools.cache
def program(name: str) -> Program:
    """A function of the C library as a program."""
    b = Builder(10_000)
    b.blocks = [Block(), Block()]
    x = [b.input("f", 1) for _ in range(1 if name in UNARY else 2)]
    given = [Real(b, node) for node in x]
    value = UNARY[name](*given) if name in UNARY else BINARY[name](*given)
    return finish(b.nodes, b.blocks, x, 0, [value.node], None)
