"""Sinusoidal nonholonomic particle (FBO section 5.2).

Coordinates x (an angle: everything is 2 pi-periodic in it), y, z, unit mass:

    L = (xdot^2 + ydot^2 + zdot^2) / 2
    zdot + sin(x) ydot = 0

Hamiltonizable with Chaplygin's multiplier (1 + sin^2 x)^(-1/2), which unlike that of the plain particle
stays away from zero. First integrals are xdot and ydot sqrt(1 + sin^2 x); y is an elliptic integral of
the first kind with parameter -1, FBO (62), here from any initial state.
"""

from __future__ import annotations

import math

import jax.numpy as jnp
import numpy as np
from jax import Array
from numpy.typing import ArrayLike
from scipy.special import ellipkinc

from noslip.scenes import Scene
from noslip.system import Parameters, System
from noslip.systems import _looks
from noslip.systems._closed_forms import Floats


def lagrangian(q: Array, v: Array, p: Parameters) -> Array:
    return 0.5 * jnp.dot(v, v)


def one_forms(q: Array, p: Parameters) -> Array:
    return jnp.array([[0.0, jnp.sin(q[0]), 1.0]])


def frame(q: Array, p: Parameters) -> Array:
    return jnp.array([[1.0, 0.0], [0.0, 1.0], [0.0, -jnp.sin(q[0])]])


def multiplier(q: Array, p: Parameters) -> Array:
    return (1 + jnp.sin(q[0]) ** 2) ** -0.5


def x_velocity(q: Array, v: Array, p: Parameters) -> Array:
    return v[0]


def y_momentum(q: Array, v: Array, p: Parameters) -> Array:
    return v[1] * jnp.sqrt(1 + jnp.sin(q[0]) ** 2)


def system() -> System:
    return System(
        lagrangian,
        one_forms=one_forms,
        coordinates=("x", "y", "z"),
        angles=("x",),
        frame=frame,
        first_integrals={"x_velocity": x_velocity, "y_momentum": y_momentum},
        fibre=("z",),
        multiplier=multiplier,
        scene=scene,
    )


def scene(q: Array, p: Parameters) -> Scene:
    """The particle, the plane of its velocities, and the reaction."""
    return _looks.particle(q, one_forms(q, p))


def typical_state() -> tuple[Array, Array]:
    x, ydot = 0.4, -0.8
    return jnp.array([x, 0.3, -0.2]), jnp.array([0.9, ydot, -math.sin(x) * ydot])


def exact(t: ArrayLike, q0: ArrayLike, v0: ArrayLike) -> tuple[Floats, Floats, Floats]:
    """FBO (62) from any admissible state: q, v and the multiplier -xdot ydot cos x / (1 + sin^2 x)."""
    t = np.asarray(t, dtype=float)
    (x, y, z), (vx, vy, _) = np.asarray(q0, dtype=float), np.asarray(v0, dtype=float)
    end = x + vx * t
    s = np.sqrt(1 + np.sin(end) ** 2)
    c = vy * np.sqrt(1 + np.sin(x) ** 2)
    along, aside = _means(x, vx * t)
    q = np.stack([end, y + c * t * along, z - c * t * aside], axis=-1)
    v = np.stack([np.full_like(t, vx), c / s, -c * np.sin(end) / s], axis=-1)
    return q, v, (-c * vx * np.cos(end) / s**3)[:, None]


def _means(x: float, distance: Floats) -> tuple[Floats, Floats]:
    """Means of 1/s and sin/s, s = sqrt(1 + sin^2), from x to x + distance: closed, or Gauss if near."""
    nodes, weights = np.polynomial.legendre.leggauss(20)
    points = x + np.multiply.outer(np.clip(distance, -1.0, 1.0), 0.5 * (1 + nodes))
    near = 1 / np.sqrt(1 + np.sin(points) ** 2)
    far = np.where(np.abs(distance) < 1.0, 1.0, distance)
    along = (ellipkinc(x + far, -1.0) - ellipkinc(x, -1.0)) / far
    aside = (np.arcsin(np.cos(x) / np.sqrt(2)) - np.arcsin(np.cos(x + far) / np.sqrt(2))) / far
    is_near = np.abs(distance) < 1.0
    return (
        np.where(is_near, near @ (0.5 * weights), along),
        np.where(is_near, (np.sin(points) * near) @ (0.5 * weights), aside),
    )
