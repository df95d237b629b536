"""Ball of rubber with unequal moments of inertia: it rolls on a plane and does not spin about the vertical.

Coordinates x, y (middle) and u0, u1, u2, u3, the rotation from the principal axes to space. The ball is that
of `chaplygin_sphere`, with one constraint more:

    L = (m (xdot^2 + ydot^2) + A w_1^2 + B w_2^2 + C w_3^2) / 2
    xdot - r W_y = 0,      ydot + r W_x = 0,      W_z = 0

The third reaction is a torque about the vertical. So of the angular momentum about the point that touches,
J W + r e_z x m v, the two horizontal components stay constant.
"""

from __future__ import annotations

from dataclasses import replace

import jax.numpy as jnp
import numpy as np
from jax import Array

from noslip import rotations
from noslip.scenes import GREEN, Arrow, Scene
from noslip.system import Parameters, System
from noslip.systems import chaplygin_sphere as sphere
from noslip.systems._states import in_one_program


def one_forms(q: Array, p: Parameters) -> Array:
    u = q[2:]
    vertical = 4 / jnp.dot(u, u) * rotations.frame("space")(u)[:, 2]
    return jnp.concatenate([sphere.one_forms(q, p), jnp.concatenate([jnp.zeros(2), vertical])[None]])


def system(m: float = 1.0, r: float = 1.0, A: float = 0.3, B: float = 0.4, C: float = 0.55) -> System:
    return System(
        sphere.lagrangian,
        one_forms=one_forms,
        coordinates=("x", "y", *rotations.names("u")),
        rotations=("u",),
        parameters={"m": m, "r": r, "A": A, "B": B, "C": C},
        first_integrals={"momentum_x": sphere.momentum_x, "momentum_y": sphere.momentum_y},
        scene=scene,
    )


def scene(q: Array, p: Parameters) -> Scene:
    """The ball, the force at its contact point, and the torque about the vertical above it."""
    plain, up = sphere.scene(q, p), jnp.array([0.0, 0.0, 1.0])
    (contact,) = plain.arrows
    force = replace(contact, directions=np.eye(3) * np.array([1.0, 1.0, 0.0]))
    top = contact.position + 2 * p["r"] * up
    torque = Arrow(top, np.diag([0.0, 0.0, 1.0]), name="torque", colour=GREEN)
    return replace(plain, arrows=(force, torque))


@in_one_program
def typical_state() -> tuple[Array, Array]:
    u = rotations.from_euler("zxz", [0.3, 1.1, -0.4])
    W = jnp.array([0.5, -0.8, 0.0])
    du = rotations.frame("space")(u) @ W
    return jnp.concatenate([jnp.array([0.25, -0.35]), u]), jnp.concatenate([jnp.stack([W[1], -W[0]]), du])
