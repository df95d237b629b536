"""Slider-crank: a crank, a rod and a piston, whose equations are left as a closed loop.

Coordinates a (angle of the crank), b (angle of the rod, measured downwards), x (piston, on the line y = 0).
The crank has the length r and the moment of inertia J about the origin with its mass centre there; the rod
is homogeneous with length l and mass m, the piston has the mass M. Gravity g pulls downwards; a spring k
holds the piston at x0:

    L = (J adot^2 + m (Xdot^2 + Ydot^2) + m l^2 bdot^2 / 12 + M xdot^2) / 2 - m g Y - k (x - x0)^2 / 2
    r cos a + l cos b - x = 0,      r sin a - l sin b = 0            (two holonomic constraints)

with X = r cos a + l cos(b) / 2, Y = r sin a - l sin(b) / 2 the rod's middle. There is one degree of freedom,
and the energy is conserved. Only r < l lets the crank go all round; b then stays below a right angle.
"""

from __future__ import annotations

import math

import jax.numpy as jnp
from jax import Array

from noslip.scenes import (
    BLACK,
    GREEN,
    GREY,
    ORANGE,
    SKY,
    VERMILION,
    Arrow,
    Camera,
    Cuboid,
    Cylinder,
    Mark,
    Scene,
    Solid,
    Spring,
    along,
    wheel,
)
from noslip.system import Parameters, System
from noslip.systems import _looks


def lagrangian(q: Array, v: Array, p: Parameters) -> Array:
    (a, b, x), (da, db, dx) = q, v
    along = -p["r"] * da * jnp.sin(a) - 0.5 * p["l"] * db * jnp.sin(b)
    up = p["r"] * da * jnp.cos(a) - 0.5 * p["l"] * db * jnp.cos(b)
    rod = p["m"] * (along**2 + up**2 + (p["l"] * db) ** 2 / 12)
    lifted = p["m"] * p["g"] * (p["r"] * jnp.sin(a) - 0.5 * p["l"] * jnp.sin(b))
    return 0.5 * (p["J"] * da**2 + rod + p["M"] * dx**2 - p["k"] * (x - p["x0"]) ** 2) - lifted


def holonomic(q: Array, p: Parameters) -> Array:
    a, b, x = q
    return jnp.stack(
        [
            p["r"] * jnp.cos(a) + p["l"] * jnp.cos(b) - x,
            p["r"] * jnp.sin(a) - p["l"] * jnp.sin(b),
        ]
    )


def system(
    r: float = 1.0,
    l: float = 2.5,
    J: float = 0.8,
    m: float = 0.6,
    M: float = 0.5,
    k: float = 0.7,
    x0: float = 2.0,
    g: float = 1.0,
) -> System:
    return System(
        lagrangian,
        holonomic=holonomic,
        coordinates=("a", "b", "x"),
        parameters={"r": r, "l": l, "J": J, "m": m, "M": M, "k": k, "x0": x0, "g": g},
        angles=("a", "b"),
        scene=scene,
    )


def scene(q: Array, p: Parameters) -> Scene:
    """Crank, rod, and piston with its spring, in a vertical plane; the force of the piston on the rod."""
    a, _, x = q
    pin = p["r"] * jnp.stack([jnp.cos(a), jnp.zeros(()), jnp.sin(a)])
    piston = jnp.array([1.0, 0.0, 0.0]) * x
    wall = jnp.array([1.0, 0.0, 0.0]) * (p["x0"] + 1.5 * p["l"])
    thick = 0.05 * p["r"]
    rotation, length = along(piston, wall)
    return Scene(
        bodies=(
            Solid(Cylinder(1.1 * p["r"], thick), jnp.array([0.0, 3.0, 0.0]) * thick, wheel(0.0, -a),
                  name="crank", colour=ORANGE, pattern="sectors"),
            _looks.rod(pin, piston, thick, "rod", SKY),
            Solid(Cuboid(0.5 * p["r"], 0.4 * p["r"], 0.4 * p["r"]), piston, name="piston", colour=VERMILION),
            Solid(Spring(length, 0.1 * p["r"]), piston, rotation, name="spring", colour=GREY),
            Solid(Cuboid(thick, 0.8 * p["r"], 0.8 * p["r"]), wall, name="wall", colour=GREY),
        ),
        marks=(Mark(jnp.zeros(3), name="axle", colour=BLACK, trail=False), Mark(pin, name="pin")),
        arrows=(Arrow(piston, ((1.0, 0.0, 0.0), (0.0, 0.0, 1.0)), name="on the rod", colour=GREEN),),
        camera=Camera(azimuth=-75.0, elevation=18.0, follow=False),
    )  # fmt: skip


def typical_state() -> tuple[Array, Array]:
    r, l, a, rate = 1.0, 2.5, 0.7, 1.3
    b = math.asin(r * math.sin(a) / l)
    db = rate * r * math.cos(a) / (l * math.cos(b))
    x, dx = r * math.cos(a) + l * math.cos(b), -r * rate * math.sin(a) - l * db * math.sin(b)
    return jnp.array([a, b, x]), jnp.array([rate, db, dx])
