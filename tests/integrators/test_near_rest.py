"""Discrete gradient steps near equilibria and at rest, against the same step in multiprecision.

A discrete gradient divides a difference of energies by |d|^2. Where the motion is small and the potential
is not, that quotient has no digits in double precision, and an unguarded step is garbage whose energy
looks perfect. The gear ratio of the gearbox with the pendulum's potential `sign` cos(q3): a stable
equilibrium at the origin for sign = -1, a saddle for +1, and |H| = 1 at both.
"""

import jax.numpy as jnp
import mpmath
import multiprecision
import numpy as np
import pytest
from multiprecision import Gear, discrete_gradient_step, doubles, mp

from noslip import System, simulate
from noslip.integrators.discrete_gradient import DiscreteGradient

DIRECTION = np.array([0.7, -0.5, 0.6]), np.array([0.4, 0.8])  # of q, and of the quasi-velocities


GEAR = System(
    lambda q, v, p: 0.5 * (v @ v - q[0] ** 2 - q[1] ** 2) - p["sign"] * jnp.cos(q[2]),
    one_forms=lambda q, p: jnp.array([[1.0, jnp.sin(q[2]), 0.0]]),
    coordinates=("q1", "q2", "q3"),
    frame=lambda q, p: jnp.array([[-jnp.sin(q[2]), 0.0], [1.0, 0.0], [0.0, 1.0]]),
    parameters={"sign": -1.0},
)


def run(sign, gradient, q, v, steps, h=0.1):
    return simulate(
        GEAR, DiscreteGradient(gradient), q, v, step_size=h, steps=steps, parameters={"sign": sign}
    )


def both(sign, gradient, amplitude, h=0.1):
    """Increment of q and of v in one step: noslip's, and the multiprecision one's."""
    q = amplitude * DIRECTION[0]
    y = amplitude * DIRECTION[1]
    s = np.sin(q[2])
    v = np.array([-s * y[0], y[0], y[1]])
    made = run(sign, gradient, q, v, 1, h)
    rho = np.array([(1 + s**2) * y[0], y[1]])
    with mpmath.workdps(60):
        z = mp(np.concatenate([q, rho]))
        d = doubles(
            discrete_gradient_step(Gear(sign, 0), getattr(multiprecision, gradient), z, mpmath.mpf(h))
        )
    q1, rho1 = q + d[:3], rho + d[3:]
    s1 = np.sin(q1[2])
    y1 = rho1[0] / (1 + s1**2)
    return np.concatenate([made.q[1], made.v[1]]), np.concatenate([q1, [-s1 * y1, y1, rho1[1]]])


@pytest.mark.parametrize("gradient", ["gonzalez", "mean_value"])
def test_a_small_step_is_that_of_the_method(gradient):
    for sign in (-1.0, 1.0):
        for amplitude in 10.0 ** -np.arange(2, 10):
            found, expected = both(sign, gradient, amplitude)
            assert np.max(np.abs(found - expected)) <= 1e-14 * amplitude, (sign, amplitude)


@pytest.mark.parametrize("gradient", ["gonzalez", "mean_value"])
def test_rest_at_an_equilibrium_stays_rest(gradient):
    made = run(-1.0, gradient, np.zeros(3), np.zeros(3), 20)
    assert made.success
    assert not np.any(made.q)
    assert not np.any(made.v)


def test_a_small_oscillation_keeps_its_amplitude_and_period():
    """q2 swings freely while q3 is at rest: the midpoint rule at amplitude 1e-8 for 160 periods."""
    h, a = 0.1, 1e-8
    made = run(-1.0, "gonzalez", [0.0, a, 0.0], np.zeros(3), 10_000, h)
    angle = 2 * np.arctan(h / 2)  # per step of the midpoint rule
    assert np.max(np.abs(made.q[:, 1] / a - np.cos(angle * np.arange(10_001)))) < 1e-9
