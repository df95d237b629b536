"""Torus that rolls on a plane: a ring, or a tyre.

Coordinates x, y, z (mass centre, z upwards) and u0, u1, u2, u3, the rotation from body to space; the third
body axis is that of the torus. Its middle circle has the radius R, the tube the radius r; mass m, moments of
inertia A about a diameter and C about the axis. With gamma the vertical and w the angular velocity in the
body, W that in space,

    contact = -R (gamma_1, gamma_2, 0) / s - r gamma,    s = sqrt(gamma_1^2 + gamma_2^2)

    L = (m |v|^2 + A (w_1^2 + w_2^2) + C w_3^2) / 2 - m g z
    z + gamma . contact = 0, that is z = R s + r     (holonomic: it touches)
    v + W x (contact in space) = 0                   (two rows: it does not slip along x and y)

With r = 0 it is `rolling_coin`. Only the energy is declared as an integral; that there are two more, linear
in the velocity, follows from the symmetry as for every body of revolution (Neimark, Fufaev 1972). Lying flat,
s = 0, it touches in a whole circle, and the equations end.
"""

from __future__ import annotations

from collections.abc import Callable

import jax.numpy as jnp
from jax import Array

from noslip import rotations
from noslip.scenes import Scene, Torus
from noslip.system import Parameters, System
from noslip.systems import _looks
from noslip.systems._states import in_one_program


def contact(p: Parameters) -> Callable[[Array], Array]:
    """The point that touches, in body axes, as a function of gamma."""

    def touching(gamma: Array) -> Array:
        aside = jnp.array([1.0, 1.0, 0.0]) * gamma
        return -p["R"] * aside / jnp.sqrt(jnp.dot(aside, aside)) - p["r"] * gamma

    return touching


def lagrangian(q: Array, v: Array, p: Parameters) -> Array:
    w1, w2, w3 = rotations.body_rates(q[3:], v[3:])
    turning = p["A"] * (w1**2 + w2**2) + p["C"] * w3**2
    return 0.5 * (p["m"] * jnp.dot(v[:3], v[:3]) + turning) - p["m"] * p["g"] * q[2]


def one_forms(q: Array, p: Parameters) -> Array:
    return jnp.concatenate([jnp.eye(3), rotations.rolling(contact(p))(q[3:])], axis=1)[:2]


def holonomic(q: Array, p: Parameters) -> Array:
    return (q[2] - rotations.height(contact(p))(q[3:]))[None]


def system(
    m: float = 1.0, R: float = 1.0, r: float = 0.3, A: float = 0.56, C: float = 1.07, g: float = 1.0
) -> System:
    return System(
        lagrangian,
        one_forms=one_forms,
        holonomic=holonomic,
        coordinates=("x", "y", "z", *rotations.names("u")),
        rotations=("u",),
        parameters={"m": m, "R": R, "r": r, "A": A, "C": C, "g": g},
        scene=scene,
    )


def scene(q: Array, p: Parameters) -> Scene:
    """The ring on its contact point."""
    return _looks.rolls(Torus(p["R"], p["r"]), q[:3], q[3:], _looks.touches(q, contact(p)))


@in_one_program
def typical_state() -> tuple[Array, Array]:
    """Rolling and leaning."""
    touching, u = contact({"R": 1.0, "r": 0.3}), rotations.from_euler("zyz", [0.4, 1.25, 0.7])
    du = rotations.from_rates(u, [0.12, -0.31, 2.1])
    q0 = jnp.concatenate([jnp.array([0.3, -0.2]), rotations.height(touching)(u)[None], u])
    return q0, jnp.concatenate([-rotations.rolling(touching)(u) @ du, du])
