"""Chaplygin's sphere: a ball with unequal moments of inertia about its middle, rolling on a plane.

Coordinates x, y (middle) and u0, u1, u2, u3, the rotation from the principal axes to space. Mass m, radius r,
moments of inertia A, B, C. With w the angular velocity in the body and W that in space,

    L = (m (xdot^2 + ydot^2) + A w_1^2 + B w_2^2 + C w_3^2) / 2
    xdot - r W_y = 0,      ydot + r W_x = 0

The reaction acts at the point that touches, which moves along with the ball's middle: so the angular momentum
about that point, J W + r e_z x m v with J the inertia in space, is constant as a vector in space. Its three
components are declared; with the energy and an invariant measure the motion is integrable (Chaplygin 1903).
"""

from __future__ import annotations

import jax.numpy as jnp
from jax import Array

from noslip import rotations
from noslip.scenes import Scene, Sphere
from noslip.system import Parameters, System
from noslip.systems import _looks
from noslip.systems._states import in_one_program


def moments(p: Parameters) -> Array:
    return jnp.stack([p["A"], p["B"], p["C"]])


def lagrangian(q: Array, v: Array, p: Parameters) -> Array:
    w = rotations.body_rates(q[2:], v[2:])
    return 0.5 * (p["m"] * jnp.dot(v[:2], v[:2]) + jnp.dot(moments(p), w**2))


def one_forms(q: Array, p: Parameters) -> Array:
    moved = rotations.rolling(lambda gamma: -p["r"] * gamma)(q[2:])
    return jnp.concatenate([jnp.eye(2), moved[:2]], axis=1)


def momentum_of_contact(q: Array, v: Array, p: Parameters) -> Array:
    """The angular momentum about the point that touches, in space."""
    u = q[2:]
    turning = rotations.matrix(u) @ (moments(p) * rotations.body_rates(u, v[2:]))
    return turning + p["m"] * p["r"] * jnp.stack([-v[1], v[0], jnp.zeros(())])


def momentum_x(q: Array, v: Array, p: Parameters) -> Array:
    return momentum_of_contact(q, v, p)[0]


def momentum_y(q: Array, v: Array, p: Parameters) -> Array:
    return momentum_of_contact(q, v, p)[1]


def momentum_z(q: Array, v: Array, p: Parameters) -> Array:
    return momentum_of_contact(q, v, p)[2]


def system(m: float = 1.0, r: float = 1.0, A: float = 0.3, B: float = 0.4, C: float = 0.55) -> System:
    return System(
        lagrangian,
        one_forms=one_forms,
        coordinates=("x", "y", *rotations.names("u")),
        rotations=("u",),
        parameters={"m": m, "r": r, "A": A, "B": B, "C": C},
        first_integrals={"momentum_x": momentum_x, "momentum_y": momentum_y, "momentum_z": momentum_z},
        scene=scene,
    )


def scene(q: Array, p: Parameters) -> Scene:
    """The ball on its contact point."""
    r, contact = p["r"], jnp.array([q[0], q[1], 0.0])
    return _looks.rolls(Sphere(r), contact + r * jnp.array([0.0, 0.0, 1.0]), q[2:], contact, rows=2)


@in_one_program
def typical_state() -> tuple[Array, Array]:
    u = rotations.from_euler("zxz", [0.3, 1.1, -0.4])
    W = jnp.array([0.5, -0.8, 0.65])
    du = rotations.frame("space")(u) @ W
    return jnp.concatenate([jnp.array([0.25, -0.35]), u]), jnp.concatenate([jnp.stack([W[1], -W[0]]), du])
