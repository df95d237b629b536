"""Segway: two wheels on an axle, and a body above it that would fall.

Coordinates x, y (middle of the axle), theta (heading), beta (lean of the body forwards), left and right
(angles of the wheels). The body has the mass m at the distance l from the axle, principal moments A about
its forward, B about the lateral and C about the upright axis; each wheel the mass m_w, I about the axle and
J about a diameter, the radius r, at the distance b from the middle. With u the speed ahead and s that to the
left,

    u = xdot cos theta + ydot sin theta,      s = -xdot sin theta + ydot cos theta
    L = m ((u + l betadot cos beta)^2 + (s + l thetadot sin beta)^2 + (l betadot sin beta)^2) / 2
        + (B betadot^2 + (A sin(beta)^2 + C cos(beta)^2) thetadot^2) / 2
        + m_w (u^2 + s^2 + b^2 thetadot^2) + J thetadot^2 + I (leftdot^2 + rightdot^2) / 2 - m g l cos beta
    s = 0,      u - b thetadot = r leftdot,      u + b thetadot = r rightdot

The motors turn the wheels against the body: `torque_left` and `torque_right` are inputs, and minus their sum
acts on beta. Without them the energy is conserved; so is nothing else, since a turn drives the lean. That
the lean is free to go round, through the ground, is left to the user.
"""

from __future__ import annotations

import jax.numpy as jnp
from jax import Array

from noslip.rotations import compose, from_axis
from noslip.scenes import (
    GREEN,
    GREY,
    ORANGE,
    SKY,
    Arrow,
    Cuboid,
    Cylinder,
    Mark,
    Scene,
    Solid,
    heading,
    wheel,
)
from noslip.system import Parameters, System
from noslip.systems import _looks
from noslip.systems._states import in_one_program


def lagrangian(q: Array, v: Array, p: Parameters) -> Array:
    theta, beta, turn, lean = q[2], q[3], v[2], v[3]
    u = v[0] * jnp.cos(theta) + v[1] * jnp.sin(theta)
    s = -v[0] * jnp.sin(theta) + v[1] * jnp.cos(theta)
    sine, cosine, l = jnp.sin(beta), jnp.cos(beta), p["l"]
    body = (u + l * lean * cosine) ** 2 + (s + l * turn * sine) ** 2 + (l * lean * sine) ** 2
    turning = p["B"] * lean**2 + (p["A"] * sine**2 + p["C"] * cosine**2 + 2 * p["J"]) * turn**2
    wheels = 2 * p["m_w"] * (u**2 + s**2 + (p["b"] * turn) ** 2) + p["I"] * (v[4] ** 2 + v[5] ** 2)
    return 0.5 * (p["m"] * body + turning + wheels) - p["m"] * p["g"] * l * cosine


def one_forms(q: Array, p: Parameters) -> Array:
    c, s, b, r = jnp.cos(q[2]), jnp.sin(q[2]), p["b"], p["r"]
    return jnp.array(
        [[-s, c, 0.0, 0.0, 0.0, 0.0], [c, s, -b, 0.0, -r, 0.0], [c, s, b, 0.0, 0.0, -r]],
    )


def frame(q: Array, p: Parameters) -> Array:
    """Driving ahead, turning on the spot, leaning."""
    b, r = p["b"], p["r"]
    ahead = [jnp.cos(q[2]), jnp.sin(q[2]), 0.0, 0.0, 1 / r, 1 / r]
    return jnp.array([ahead, [0.0, 0.0, 1.0, 0.0, -b / r, b / r], [0.0, 0.0, 0.0, 1.0, 0.0, 0.0]]).T


def force(q: Array, v: Array, t: Array, p: Parameters) -> Array:
    left, right = p["torque_left"], p["torque_right"]
    return jnp.array([0.0, 0.0, 0.0, -(left + right), left, right])


def system(
    m: float = 1.0,
    l: float = 0.8,
    A: float = 0.3,
    B: float = 0.25,
    C: float = 0.1,
    m_w: float = 0.15,
    I: float = 0.012,
    J: float = 0.008,
    r: float = 0.4,
    b: float = 0.5,
    g: float = 1.0,
    torque_left: float = 0.0,
    torque_right: float = 0.0,
) -> System:
    """The torques are those where a run gives none."""
    return System(
        lagrangian,
        one_forms=one_forms,
        coordinates=("x", "y", "theta", "beta", "left", "right"),
        parameters={
            "m": m,
            "l": l,
            "A": A,
            "B": B,
            "C": C,
            "m_w": m_w,
            "I": I,
            "J": J,
            "r": r,
            "b": b,
            "g": g,
        }
        | {"torque_left": torque_left, "torque_right": torque_right},
        inputs={"torque_left": 0.0, "torque_right": 0.0},
        angles=("theta", "beta", "left", "right"),
        force=force,
        frame=frame,
        scene=scene,
    )


def scene(q: Array, p: Parameters) -> Scene:
    """The wheels, the body that leans above their axle, and the forces at the wheels."""
    b, r, l = p["b"], p["r"], p["l"]
    ahead, left = _looks.ahead(q[2]), _looks.ahead(q[2] + 0.5 * jnp.pi)
    middle, up = jnp.array([q[0], q[1], 0.0]), jnp.array([0.0, 0.0, 1.0])
    lean = jnp.sin(q[3]) * ahead + jnp.cos(q[3]) * up
    axle = middle + r * up
    turned = compose(heading(q[2]), from_axis((0.0, 1.0, 0.0), q[3]))
    wheels = [
        Solid(
            Cylinder(r, 0.2 * r),
            axle + side * b * left,
            wheel(q[2], spin),
            name=name,
            colour=ORANGE,
            pattern="sectors",
        )
        for name, side, spin in (("left wheel", 1.0, q[4]), ("right wheel", -1.0, q[5]))
    ]
    none = jnp.zeros(3)
    return Scene(
        bodies=(
            *wheels,
            Solid(Cuboid(0.6 * b, 1.4 * b, 0.1 * r), axle, turned, name="platform", colour=SKY),
            _looks.rod(axle, axle + 1.5 * l * lean, 0.08 * r, "post", GREY),
            Solid(Cuboid(0.4 * l, 0.5 * l, 0.5 * l), axle + l * lean, turned, name="body", colour=SKY),
            _looks.FLOOR,
        ),
        marks=(Mark(middle, name="axle"),),
        arrows=(
            Arrow(middle, jnp.stack([left, none, none]), name="across", colour=GREEN),
            Arrow(middle + b * left, jnp.stack([none, ahead, none]), name="left wheel", colour=GREEN),
            Arrow(middle - b * left, jnp.stack([none, none, ahead]), name="right wheel", colour=GREEN),
        ),
    )  # fmt: skip


@in_one_program
def typical_state() -> tuple[Array, Array]:
    q0 = jnp.array([0.3, -0.2, 0.5, 0.15, 0.4, 0.7])
    return q0, frame(q0, {"b": 0.5, "r": 0.4}) @ jnp.array([0.6, 0.35, -0.25])
