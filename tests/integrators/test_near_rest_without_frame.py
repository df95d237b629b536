"""Steps without a frame near equilibria and at rest, against the same step in multiprecision.

The system of `test_near_rest`, of which the frame P(q) B can be written down: with s = sin q3 and s_m that in
the middle, B = (-s_m, 1, 0), (0, 0, 1) gives X = a (-s, 1, 0), (0, 0, 1) with a = (1 + s s_m) / (1 + s^2).
"""

import dataclasses

import mpmath
import numpy as np
import pytest
from multiprecision import Collocation, Gear, doubles, fixed_point, gauss, mp, product
from test_near_rest import DIRECTION, GEAR

from noslip import simulate
from noslip.integrators.discrete_gradient import DiscreteGradient
from noslip.integrators.energy_collocation import EnergyCollocation

BARE = dataclasses.replace(GEAR, frame=None)
METHODS = [DiscreteGradient(), DiscreteGradient("mean_value"), EnergyCollocation(2)]


class FreeGear(Gear):
    """H, dH and Pi in the frame P B of a step with q3 = `middle` halfway; rho1 = B1 . p."""

    def __init__(self, sign, middle):
        super().__init__(sign, 0)
        self.s = mpmath.sin(middle)

    def scaled(self, z):
        """(z with the rho1 of the paper's frame, a, da/dq3)."""
        c, s = mpmath.cos_sin(z[2])
        a = (1 + s * self.s) / (1 + s**2)
        slope = c * (self.s * (1 + s**2) - 2 * s * (1 + s * self.s)) / (1 + s**2) ** 2
        return np.concatenate([z[:3], [z[3] / a, z[4]]]), a, slope

    def energy(self, z):
        return super().energy(self.scaled(z)[0])

    def gradient(self, z):
        there, a, slope = self.scaled(z)
        g = super().gradient(there)
        return np.concatenate([g[:2], [g[2] - g[3] * there[3] / a * slope, g[3] / a, g[4]]])

    def apply(self, z, g):
        """Pi is that of the paper's frame in other coordinates: J Pi J^T, rho1' = a rho1."""
        there, a, slope = self.scaled(z)
        turn = slope * there[3]  # J is the identity, but for a and this beside it
        y = super().apply(there, np.concatenate([g[:2], [g[2] + turn * g[3], a * g[3], g[4]]]))
        return np.concatenate([y[:3], [a * y[3] + turn * y[2], y[4]]])

    def dual(self, d, h):
        return np.concatenate([d[:3] / h**2, [d[3] / (1 + self.s**2), d[4]]])


def corrected(gear, z, d, g, h):
    dual = gear.dual(d, h)
    return g + dual * ((gear.energy(z + d) - gear.energy(z) - g @ d) / (d @ dual))


def discrete_gradient(method, gear, z, d, h):
    if method.gradient == "gonzalez":
        return corrected(gear, z, d, gear.gradient(z + d / 2), h)
    c, b = gauss(method.nodes)
    return corrected(gear, z, d, sum(gear.gradient(z + d * x) * w for x, w in zip(c, b, strict=True)), h)


def collocation(rule, gear, z, x, h):
    G = product(rule.weights, np.array([gear.gradient(u) for u in z + product(rule.between, x)]))
    defect = gear.energy(z + rule.b @ x) - gear.energy(z) - rule.b @ np.sum(x * G, axis=1)
    dual = np.array([gear.dual(d, h) for d in x])
    G = G + dual * (defect / (rule.b @ np.sum(x * dual, axis=1)))
    return np.array([gear.apply(u, g) for u, g in zip(z + product(rule.A, x), G, strict=True)]) * h


def step(sign, method, q, y, h):
    """q and v after a step from the velocity y1 (-s, 1, 0) + y2 (0, 0, 1)."""
    stages = getattr(method, "stages", 1)
    rule = Collocation(stages, stages + 4) if stages > 1 else None
    q, y, s = mp(q), mp(y), mpmath.sin(mpmath.mpf(q[2]))

    def around(d):
        """The gear and z in the frame of the step by d."""
        gear = FreeGear(sign, q[2] + d[2] / 2)
        return gear, np.concatenate([q, [(1 + s * gear.s) * y[0], y[1]]])

    def F(x):
        if rule is None:
            gear, z = around(x)
            return gear.apply(z + x / 2, discrete_gradient(method, gear, z, x, h)) * h
        return collocation(rule, *around(rule.b @ x), x, h)

    first = np.concatenate([np.array([-s * y[0], y[0], y[1]]), -q[1:3]]) * h
    x = fixed_point(F, first if rule is None else np.array([first] * stages))
    d = x if rule is None else rule.b @ x
    gear, z = around(d)
    z = z + d
    s1 = mpmath.sin(z[2])
    y1 = z[3] / (1 + s1 * gear.s)
    return doubles(z[:3]), doubles([-s1 * y1, y1, z[4]])


@pytest.mark.parametrize("method", METHODS)
def test_a_small_step_is_that_of_the_method(method):
    for sign in (-1.0, 1.0):
        for amplitude in 10.0 ** -np.arange(2, 10):
            q, y = amplitude * DIRECTION[0], amplitude * DIRECTION[1]
            v = np.array([-np.sin(q[2]) * y[0], y[0], y[1]])
            run = simulate(BARE, method, q, v, step_size=0.1, steps=1, parameters={"sign": sign})
            with mpmath.workdps(60):
                expected = step(sign, method, q, y, mpmath.mpf(0.1))
            for found, wanted in zip((run.q[1], run.v[1]), expected, strict=True):
                assert np.max(np.abs(found - wanted)) <= 1e-14 * amplitude, (sign, amplitude)


@pytest.mark.parametrize("method", [*METHODS, DiscreteGradient(frame="orthonormal")])
def test_rest_at_an_equilibrium_stays_rest(method):
    run = simulate(BARE, method, np.zeros(3), np.zeros(3), step_size=0.1, steps=20)
    assert run.success
    assert not np.any(run.q)
    assert not np.any(run.v)


@pytest.mark.parametrize("method", [DiscreteGradient(), DiscreteGradient(frame="orthonormal")])
def test_a_small_oscillation_keeps_its_amplitude_and_period(method):
    """q2 swings freely while q3 is at rest: the midpoint rule at amplitude 1e-8 for 160 periods."""
    h, a = 0.1, 1e-8
    run = simulate(BARE, method, [0.0, a, 0.0], np.zeros(3), step_size=h, steps=10_000)
    angle = 2 * np.arctan(h / 2)  # per step of the midpoint rule
    assert np.max(np.abs(run.q[:, 1] / a - np.cos(angle * np.arange(10_001)))) < 1e-9
