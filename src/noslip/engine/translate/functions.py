"""Elementary functions as arithmetic, the same in scalar code and in lanes.

sin, cos, tan, exp and log are written out (errors below 2 ulp, tested); the others are functions of `library`
that are called once per lane. Arguments of sine and cosine are reduced by multiples of pi/2 kept in three
doubles: with a fused multiply-add the first subtraction is exact, and the others leave a tail that the
polynomials use. Beyond 2^30 see `huge_angles`, which is called too.
"""

from __future__ import annotations

import functools
import math
import struct
from collections.abc import Callable, Sequence
from typing import NamedTuple

from noslip.engine.program import Block, Program, finish
from noslip.engine.translate.builder import Builder

MAGIC = 1.5 * 2.0**52  # adding it rounds to a whole number and puts that number in the low bits
HALF_PI, HALF_PI_LOW, HALF_PI_LOWEST = 1.5707963267948966, 6.123233995736766e-17, -1.4973849048591833e-33
LN2_HIGH, LN2_LOW = 6.93147180369123816490e-01, 1.90821492927058770002e-10
HUGE = 2.0**30

# minimax polynomials of sin and cos on [-pi/4, pi/4] and of log, as in Sun's freely distributed libm
SIN = (
    -1.66666666666666324348e-01,
    8.33333333332248946124e-03,
    -1.98412698298579493134e-04,
    2.75573137070700676789e-06,
    -2.50507602534068634195e-08,
    1.58969099521155010221e-10,
)
COS = (
    4.16666666666666019037e-02,
    -1.38888888888741095749e-03,
    2.48015872894767294178e-05,
    -2.75573143513906633035e-07,
    2.08757232129817482790e-09,
    -1.13596475577881948265e-11,
)
LOG = (
    6.666666666666735130e-01,
    3.999999999940941908e-01,
    2.857142874366239149e-01,
    2.222219843214978396e-01,
    1.818357216161805012e-01,
    1.531383769920937332e-01,
    1.479819860511658591e-01,
)


class Elementary(NamedTuple):
    """A function, and how it is written as arithmetic."""

    exact: Callable[..., float]
    expand: Callable[..., int]


def _horner(b: Builder, z: int, coefficients: Sequence[float]) -> int:
    total = b.const(coefficients[-1])
    for c in reversed(coefficients[:-1]):
        total = b.fma(total, z, b.const(c))
    return total


def _reduced(b: Builder, x: int) -> tuple[int, int, int]:
    """x = k pi/2 + r + tail, |r| <= pi/4: r, tail, and a number whose low bits are those of k."""
    shifted = b.fma(x, b.const(2 / math.pi), b.const(MAGIC))
    k = b.raw("sub", "f", shifted, b.const(MAGIC))
    minus = b.neg(k)
    exact = b.fma(minus, b.const(HALF_PI), x)
    product = b.mul(minus, b.const(HALF_PI_LOW))
    lost = b.fma(minus, b.const(HALF_PI_LOW), b.neg(product))
    r = b.raw("add", "f", exact, product)
    back = b.raw("sub", "f", r, exact)  # Knuth's exact sum: these differences must not be simplified
    rest = b.raw(
        "add", "f", b.raw("sub", "f", exact, b.raw("sub", "f", r, back)), b.raw("sub", "f", product, back)
    )
    tail = b.fma(minus, b.const(HALF_PI_LOWEST), b.raw("add", "f", rest, lost))
    return r, tail, b.raw("ftobits", "i", shifted)


def sine_of_reduced(b: Builder, r: int, tail: int) -> int:
    z = b.mul(r, r)
    cube = b.mul(z, r)
    w = _horner(b, z, SIN[1:])
    inner = b.fma(b.neg(cube), w, b.mul(b.const(0.5), tail))
    rest = b.sub(b.fma(z, inner, b.neg(tail)), b.mul(cube, b.const(SIN[0])))
    return b.sub(r, rest)


def cosine_of_reduced(b: Builder, r: int, tail: int) -> int:
    z = b.mul(r, r)
    w = b.mul(z, _horner(b, z, COS))
    half = b.mul(b.const(0.5), z)
    big = b.sub(b.const(1.0), half)
    lost = b.sub(b.sub(b.const(1.0), big), half)
    return b.add(big, b.add(lost, b.fma(z, w, b.neg(b.mul(r, tail)))))


def signed(b: Builder, value: int, quadrant: int) -> int:
    """-value where the second bit of `quadrant` is set."""
    sign = b.bits("ishl", b.bits("iand", quadrant, b.const(2)), b.const(62))
    return b.raw("bitstof", "f", b.bits("ixor", b.raw("ftobits", "i", value), sign))


def _trigonometric(b: Builder, x: int) -> tuple[int, int]:
    """sin x and cos x."""
    if (found := b.recall(("trigonometric", x))) is not None:
        return found[0], found[1]
    r, tail, k = _reduced(b, x)
    s, c = sine_of_reduced(b, r, tail), cosine_of_reduced(b, r, tail)
    odd = b.compare("ne", b.bits("iand", k, b.const(1)), b.const(0))
    sine = signed(b, b.select(odd, c, s), k)
    cosine = signed(b, b.select(odd, s, c), b.add(k, b.const(1)))
    huge = b.compare("lt", b.const(HUGE), b.abs(x))
    # x is carried by the loop so that the calls stay inside it, where they are almost never reached
    out = b.loop(
        [huge, x, sine, cosine],
        lambda y: y[0],
        lambda y: [
            b.const(False),
            b.const(0.0),
            b.raw("libm:sin", "f", y[1]),
            b.raw("libm:cos", "f", y[1]),
        ],
    )
    b.remember(("trigonometric", x), (out[2], out[3]))
    return out[2], out[3]


