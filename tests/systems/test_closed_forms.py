"""The shared integrals keep their digits in every limit; mpmath is the judge."""

import mpmath
import numpy as np
import pytest

from noslip.systems import sinusoidal_particle
from noslip.systems._closed_forms import driven_turn, hyperbolic_glide

mpmath.mp.dps = 30


@pytest.mark.thorough
@pytest.mark.parametrize("rate", [0.0, 1e-12, -1e-6, 1e-3, 0.4999, -0.5001, 3.0])
def test_driven_turn(rate: float) -> None:
    t, angle, speed, slope = 2.0, 0.7, -0.4, 0.9
    values = driven_turn(np.array([t]), angle, rate, speed, slope)

    def u(s: mpmath.mpf) -> mpmath.mpf:
        return speed + slope * mpmath.quad(lambda r: mpmath.cos(angle + rate * r), [0, s])

    expected = [
        angle + rate * t,
        u(t),
        mpmath.quad(lambda s: u(s) * mpmath.cos(angle + rate * s), [0, t]),
        mpmath.quad(lambda s: u(s) * mpmath.sin(angle + rate * s), [0, t]),
        mpmath.quad(u, [0, t]),
    ]
    np.testing.assert_allclose([x[0] for x in values], np.array(expected, dtype=float), rtol=0, atol=4e-15)


@pytest.mark.parametrize("rate", [0.0, 1e-12, -1e-6, 0.3, -2.0])
def test_hyperbolic_glide(rate: float) -> None:
    t, y = 1.5, 0.8
    values = hyperbolic_glide(np.array([t]), y, rate)

    def s(r: mpmath.mpf) -> mpmath.mpf:
        return mpmath.sqrt(1 + (y + rate * r) ** 2)

    along = mpmath.quad(lambda r: 1 / s(r), [0, t])
    aside = mpmath.quad(lambda r: (y + rate * r) / s(r), [0, t])
    expected = np.array([y + rate * t, s(t), along, aside], dtype=float)
    np.testing.assert_allclose([x[0] for x in values], expected, rtol=0, atol=2e-15)


@pytest.mark.parametrize("distance", [0.0, 1e-9, -0.999, 1.001, -7.0, 30.0])
def test_means_of_the_sinusoidal_particle(distance: float) -> None:
    x = 0.4
    means = sinusoidal_particle._means(x, np.array([distance]))
    pieces = mpmath.linspace(0, 1, 41)

    def s(r: mpmath.mpf) -> mpmath.mpf:
        return mpmath.sqrt(1 + mpmath.sin(x + distance * r) ** 2)

    along = mpmath.quad(lambda r: 1 / s(r), pieces)
    aside = mpmath.quad(lambda r: mpmath.sin(x + distance * r) / s(r), pieces)
    np.testing.assert_allclose([m[0] for m in means], [float(along), float(aside)], rtol=0, atol=3e-15)
