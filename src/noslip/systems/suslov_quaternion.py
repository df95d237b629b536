"""Suslov's problem in a field: a heavy body about a fixed point that may not rotate about one of its axes.

Coordinates u0, u1, u2, u3, the rotation from the principal axes of the body to space, so no angle is
singular. Moments of inertia A, B, C about the fixed point, the weight times the mass centre's place (b1, b2,
b3) in the body. With gamma the vertical and w the angular velocity in the body,

    L = (A w_1^2 + B w_2^2 + C w_3^2) / 2 - b . gamma
    w_3 = 0

Without a field see `suslov`, which has Euler angles and an axis that is not a principal one. The reaction is
a torque about the third axis, so

    A w_1' = b_3 gamma_2 - b_2 gamma_3,      B w_2' = b_1 gamma_3 - b_3 gamma_1

and with b_3 = 0 the combination A b_1 w_1 + B b_2 w_2 is constant. It is declared, and b_3 is not a
parameter.
"""

from __future__ import annotations

import jax.numpy as jnp
from jax import Array

from noslip import rotations
from noslip.scenes import Scene
from noslip.system import Parameters, System
from noslip.systems import _looks
from noslip.systems._states import in_one_program


def lagrangian(q: Array, v: Array, p: Parameters) -> Array:
    w1, w2, w3 = rotations.body_rates(q, v)
    gamma = rotations.matrix(q)[2]
    turning = p["A"] * w1**2 + p["B"] * w2**2 + p["C"] * w3**2
    return 0.5 * turning - p["b1"] * gamma[0] - p["b2"] * gamma[1]


def one_forms(q: Array, p: Parameters) -> Array:
    return 4 / jnp.dot(q, q) * rotations.frame("body")(q)[:, 2][None]


def field_momentum(q: Array, v: Array, p: Parameters) -> Array:
    w = rotations.body_rates(q, v)
    return p["A"] * p["b1"] * w[0] + p["B"] * p["b2"] * w[1]


def system(A: float = 0.7, B: float = 1.1, C: float = 1.5, b1: float = 0.8, b2: float = -0.5) -> System:
    return System(
        lagrangian,
        one_forms=one_forms,
        coordinates=rotations.names("u"),
        rotations=("u",),
        parameters={"A": A, "B": B, "C": C, "b1": b1, "b2": b2},
        first_integrals={"field_momentum": field_momentum},
        scene=scene,
    )


def scene(q: Array, p: Parameters) -> Scene:
    """The body, and the torque about the axis that it may not turn about."""
    moments = jnp.stack([p["A"], p["B"], p["C"]])
    return _looks.about_a_point(q, moments, rotations.matrix(q)[:, 2], "torque")


@in_one_program
def typical_state() -> tuple[Array, Array]:
    u = rotations.from_euler("zxz", [0.3, 1.1, -0.4])
    return u, rotations.from_rates(u, [0.9, -0.6, 0.0])
