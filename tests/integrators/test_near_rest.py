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
from multiprecision import Collocation, Gear, discrete_gradient_step, doubles, mp

from noslip import System, simulate
from noslip.analysis import reversibility_defect
from noslip.integrators.discrete_gradient import DiscreteGradient
from noslip.integrators.energy_collocation import EnergyCollocation
from noslip.integrators.full_space_discrete_gradient import FullSpaceDiscreteGradient

DIRECTION = np.array([0.7, -0.5, 0.6]), np.array([0.4, 0.8])  # of q, and of the quasi-velocities


GEAR = System(
    lambda q, v, p: 0.5 * (v @ v - q[0] ** 2 - q[1] ** 2) - p["sign"] * jnp.cos(q[2]),
    one_forms=lambda q, p: jnp.array([[1.0, jnp.sin(q[2]), 0.0]]),
    coordinates=("q1", "q2", "q3"),
    frame=lambda q, p: jnp.array([[-jnp.sin(q[2]), 0.0], [1.0, 0.0], [0.0, 1.0]]),
    parameters={"sign": -1.0},
)


COLLOCATION = EnergyCollocation(2)
METHODS = [
    DiscreteGradient(),
    DiscreteGradient("mean_value"),
    DiscreteGradient("coordinate_increment"),
    COLLOCATION,
]


def run(sign, method, q, v, steps, h=0.1):
    return simulate(GEAR, method, q, v, step_size=h, steps=steps, parameters={"sign": sign})


def increment(sign, method, z, h):
    """Of z in one step of the same method in 60 digits."""
    with mpmath.workdps(60):
        gear, z, h = Gear(sign, 0), mp(z), mpmath.mpf(h)
        if method == COLLOCATION:
            return doubles(Collocation(2, 6).step(gear, z, h))
        return doubles(discrete_gradient_step(gear, getattr(multiprecision, method.gradient), z, h))


def both(sign, method, amplitude, h=0.1):
    """q and v after one step: noslip's, and the multiprecision one's."""
    q = amplitude * DIRECTION[0]
    y = amplitude * DIRECTION[1]
    s = np.sin(q[2])
    v = np.array([-s * y[0], y[0], y[1]])
    made = run(sign, method, q, v, 1, h)
    rho = np.array([(1 + s**2) * y[0], y[1]])
    d = increment(sign, method, np.concatenate([q, rho]), h)
    q1, rho1 = q + d[:3], rho + d[3:]
    s1 = np.sin(q1[2])
    y1 = rho1[0] / (1 + s1**2)
    return np.concatenate([made.q[1], made.v[1]]), np.concatenate([q1, [-s1 * y1, y1, rho1[1]]])


@pytest.mark.thorough
@pytest.mark.parametrize("method", METHODS)
def test_a_small_step_is_that_of_the_method(method):
    for sign in (-1.0, 1.0):
        for amplitude in 10.0 ** -np.arange(2, 10):
            found, expected = both(sign, method, amplitude)
            assert np.max(np.abs(found - expected)) <= 1e-14 * amplitude, (sign, amplitude)


@pytest.mark.thorough
@pytest.mark.parametrize("method", METHODS)
def test_rest_at_an_equilibrium_stays_rest(method):
    made = run(-1.0, method, np.zeros(3), np.zeros(3), 20)
    assert made.success
    assert not np.any(made.q)
    assert not np.any(made.v)


def test_a_small_oscillation_keeps_its_amplitude_and_period():
    """q2 swings freely while q3 is at rest: the midpoint rule at amplitude 1e-8 for 160 periods."""
    h, a = 0.1, 1e-8
    made = run(-1.0, DiscreteGradient(), [0.0, a, 0.0], np.zeros(3), 10_000, h)
    angle = 2 * np.arctan(h / 2)  # per step of the midpoint rule
    assert np.max(np.abs(made.q[:, 1] / a - np.cos(angle * np.arange(10_001)))) < 1e-9


LEANING = System(
    lambda q, v, p: 0.5 * (v @ v + 0.8 * v[0] * v[1] * jnp.cos(q[0])) - 9.0 - 5.0 * jnp.sinh(q[1]),
    one_forms=lambda q, p: jnp.array([[jnp.sin(q[0]) / 3, 1.0]]),
    coordinates=("x", "y"),
)


@pytest.mark.parametrize("method", [FullSpaceDiscreteGradient(), FullSpaceDiscreteGradient("mean_value")])
def test_a_slow_body_that_leans_on_its_constraint_goes_the_same_way_back(method):
    """The reaction balances a force that is large beside the motion: p is pushed and held in one step."""
    q, v = np.array([0.3, 0.1]), 0.04 * np.array([1.0, -np.sin(0.3) / 3])
    for h in (0.004, 0.002, 0.001):
        assert reversibility_defect(LEANING, method, q, v, step_size=h, steps=20) < 2e-13
