"""Sine and cosine of arguments beyond 2^30, where pi/2 in three doubles no longer does.

x = m 2^e with a whole number m of 53 bits, and 2/pi is a sum of words of 24 bits: every product of half of m
with a word is exact, whole multiples of 4 turns of pi/2 are taken off it exactly, and the rest is summed in
three doubles. The smallest remainder of any double is about 2^-61, so more than 100 bits are left of it.
"""

from __future__ import annotations

import functools
import math

from noslip.engine.translate.builder import Builder
from noslip.engine.translate.functions import (
    HALF_PI,
    HALF_PI_LOW,
    cosine_of_reduced,
    signed,
    sine_of_reduced,
)

WORD, WORDS = 24, 52  # bits of a word; 971 + 220 bits are enough for the largest double
HALF = 26  # bits of the lower half of m
NEGLIGIBLE = -220  # powers of 2 of products, which have up to 51 bits


def sin_of_huge(b: Builder, x: int) -> int:
    """sin x for |x| >= 2^30; NaN where x is not finite."""
    return _of_huge(b, x)[0]


def cos_of_huge(b: Builder, x: int) -> int:
    """cos x for |x| >= 2^30; NaN where x is not finite."""
    return _of_huge(b, x)[1]


@functools.cache
def _two_over_pi() -> tuple[int, ...]:
    """The words of 2/pi after the point, by Machin's formula in whole numbers."""
    bits = WORD * WORDS + 64

    def arctan_of_inverse(n: int) -> int:
        total, power, k = 0, (1 << bits) // n, 1
        while power:
            total += power // k if k % 4 == 1 else -(power // k)
            power //= n * n
            k += 2
        return total

    pi = 4 * (4 * arctan_of_inverse(5) - arctan_of_inverse(239))
    ratio = (2 << (2 * bits)) // pi
    return tuple((ratio >> (bits - WORD * (k + 1))) % (1 << WORD) for k in range(WORDS))


def _of_huge(b: Builder, x: int) -> tuple[int, int]:
    bits = b.raw("ftobits", "i", b.abs(x))
    exponent = b.sub(b.bits("iashr", bits, b.const(52)), b.const(1075))
    whole = b.bits("ior", b.bits("iand", bits, b.const((1 << 52) - 1)), b.const(1 << 52))
    low = b.convert(b.bits("iand", whole, b.const((1 << HALF) - 1)), "f")
    high = b.convert(b.bits("iashr", whole, b.const(HALF)), "f")

    def turn(carry: list[int], entry: list[int]) -> tuple[list[int], list[int]]:
        total, shift = carry[:3], carry[3]
        for part, more in ((high, HALF), (low, 0)):
            product, power = b.mul(part, entry[0]), b.add(shift, b.const(more))
            total = _added(b, total, _without_fours(b, product, power))
        return [*total, b.sub(shift, b.const(WORD))], []

    zero, words = b.const(0.0), [b.const(float(w)) for w in _two_over_pi()]
    start = [zero, zero, zero, b.sub(exponent, b.const(WORD))]
    (first, second, third, _), _ = b.rolled(WORDS, start, [words], turn)

    quarters = b.unary("rint", first, lambda v: float(round(v)))
    f, f_low = _two_sum(b, b.raw("sub", "f", first, quarters), second)
    f, f_low = _two_sum(b, f, b.raw("add", "f", f_low, third))
    product = b.mul(f, b.const(HALF_PI))
    lost = b.fma(f, b.const(HALF_PI), b.neg(product))
    rest = b.fma(f_low, b.const(HALF_PI), b.fma(f, b.const(HALF_PI_LOW), lost))
    r, tail = _two_sum(b, product, rest)
    k = b.raw("ftoi", "i", quarters)
    s, c = sine_of_reduced(b, r, tail), cosine_of_reduced(b, r, tail)
    odd = b.compare("ne", b.bits("iand", k, b.const(1)), b.const(0))
    sine, cosine = signed(b, b.select(odd, c, s), k), signed(b, b.select(odd, s, c), b.add(k, b.const(1)))
    sine = b.select(b.compare("lt", x, zero), b.neg(sine), sine)
    finite, nan = b.compare("lt", b.abs(x), b.const(math.inf)), b.const(math.nan)
    return b.select(finite, sine, nan), b.select(finite, cosine, nan)


def _without_fours(b: Builder, product: int, power: int) -> int:
    """product 2^power modulo 4, exact; 0 where it is a multiple of 4 or too small to count."""
    counts = b.both(b.compare("lt", power, b.const(2)), b.compare("lt", b.const(NEGLIGIBLE), power))
    bits = b.bits("ishl", b.add(b.select(counts, power, b.const(0)), b.const(1023)), b.const(52))
    term = b.mul(product, b.raw("bitstof", "f", bits))
    fours = b.unary("floor", b.mul(term, b.const(0.25)), lambda v: float(math.floor(v)))
    return b.select(counts, b.fma(b.const(-4.0), fours, term), b.const(0.0))


def _added(b: Builder, total: list[int], x: int) -> list[int]:
    first, rest = _two_sum(b, total[0], x)
    second, rest = _two_sum(b, total[1], rest)
    return [first, second, b.raw("add", "f", total[2], rest)]


def _two_sum(b: Builder, x: int, y: int) -> tuple[int, int]:
    """x + y as a double and what its rounding cut off; these differences must not be simplified."""
    total = b.raw("add", "f", x, y)
    back = b.raw("sub", "f", total, x)
    lost = b.raw("add", "f", b.raw("sub", "f", x, b.raw("sub", "f", total, back)), b.raw("sub", "f", y, back))
    return total, lost
