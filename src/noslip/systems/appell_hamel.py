"""Appell-Hamel system: a particle whose velocity makes a fixed angle with the vertical, in gravity.

Coordinates x, y, z; mass m, gravity g along -z; the nonlinear constraint (Chetaev's rule) is

    L = m (xdot^2 + ydot^2 + zdot^2) / 2 - m g z
    zdot - c sqrt(xdot^2 + ydot^2) = 0

Appell's mechanism of a weight on a thread over a wheel, in Hamel's limit. The constraint is homogeneous
of degree 1 in the velocity, so the energy is conserved, and smooth except where the particle stops. The
reaction acts along the horizontal velocity: its direction is constant, the path a straight line, and the
horizontal speed s obeys sdot = -c g / (1 + c^2). For c > 0 the particle rises, slows down and reaches the
singular state s = 0; for c < 0, the default, it descends and speeds up. Nonlinear constraints are also
the subject of PP.
"""

from __future__ import annotations

import math

import jax.numpy as jnp
import numpy as np
from jax import Array
from numpy.typing import ArrayLike

from noslip.scenes import ORANGE, Mark, Scene, Solid, Sphere
from noslip.system import Parameters, System
from noslip.systems._closed_forms import Floats


def lagrangian(q: Array, v: Array, p: Parameters) -> Array:
    return 0.5 * p["m"] * jnp.dot(v, v) - p["m"] * p["g"] * q[2]


def constraint(q: Array, v: Array, p: Parameters) -> Array:
    return jnp.array([v[2] - p["c"] * _speed(v)])


def direction_x(q: Array, v: Array, p: Parameters) -> Array:
    return v[0] / _speed(v)


def direction_y(q: Array, v: Array, p: Parameters) -> Array:
    return v[1] / _speed(v)


def offset(q: Array, v: Array, p: Parameters) -> Array:
    """Signed distance of the vertical plane of motion from the z axis."""
    return (q[0] * v[1] - q[1] * v[0]) / _speed(v)


def system(m: float = 1.0, g: float = 1.0, c: float = -0.5) -> System:
    return System(
        lagrangian,
        constraint=constraint,
        coordinates=("x", "y", "z"),
        parameters={"m": m, "g": g, "c": c},
        first_integrals={"direction_x": direction_x, "direction_y": direction_y, "offset": offset},
        fibre=("z",),
        scene=scene,
    )


def scene(q: Array, p: Parameters) -> Scene:
    """The particle and its path."""
    return Scene(
        bodies=(Solid(Sphere(0.06), q, name="particle", colour=ORANGE),),
        marks=(Mark(q, name="path"),),
        axes=("x", "y", "z"),
    )


def typical_state() -> tuple[Array, Array]:
    return jnp.array([0.2, -0.3, 0.5]), jnp.array([0.6, 0.4, -0.5 * math.sqrt(0.6**2 + 0.4**2)])


def exact(
    t: ArrayLike, q0: ArrayLike, v0: ArrayLike, *, m: float = 1.0, g: float = 1.0, c: float = -0.5
) -> tuple[Floats, Floats, Floats]:
    """The motion from any admissible state until the horizontal speed vanishes: q, v, multiplier."""
    t = np.asarray(t, dtype=float)
    q0, v0 = np.asarray(q0, dtype=float), np.asarray(v0, dtype=float)
    s = np.hypot(v0[0], v0[1])
    direction = np.array([v0[0] / s, v0[1] / s, c])
    slowing = c * g / (1 + c**2)
    q = q0 + np.multiply.outer(t * (s - 0.5 * slowing * t), direction)
    v = np.multiply.outer(s - slowing * t, direction)
    return q, v, np.full((len(t), 1), m * g / (1 + c**2))


def _speed(v: Array) -> Array:
    return jnp.sqrt(v[0] ** 2 + v[1] ** 2)
