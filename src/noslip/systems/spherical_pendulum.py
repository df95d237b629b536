"""Spherical pendulum in Cartesian coordinates: a point on a sphere, which is a holonomic constraint.

Coordinates x, y, z from the point of suspension, z upwards:

    L = mass |v|^2 / 2 - mass gravity z
    (x^2 + y^2 + z^2 - length^2) / 2 = 0

No angles, and no pole at which they would fail. The angular momentum about the vertical is a first integral;
the multiplier is minus the tension over the length.
"""

from __future__ import annotations

import jax.numpy as jnp
from jax import Array

from noslip.system import Parameters, System


def lagrangian(q: Array, v: Array, p: Parameters) -> Array:
    return p["mass"] * (0.5 * jnp.dot(v, v) - p["gravity"] * q[2])


def holonomic(q: Array, p: Parameters) -> Array:
    return (jnp.dot(q, q) - p["length"] ** 2)[None] / 2


def vertical_momentum(q: Array, v: Array, p: Parameters) -> Array:
    return p["mass"] * (q[0] * v[1] - q[1] * v[0])


def system(mass: float = 1.0, gravity: float = 1.0, length: float = 1.0) -> System:
    return System(
        lagrangian,
        holonomic=holonomic,
        coordinates=("x", "y", "z"),
        parameters={"mass": mass, "gravity": gravity, "length": length},
        first_integrals={"vertical_momentum": vertical_momentum},
    )


def typical_state() -> tuple[Array, Array]:
    return jnp.array([0.36, 0.48, -0.8]), jnp.array([0.7, -0.5, 0.015])
