"""Ball that rolls inside a vertical cylinder: it does not fall, it oscillates up and down.

Coordinates x, y, z (middle of the ball, from the axis of the cylinder, z upwards) and u0, u1, u2, u3, its
rotation. Mass m, radius r, moment of inertia I about every diameter; the middle stays at the distance R from
the axis, so the cylinder has the radius R + r. With W the angular velocity in space and n = (x, y, 0) / R,

    L = m |v|^2 / 2 + I |W|^2 / 2 - m g z
    (x^2 + y^2 - R^2) / 2 = 0                                              (holonomic)
    (v + r W x n) . e_z = 0,      (v + r W x n) . (-y, x, 0) / R = 0       (it does not slip)

About the axis the middle turns at a constant rate O = (x ydot - y xdot) / R^2, and r W . n - O z is constant.
So z'' = -k^2 O^2 z + constant with k^2 = I / (I + m r^2): for a homogeneous ball the height oscillates
with sqrt(2/7) of the turn (Neimark, Fufaev 1972). See `height` for the closed form. The attitude has no
elementary form, hence no `exact`.
"""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
from jax import Array
from numpy.typing import ArrayLike

from noslip import rotations
from noslip.scenes import GREY, Scene, Solid, Surface, turned_sheet
from noslip.system import Parameters, System
from noslip.systems import _balls as balls
from noslip.systems import _looks
from noslip.systems._closed_forms import Floats
from noslip.systems._states import in_one_program

TUBE = turned_sheet([[1.0, z] for z in np.linspace(-1.0, 1.0, 9)])


def normal(q: Array, p: Parameters) -> Array:
    return jnp.array([1.0, 1.0, 0.0]) * q[:3] / p["R"]


def one_forms(q: Array, p: Parameters) -> Array:
    along = jnp.array([[0.0, 0.0, 1.0], [-q[1] / p["R"], q[0] / p["R"], 0.0]])
    return along @ balls.slip(q, p["r"] * normal(q, p))


def holonomic(q: Array, p: Parameters) -> Array:
    return (q[0] ** 2 + q[1] ** 2 - p["R"] ** 2)[None] / 2


def turn(q: Array, v: Array, p: Parameters) -> Array:
    return (q[0] * v[1] - q[1] * v[0]) / p["R"] ** 2


def balance(q: Array, v: Array, p: Parameters) -> Array:
    """r W . n - O z."""
    W = rotations.space_rates(q[3:], v[3:])
    return p["r"] * jnp.dot(W, normal(q, p)) - turn(q, v, p) * q[2]


def system(m: float = 1.0, r: float = 0.5, I: float = 0.1, R: float = 1.0, g: float = 1.0) -> System:
    return System(
        balls.lagrangian,
        one_forms=one_forms,
        holonomic=holonomic,
        coordinates=balls.COORDINATES,
        rotations=("u",),
        parameters={"m": m, "r": r, "I": I, "R": R, "g": g},
        first_integrals={"turn": turn, "balance": balance},
        scene=scene,
    )


def scene(q: Array, p: Parameters) -> Scene:
    """The ball and a part of the cylinder."""
    size, n = p["R"] + p["r"], normal(q, p)
    tube = Solid(Surface(x=size, y=size, z=2 * size, points=TUBE), name="cylinder", colour=GREY, opacity=0.2)
    across = jnp.stack([-n[1], n[0], jnp.zeros(())])
    forces = jnp.stack([jnp.array([0.0, 0.0, 1.0]), across, p["R"] * n])
    return _looks.in_vessel(q, p["r"], q[:3] + p["r"] * n, forces, tube)


@in_one_program
def typical_state() -> tuple[Array, Array]:
    n = jnp.array([0.6, 0.8, 0.0])
    return balls.rolling(n + jnp.array([0.0, 0.0, 0.4]), n, 0.5, jnp.array([0.7, -1.1, -2.6]))


def height(t: ArrayLike, q0: ArrayLike, v0: ArrayLike, p: Parameters) -> Floats:
    """z(t) from any admissible state: with e = m r^2 / (I + m r^2) and k^2 = 1 - e it obeys
    z'' = -k^2 O (balance + O z) - e g."""
    q, v = jnp.asarray(q0, dtype=float), jnp.asarray(v0, dtype=float)
    O, constant = float(turn(q, v, p)), float(balance(q, v, p))
    e = p["m"] * p["r"] ** 2 / (p["I"] + p["m"] * p["r"] ** 2)
    rate = np.sqrt(1 - e) * O
    middle = -(constant / O + e * p["g"] / rate**2)
    z, dz = float(q[2]), float(v[2])
    return np.asarray(middle + (z - middle) * np.cos(rate * t) + dz / rate * np.sin(rate * t))
