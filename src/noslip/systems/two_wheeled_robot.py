"""Two-wheeled robot: a body on two driven wheels, here rolling freely; three constraints.

Coordinates x, y (middle of the axle), theta (heading), psi_left, psi_right (rotations of the wheels). With
mass m and moment of inertia J about the centre of mass (wheels included), which lies a ahead of the axle,
half width b, wheel radius r and wheel inertia I about the axle:

    L = (m (xdot^2 + ydot^2 + 2 a thetadot (ydot cos theta - xdot sin theta)) + (J + m a^2) thetadot^2
         + I (psi_left_dot^2 + psi_right_dot^2)) / 2
    ydot cos theta - xdot sin theta = 0
    xdot cos theta + ydot sin theta - b thetadot - r psi_left_dot = 0
    xdot cos theta + ydot sin theta + b thetadot - r psi_right_dot = 0

The difference of the last two integrates to 2 b theta = r (psi_right - psi_left) + constant; the rest is
nonholonomic. With u the speed ahead, A = m + 2 I / r^2 and B = J + m a^2 + 2 I b^2 / r^2 the reduced
equations A udot = m a thetadot^2, B thetaddot = -m a u thetadot are those of the sleigh (CFHM (22)):
every motion ends straight, with the centre of mass in front, and the cosine and sine of the final heading
theta + sqrt(A B) / (m a) atan2(sqrt(B) thetadot, sqrt(A) u) are first integrals (see `chaplygin_sleigh` for
where they are smooth).
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jax import Array

from noslip.scenes import (
    BLACK,
    GREEN,
    GREY,
    ORANGE,
    SKY,
    Arrow,
    Cylinder,
    Mark,
    Plate,
    Scene,
    Solid,
    Sphere,
    heading,
    wheel,
)
from noslip.system import Parameters, System
from noslip.systems import _looks

OUTLINE = ((-0.6, -0.8), (1.2, -0.8), (1.7, 0.0), (1.2, 0.8), (-0.6, 0.8))  # of the body, in half widths


def lagrangian(q: Array, v: Array, p: Parameters) -> Array:
    sideways = v[1] * jnp.cos(q[2]) - v[0] * jnp.sin(q[2])
    sliding = p["m"] * (v[0] ** 2 + v[1] ** 2 + 2 * p["a"] * v[2] * sideways)
    turning = (p["J"] + p["m"] * p["a"] ** 2) * v[2] ** 2
    return 0.5 * (sliding + turning + p["I"] * (v[3] ** 2 + v[4] ** 2))


def one_forms(q: Array, p: Parameters) -> Array:
    s, c, b, r = jnp.sin(q[2]), jnp.cos(q[2]), p["b"], p["r"]
    return jnp.array([[-s, c, 0.0, 0.0, 0.0], [c, s, -b, -r, 0.0], [c, s, b, 0.0, -r]])


def frame(q: Array, p: Parameters) -> Array:
    """Driving ahead at unit speed, and turning on the spot at unit rate."""
    ahead, turn = 1 / p["r"], p["b"] / p["r"]
    return jnp.array([[jnp.cos(q[2]), 0.0], [jnp.sin(q[2]), 0.0], [0.0, 1.0], [ahead, -turn], [ahead, turn]])


def final_heading(q: Array, v: Array, p: Parameters) -> Array:
    """The heading that the robot tends to; only its cosine and sine are single valued."""
    wheels = 2 * p["I"] / p["r"] ** 2
    A, B = p["m"] + wheels, p["J"] + p["m"] * p["a"] ** 2 + wheels * p["b"] ** 2
    u = v[0] * jnp.cos(q[2]) + v[1] * jnp.sin(q[2])
    angle = jnp.arctan2(p["a"] * jnp.sqrt(B) * v[2], p["a"] * jnp.sqrt(A) * u)
    return q[2] + jnp.sqrt(A * B) / (p["m"] * p["a"]) * angle


def final_cos(q: Array, v: Array, p: Parameters) -> Array:
    return jnp.cos(final_heading(q, v, p))


def final_sin(q: Array, v: Array, p: Parameters) -> Array:
    return jnp.sin(final_heading(q, v, p))


def system(
    m: float = 1.0, J: float = 0.6, a: float = 0.3, b: float = 0.5, r: float = 0.4, I: float = 0.1
) -> System:
    return System(
        lagrangian,
        one_forms=one_forms,
        coordinates=("x", "y", "theta", "psi_left", "psi_right"),
        parameters={"m": m, "J": J, "a": a, "b": b, "r": r, "I": I},
        angles=("theta", "psi_left", "psi_right"),
        frame=frame,
        first_integrals={"final_cos": final_cos, "final_sin": final_sin},
        fibre=("x", "y", "theta"),
        scene=scene,
    )


def scene(q: Array, p: Parameters) -> Scene:
    """The body, its wheels and the forces at them, and the ball that it rests on in front."""
    b, r = p["b"], p["r"]
    ahead = jnp.array([jnp.cos(q[2]), jnp.sin(q[2]), 0.0])
    left, up = jnp.array([-jnp.sin(q[2]), jnp.cos(q[2]), 0.0]), jnp.array([0.0, 0.0, 1.0])
    middle = jnp.array([q[0], q[1], 0.0])
    wheels = tuple(
        Solid(
            Cylinder(r, 0.2 * r), middle + side * b * left + r * up, wheel(q[2], spin), name=name,
            colour=ORANGE, pattern="sectors",
        )
        for name, side, spin in (("left wheel", 1.0, q[3]), ("right wheel", -1.0, q[4]))
    )  # fmt: skip
    none = jnp.zeros(3)
    return Scene(
        bodies=(
            Solid(
                Plate(x=b, y=b, thickness=0.25 * r, points=OUTLINE), middle + r * up, heading(q[2]),
                name="body", colour=SKY,
            ),
            *wheels,
            Solid(Cylinder(0.1 * r, 2 * b), middle + r * up, wheel(q[2], 0.0), name="axle", colour=GREY),
            Solid(Sphere(0.4 * r), middle + 1.2 * b * ahead + 0.4 * r * up, name="ball", colour=GREY),
            _looks.FLOOR,
        ),
        marks=(Mark(middle, name="axle"), Mark(middle + p["a"] * ahead + 1.2 * r * up, name="centre of mass",
                                               colour=BLACK, trail=False)),
        arrows=(
            Arrow(middle, jnp.stack([left, none, none]), name="across", colour=GREEN),
            Arrow(middle + b * left, jnp.stack([none, ahead, none]), name="left wheel", colour=GREEN),
            Arrow(middle - b * left, jnp.stack([none, none, ahead]), name="right wheel", colour=GREEN),
        ),
    )  # fmt: skip


def typical_state() -> tuple[Array, Array]:
    """Driving backwards while turning: the robot turns around."""
    q0 = jnp.array([0.3, -0.2, 0.5, 0.1, -0.4])
    X = jax.jit(frame)(q0, {"b": 0.5, "r": 0.4})
    return q0, X @ jnp.array([-0.5, 0.7])
