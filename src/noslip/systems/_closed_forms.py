"""Integrals that several exact solutions share, written so that no digits are lost in their limits."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


def driven_turn(
    t: Floats, angle: float, rate: float, speed: float, slope: float
) -> tuple[Floats, Floats, Floats, Floats, Floats]:
    """A point whose heading turns at a constant rate while a constant force pulls it along x.

    Solves angle' = rate, u' = slope cos(angle), x' = u cos(angle), y' = u sin(angle), s' = u from the
    given angle and speed, for any rate, zero included. Returns angle(t), u(t), and the increments of
    x, y and s. With C, S the integrals of cos and sin of the angle, u = speed + slope C, so that
    x = (u + speed) C / 2, and the integral of C sin(angle) is (C S + rate t^3 e(rate t)) / 2.
    """
    turned = rate * t
    middle, chord = angle + 0.5 * turned, t * np.sinc(0.5 * turned / np.pi)
    C, S = chord * np.cos(middle), chord * np.sin(middle)
    excess = _sine_excess(turned)
    u = speed + slope * C
    x = 0.5 * (u + speed) * C
    y = speed * S + 0.5 * slope * (C * S + turned * t**2 * excess)
    fall = 0.5 * np.cos(angle) * chord**2 - np.sin(angle) * turned * t**2 * excess
    return angle + turned, u, x, y, speed * t + slope * fall


def _sine_excess(x: Floats) -> Floats:
    """(x - sin x) / x^3, which is 1/6 at zero."""
    term = np.full_like(x, 1 / 6)
    series = term.copy()
    for k in range(2, 11):
        term = -term * np.minimum(np.abs(x), 1.0) ** 2 / ((2 * k) * (2 * k + 1))
        series += term
    far = np.where(np.abs(x) < 1.0, 1.0, x)
    return np.where(np.abs(x) < 1.0, series, (far - np.sin(far)) / far**3)


def hyperbolic_glide(t: Floats, y: float, rate: float) -> tuple[Floats, Floats, Floats, Floats]:
    """y(t) = y + rate t, s = sqrt(1 + y(t)^2), and the integrals over time of 1/s and of y/s."""
    end = y + rate * t
    s0, s = np.sqrt(1 + y**2), np.sqrt(1 + end**2)
    # asinh(end) - asinh(y) = asinh(rate t g), with both differences taken out by hand
    g = s0 - y * (end + y) / (s + s0)
    u = rate * t * g
    ratio = np.where(u == 0, 1.0, np.arcsinh(u) / np.where(u == 0, 1.0, u))
    return end, s, t * g * ratio, t * (end + y) / (s + s0)
