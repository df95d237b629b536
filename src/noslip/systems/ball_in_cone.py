"""Ball that rolls inside a cone which stands on its tip.

Coordinates x, y, z (middle of the ball, z upwards) and u0, u1, u2, u3, its rotation. The middle moves on a
cone too, which has its tip at the origin: z = c rho with rho = sqrt(x^2 + y^2), c the cotangent of the angle
between axis and wall. Mass m, radius r, moment of inertia I about every diameter. With W the angular
velocity in space and n the unit vector to the point that touches,

    n = (c x / rho, c y / rho, -1) / sqrt(1 + c^2)

    L = m |v|^2 / 2 + I |W|^2 / 2 - m g z
    z - c rho = 0                                     (holonomic)
    v + r W x n = 0                                   (two rows, along x and y: it does not slip)

The vertical component of the angular momentum about the point that touches, I W - m r n x v, and the spin W
. n change in a constant proportion, so one combination of them is a first integral: K = (I W - m r n x v) .
e_z + m r^2 n_z W . n. The tip is singular; a ball that turns about the axis does not reach it.
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

CONE = turned_sheet([[s, s] for s in np.linspace(0.0, 1.0, 8)])


def normal(q: Array, p: Parameters) -> Array:
    c, rho = p["c"], jnp.sqrt(q[0] ** 2 + q[1] ** 2)
    return jnp.stack([c * q[0] / rho, c * q[1] / rho, -jnp.ones(())]) / jnp.sqrt(1 + c**2)


def one_forms(q: Array, p: Parameters) -> Array:
    return balls.slip(q, p["r"] * normal(q, p))[:2]


def holonomic(q: Array, p: Parameters) -> Array:
    return (q[2] - p["c"] * jnp.sqrt(q[0] ** 2 + q[1] ** 2))[None]


def momentum(q: Array, v: Array, p: Parameters) -> Array:
    """K."""
    W, n = rotations.space_rates(q[3:], v[3:]), normal(q, p)
    about = p["I"] * W - p["m"] * p["r"] * jnp.cross(n, v[:3])
    return about[2] + p["m"] * p["r"] ** 2 * n[2] * jnp.dot(W, n)


def system(m: float = 1.0, r: float = 0.3, I: float = 0.036, c: float = 0.8, g: float = 1.0) -> System:
    return System(
        balls.lagrangian,
        one_forms=one_forms,
        holonomic=holonomic,
        coordinates=balls.COORDINATES,
        rotations=("u",),
        parameters={"m": m, "r": r, "I": I, "c": c, "g": g},
        first_integrals={"momentum": momentum},
        scene=scene,
    )


def scene(q: Array, p: Parameters) -> Scene:
    """The ball and the cone, as high as twice the ball is now."""
    c, n = p["c"], normal(q, p)
    tip = jnp.array([0.0, 0.0, -1.0]) * p["r"] * jnp.sqrt(1 + c**2)
    cone = Solid(Surface(x=2.0, y=2.0, z=2 * c, points=CONE), tip, name="cone", colour=GREY, opacity=0.25)
    forces = jnp.concatenate([np.eye(3)[:2], -n[None] * jnp.sqrt(1 + c**2)])
    return _looks.in_vessel(q, p["r"], q[:3] + p["r"] * n, forces, cone)


@in_one_program
def typical_state() -> tuple[Array, Array]:
    x = jnp.array([0.6, 0.8, 0.8])
    return balls.rolling(x, normal(x, {"c": 0.8}), 0.3, jnp.array([0.9, -1.3, -3.7]))
