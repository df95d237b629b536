"""Four-bar linkage: three rods in a closed chain with the ground.

Coordinates a, b, c, the angles of the crank, the coupler and the rocker to the ground, of lengths l1, l2, l3
and masses m1, m2, m3, homogeneous rods. The crank turns about the origin, the rocker about (d, 0); with e(s)
= (cos s, sin s), the coupler's middle r = l1 e(a) + l2 e(b) / 2, and gravity g downwards,

    L = (m1 l1^2 adot^2 / 3 + m2 |rdot|^2 + m2 l2^2 bdot^2 / 12 + m3 l3^2 cdot^2 / 3) / 2
        - g (m1 l1 sin(a) / 2 + m2 (l1 sin a + l2 sin(b) / 2) + m3 l3 sin(c) / 2)
    l1 e(a) + l2 e(b) - l3 e(c) - d e(0) = 0              (two holonomic constraints: the loop closes)

There is one degree of freedom, and the energy is conserved. With the defaults the crank can go all round: the
shortest and the longest side are shorter together than the other two (Grashof).
"""

from __future__ import annotations

import math

import jax.numpy as jnp
from jax import Array

from noslip.scenes import BLACK, GREEN, ORANGE, SKY, VERMILION, Arrow, Camera, Mark, Scene
from noslip.system import Parameters, System
from noslip.systems import _looks


def lagrangian(q: Array, v: Array, p: Parameters) -> Array:
    (a, b, c), (da, db, dc) = q, v
    l1, l2, l3 = p["l1"], p["l2"], p["l3"]
    moving = (l1 * da) ** 2 + l1 * l2 * da * db * jnp.cos(a - b) + (l2 * db) ** 2 / 3
    kinetic = p["m1"] * (l1 * da) ** 2 / 3 + p["m2"] * moving + p["m3"] * (l3 * dc) ** 2 / 3
    crank, coupler = 0.5 * l1 * jnp.sin(a), l1 * jnp.sin(a) + 0.5 * l2 * jnp.sin(b)
    height = p["m1"] * crank + p["m2"] * coupler + p["m3"] * 0.5 * l3 * jnp.sin(c)
    return 0.5 * kinetic - p["g"] * height


def holonomic(q: Array, p: Parameters) -> Array:
    a, b, c = q
    across = p["l1"] * jnp.cos(a) + p["l2"] * jnp.cos(b) - p["l3"] * jnp.cos(c) - p["d"]
    return jnp.stack([across, p["l1"] * jnp.sin(a) + p["l2"] * jnp.sin(b) - p["l3"] * jnp.sin(c)])


def system(
    l1: float = 1.0,
    l2: float = 2.2,
    l3: float = 1.8,
    d: float = 2.4,
    m1: float = 0.5,
    m2: float = 1.0,
    m3: float = 0.8,
    g: float = 1.0,
) -> System:
    return System(
        lagrangian,
        holonomic=holonomic,
        coordinates=("a", "b", "c"),
        parameters={"l1": l1, "l2": l2, "l3": l3, "d": d, "m1": m1, "m2": m2, "m3": m3, "g": g},
        angles=("a", "b", "c"),
        scene=scene,
    )


def scene(q: Array, p: Parameters) -> Scene:
    """The rods in their vertical plane, and the force of the rocker on the coupler."""
    a, b, c = q
    crank = p["l1"] * _upright(a)
    joint = crank + p["l2"] * _upright(b)
    ground = jnp.array([1.0, 0.0, 0.0]) * p["d"]
    thick = 0.018 * (p["l1"] + p["d"])
    bodies = (
        _looks.rod(jnp.zeros(3), crank, thick, "crank", ORANGE),
        _looks.rod(crank, joint, thick, "coupler", SKY),
        _looks.rod(ground, ground + p["l3"] * _upright(c), thick, "rocker", VERMILION),
    )
    return Scene(
        bodies=bodies,
        marks=(
            *(Mark(x, name="pivot", colour=BLACK, trail=False) for x in (jnp.zeros(3), ground)),
            Mark((crank + joint) / 2, name="middle of the coupler"),
        ),
        arrows=(Arrow(joint, ((1.0, 0.0, 0.0), (0.0, 0.0, 1.0)), name="on the coupler", colour=GREEN),),
        camera=Camera(azimuth=-80.0, elevation=15.0, follow=False),
    )


def _upright(angle: Array) -> Array:
    """A direction in the plane of x and z."""
    return jnp.stack([jnp.cos(angle), jnp.zeros(()), jnp.sin(angle)])


def typical_state() -> tuple[Array, Array]:
    """The crank is given; the triangle of coupler, rocker and what they span has the other two angles."""
    l1, l2, l3, d, a, rate = 1.0, 2.2, 1.8, 2.4, 0.9, 1.1
    x, y = d - l1 * math.cos(a), -l1 * math.sin(a)  # from the crank's end to the ground pivot
    span, angle = math.hypot(x, y), math.atan2(y, x)
    b = angle + math.acos((l2**2 + span**2 - l3**2) / (2 * l2 * span))
    c = math.atan2(l1 * math.sin(a) + l2 * math.sin(b), l1 * math.cos(a) + l2 * math.cos(b) - d)
    db = rate * l1 * math.sin(c - a) / (l2 * math.sin(b - c))
    dc = rate * l1 * math.sin(b - a) / (l3 * math.sin(b - c))
    return jnp.array([a, b, c]), jnp.array([rate, db, dc])
