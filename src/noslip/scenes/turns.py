"""Rotations that scenes often need, as quaternions with the scalar first."""

from __future__ import annotations

import jax.numpy as jnp
from jax import Array
from numpy.typing import ArrayLike

from noslip.numerics.tracing import Real
from noslip.rotations import from_axis, from_euler

TINY = 1e-12


def heading(angle: Real) -> Array:
    """Turned about the vertical, from the x axis towards the y axis."""
    return from_axis((0.0, 0.0, 1.0), angle)


def wheel(angle: Real, spin: Real) -> Array:
    """Of a cylinder as a wheel that stands upright and heads that way; a growing spin rolls it forwards."""
    return from_euler("zxz", jnp.stack([jnp.asarray(angle, float), jnp.asarray(-0.5 * jnp.pi), spin]))


def along(start: ArrayLike, end: ArrayLike) -> tuple[Array, Array]:
    """The shortest rotation that brings the z axis into the direction from start to end, and their
    distance: for rods, springs and cones between two points."""
    d = jnp.asarray(end, float) - jnp.asarray(start, float)
    length = jnp.sqrt(jnp.dot(d, d))
    x, y, z = d / jnp.maximum(length, TINY)
    turn = jnp.stack([1 + z, -y, x, jnp.zeros(())])
    over = jnp.array([0.0, 1.0, 0.0, 0.0])  # straight down: half a turn about x
    return jnp.where(1 + z < TINY, over, turn), length
