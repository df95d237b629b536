"""Systems with inputs, and their motion computed without this package."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.integrate import solve_ivp

from noslip import System, simulate
from noslip.systems import two_wheeled_robot

BODY = {"m": 1.3, "J": 0.5, "a": 0.25, "b": 0.45, "r": 0.35, "I": 0.12}
ROBOT = System(
    two_wheeled_robot.lagrangian,
    one_forms=two_wheeled_robot.one_forms,
    frame=two_wheeled_robot.frame,
    coordinates=("x", "y", "theta", "psi_left", "psi_right"),
    parameters=BODY,
    angles=("theta", "psi_left", "psi_right"),
    fibre=("x", "y", "theta"),
    force=lambda q, v, t, p: jnp.array([0.0, 0.0, 0.0, p["left"], p["right"]]),
    inputs={"left": 0.0, "right": 0.0},
)
Q0 = np.array([0.3, -0.2, 0.5, 0.1, -0.4])
V0 = np.asarray(jax.jit(two_wheeled_robot.frame)(Q0, BODY)) @ np.array([-0.5, 0.7])

# the smallest that has a constraint and forces, where XLA must compile the whole run
PUSHED = System(
    lambda q, v, p: 0.5 * jnp.dot(v, v),
    one_forms=lambda q, p: jnp.array([[-q[0], 1.0]]),
    coordinates=("x", "y"),
    force=lambda q, v, t, p: jnp.array([p["push"], p["lift"]]),
    inputs={"push": 0.0, "lift": 0.0},
)
PUSHED_Q0, PUSHED_V0 = np.array([0.3, 0.1]), np.array([1.0, 0.3])


def robot_motion(torques, times, start=(-0.5, 0.7), q0=Q0):
    """(q, v) of the robot under torques(t) = (left, right), from its reduced equations."""
    m, J, a, b, r, I = (BODY[name] for name in "mJabrI")
    A, B = m + 2 * I / r**2, J + m * a**2 + 2 * I * b**2 / r**2

    def slope(t, y):
        theta, u, w = y[2], y[5], y[6]
        left, right = torques(t)
        return [
            u * np.cos(theta), u * np.sin(theta), w, (u - b * w) / r, (u + b * w) / r,
            (m * a * w**2 + (left + right) / r) / A, (-m * a * u * w + b / r * (right - left)) / B,
        ]  # fmt: skip

    y = solve_ivp(slope, (times[0], times[-1]), [*q0, *start], "DOP853", times, rtol=1e-13, atol=1e-14).y.T
    theta, u, w = y[:, 2], y[:, 5], y[:, 6]
    v = [u * np.cos(theta), u * np.sin(theta), w, (u - b * w) / r, (u + b * w) / r]
    return y[:, :5], np.stack(v, axis=1)


# ---- inputs in the Lagrangian and the constraints: a sleigh that is pushed and whose blade is set ---------
def sleigh_lagrangian(q, v, p, xp=jnp):
    heavy = 1.2 + 0.3 * xp.sin(q[0])
    kinetic = heavy * v[0] ** 2 + (1.5 + p["load"]) * v[1] ** 2 + 0.7 * v[2] ** 2 + 0.2 * v[0] * v[2]
    return 0.5 * kinetic + 0.3 * q[1] * v[0] * p["load"] - p["push"] * q[0] - 0.2 * xp.cos(q[2])


def blade_row(q, p, xp=jnp):
    angle = q[2] + p["angle"]
    return [-xp.sin(angle), xp.cos(angle), 0.1 * q[0]]


def blade(q, p):
    return jnp.array([blade_row(q, p)])


SLEIGH_INPUTS = {"load": 0.0, "push": 0.0, "angle": 0.0}
SLEIGH = System(sleigh_lagrangian, one_forms=blade, coordinates=("x", "y", "theta"), inputs=SLEIGH_INPUTS)
TURNED = System(
    sleigh_lagrangian,
    one_forms=blade,
    drift=lambda q, p: jnp.array([0.3 * p["rate"] * jnp.cos(q[0])]),
    coordinates=("x", "y", "theta"),
    inputs=SLEIGH_INPUTS | {"rate": 0.0},
)
FAST = System(
    sleigh_lagrangian,
    constraint=lambda q, v, p: jnp.array(
        [v[2] ** 2 - (1 + p["angle"]) * (v[0] ** 2 + v[1] ** 2) - 0.1 * q[1]]
    ),
    coordinates=("x", "y", "theta"),
    inputs=SLEIGH_INPUTS,
)
STEERED = {"linear": SLEIGH, "affine": TURNED, "nonlinear": FAST}
SLEIGH_Q0, SLEIGH_V0 = np.array([0.3, 0.2, 0.4]), np.array([0.9, 0.5, 1.1])
TORQUES = {"left": np.repeat([1.0, -2.0], 5), "right": np.repeat([0.3, 0.8], 5)}
VALUES = {
    "load": [0.2, 0.6, 0.3],
    "push": [0.5, -0.5, 0.1],
    "angle": [0.1, 0.4, 0.2],
    "rate": [0.3, -0.6, 0.2],
}


def given(kind, between, steps):
    """Values that switch, or bend, in the middle of the run."""
    nodes = np.arange(steps + 1) / (steps // 2)
    names = STEERED[kind].inputs
    if between == "hold":
        return {name: np.repeat(VALUES[name][:2], steps // 2) for name in names}
    return {name: np.interp(nodes, [0, 1, 2], VALUES[name]) for name in names}


def steered(method, kind, between, steps, **more):
    system, first = STEERED[kind], {name: VALUES[name][0] for name in STEERED[kind].inputs}
    v = system.project_velocity(SLEIGH_Q0, SLEIGH_V0, parameters=first)
    options = {"inputs": given(kind, between, steps), "inputs_between": between} | more
    return simulate(system, method, SLEIGH_Q0, v, **({"step_size": 1 / steps, "steps": steps} | options))


def slow(cases):
    return [pytest.param(*case, marks=pytest.mark.slow) for case in cases]
