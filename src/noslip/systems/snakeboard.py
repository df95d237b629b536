"""Snakeboard: a board on two pairs of wheels that are turned against each other, and a rotor on top.

Coordinates x, y (middle of the board), theta (its heading), psi (rotor, relative to the board), phi (angle of
the front wheels to the board; the rear wheels stand at -phi). With mass m, inertias J of the board, J_r of
the rotor and J_w of each pair of wheels, half length l, and a spring k that holds the wheels straight:

    L = (m (xdot^2 + ydot^2) + J thetadot^2 + J_r (thetadot + psidot)^2 + 2 J_w (thetadot^2 + phidot^2)) / 2
        - k phi^2 / 2
    -xdot sin(theta + phi) + ydot cos(theta + phi) + l thetadot cos phi = 0      (front)
    -xdot sin(theta - phi) + ydot cos(theta - phi) - l thetadot cos phi = 0      (rear)

so the board moves along itself only, and turns by thetadot = (tan phi / l) u at the speed u. The torques on
rotor and wheels are inputs, `rotor_torque` and `wheel_torque`. Without them the momentum of the rotor
J_r (thetadot + psidot) and the energy of the steering J_w phidot^2 + k phi^2 / 2 are constant. The two
constraints become dependent where phi reaches a right angle. See Ostrowski, Burdick, Lewis, Murray 1995, who
have k = 0.
"""

from __future__ import annotations

import jax.numpy as jnp
from jax import Array

from noslip.scenes import (
    GREEN,
    GREY,
    ORANGE,
    SKY,
    Arrow,
    Cuboid,
    Cylinder,
    Mark,
    Plate,
    Scene,
    Solid,
    heading,
    wheel,
)
from noslip.system import Parameters, System
from noslip.systems import _looks
from noslip.systems._states import in_one_program

# seen from above, in half lengths
BOARD = ((-1.3, -0.3), (-0.7, -0.3), (-0.4, -0.18), (0.4, -0.18), (0.7, -0.3), (1.3, -0.3),
         (1.3, 0.3), (0.7, 0.3), (0.4, 0.18), (-0.4, 0.18), (-0.7, 0.3), (-1.3, 0.3))  # fmt: skip


def lagrangian(q: Array, v: Array, p: Parameters) -> Array:
    turning = p["J"] * v[2] ** 2 + p["J_r"] * (v[2] + v[3]) ** 2 + 2 * p["J_w"] * (v[2] ** 2 + v[4] ** 2)
    return 0.5 * (p["m"] * (v[0] ** 2 + v[1] ** 2) + turning - p["k"] * q[4] ** 2)


def one_forms(q: Array, p: Parameters) -> Array:
    theta, phi = q[2], q[4]
    arm = p["l"] * jnp.cos(phi)
    return jnp.array(
        [
            [-jnp.sin(theta + phi), jnp.cos(theta + phi), arm, 0.0, 0.0],
            [-jnp.sin(theta - phi), jnp.cos(theta - phi), -arm, 0.0, 0.0],
        ]
    )


def frame(q: Array, p: Parameters) -> Array:
    """Rolling along the wheels, turning the rotor, turning the wheels."""
    ahead, s = p["l"] * jnp.cos(q[4]), jnp.sin(q[4])
    roll = [ahead * jnp.cos(q[2]), ahead * jnp.sin(q[2]), s, 0.0, 0.0]
    return jnp.array([roll, [0.0, 0.0, 0.0, 1.0, 0.0], [0.0, 0.0, 0.0, 0.0, 1.0]]).T


def force(q: Array, v: Array, t: Array, p: Parameters) -> Array:
    return jnp.array([0.0, 0.0, 0.0, p["rotor_torque"], p["wheel_torque"]])


def rotor_momentum(q: Array, v: Array, p: Parameters) -> Array:
    return p["J_r"] * (v[2] + v[3])


def steering_energy(q: Array, v: Array, p: Parameters) -> Array:
    return p["J_w"] * v[4] ** 2 + 0.5 * p["k"] * q[4] ** 2


def system(
    m: float = 6.0,
    J: float = 0.12,
    J_r: float = 0.3,
    J_w: float = 0.04,
    l: float = 0.3,
    k: float = 0.03,
    rotor_torque: float = 0.0,
    wheel_torque: float = 0.0,
) -> System:
    """The torques are those where a run gives none."""
    return System(
        lagrangian,
        one_forms=one_forms,
        coordinates=("x", "y", "theta", "psi", "phi"),
        parameters={"m": m, "J": J, "J_r": J_r, "J_w": J_w, "l": l, "k": k}
        | {"rotor_torque": rotor_torque, "wheel_torque": wheel_torque},
        inputs={"rotor_torque": 0.0, "wheel_torque": 0.0},
        angles=("theta", "psi"),
        force=force,
        frame=frame,
        first_integrals={"rotor_momentum": rotor_momentum, "steering_energy": steering_energy},
        scene=scene,
    )


def scene(q: Array, p: Parameters) -> Scene:
    """The board, its two pairs of wheels, the rotor, and the forces across the wheels."""
    l, theta, phi = p["l"], q[2], q[4]
    ahead, up = jnp.array([jnp.cos(theta), jnp.sin(theta), 0.0]), jnp.array([0.0, 0.0, 1.0])
    middle = jnp.array([q[0], q[1], 0.0])
    parts, arrows = [], []
    for k, (name, side) in enumerate((("front", 1.0), ("rear", -1.0))):
        at, angle = middle + side * l * ahead, theta + side * phi
        across = jnp.array([-jnp.sin(angle), jnp.cos(angle), 0.0])
        parts.append(
            Solid(
                Cylinder(0.03 * l, 0.8 * l),
                at + 0.15 * l * up,
                wheel(angle, 0.0),
                name=f"{name} axle",
                colour=GREY,
            )
        )
        parts += [
            Solid(
                Cylinder(0.15 * l, 0.12 * l),
                at + 0.15 * l * up + x * l * across,
                wheel(angle, 0.0),
                name=f"{name} wheel",
                colour=ORANGE,
            )
            for x in (0.4, -0.4)
        ]
        arrows.append(Arrow(at, jnp.zeros((2, 3)).at[k].set(across), name=name, colour=GREEN))
    return Scene(
        bodies=(
            Solid(
                Plate(x=l, y=l, thickness=0.08 * l, points=BOARD), middle + 0.35 * l * up, heading(theta),
                name="board", colour=SKY,
            ),
            *parts,
            Solid(
                Cuboid(0.9 * l, 0.12 * l, 0.12 * l), middle + 0.5 * l * up, heading(theta + q[3]),
                name="rotor", colour=ORANGE,
            ),
            _looks.FLOOR,
        ),
        marks=(Mark(middle, name="path"),),
        arrows=tuple(arrows),
    )  # fmt: skip


@in_one_program
def typical_state() -> tuple[Array, Array]:
    q0 = jnp.array([0.3, -0.2, 0.5, 0.1, 0.4])
    return q0, frame(q0, {"l": 0.3}) @ jnp.array([1.0, -0.8, 0.12])
