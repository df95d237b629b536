"""A lopsided ball on a level plate, held by a spring, as somebody writes it who thinks in quaternions.

There is no frame. Coordinates are the point of contact (x, y) and the quaternion u of the attitude, in all
six. Three one-forms: the lowest point is at rest in two directions, and u keeps its length. The spring keeps
the speed what it is: down a slope a long run would end with turns of a radian in a step.
"""

from __future__ import annotations

import functools

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from noslip.system import System
from noslip.system.derived import Parameters

NAMES = ("x", "y", "u0", "u1", "u2", "u3")
MASS, RADIUS, SPRING = 1.3, 0.7, 0.4
INERTIA = np.array([0.2, 0.26, 0.31])


def _product(a: Array, b: Array) -> Array:
    real = a[0] * b[0] - jnp.dot(a[1:], b[1:])
    return jnp.concatenate([real[None], a[0] * b[1:] + b[0] * a[1:] + jnp.cross(a[1:], b[1:])])


def _conjugate(u: Array) -> Array:
    return u * jnp.array([1.0, -1.0, -1.0, -1.0])


def lagrangian(q: Array, v: Array, p: Parameters) -> Array:
    u, rate = q[2:], v[2:]
    spin = 2 * _product(_conjugate(u), rate)[1:]  # in the body
    stretch = jnp.dot(u, rate)
    return (
        MASS * jnp.dot(v[:2], v[:2]) / 2
        + jnp.dot(INERTIA * spin, spin) / 2
        + stretch**2 / 2
        - SPRING * jnp.dot(q[:2], q[:2]) / 2
    )


def one_forms(q: Array, p: Parameters) -> Array:
    def slip(v: Array) -> Array:
        turn = 2 * _product(v[2:], _conjugate(q[2:]))[1:]  # in space
        return jnp.stack([v[0] - RADIUS * turn[1], v[1] + RADIUS * turn[0], jnp.dot(q[2:], v[2:])])

    return jax.jacfwd(slip)(jnp.zeros(6))


@functools.cache
def system() -> System:
    return System(lagrangian, one_forms=one_forms, coordinates=NAMES)


def typical_state() -> tuple[np.ndarray, np.ndarray]:
    """Rolling away from the spring's rest, and turning about the vertical."""
    q = np.array([0.0, 0.0, 0.8, 0.0, 0.6, 0.0])
    spin = np.array([0.0, 1.1, -0.4, 0.9])  # in space, as a quaternion
    u, v = q[2:], np.zeros(6)
    v[2:] = 0.5 * np.array([-spin[1:] @ u[1:], *(spin[1:] * u[0] + np.cross(spin[1:], u[1:]))])
    v[:2] = RADIUS * spin[2], -RADIUS * spin[1]
    return q, v
