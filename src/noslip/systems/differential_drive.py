"""Differential drive: the two-wheeled robot with a motor on each wheel, driven by two voltages.

Coordinates x, y (middle of the axle), theta (heading), psi_left, psi_right (rotations of the wheels).
Lagrangian and constraints are those of `two_wheeled_robot`. A motor with the constant k and the resistance R
(both at the wheel, its gear included) turns its wheel against the back voltage and the friction c:

    torque = k (voltage - k psidot) / R - c psidot

The two voltages are inputs. With u the speed ahead, A = m + 2 I / r^2, B = J + m a^2 + 2 I b^2 / r^2 and
D = k^2 / R + c, the reduced equations are

    A udot        =  m a thetadot^2 - 2 D u / r^2            + k (voltage_left + voltage_right) / (r R)
    B thetaddot   = -m a u thetadot - 2 D b^2 thetadot / r^2 + k b (voltage_right - voltage_left) / (r R)

Equal voltages V end in a straight run at the speed u = k r V / (D R).
"""

from __future__ import annotations

import jax.numpy as jnp
from jax import Array

from noslip.system import Parameters, System
from noslip.systems import two_wheeled_robot
from noslip.systems._states import in_one_program


def force(q: Array, v: Array, t: Array, p: Parameters) -> Array:
    """The torques of the motors on their wheels."""
    loss = p["k"] ** 2 / p["R"] + p["c"]
    left = p["k"] / p["R"] * p["voltage_left"] - loss * v[3]
    right = p["k"] / p["R"] * p["voltage_right"] - loss * v[4]
    return jnp.array([0.0, 0.0, 0.0, left, right])


def system(
    m: float = 1.0,
    J: float = 0.6,
    a: float = 0.3,
    b: float = 0.5,
    r: float = 0.4,
    I: float = 0.1,
    k: float = 0.3,
    R: float = 1.5,
    c: float = 0.02,
    voltage_left: float = 0.0,
    voltage_right: float = 0.0,
) -> System:
    """The voltages are those where a run gives none."""
    return System(
        two_wheeled_robot.lagrangian,
        one_forms=two_wheeled_robot.one_forms,
        coordinates=("x", "y", "theta", "psi_left", "psi_right"),
        parameters={"m": m, "J": J, "a": a, "b": b, "r": r, "I": I, "k": k, "R": R, "c": c}
        | {"voltage_left": voltage_left, "voltage_right": voltage_right},
        inputs={"voltage_left": 0.0, "voltage_right": 0.0},
        angles=("theta", "psi_left", "psi_right"),
        force=force,
        frame=two_wheeled_robot.frame,
        fibre=("x", "y", "theta"),
        scene=two_wheeled_robot.scene,
    )


@in_one_program
def typical_state() -> tuple[Array, Array]:
    """Rolling out of a turn."""
    q0 = jnp.array([0.3, -0.2, 0.5, 0.1, -0.4])
    X = two_wheeled_robot.frame(q0, {"b": 0.5, "r": 0.4})
    return q0, X @ jnp.array([0.6, 1.1])
