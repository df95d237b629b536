"""How long steps should be: the rate of a motion, and the error of a step; both in the kinetic metric.

R^2 = (|a|^2 + T^2 |j|^2) / (|v|^2 + T^2 |a|^2) + (FREE / T)^2,      a = dv/dt,      j = da/dt

is a frequency: that of an oscillator wherever it is, about r^(-3/2) near a centre. T is the time in which the
motion changes at the start. The size of a state is T (|v|^2 + T^2 |a|^2)^(1/2), a length of the same metric,
which does not vanish where a motion turns round.
"""

from __future__ import annotations

from collections.abc import Callable

import jax
import jax.numpy as jnp
from jax import Array

from noslip.integrators.base import Observation
from noslip.system import System

LEAST = 1e-140  # for states of rest
FREE = 0.01  # steps become at most so many times longer than T asks for, where nothing happens


def log_rate(system: System, T: Array, q: Array, v: Array, t: Array) -> Array:
    """ln R."""
    M, a = system.mass_matrix(q), system.acceleration(q, v, t)
    v2, a2, j2 = (x @ M @ x for x in (v, a, along(system.acceleration, system, q, v, t)))
    return jnp.log((a2 + T**2 * j2) / (v2 + T**2 * a2 + LEAST) + (FREE / T) ** 2) / 2


def along(f: Callable[..., Array], system: System, q: Array, v: Array, t: Array) -> Array:
    """df/dt along the motion."""
    a = system.acceleration(q, v, t)
    return jax.jvp(f, (q, v, t), (v, a, jnp.ones_like(t)))[1]


def time_of(system: System, q: Array, v: Array, t: Array, h: Array) -> Array:
    """T = (|v| / |j|)^(1/2), or (|a| / |s|)^(1/2), s = dj/dt, at rest; bounded by 10^6 h,
    for motions that never change."""

    def jerk(q: Array, v: Array, t: Array) -> Array:
        return along(system.acceleration, system, q, v, t)

    M, a = system.mass_matrix(q), system.acceleration(q, v, t)
    vectors = (v, a, jerk(q, v, t), along(jerk, system, q, v, t))
    v2, a2, j2, s2 = (x @ M @ x for x in vectors)
    theta = jnp.sqrt((a2 + LEAST) / (s2 + LEAST))  # the square of a time
    rate = jnp.sqrt(jnp.sqrt((j2 + theta * s2) / (v2 + theta * a2 + LEAST)))
    return 1 / jnp.maximum(rate, 1e-6 / jnp.abs(h))


def distance(system: System, T: Array, one: Observation, other: Observation) -> Array:
    """Of two states that are near each other, relative to the size of one."""
    q, v, t = one.q, one.v, one.t
    M, a, dq, dv = system.mass_matrix(q), system.acceleration(q, v, t), other.q - q, other.v - v
    apart = dq @ M @ dq + T**2 * (dv @ M @ dv)
    return jnp.sqrt(apart / (T**2 * (v @ M @ v + T**2 * (a @ M @ a)) + LEAST))
