"""Chaplygin sleigh: a rigid body on a plane that slides on two points and a knife edge (CFHM section 4.2).

Coordinates x, y (contact of the blade), theta (its direction). With mass m, moment of inertia J about
the centre of mass, and distance a from the blade to the centre of mass along the blade:

    L = ((J + m a^2) thetadot^2 + m (xdot^2 + ydot^2 + 2 a thetadot (ydot cos theta - xdot sin theta))) / 2
    ydot cos theta - xdot sin theta = 0

The mass matrix depends on theta. With u the speed along the blade, rho1 = sqrt(J + m a^2) thetadot and
rho2 = sqrt(m) u obey CFHM (22) and run on a half circle, along which u never decreases when a > 0: the
motion is not reversible in appearance, every solution tends to a straight line with the centre of mass in
front of the blade. The heading of that line is

    theta + kappa atan2(rho1, rho2),      kappa = sqrt((J + m a^2) / m) / a

along the whole motion (for a < 0 with both arguments negated), and its cosine and sine are the first
integrals declared. They are smooth except on the states that slide straight backwards (rho1 = 0, a rho2 < 0),
which are unstable equilibria that no other motion reaches, and at rest; they mean nothing for a = 0.
"""

from __future__ import annotations

import math

import jax.numpy as jnp
from jax import Array

from noslip.scenes import BLACK, GREEN, ORANGE, VERMILION, Arrow, Blade, Mark, Plate, Scene, Solid, heading
from noslip.system import Parameters, System
from noslip.systems import _looks

OUTLINE = ((-0.3, -0.6), (1.6, -0.6), (2.1, 0.0), (1.6, 0.6), (-0.3, 0.6))  # of the body, seen from above


def lagrangian(q: Array, v: Array, p: Parameters) -> Array:
    sideways = v[1] * jnp.cos(q[2]) - v[0] * jnp.sin(q[2])
    turning = (p["J"] + p["m"] * p["a"] ** 2) * v[2] ** 2
    return 0.5 * (turning + p["m"] * (v[0] ** 2 + v[1] ** 2 + 2 * p["a"] * v[2] * sideways))


def one_forms(q: Array, p: Parameters) -> Array:
    return jnp.array([[-jnp.sin(q[2]), jnp.cos(q[2]), 0.0]])


def frame(q: Array, p: Parameters) -> Array:
    """X1 = d/dtheta and X2 = the direction of the blade, each of unit kinetic norm (CFHM section 4.2)."""
    turn, slide = 1 / jnp.sqrt(p["J"] + p["m"] * p["a"] ** 2), 1 / jnp.sqrt(p["m"])
    return jnp.array([[0.0, slide * jnp.cos(q[2])], [0.0, slide * jnp.sin(q[2])], [turn, 0.0]])


def final_heading(q: Array, v: Array, p: Parameters) -> Array:
    """The heading that the sleigh tends to; only its cosine and sine are single valued."""
    inertia = p["J"] + p["m"] * p["a"] ** 2
    along = v[0] * jnp.cos(q[2]) + v[1] * jnp.sin(q[2])
    angle = jnp.arctan2(p["a"] * jnp.sqrt(inertia) * v[2], p["a"] * jnp.sqrt(p["m"]) * along)
    return q[2] + jnp.sqrt(inertia / p["m"]) / p["a"] * angle


def final_cos(q: Array, v: Array, p: Parameters) -> Array:
    return jnp.cos(final_heading(q, v, p))


def final_sin(q: Array, v: Array, p: Parameters) -> Array:
    return jnp.sin(final_heading(q, v, p))


def system(m: float = 1.0, J: float = 8.0, a: float = 1.0) -> System:
    return System(
        lagrangian,
        one_forms=one_forms,
        coordinates=("x", "y", "theta"),
        parameters={"m": m, "J": J, "a": a},
        angles=("theta",),
        frame=frame,
        first_integrals={"final_cos": final_cos, "final_sin": final_sin},
        fibre=("y",),
        scene=scene,
    )


def scene(q: Array, p: Parameters) -> Scene:
    """The body over its blade, the centre of mass, and the force across the blade."""
    turned, ahead = heading(q[2]), jnp.array([jnp.cos(q[2]), jnp.sin(q[2]), 0.0])
    contact = jnp.array([q[0], q[1], 0.0])
    up = jnp.array([0.0, 0.0, 0.55])
    return Scene(
        bodies=(
            Solid(Plate(thickness=0.15, points=OUTLINE), contact + up, turned, name="body", colour=ORANGE),
            Solid(Blade(1.4, 0.5, 0.1), contact, turned, name="blade", colour=VERMILION),
            _looks.FLOOR,
        ),
        marks=(
            Mark(contact, name="blade"),
            Mark(contact + up + p["a"] * ahead, name="centre of mass", colour=BLACK, trail=False),
        ),
        arrows=(Arrow(contact, one_forms(q, p), name="reaction", colour=GREEN),),
    )


def typical_state() -> tuple[Array, Array]:
    """Sliding backwards while turning: the sleigh turns around and ends sliding forwards."""
    theta, speed = 0.1, -0.6
    q0 = jnp.array([-5.0, 0.0, theta])
    return q0, jnp.array([speed * math.cos(theta), speed * math.sin(theta), 0.4])
