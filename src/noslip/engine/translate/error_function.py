"""erf and erfc by rational functions on four ranges of |x|; errors are below 3 ulp (tested)."""

from __future__ import annotations

import math
from typing import NamedTuple

from noslip.engine.translate.reals import Real, exp_of_two, two_product, two_sum


class Ratio(NamedTuple):
    """A quotient of two polynomials."""

    above: tuple[float, ...]
    below: tuple[float, ...]

    def at(self, x: Real) -> Real:
        return x.polynomial(self.above) / x.polynomial(self.below)


# minimax, as in Sun's freely distributed libm: erf(x) / x - 1 of x^2 for |x| < 0.84375;
NEAR = Ratio(
    (1.28379167095512558561e-01, -3.25042107247001499370e-01, -2.84817495755985104766e-02,
     -5.77027029648944159157e-03, -2.37630166566501626084e-05),
    (1.0, 3.97917223959155352819e-01, 6.50222499887672944485e-02, 5.08130628187576562776e-03,
     1.32494738004321644526e-04, -3.96022827877536812320e-06),
)  # fmt: skip
# erf(1 + x) - ABOUT_ONE for 0.84375 <= 1 + x < 1.25;
ABOUT_ONE = 8.45062911510467529297e-01
MIDDLE = Ratio(
    (-2.36211856075265944077e-03, 4.14856118683748331666e-01, -3.72207876035701323847e-01,
     3.18346619901161753674e-01, -1.10894694282396677476e-01, 3.54783043256182359371e-02,
     -2.16637559486879084300e-03),
    (1.0, 1.06420880400844228286e-01, 5.40397917702171048937e-01, 7.18286544141962662868e-02,
     1.26171219808761642112e-01, 1.36370839120290507362e-02, 1.19844998467991074170e-02),
)  # fmt: skip
# and log(x erfc(x)) + x^2 + 0.5625 of 1 / x^2 below and above 1 / 0.35
FAR = Ratio(
    (-9.86494403484714822705e-03, -6.93858572707181764372e-01, -1.05586262253232909814e+01,
     -6.23753324503260060396e+01, -1.62396669462573470355e+02, -1.84605092906711035994e+02,
     -8.12874355063065934246e+01, -9.81432934416914548592e+00),
    (1.0, 1.96512716674392571292e+01, 1.37657754143519042600e+02, 4.34565877475229228821e+02,
     6.45387271733267880336e+02, 4.29008140027567833386e+02, 1.08635005541779435134e+02,
     6.57024977031928170135e+00, -6.04244152148580987438e-02),
)  # fmt: skip
FARTHEST = Ratio(
    (-9.86494292470009928597e-03, -7.99283237680523006574e-01, -1.77579549177547519889e+01,
     -1.60636384855821916062e+02, -6.37566443368389627722e+02, -1.02509513161107724954e+03,
     -4.83519191608651397019e+02),
    (1.0, 3.03380607434824582924e+01, 3.25792512996573918826e+02, 1.53672958608443695994e+03,
     3.19985821950859553908e+03, 2.55305040643316442583e+03, 4.74528541206955367215e+02,
     -2.24409524465858183362e+01),
)  # fmt: skip


def _at_most(a: Real, most: float) -> Real:
    """A number that a range can take, in the place of those beyond it, which it is not for."""
    return a.where(a.is_("gt", most), most)


def _small(a: Real) -> Real:
    """erf(a) / a - 1 for a < 0.84375."""
    near = _at_most(a, 0.84375)
    return NEAR.at(near * near)


def _middle(a: Real) -> Real:
    """erf(a) - ABOUT_ONE for a < 1.25."""
    return MIDDLE.at(_at_most(a, 1.25) - 1.0)


def _tail(a: Real) -> Real:
    """erfc(a) for a >= 1.25."""
    far = _at_most(a.where(a.is_("lt", 1.25), 1.25), 28.0)
    z = 1.0 / (far * far)
    ratio = FARTHEST.at(z).where(far.is_("lt", 1.0 / 0.35), FAR.at(z))
    square, lost = two_product(far, far)
    high, low = two_sum(-square, ratio - 0.5625)
    value = exp_of_two(high, low - lost) / far
    return value.where(a.is_("gt", 27.5), 0.0)


def erf(x: Real) -> Real:
    a = abs(x)
    value = (1.0 - _tail(a)).where(a.is_("lt", 1.25), ABOUT_ONE + _middle(a))
    value = value.where(a.is_("lt", 0.84375), a.fma(_small(a), a)).where(a.is_("ge", 6.0), 1.0)
    return value.where(x.is_("ne", x), math.nan).with_sign_of(x)


def erfc(x: Real) -> Real:
    a = abs(x)
    negative = x.is_("lt", 0.0)
    tail, middle, small = _tail(a), _middle(a), _small(a)
    value = tail.where(negative, 2.0 - tail)
    about_one = ((1.0 - ABOUT_ONE) - middle).where(negative, 1.0 + (ABOUT_ONE + middle))
    near = (0.5 - x.fma(small, x - 0.5)).where(x.is_("lt", 0.25), 1.0 - x.fma(small, x))
    value = value.where(a.is_("lt", 1.25), about_one).where(a.is_("lt", 0.84375), near)
    return value.where(x.is_("ne", x), math.nan)
