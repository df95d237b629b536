"""Coin that rolls on a plane, leaning as it likes; with a thickness it is Euler's disk.

Coordinates x, y, z (mass centre, z upwards) and u0, u1, u2, u3, the rotation from body to space; the third
body axis is that of the coin. Mass m, radius r, half thickness h, moments of inertia A about a diameter and
C about the axis. With gamma the vertical and w the angular velocity in the body, W that in space,

    contact = -(r gamma_1 / s, r gamma_2 / s, h),    s = sqrt(gamma_1^2 + gamma_2^2)

    L = (m |v|^2 + A (w_1^2 + w_2^2) + C w_3^2) / 2 - m g z
    z + gamma . contact = 0                          (holonomic: it touches)
    v + W x (contact in space) = 0                   (two rows: it does not slip along x and y)

A coin that lies flat, s = 0, has no single point that touches: there the equations end. With h > 0 it stands
on the rim of its lower face as long as gamma_3 > 0. There are steady motions on a circle, see `steady`.
Besides the energy the motion has two integrals, linear in the velocity, which are hypergeometric functions of
the tilt (Neimark, Fufaev 1972); they are not declared.
"""

from __future__ import annotations

from collections.abc import Callable

import jax.numpy as jnp
from jax import Array

from noslip import rotations
from noslip.scenes import Cylinder, Scene
from noslip.system import Parameters, System
from noslip.systems import _looks
from noslip.systems._states import in_one_program


def contact(p: Parameters) -> Callable[[Array], Array]:
    """The point that touches, in body axes, as a function of gamma."""

    def touching(gamma: Array) -> Array:
        aside = jnp.array([1.0, 1.0, 0.0]) * gamma
        return -p["r"] * aside / jnp.sqrt(jnp.dot(aside, aside)) - jnp.array([0.0, 0.0, 1.0]) * p["h"]

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
    m: float = 1.0, r: float = 1.0, h: float = 0.0, A: float = 0.25, C: float = 0.5, g: float = 1.0
) -> System:
    return System(
        lagrangian,
        one_forms=one_forms,
        holonomic=holonomic,
        coordinates=("x", "y", "z", *rotations.names("u")),
        rotations=("u",),
        parameters={"m": m, "r": r, "h": h, "A": A, "C": C, "g": g},
        scene=scene,
    )


def placed(p: Parameters, x: Array, y: Array, u: Array, w: Array) -> tuple[Array, Array]:
    """The state with the mass centre above (x, y), the rotation u and the angular velocity w in the body."""
    touching, du = contact(p), rotations.from_rates(u, w)
    q = jnp.concatenate([jnp.stack([x, y, rotations.height(touching)(u)]), u])
    return q, jnp.concatenate([-rotations.rolling(touching)(u) @ du, du])


def steady(tilt: float, turn: float, p: Parameters) -> tuple[Array, Array]:
    """The start of a motion on a circle about the origin: the axis of the coin is at the angle `tilt` to the
    vertical and turns about it at the rate `turn`, so that place and axis return after 2 pi / turn.

    With c, s the cosine and sine of the tilt, H = r s + h c the height and k = r c - h s the distance along
    the ground between mass centre and contact, the mass centre runs on a circle of radius R, and

        R turn^2 (C s / r + m H) = m g k + turn^2 s ((C - A) c - C k / r),    spin = -turn (R + k) / r

    where the spin is that about the axis, relative to the axis' own turn.
    """
    c, s = jnp.cos(tilt), jnp.sin(tilt)
    H, k = p["r"] * s + p["h"] * c, p["r"] * c - p["h"] * s
    driven = p["m"] * p["g"] * k + turn**2 * s * ((p["C"] - p["A"]) * c - p["C"] * k / p["r"])
    R = driven / (turn**2 * (p["C"] * s / p["r"] + p["m"] * H))
    spin = -turn * (R + k) / p["r"]
    u = rotations.from_axis([0.0, 1.0, 0.0], tilt)
    w = rotations.matrix(u).T @ jnp.stack([spin * s, jnp.zeros(()), turn + spin * c])
    return placed(p, R, jnp.zeros(()), u, w)


def scene(q: Array, p: Parameters) -> Scene:
    """The coin, not thinner than can be seen."""
    coin = Cylinder(p["r"], jnp.maximum(2 * p["h"], 0.05 * p["r"]))
    return _looks.rolls(coin, q[:3], q[3:], _looks.touches(q, contact(p)))


@in_one_program
def typical_state() -> tuple[Array, Array]:
    """Rolling and leaning."""
    u = rotations.from_euler("zyz", [0.4, 1.25, 0.7])
    return placed({"r": 1.0, "h": 0.0}, jnp.array(0.3), jnp.array(-0.2), u, jnp.array([0.12, -0.31, 2.1]))
