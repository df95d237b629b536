"""Vertical rolling disk on an inclined plane: two constraints and a potential.

The disk of `rolling_disk` (CFHM section 2), always perpendicular to a plane inclined by alpha, x pointing
down the slope; coordinates x, y, theta (heading), phi (rotation about the axle):

    L = (m (xdot^2 + ydot^2) + J thetadot^2 + I phidot^2) / 2 + m g sin(alpha) x
    xdot - r phidot cos(theta) = 0,      ydot - r phidot sin(theta) = 0

The heading turns at a constant rate, and (m r^2 + I) phiddot = m g r sin(alpha) cos(theta), so that
thetadot phidot - kappa sin(theta) with kappa = m g r sin(alpha) / (m r^2 + I) is a first integral too. The
motion is that of a knife edge under the weaker slope r kappa, and as elementary. The potential is not
invariant along the fibre (x, y), but along (y, phi): with that fibre, `group="translations(y, phi)"`, the
system is Chaplygin while cos(theta) is not 0, with the multiplier cos(theta). It tells methods apart that
agree on simpler examples: the mass matrix is constant, but the one-forms are not affine in q.
"""

from __future__ import annotations

import math

import jax.numpy as jnp
import numpy as np
from jax import Array
from numpy.typing import ArrayLike

from noslip.scenes import Scene
from noslip.system import Parameters, System
from noslip.systems import _looks, rolling_disk
from noslip.systems._closed_forms import Floats, driven_turn


def lagrangian(q: Array, v: Array, p: Parameters) -> Array:
    return rolling_disk.lagrangian(q, v, p) + p["m"] * p["g"] * jnp.sin(p["alpha"]) * q[0]


def drive(q: Array, v: Array, p: Parameters) -> Array:
    """thetadot phidot - kappa sin(theta)."""
    kappa = p["m"] * p["g"] * p["r"] * jnp.sin(p["alpha"]) / (p["m"] * p["r"] ** 2 + p["I"])
    return v[2] * v[3] - kappa * jnp.sin(q[2])


def system(
    m: float = 1.0,
    r: float = 1.0,
    I: float = 0.5,
    J: float = 0.25,
    g: float = 1.0,
    alpha: float = math.pi / 6,
) -> System:
    return System(
        lagrangian,
        one_forms=rolling_disk.one_forms,
        coordinates=("x", "y", "theta", "phi"),
        parameters={"m": m, "r": r, "I": I, "J": J, "g": g, "alpha": alpha},
        angles=("theta", "phi"),
        frame=rolling_disk.frame,
        first_integrals={"heading_rate": rolling_disk.heading_rate, "drive": drive},
        fibre=("x", "y"),
        scene=scene,
    )


def scene(q: Array, p: Parameters) -> Scene:
    """The disk on the slope."""
    return _looks.rolling_wheel(q, p, _looks.slope(p["alpha"]))


def typical_state() -> tuple[Array, Array]:
    return rolling_disk.typical_state()


def exact(
    t: ArrayLike,
    q0: ArrayLike,
    v0: ArrayLike,
    *,
    m: float = 1.0,
    r: float = 1.0,
    I: float = 0.5,
    g: float = 1.0,
    alpha: float = math.pi / 6,
) -> tuple[Floats, Floats, Floats]:
    """The motion from any admissible state, turning or not: q, v and both multipliers."""
    t = np.asarray(t, dtype=float)
    (x, y, theta, phi), (_, _, rate, spin) = np.asarray(q0, dtype=float), np.asarray(v0, dtype=float)
    gravity = g * np.sin(alpha)
    slope = gravity * m * r**2 / (m * r**2 + I)
    angle, u, dx, dy, length = driven_turn(t, theta, rate, r * spin, slope)
    c, s = np.cos(angle), np.sin(angle)
    q = np.stack([x + dx, y + dy, angle, phi + length / r], axis=-1)
    v = np.stack([u * c, u * s, np.full_like(t, rate), u / r], axis=-1)
    reaction = np.stack([slope * c * c - u * rate * s - gravity, slope * c * s + u * rate * c], axis=-1)
    return q, v, m * reaction
