"""Whipple's bicycle as somebody writes it who thinks in positions: nine coordinates, six one-forms, no frame.

Coordinates are the centre (x, y, z) of the rear wheel, yaw, roll and pitch of the rear frame, the steering
angle and the turns of both wheels; z points down. Velocities are `jax.jvp` of positions and rotations. Each
wheel's lowest point is at rest, in three directions: two constraints of six are holonomic. The parameters are
those of the benchmark of Meijaard, Papadopoulos, Ruina, Schwab 2007, table 1.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from noslip.system import System
from noslip.system.derived import Parameters

NAMES = ("x", "y", "z", "yaw", "roll", "pitch", "steer", "rear", "front")
BASE, TRAIL, TILT, GRAVITY = 1.02, 0.08, np.pi / 10, 9.81
REAR, FRONT = np.array([0.0, 0.0, -0.3]), np.array([BASE, 0.0, -0.35])  # the centres of the wheels, upright
PIVOT = np.array([BASE + TRAIL, 0.0, 0.0])  # where the steering axis meets the ground
BODY, HANDLEBAR = np.array([0.3, 0.0, -0.9]), np.array([0.9, 0.0, -0.7])
MASSES = (2.0, 85.0, 4.0, 3.0)


def _inertia(xx: float, yy: float, zz: float, xz: float = 0.0) -> np.ndarray:
    return np.array([[xx, 0.0, xz], [0.0, yy, 0.0], [xz, 0.0, zz]])


INERTIAS = (
    _inertia(0.0603, 0.12, 0.0603),
    _inertia(9.2, 11.0, 2.8, 2.4),
    _inertia(0.05892, 0.06, 0.00708, -0.00756),
    _inertia(0.1405, 0.28, 0.1405),
)


def _turn(axis: int, angle: Any) -> Array:
    """The rotation about a coordinate axis."""
    c, s = jnp.cos(angle), jnp.sin(angle)
    j, k = (axis + 1) % 3, (axis + 2) % 3
    return jnp.eye(3).at[j, j].set(c).at[j, k].set(-s).at[k, j].set(s).at[k, k].set(c)


def _rotations(q: Array) -> tuple[Array, Array, Array, Array]:
    """Of rear wheel, rear frame, front frame and front wheel, from the body to space."""
    rear = _turn(2, q[3]) @ _turn(0, q[4]) @ _turn(1, q[5])
    front = rear @ _turn(1, TILT) @ _turn(2, q[6]) @ _turn(1, -TILT)
    return rear @ _turn(1, q[7]), rear, front, front @ _turn(1, q[8])


def _centres(q: Array) -> tuple[Array, Array, Array, Array]:
    """Of mass, in the same order."""
    _, rear, front, _ = _rotations(q)
    pivot = q[:3] + rear @ (PIVOT - REAR)
    return (
        q[:3],
        q[:3] + rear @ (BODY - REAR),
        pivot + front @ (HANDLEBAR - PIVOT),
        pivot + front @ (FRONT - PIVOT),
    )


def lagrangian(q: Array, v: Array, p: Parameters) -> Array:
    places, speeds = jax.jvp(_centres, (q,), (v,))
    turns, rates = jax.jvp(_rotations, (q,), (v,))
    total: Any = 0.0
    for mass, inertia, place, speed, R, dR in zip(
        MASSES, INERTIAS, places, speeds, turns, rates, strict=True
    ):
        W = R.T @ dR
        spin = jnp.array([W[2, 1], W[0, 2], W[1, 0]])
        total += mass * jnp.dot(speed, speed) / 2 + spin @ inertia @ spin / 2 + mass * GRAVITY * place[2]
    return total


def _touching(wheel: int, radius: float) -> Callable[[Array], Array]:
    """The velocity of a wheel's lowest point as a matrix: the derivative of the position of that point of the
    wheel, which turns with it."""

    def rows(q: Array) -> Array:
        R = _rotations(q)[wheel]
        axle, down = R[:, 1], jnp.array([0.0, 0.0, 1.0])
        low = down - axle * axle[2]
        mark = R.T @ (radius * low / jnp.sqrt(jnp.dot(low, low)))
        return jax.jacfwd(lambda x: _centres(x)[wheel] + _rotations(x)[wheel] @ mark)(q)

    return rows


def one_forms(q: Array, p: Parameters) -> Array:
    return jnp.concatenate([_touching(0, -REAR[2])(q), _touching(3, -FRONT[2])(q)])


@functools.cache
def system() -> System:
    return System(lagrangian, one_forms=one_forms, coordinates=NAMES)


def typical_state(speed: float = 4.6, roll_rate: float = 0.5) -> tuple[np.ndarray, np.ndarray]:
    """Upright at the benchmark's speed, with a kick that makes it roll."""
    q = np.zeros(9)
    q[2] = REAR[2]
    v = system().consistent_velocity(q, {"x": speed, "roll": roll_rate, "steer": 0.0})
    return q, np.where(np.abs(v) < 1e-15, 0.0, v)
