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
import numpy as np
from jax import Array

from noslip.system import Parameters, System
from noslip.systems._pictures import placed


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
    )


def picture(q: np.ndarray, p: Parameters) -> tuple[np.ndarray, ...]:
    """Seen from above: the board, its two pairs of wheels and the rotor."""
    l = float(p["l"])
    axle = np.array([[0.0, -0.4 * l], [0.0, 0.4 * l]])
    front, rear = placed(axle, l, 0.0, q[4]), placed(axle, -l, 0.0, -q[4])
    board, rotor = np.array([[-l, 0.0], [l, 0.0]]), placed(0.8 * axle, 0.0, 0.0, q[3])
    return tuple(placed(part, q[0], q[1], q[2]) for part in (board, front, rear, rotor))


def typical_state() -> tuple[Array, Array]:
    q0 = jnp.array([0.3, -0.2, 0.5, 0.1, 0.4])
    return q0, frame(q0, {"l": 0.3}) @ jnp.array([1.0, -0.8, 0.12])
