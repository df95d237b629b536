"""What balls that roll inside a surface share: a ball of mass m, radius r and moment of inertia I about every
diameter, with coordinates x, y, z of its middle and the quaternion u of its rotation."""

from __future__ import annotations

import jax.numpy as jnp
from jax import Array

from noslip import rotations
from noslip.system import Parameters

COORDINATES = ("x", "y", "z", *rotations.names("u"))


def lagrangian(q: Array, v: Array, p: Parameters) -> Array:
    """m |v|^2 / 2 + I |w|^2 / 2 - m g z."""
    w = rotations.body_rates(q[3:], v[3:])
    return 0.5 * (p["m"] * jnp.dot(v[:3], v[:3]) + p["I"] * jnp.dot(w, w)) - p["m"] * p["g"] * q[2]


def slip(q: Array, arm: Array) -> Array:
    """The rows of v + W x arm, shape (3, 7): the velocity of the ball's point at `arm` from its middle."""
    x, y, z = arm
    cross = jnp.array([[0.0, z, -y], [-z, 0.0, x], [y, -x, 0.0]])  # W x arm = cross @ W
    u = q[3:]
    turning = cross @ (4 / jnp.dot(u, u) * rotations.frame("space")(u).T)
    return jnp.concatenate([jnp.eye(3), turning], axis=1)


def rolling(x: Array, n: Array, r: float, W: Array) -> tuple[Array, Array]:
    """The state at x with the angular velocity W, that rolls on what it touches in the direction n."""
    u = rotations.from_euler("zxz", [0.3, 1.1, -0.4])
    v = r * jnp.cross(n, W)
    return jnp.concatenate([x, u]), jnp.concatenate([v, rotations.frame("space")(u) @ W])
