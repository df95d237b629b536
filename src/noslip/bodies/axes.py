"""Axes that move: where they are and how they turn.

A point of a body is given by its place x in the body's axes. With A from these to space, r the place in
space of one point o, v its velocity and w the angular velocity of the body in its own axes,

    place(x) = r + A (x - o),      velocity(x) = v + A (w x (x - o)) .
"""

from __future__ import annotations

from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jax import Array

from noslip.numerics.tracing import Real, Values

PRODUCT = np.cross(np.eye(3)[:, None], np.eye(3)[None])  # PRODUCT[i, j] = e_i x e_j


def cross(a: Values, b: Values) -> Values:
    """The vector product, as few operations on arrays."""
    if isinstance(a, np.ndarray) and isinstance(b, np.ndarray):
        return np.cross(a, b)
    if isinstance(a, np.ndarray):
        return b @ np.tensordot(a, PRODUCT, 1)
    return a @ (np.tensordot(PRODUCT, b, (1, 0)) if isinstance(b, np.ndarray) else _turned(b))


def _turned(b: Array) -> Array:
    """The matrix with rows e_i x b."""
    return jnp.tensordot(jnp.asarray(PRODUCT), b, (1, 0))


def about(axis: tuple[float, float, float], angle: Real) -> Values:
    """The matrix of a rotation about a unit vector."""
    a = np.array(axis)
    along, x = np.outer(a, a), np.cross(np.eye(3), a)
    return along + jnp.cos(angle) * (np.eye(3) - along) + jnp.sin(angle) * x


class Axes(NamedTuple):
    """Those of a body, or others in which a body turns."""

    A: Values
    r: Values
    o: Values
    w: Values
    v: Values

    def place(self, x: Values) -> Values:
        """Of a point of the body, in space."""
        return self.r + self.A @ (x - self.o) if _differ(x, self.o) else self.r

    def velocity(self, x: Values) -> Values:
        """Of a point of the body, in space."""
        return self.v + self.A @ cross(self.w, x - self.o) if _differ(x, self.o) else self.v

    def velocity_there(self, place: Values) -> Values:
        """Of the point of the body that is at a place in space."""
        return self.v + cross(self.spin, place - self.r)

    def seen(self, place: Values) -> Values:
        """A place in space, in these axes."""
        return self.o + self.A.T @ (place - self.r)

    @property
    def spin(self) -> Values:
        """The angular velocity in space."""
        return self.A @ self.w


def _differ(x: Values, y: Values) -> bool:
    """Whether two points may differ."""
    known = isinstance(x, np.ndarray) and isinstance(y, np.ndarray)
    return not known or bool(np.any(x != y))


GROUND = Axes(np.eye(3), np.zeros(3), np.zeros(3), np.zeros(3), np.zeros(3))
