"""Coefficients of symmetric compositions: the parts gamma_i of a step, gamma_i = gamma_{s+1-i}, with sum 1.

suzuki4 has 5 parts: gamma = 1 / (4 - 4^(1/3)) twice on each side of 1 - 4 gamma (Suzuki 1990).
kahan_li6 and kahan_li8 have 9 and 17 (Kahan, Li 1997).
"""

import numpy as np

_SUZUKI = 1 / (4 - 4 ** (1 / 3))
_HALVES = {  # the first half of the sequence, then its middle
    "suzuki4": ([_SUZUKI, _SUZUKI], 1 - 4 * _SUZUKI),
    "kahan_li6": (
        [0.39216144400731413928, 0.33259913678935943860, -0.70624617255763935981, 0.08221359629355080023],
        0.79854399093482996340,
    ),
    "kahan_li8": (
        [
            *(0.13020248308889008088, 0.56116298177510838456, -0.38947496264484728641),
            *(0.15884190655515560090, -0.39590389413323757734, 0.18453964097831570709),
            *(0.25837438768632204729, 0.29501172360931029887),
        ],
        -0.60550853383003451170,
    ),
}
SCHEMES = tuple(_HALVES)


def coefficients(scheme: str) -> np.ndarray:
    """gamma_1 .. gamma_s."""
    half, middle = _HALVES[scheme]
    return np.array([*half, middle, *reversed(half)])
