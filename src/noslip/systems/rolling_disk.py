"""Vertical rolling disk, or unicycle (CFHM section 2, example "rolling disk").

Coordinates x, y (contact point), theta (heading), phi (rotation about the axle). With mass m, radius r,
moments of inertia I about the axle and J about the vertical diameter (CFHM: J_phi and J_theta):

    L = (m (xdot^2 + ydot^2) + J thetadot^2 + I phidot^2) / 2
    xdot - r phidot cos(theta) = 0,      ydot - r phidot sin(theta) = 0

All trigonometric functions are of the heading theta (CFHM prints phi in some of them). Both angular rates
are constant and the contact point runs on a circle, or on a line. Chaplygin with the translations as
group; the reaction on the reduced motion vanishes, so the multiplier is 1.
"""

from __future__ import annotations

import math

import jax.numpy as jnp
import numpy as np
from jax import Array
from numpy.typing import ArrayLike

from noslip.scenes import Scene
from noslip.scenes.parts import UPRIGHT
from noslip.system import Parameters, System
from noslip.systems import _looks
from noslip.systems._closed_forms import Floats, driven_turn


def lagrangian(q: Array, v: Array, p: Parameters) -> Array:
    return 0.5 * (p["m"] * (v[0] ** 2 + v[1] ** 2) + p["J"] * v[2] ** 2 + p["I"] * v[3] ** 2)


def one_forms(q: Array, p: Parameters) -> Array:
    return jnp.array([[1.0, 0.0, 0.0, -p["r"] * jnp.cos(q[2])], [0.0, 1.0, 0.0, -p["r"] * jnp.sin(q[2])]])


def frame(q: Array, p: Parameters) -> Array:
    """CFHM's X1 (rolling) and X2 (turning)."""
    return jnp.array([[p["r"] * jnp.cos(q[2]), 0.0], [p["r"] * jnp.sin(q[2]), 0.0], [0.0, 1.0], [1.0, 0.0]])


def multiplier(q: Array, p: Parameters) -> Array:
    return jnp.ones(())


def heading_rate(q: Array, v: Array, p: Parameters) -> Array:
    return v[2]


def rolling_rate(q: Array, v: Array, p: Parameters) -> Array:
    return v[3]


def system(m: float = 1.0, r: float = 1.0, I: float = 0.5, J: float = 0.25) -> System:
    return System(
        lagrangian,
        one_forms=one_forms,
        coordinates=("x", "y", "theta", "phi"),
        parameters={"m": m, "r": r, "I": I, "J": J},
        angles=("theta", "phi"),
        frame=frame,
        first_integrals={"heading_rate": heading_rate, "rolling_rate": rolling_rate},
        fibre=("x", "y"),
        multiplier=multiplier,
        scene=scene,
    )


def scene(q: Array, p: Parameters) -> Scene:
    """The disk on its contact point."""
    return _looks.rolling_wheel(q, p, jnp.array(UPRIGHT))


def typical_state() -> tuple[Array, Array]:
    theta, phidot = 0.5, 0.9
    v0 = jnp.array([phidot * math.cos(theta), phidot * math.sin(theta), 0.6, phidot])
    return jnp.array([0.3, -0.4, theta, 0.2]), v0


def exact(
    t: ArrayLike, q0: ArrayLike, v0: ArrayLike, *, m: float = 1.0, r: float = 1.0
) -> tuple[Floats, Floats, Floats]:
    """The circle or line from any admissible state: q, v and both multipliers."""
    t = np.asarray(t, dtype=float)
    (x, y, theta, phi), (_, _, rate, spin) = np.asarray(q0, dtype=float), np.asarray(v0, dtype=float)
    angle, u, dx, dy, _ = driven_turn(t, theta, rate, r * spin, 0.0)
    forward = np.stack([np.cos(angle), np.sin(angle)], axis=-1)
    left = np.stack([-np.sin(angle), np.cos(angle)], axis=-1)
    q = np.stack([x + dx, y + dy, angle, phi + spin * t], axis=-1)
    rates = np.broadcast_to([rate, spin], forward.shape)
    return q, np.concatenate([u[:, None] * forward, rates], axis=-1), m * r * spin * rate * left
