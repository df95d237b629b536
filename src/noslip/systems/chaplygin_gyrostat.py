"""Chaplygin's sphere with a rotor inside that turns at a constant rate: a gyrostat that rolls on a plane.

Coordinates x, y (middle) and u0, u1, u2, u3, the rotation from the principal axes to space. Besides what
`chaplygin_sphere` has, the rotor carries the constant angular momentum s = (s1, s2, s3) in the body:

    L = (m (xdot^2 + ydot^2) + A w_1^2 + B w_2^2 + C w_3^2) / 2 + s . w
    xdot - r W_y = 0,      ydot + r W_x = 0

The term s . w is gyroscopic: it is in the momentum and not in the energy. The angular momentum about the
point that touches, s included, is constant in space.
"""

from __future__ import annotations

import jax.numpy as jnp
from jax import Array

from noslip import rotations
from noslip.system import Parameters, System
from noslip.systems import chaplygin_sphere as sphere


def rotor(p: Parameters) -> Array:
    return jnp.stack([p["s1"], p["s2"], p["s3"]])


def lagrangian(q: Array, v: Array, p: Parameters) -> Array:
    return sphere.lagrangian(q, v, p) + jnp.dot(rotor(p), rotations.body_rates(q[2:], v[2:]))


def momentum_of_contact(q: Array, v: Array, p: Parameters) -> Array:
    """The angular momentum about the point that touches, with that of the rotor, in space."""
    return sphere.momentum_of_contact(q, v, p) + rotations.matrix(q[2:]) @ rotor(p)


def momentum_x(q: Array, v: Array, p: Parameters) -> Array:
    return momentum_of_contact(q, v, p)[0]


def momentum_y(q: Array, v: Array, p: Parameters) -> Array:
    return momentum_of_contact(q, v, p)[1]


def momentum_z(q: Array, v: Array, p: Parameters) -> Array:
    return momentum_of_contact(q, v, p)[2]


def system(
    m: float = 1.0,
    r: float = 1.0,
    A: float = 0.3,
    B: float = 0.4,
    C: float = 0.55,
    s1: float = 0.2,
    s2: float = -0.3,
    s3: float = 0.5,
) -> System:
    return System(
        lagrangian,
        one_forms=sphere.one_forms,
        coordinates=("x", "y", *rotations.names("u")),
        rotations=("u",),
        parameters={"m": m, "r": r, "A": A, "B": B, "C": C, "s1": s1, "s2": s2, "s3": s3},
        first_integrals={"momentum_x": momentum_x, "momentum_y": momentum_y, "momentum_z": momentum_z},
        scene=sphere.scene,
    )


def typical_state() -> tuple[Array, Array]:
    return sphere.typical_state()
