"""The rules by which the rows of studies are judged.

A rule belongs to a kind of claim and is the same for all rows that make it: no row has a threshold of its
own, so that none can be widened until its number fits.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal

import numpy as np

ROUND_OFF = 1e-12  # of a quantity relative to its own terms
NOT_ZERO = 1e-6
FORMULA = 1e-9
EXPONENT = 0.1  # steps are not infinitely small
SMALL = 1e-3
STEADY = 1.25  # sqrt(2) is what a growth with the square root of time would give
SIGN_CHANGES = 10
RUNS = math.e  # a growth that can be told from a line


@dataclass(frozen=True)
class Rule:
    """`agrees(ours, paper)`, where `paper` is the printed number, or nan where the rule needs none."""

    name: str
    sentence: str
    agrees: Callable[[float, float, str], bool]


def _digits(ours: float, value: float, paper: str) -> bool:
    return abs(ours - value) <= 0.5 * float(unit(paper)) * (1 + 1e-9)


def unit(paper: str) -> Decimal:
    """Of the last printed digit: 1e-5 for 5.2e-4."""
    exponent = Decimal(paper).as_tuple().exponent
    if not isinstance(exponent, int):
        raise ValueError(f"a printed number must be finite, but '{paper}' was given")
    return Decimal(1).scaleb(exponent)


DIGITS = Rule(
    "digits", "it rounds to the printed number: half a unit of the last printed digit at most", _digits
)
EXPONENTS = Rule(
    "exponent",
    f"a fitted exponent or order differs from the integer by at most {EXPONENT:g}",
    lambda ours, value, _: abs(ours - value) <= EXPONENT,
)
MAGNITUDE = Rule(
    "magnitude",
    '"of order 10^k": from 10^k up to 10^(k+1)',
    lambda ours, value, _: value <= ours < 10 * value,
)
EQUAL = Rule(
    "equal",
    f"the value of a formula differs by at most {FORMULA:g}, relatively where it is above 1",
    lambda ours, value, _: abs(ours - value) <= FORMULA * max(1.0, abs(value)),
)
ZERO = Rule(
    "zero",
    f"what must vanish is at most {ROUND_OFF:g} of its own terms",
    lambda ours, _v, _p: abs(ours) <= ROUND_OFF,
)
BROKEN = Rule(
    "not zero",
    f"what must not vanish is at least {NOT_ZERO:g}",
    lambda ours, _v, _p: abs(ours) >= NOT_ZERO,
)
SMALLER = Rule("smaller", '"better", "smaller": a quotient below 1', lambda ours, _v, _p: ours < 1)
LARGER = Rule("larger", '"increases", "larger": a quotient above 1', lambda ours, _v, _p: ours > 1)
SAME_ORDER = Rule(
    "same order",
    '"of the same order of magnitude", "similar": a quotient between 1/10 and 10',
    lambda ours, _v, _p: 0.1 < ours < 10,
)
SEVERAL_ORDERS = Rule(
    "several orders",
    '"several orders of magnitude": a quotient of 100 or more',
    lambda ours, _v, _p: ours >= 100,
)
ORDERS = Rule(
    "orders",
    '"k orders of magnitude": the decimal logarithm differs from k by at most 1/2',
    lambda ours, value, _: abs(ours - value) <= 0.5,
)
MOST = Rule("most", '"on average": in more than half of the cases', lambda ours, _v, _p: ours > 0.5)
NEGLIGIBLE = Rule(
    "small",
    f'"small", "practically": at most {SMALL:g} of the whole',
    lambda ours, _v, _p: abs(ours) <= SMALL,
)
BOUNDED = Rule(
    "bounded",
    f"the largest in the second half of a run, or at half the step, is at most {STEADY:g} times the other",
    lambda ours, _v, _p: 0 <= ours <= STEADY,
)
OSCILLATES = Rule(
    "oscillates",
    f'"oscillatory": at least {SIGN_CHANGES} changes of sign',
    lambda ours, _v, _p: ours >= SIGN_CHANGES,
)
EXPONENTIAL = Rule(
    "exponential",
    '"exponential": with the gains of four quarters of a run, log(fourth / third) over log(second / first) '
    f"is between 1/{STEADY:g} and {STEADY:g}, and the gains grow by a factor of e at least",
    lambda ours, _v, _p: 1 / STEADY <= ours <= STEADY,
)
VANISHES = Rule(
    "tends to zero",
    f"at the end of a run at most {SMALL:g} of what it was at its largest",
    lambda ours, _v, _p: abs(ours) <= SMALL,
)
AT_MOST = Rule("at most", "not above the printed bound", lambda ours, value, _: ours <= value)
MAGNITUDE_AT_MOST = Rule(
    "magnitude at most", '"of order at most 10^k": below 10^(k+1)', lambda ours, value, _: ours < 10 * value
)

ALL = (
    DIGITS, EXPONENTS, MAGNITUDE, EQUAL, ZERO, BROKEN, SMALLER, LARGER, SAME_ORDER, SEVERAL_ORDERS, ORDERS,
    MOST, NEGLIGIBLE, BOUNDED, OSCILLATES, EXPONENTIAL, VANISHES, AT_MOST, MAGNITUDE_AT_MOST,
)  # fmt: skip


# ---- what the rules about runs are applied to -----------------------------------------------------
def growth_of_halves(x: np.ndarray) -> float:
    """For BOUNDED: the largest size in the second half over that in the first."""
    first, second = (float(np.max(np.abs(part))) for part in np.array_split(x, 2))
    return second / first


def sign_changes(x: np.ndarray) -> int:
    """For OSCILLATES."""
    signs = np.sign(x[x != 0])
    return int(np.sum(signs[1:] != signs[:-1]))


def constancy_of_rate(x: np.ndarray) -> float:
    """For EXPONENTIAL: with the gains g of four equal quarters, log(g4 / g3) / log(g2 / g1). It is 1 for any
    A exp(rt) + B and 0.3 for t^2; 0 stands for gains that are not positive or grow by less than e."""
    ends = x[np.linspace(0, len(x) - 1, 5).round().astype(int)]
    gains = np.diff(ends)
    if not (0 < gains[0] < gains[1] and gains[2] > 0 and gains[3] >= RUNS * gains[0]):
        return 0.0
    return float(np.log(gains[3] / gains[2]) / np.log(gains[1] / gains[0]))