@functools.cache
def _sine_and_cosine() -> Program:
    b = Builder()
    b.blocks = [Block(), Block()]
    x = b.input("f", 1)
    return finish(b.nodes, b.blocks, [x], 0, list(_trigonometric(b, x)), None)


def by_a_call(b: Builder, name: str, *x: int) -> int | None:
    """The sine or the cosine by a call of one function that makes both, for programs with so many that it
    pays to make several at once; nothing for other functions."""
    if name not in ("sin", "cos") or b.value(x[0]) is not None:
        return None
    if (found := b.recall(("trigonometric", *x))) is None:
        found = tuple(b.call(_sine_and_cosine(), x))
        b.remember(("trigonometric", *x), found)
    return found[name == "cos"]


def exp(b: Builder, x: int) -> int:
    """exp x."""
    shifted = b.fma(x, b.const(1 / math.log(2)), b.const(MAGIC))
    k = b.raw("sub", "f", shifted, b.const(MAGIC))
    minus = b.neg(k)
    r = b.fma(minus, b.const(LN2_LOW), b.fma(minus, b.const(LN2_HIGH), x))
    tail = _horner(b, r, [1 / math.factorial(n) for n in range(2, 14)])
    value = b.add(b.const(1.0), b.fma(b.mul(r, r), tail, r))
    # 2^k in two factors, so that results near the ends of the range come out right
    bits = b.sub(b.raw("ftobits", "i", shifted), b.const(bits_of(MAGIC)))
    first = b.bits("iashr", bits, b.const(1))
    for part in (first, b.sub(bits, first)):
        value = b.mul(value, b.raw("bitstof", "f", b.bits("ishl", b.add(part, b.const(1023)), b.const(52))))
    value = b.select(b.compare("gt", x, b.const(709.79)), b.const(math.inf), value)
    return b.select(b.compare("lt", x, b.const(-745.2)), b.const(0.0), value)


def log(b: Builder, x: int) -> int:
    """log x."""
    tiny = b.compare("lt", x, b.const(2.0**-1022))
    scaled = b.select(tiny, b.mul(x, b.const(2.0**54)), x)
    bits = b.raw("ftobits", "i", scaled)
    # exponent such that the mantissa lies in [sqrt(1/2), sqrt(2))
    offset = b.sub(bits, b.const(bits_of(math.sqrt(0.5))))
    exponent = b.bits("iashr", offset, b.const(52))
    mantissa = b.raw("bitstof", "f", b.sub(bits, b.bits("ishl", exponent, b.const(52))))
    whole = b.convert(b.sub(exponent, b.select(tiny, b.const(54), b.const(0))), "f")
    f = b.sub(mantissa, b.const(1.0))
    s = b.div(f, b.add(b.const(2.0), f))
    z = b.mul(s, s)
    half = b.mul(b.const(0.5), b.mul(f, f))
    R = b.mul(z, _horner(b, z, LOG))
    low = b.fma(s, b.add(half, R), b.mul(whole, b.const(LN2_LOW)))
    value = b.sub(b.mul(whole, b.const(LN2_HIGH)), b.sub(b.sub(half, low), f))
    value = b.select(b.compare("lt", x, b.const(math.inf)), value, x)  # infinity, and NaN as it came
    value = b.select(b.compare("eq", x, b.const(0.0)), b.const(-math.inf), value)
    return b.select(b.compare("lt", x, b.const(0.0)), b.const(math.nan), value)


def bits_of(x: float) -> int:
    return int(struct.unpack("<q", struct.pack("<d", x))[0])


def _library(name: str) -> Callable[..., int]:
    def call(b: Builder, *x: int) -> int:
        return b.raw(f"libm:{name}", "f", *x)

    return call


def _tan(b: Builder, x: int) -> int:
    s, c = _trigonometric(b, x)
    return b.div(s, c)


def _logistic(x: float) -> float:
    return 0.5 * (1 + math.tanh(0.5 * x))


FUNCTIONS: dict[str, Elementary] = {
    "sin": Elementary(math.sin, lambda b, x: _trigonometric(b, x)[0]),
    "cos": Elementary(math.cos, lambda b, x: _trigonometric(b, x)[1]),
    "tan": Elementary(math.tan, _tan),
    "exp": Elementary(math.exp, exp),
    "log": Elementary(math.log, log),
    "exp2": Elementary(math.exp2, _library("exp2")),
    "expm1": Elementary(math.expm1, _library("expm1")),
    "log1p": Elementary(math.log1p, _library("log1p")),
    "sinh": Elementary(math.sinh, _library("sinh")),
    "cosh": Elementary(math.cosh, _library("cosh")),
    "tanh": Elementary(math.tanh, _library("tanh")),
    "asin": Elementary(math.asin, _library("asin")),
    "acos": Elementary(math.acos, _library("acos")),
    "atan": Elementary(math.atan, _library("atan")),
    "atan2": Elementary(math.atan2, _library("atan2")),
    "asinh": Elementary(math.asinh, _library("asinh")),
    "acosh": Elementary(math.acosh, _library("acosh")),
    "atanh": Elementary(math.atanh, _library("atanh")),
    "erf": Elementary(math.erf, _library("erf")),
    "erfc": Elementary(math.erfc, _library("erfc")),
    "cbrt": Elementary(math.cbrt, _library("cbrt")),
    "pow": Elementary(math.pow, _library("pow")),
    "logistic": Elementary(
        _logistic, lambda b, x: b.div(b.const(1.0), b.add(b.const(1.0), exp(b, b.neg(x))))
    ),
}
