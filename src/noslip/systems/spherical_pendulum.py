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

from noslip.scenes import (
    BLACK,
    GREEN,
    GREY,
    ORANGE,
    Arrow,
    Camera,
    Cylinder,
    Mark,
    Scene,
    Solid,
    Sphere,
    along,
)
from noslip.system import Parameters, System
from noslip.systems import _looks


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
        scene=scene,
    )


def scene(q: Array, p: Parameters) -> Scene:
    """The bob on its rod, the equator of the sphere, and the force of the rod."""
    rotation, length = along(jnp.zeros(3), q)
    l = p["length"]
    return Scene(
        bodies=(
            Solid(Sphere(0.08 * l), q, name="bob", colour=ORANGE),
            Solid(Cylinder(0.015 * l, length), q / 2, rotation, name="rod", colour=BLACK),
            Solid(Sphere(l), (0.0, 0.0, 0.0), name="sphere", colour=GREY, opacity=0.12),
            _looks.ring(l, 0.0, "equator"),
        ),
        marks=(Mark(jnp.zeros(3), name="pivot", colour=BLACK, trail=False), Mark(q, name="path")),
        arrows=(Arrow(q, q[None, :], name="tension", colour=GREEN),),
        camera=Camera(follow=False),
    )


def typical_state() -> tuple[Array, Array]:
    return jnp.array([0.36, 0.48, -0.8]), jnp.array([0.7, -0.5, 0.015])
