"""Roller racer: two carts in a joint, driven by swinging the handlebar (Krishnaprasad, Tsakiris 2001).

Coordinates x, y (axle of the rear cart), theta (its heading), phi (angle of the front cart to it). Each cart
has its mass and inertia centred on its axle: m1, J1 behind, m2, J2 in front; the joint is d1 ahead of the
rear axle, the front axle d2 ahead of the joint. With r2 the place of the front axle and psi = theta + phi,

    r2 = (x, y) + d1 (cos theta, sin theta) + d2 (cos psi, sin psi)
    L = (m1 (xdot^2 + ydot^2) + J1 thetadot^2 + m2 |r2dot|^2 + J2 psidot^2) / 2 - k (1 - cos phi)
    -xdot sin theta + ydot cos theta = 0                                              (rear wheels)
    -xdot sin psi + ydot cos psi + d1 thetadot cos phi + d2 psidot = 0                (front wheels)

k is a spring in the joint, and the torque there an input, `torque`. Without it the energy is conserved. Where
d1 cos phi + d2 = 0 = sin phi the front wheels do not feel the rear ones turn; with d1 < d2 that is nowhere.
"""

from __future__ import annotations

import jax.numpy as jnp
from jax import Array

from noslip.scenes import GREY, ORANGE, SKY, Cuboid, Mark, Scene, Solid, heading
from noslip.system import Parameters, System
from noslip.systems import _looks
from noslip.systems._states import in_one_program


def lagrangian(q: Array, v: Array, p: Parameters) -> Array:
    theta, psi, turn, swing = q[2], q[2] + q[3], v[2], v[2] + v[3]
    x2 = v[0] - p["d1"] * turn * jnp.sin(theta) - p["d2"] * swing * jnp.sin(psi)
    y2 = v[1] + p["d1"] * turn * jnp.cos(theta) + p["d2"] * swing * jnp.cos(psi)
    rear = p["m1"] * (v[0] ** 2 + v[1] ** 2) + p["J1"] * turn**2
    front = p["m2"] * (x2**2 + y2**2) + p["J2"] * swing**2
    return 0.5 * (rear + front) - p["k"] * (1 - jnp.cos(q[3]))


def one_forms(q: Array, p: Parameters) -> Array:
    theta, psi = q[2], q[2] + q[3]
    arm = p["d1"] * jnp.cos(q[3]) + p["d2"]
    return jnp.array(
        [
            [-jnp.sin(theta), jnp.cos(theta), 0.0, 0.0],
            [-jnp.sin(psi), jnp.cos(psi), arm, p["d2"]],
        ]
    )


def frame(q: Array, p: Parameters) -> Array:
    """Rolling with the joint held, and swinging the handlebar with the least of turn and advance."""
    s, arm, none = jnp.sin(q[3]), p["d1"] * jnp.cos(q[3]) + p["d2"], jnp.zeros(())
    size = arm**2 + s**2
    ahead, turn = jnp.stack([arm, p["d2"] * s / size]), jnp.stack([s, -p["d2"] * arm / size])
    return jnp.stack([ahead * jnp.cos(q[2]), ahead * jnp.sin(q[2]), turn, jnp.stack([none, jnp.ones(())])])


def force(q: Array, v: Array, t: Array, p: Parameters) -> Array:
    return jnp.array([0.0, 0.0, 0.0, 1.0]) * p["torque"]


def system(
    m1: float = 1.0,
    J1: float = 0.2,
    m2: float = 0.3,
    J2: float = 0.05,
    d1: float = 0.4,
    d2: float = 0.6,
    k: float = 0.5,
    torque: float = 0.0,
) -> System:
    """The torque is that where a run gives none."""
    return System(
        lagrangian,
        one_forms=one_forms,
        coordinates=("x", "y", "theta", "phi"),
        parameters={"m1": m1, "J1": J1, "m2": m2, "J2": J2, "d1": d1, "d2": d2, "k": k, "torque": torque},
        inputs={"torque": 0.0},
        angles=("theta", "phi"),
        force=force,
        frame=frame,
        scene=scene,
    )


def scene(q: Array, p: Parameters) -> Scene:
    """The two carts in their joint, and the forces across their axles."""
    d1, d2, theta, psi = p["d1"], p["d2"], q[2], q[2] + q[3]
    size = 0.25 * (d1 + d2)
    rear = jnp.array([q[0], q[1], 0.0])
    joint = rear + d1 * _looks.ahead(theta)
    front, up = joint + d2 * _looks.ahead(psi), size * jnp.array([0.0, 0.0, 0.8])
    seat, bar = Cuboid(1.4 * size, 1.2 * size, 0.25 * size), Cuboid(0.8 * size, 1.4 * size, 0.25 * size)
    return Scene(
        bodies=(
            Solid(seat, rear + up, heading(theta), name="rear cart", colour=SKY),
            Solid(bar, front + up, heading(psi), name="front cart", colour=ORANGE),
            _looks.rod(rear + up, joint + up, 0.1 * size, "beam", GREY),
            _looks.rod(joint + up, front + up, 0.1 * size, "handlebar", GREY),
            *_looks.wheels_across(rear, theta, 0.6 * size, 0.35 * size),
            *_looks.wheels_across(front, psi, 0.6 * size, 0.35 * size),
            _looks.FLOOR,
        ),
        marks=(Mark(rear, name="rear axle"), Mark(front, name="front axle", colour=ORANGE)),
        arrows=(_looks.across(rear, theta, 0, 2), _looks.across(front, psi, 1, 2)),
    )


@in_one_program
def typical_state() -> tuple[Array, Array]:
    """Coasting with the handlebar on its way to the other side."""
    q0 = jnp.array([0.3, -0.2, 0.5, 0.7])
    return q0, frame(q0, {"d1": 0.4, "d2": 0.6}) @ jnp.array([0.8, -0.9])
