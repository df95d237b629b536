"""Unicycle: a wheel that rolls on a plane, and a rider on a fork who pitches about its axle.

Coordinates x, y (the point that touches), psi (heading), phi (lean to the right), theta (rotation of the
wheel about its axle, relative to the upright in its plane), beta (pitch of the rider forwards, likewise).
The wheel has the mass m, radius r, moments I about the axle and J about a diameter; the rider the mass M at
the distance l from the axle, principal moments A, B, C about the forward, the lateral and the upright axis.
In axes that head and lean with the wheel (forward, left, up), with O their angular velocity and s the
sideways speed of (x, y),

    O = (phidot, psidot sin phi, psidot cos phi)
    V = (xdot cos psi + ydot sin psi, s cos phi, -s sin phi) + O x (0, 0, r)             (axle)
    P = V + (O + betadot e_y) x (l sin beta, 0, l cos beta)                              (rider)

    L = m |V|^2 / 2 + (J (O_x^2 + O_z^2) + I (O_y + thetadot)^2) / 2 + M |P|^2 / 2
        + (A (O_x cos beta - O_z sin beta)^2 + B (O_y + betadot)^2 + C (O_x sin beta + O_z cos beta)^2) / 2
        - g (m r + M (r + l cos beta)) cos phi
    xdot = r thetadot cos psi,      ydot = r thetadot sin psi

The pedals are an input, `torque`: it turns the wheel forwards and the rider backwards. Without it the energy
is conserved. `rolling_disk` is a wheel alone that stays upright, `rolling_coin` one that may lean and fall.
"""

from __future__ import annotations

import jax.numpy as jnp
from jax import Array

from noslip.rotations import compose, from_axis, from_euler, matrix
from noslip.scenes import GREEN, GREY, ORANGE, SKY, Arrow, Cuboid, Cylinder, Mark, Scene, Solid, heading
from noslip.system import Parameters, System
from noslip.systems import _looks
from noslip.systems._states import in_one_program


def lagrangian(q: Array, v: Array, p: Parameters) -> Array:
    (_, _, psi, phi, _, beta), (dx, dy, dpsi, dphi, dtheta, dbeta) = q, v
    s = -dx * jnp.sin(psi) + dy * jnp.cos(psi)
    O = jnp.stack([dphi, dpsi * jnp.sin(phi), dpsi * jnp.cos(phi)])
    track = jnp.stack([dx * jnp.cos(psi) + dy * jnp.sin(psi), s * jnp.cos(phi), -s * jnp.sin(phi)])
    up, lateral = jnp.array([0.0, 0.0, 1.0]), jnp.array([0.0, 1.0, 0.0])
    sine, cosine = jnp.sin(beta), jnp.cos(beta)
    V = track + jnp.cross(O, p["r"] * up)
    P = V + jnp.cross(O + dbeta * lateral, p["l"] * jnp.stack([sine, jnp.zeros(()), cosine]))
    wheel = p["J"] * (O[0] ** 2 + O[2] ** 2) + p["I"] * (O[1] + dtheta) ** 2
    rider = p["A"] * (O[0] * cosine - O[2] * sine) ** 2 + p["B"] * (O[1] + dbeta) ** 2
    rider += p["C"] * (O[0] * sine + O[2] * cosine) ** 2
    kinetic = p["m"] * jnp.dot(V, V) + p["M"] * jnp.dot(P, P) + wheel + rider
    height = (p["m"] * p["r"] + p["M"] * (p["r"] + p["l"] * cosine)) * jnp.cos(phi)
    return 0.5 * kinetic - p["g"] * height


def one_forms(q: Array, p: Parameters) -> Array:
    along, across = -p["r"] * jnp.cos(q[2]), -p["r"] * jnp.sin(q[2])
    return jnp.array([[1.0, 0.0, 0.0, 0.0, along, 0.0], [0.0, 1.0, 0.0, 0.0, across, 0.0]])


def frame(q: Array, p: Parameters) -> Array:
    """Heading, leaning, rolling, pitching."""
    rolling = jnp.stack([p["r"] * jnp.cos(q[2]), p["r"] * jnp.sin(q[2])])
    return jnp.concatenate([jnp.zeros((2, 4)).at[:, 2].set(rolling), jnp.eye(4)])


def force(q: Array, v: Array, t: Array, p: Parameters) -> Array:
    return jnp.array([0.0, 0.0, 0.0, 0.0, 1.0, -1.0]) * p["torque"]


def system(
    m: float = 0.5,
    r: float = 1.0,
    I: float = 0.5,
    J: float = 0.25,
    M: float = 1.0,
    l: float = 0.8,
    A: float = 0.2,
    B: float = 0.25,
    C: float = 0.1,
    g: float = 1.0,
    torque: float = 0.0,
) -> System:
    """The torque is that where a run gives none."""
    return System(
        lagrangian,
        one_forms=one_forms,
        coordinates=("x", "y", "psi", "phi", "theta", "beta"),
        parameters={"m": m, "r": r, "I": I, "J": J, "M": M, "l": l, "A": A, "B": B, "C": C, "g": g}
        | {"torque": torque},
        inputs={"torque": 0.0},
        angles=("psi", "phi", "theta", "beta"),
        force=force,
        frame=frame,
        fibre=("x", "y"),
        scene=scene,
    )


def scene(q: Array, p: Parameters) -> Scene:
    """The wheel as it leans, the rider on the fork, and the force at the contact."""
    r, l = p["r"], p["l"]
    leaning = compose(heading(q[2]), from_axis((1.0, 0.0, 0.0), q[3]))
    A, contact = matrix(leaning), jnp.array([q[0], q[1], 0.0])
    axle = contact + r * A[:, 2]
    turned = compose(leaning, from_euler("xz", jnp.stack([jnp.asarray(-0.5 * jnp.pi), q[4]])))
    pitched = compose(leaning, from_axis((0.0, 1.0, 0.0), q[5]))
    rider = axle + l * matrix(pitched)[:, 2]
    return Scene(
        bodies=(
            Solid(Cylinder(r, 0.08 * r), axle, turned, name="wheel", colour=ORANGE, pattern="sectors"),
            _looks.rod(axle + 0.12 * r * A[:, 1], rider + 0.12 * r * A[:, 1], 0.03 * r, "fork", GREY),
            _looks.rod(axle - 0.12 * r * A[:, 1], rider - 0.12 * r * A[:, 1], 0.03 * r, "fork", GREY),
            Solid(Cuboid(0.3 * l, 0.6 * l, 0.5 * l), rider, pitched, name="rider", colour=SKY),
            _looks.FLOOR,
        ),
        marks=(Mark(contact, name="contact"),),
        arrows=(Arrow(contact, ((1.0, 0.0, 0.0), (0.0, 1.0, 0.0)), name="friction", colour=GREEN),),
    )


@in_one_program
def typical_state() -> tuple[Array, Array]:
    """Rolling fast enough to stay up for a while, the rider hanging below the axle."""
    q0 = jnp.array([0.3, -0.2, 0.5, 0.1, 0.7, 2.9])
    return q0, frame(q0, {"r": 1.0}) @ jnp.array([0.25, -0.15, 1.6, 0.35])
