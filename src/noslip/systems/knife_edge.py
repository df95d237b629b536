"""Knife edge on an inclined plane (FBO section 5.3, with all constants kept).

Coordinates x (down the slope), y (across it), phi (direction of the blade). With mass m, moment of
inertia J, gravity g and the plane inclined by alpha:

    L = (m (xdot^2 + ydot^2) + J phidot^2) / 2 + m g sin(alpha) x
    xdot sin(phi) - ydot cos(phi) = 0

This is FBO (64) times cos(phi), so that nothing happens to it at phi = pi/2. Chaplygin's multiplier is
cos(phi), which does vanish there. The blade turns at a constant rate; with u its speed along itself,
u' = g sin(alpha) cos(phi), so phidot u - g sin(alpha) sin(phi) is a further first integral. The edge does
not slide down for ever: it drifts sideways, along y (FBO (65) and its companion for y, for any state).
"""

from __future__ import annotations

import math

import jax.numpy as jnp
import numpy as np
from jax import Array
from numpy.typing import ArrayLike

from noslip.rotations import compose, matrix
from noslip.scenes import GREEN, GREY, VERMILION, Arrow, Blade, Floor, Mark, Scene, Solid, heading
from noslip.system import Parameters, System
from noslip.systems import _looks
from noslip.systems._closed_forms import Floats, driven_turn


def lagrangian(q: Array, v: Array, p: Parameters) -> Array:
    kinetic = 0.5 * (p["m"] * (v[0] ** 2 + v[1] ** 2) + p["J"] * v[2] ** 2)
    return kinetic + p["m"] * p["g"] * jnp.sin(p["alpha"]) * q[0]


def one_forms(q: Array, p: Parameters) -> Array:
    return jnp.array([[jnp.sin(q[2]), -jnp.cos(q[2]), 0.0]])


def frame(q: Array, p: Parameters) -> Array:
    return jnp.array([[jnp.cos(q[2]), 0.0], [jnp.sin(q[2]), 0.0], [0.0, 1.0]])


def multiplier(q: Array, p: Parameters) -> Array:
    return jnp.cos(q[2])


def turning_rate(q: Array, v: Array, p: Parameters) -> Array:
    return v[2]


def drive(q: Array, v: Array, p: Parameters) -> Array:
    """phidot u - g sin(alpha) sin(phi), u the speed along the blade."""
    u = v[0] * jnp.cos(q[2]) + v[1] * jnp.sin(q[2])
    return v[2] * u - p["g"] * jnp.sin(p["alpha"]) * jnp.sin(q[2])


def system(m: float = 1.0, J: float = 1.0, g: float = 1.0, alpha: float = math.pi / 36) -> System:
    return System(
        lagrangian,
        one_forms=one_forms,
        coordinates=("x", "y", "phi"),
        parameters={"m": m, "J": J, "g": g, "alpha": alpha},
        angles=("phi",),
        frame=frame,
        first_integrals={"turning_rate": turning_rate, "drive": drive},
        fibre=("y",),
        multiplier=multiplier,
        scene=scene,
    )


def scene(q: Array, p: Parameters) -> Scene:
    """The blade on the slope, and the force across it."""
    ground = _looks.slope(p["alpha"])
    A = matrix(ground)
    contact = A @ jnp.array([q[0], q[1], 0.0])
    turned = compose(ground, heading(q[2]))
    return Scene(
        bodies=(
            Solid(Blade(0.5, 0.12, 0.04), contact, turned, name="blade", colour=VERMILION),
            Solid(Floor(), (0.0, 0.0, 0.0), ground, name="slope", colour=GREY),
        ),
        marks=(Mark(contact, name="contact"),),
        arrows=(Arrow(contact, one_forms(q, p) @ A.T, name="reaction", colour=GREEN),),
    )


def typical_state() -> tuple[Array, Array]:
    phi, u = 0.3, 0.7
    return jnp.array([0.4, -0.2, phi]), jnp.array([u * math.cos(phi), u * math.sin(phi), 0.8])


def exact(
    t: ArrayLike, q0: ArrayLike, v0: ArrayLike, *, m: float = 1.0, g: float = 1.0, alpha: float = math.pi / 36
) -> tuple[Floats, Floats, Floats]:
    """The motion from any admissible state, turning or not: q, v and the multiplier."""
    t = np.asarray(t, dtype=float)
    (x, y, phi), (vx, vy, rate) = np.asarray(q0, dtype=float), np.asarray(v0, dtype=float)
    slope = g * np.sin(alpha)
    angle, u, dx, dy, _ = driven_turn(t, phi, rate, vx * np.cos(phi) + vy * np.sin(phi), slope)
    q = np.stack([x + dx, y + dy, angle], axis=-1)
    v = np.stack([u * np.cos(angle), u * np.sin(angle), np.full_like(t, rate)], axis=-1)
    return q, v, -m * (u * rate + slope * np.sin(angle))[:, None]
