"""Veselova's problem in quaternions: a body about a fixed point that may not rotate about the vertical.

Coordinates u0, u1, u2, u3, the rotation from the principal axes of the body to space, so no angle is
singular. Moments of inertia A, B, C about the fixed point. With gamma the vertical and w the angular
velocity in the body, J = diag(A, B, C):

    L = w . J w / 2 - k gamma . J gamma / 2
    w . gamma = 0

The system is that of `veselova`, where its measure and the integral

    |J w|^2 - (J w . gamma)^2 - k A B C gamma . J^-1 gamma

are described (Veselov, Veselova 1988); there Euler angles are singular where a principal axis is vertical,
which is a place like any other here.
"""

from __future__ import annotations

import jax.numpy as jnp
from jax import Array

from noslip import rotations
from noslip.scenes import Scene
from noslip.system import Parameters, System
from noslip.systems import _looks
from noslip.systems._states import in_one_program


def moments(p: Parameters) -> Array:
    return jnp.stack([p["A"], p["B"], p["C"]])


def lagrangian(q: Array, v: Array, p: Parameters) -> Array:
    w, gamma = rotations.body_rates(q, v), rotations.matrix(q)[2]
    return 0.5 * jnp.dot(moments(p), w**2 - p["k"] * gamma**2)


def one_forms(q: Array, p: Parameters) -> Array:
    return 4 / jnp.dot(q, q) * rotations.frame("space")(q)[:, 2][None]


def horizontal_momentum(q: Array, v: Array, p: Parameters) -> Array:
    J, gamma = moments(p), rotations.matrix(q)[2]
    momentum = J * rotations.body_rates(q, v)
    aside = jnp.dot(momentum, momentum) - jnp.dot(momentum, gamma) ** 2
    return aside - p["k"] * jnp.prod(J) * jnp.dot(gamma**2, 1 / J)


def system(A: float = 1.0, B: float = 1.5, C: float = 2.2, k: float = 0.6) -> System:
    return System(
        lagrangian,
        one_forms=one_forms,
        coordinates=rotations.names("u"),
        rotations=("u",),
        parameters={"A": A, "B": B, "C": C, "k": k},
        first_integrals={"horizontal_momentum": horizontal_momentum},
        scene=scene,
    )


def scene(q: Array, p: Parameters) -> Scene:
    """The body, and the torque about the vertical."""
    return _looks.about_a_point(q, moments(p), jnp.array([0.0, 0.0, 1.0]), "torque")


@in_one_program
def typical_state() -> tuple[Array, Array]:
    u = rotations.from_euler("zxz", [0.3, 0.8, -0.4])
    return u, rotations.frame("space")(u) @ jnp.array([-0.9, 0.25, 0.0])
