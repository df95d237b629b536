"""Ball that rolls inside a spherical bowl.

Coordinates x, y, z (middle of the ball, from the middle of the bowl, z upwards) and u0, u1, u2, u3, its
rotation. The middle stays at the distance R, so the bowl has the radius R + r. Mass m, radius r, moment of
inertia I about every diameter. With W the angular velocity in space and n = (x, y, z) / R the direction to
the point that touches,

    L = m |v|^2 / 2 + I |W|^2 / 2 - m g z
    (x^2 + y^2 + z^2 - R^2) / 2 = 0                   (holonomic)
    v + r W x n = 0                                   (two rows, along x and y: it does not slip)

The two rows are enough below the rim, z < 0. First integrals are the spin W . n about the normal, since n
turns about n x W, and the vertical component of the angular momentum about the point that touches, which
moves along with the middle: (I W - m r n x v) . e_z.
"""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
from jax import Array

from noslip import rotations
from noslip.scenes import GREY, Scene, Solid, Surface, turned_sheet
from noslip.system import Parameters, System
from noslip.systems import _balls as balls
from noslip.systems import _looks
from noslip.systems._states import in_one_program

_FALL = np.linspace(0.0, 0.5 * np.pi, 10)
BOWL = turned_sheet(np.stack([np.sin(_FALL), -np.cos(_FALL)], axis=1))


def one_forms(q: Array, p: Parameters) -> Array:
    return balls.slip(q, p["r"] / p["R"] * q[:3])[:2]


def holonomic(q: Array, p: Parameters) -> Array:
    return (jnp.dot(q[:3], q[:3]) - p["R"] ** 2)[None] / 2


def spin(q: Array, v: Array, p: Parameters) -> Array:
    return jnp.dot(rotations.space_rates(q[3:], v[3:]), q[:3]) / p["R"]


def vertical_momentum(q: Array, v: Array, p: Parameters) -> Array:
    W = rotations.space_rates(q[3:], v[3:])
    return p["I"] * W[2] - p["m"] * p["r"] / p["R"] * (q[0] * v[1] - q[1] * v[0])


def system(m: float = 1.0, r: float = 0.3, I: float = 0.036, R: float = 1.0, g: float = 1.0) -> System:
    return System(
        balls.lagrangian,
        one_forms=one_forms,
        holonomic=holonomic,
        coordinates=balls.COORDINATES,
        rotations=("u",),
        parameters={"m": m, "r": r, "I": I, "R": R, "g": g},
        first_integrals={"spin": spin, "vertical_momentum": vertical_momentum},
        scene=scene,
    )


def scene(q: Array, p: Parameters) -> Scene:
    """The ball and the lower half of the bowl."""
    size, n = p["R"] + p["r"], q[:3] / p["R"]
    bowl = Solid(Surface(x=size, y=size, z=size, points=BOWL), name="bowl", colour=GREY, opacity=0.25)
    forces = jnp.concatenate([np.eye(3)[:2], q[None, :3]])
    return _looks.in_vessel(q, p["r"], q[:3] + p["r"] * n, forces, bowl)


@in_one_program
def typical_state() -> tuple[Array, Array]:
    n = jnp.array([0.48, 0.36, -0.8])
    return balls.rolling(n, n, 0.3, jnp.array([0.7, 0.9, -1.1]))
