"""Rotations as quaternions u = (u0, u1, u2, u3), scalar first: u stands for the rotation of u / |u|, from
body to space, and -u for the same.

A system with `rotations=("u",)` has these four as coordinates, named by `names("u")`. All functions here take
any u but zero and give what they give for u / |u|; du is then the velocity of u. With A = matrix(u), W the
angular velocity in space and w = A^T W that in the body,

    dA/dt = A [w]x,      du = u w / 2 = W u / 2   as products of quaternions

A body that rolls on the plane z = 0 touches it at the point contact(gamma) of body axes, seen from its mass
centre, gamma = A^T e_z being the vertical there. Its centre is at `height` -gamma . contact above the plane,
and the point that touches moves with v + W x a, a = A contact.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import Array

from noslip.errors import shown

AXES = "xyz"
Contact = Callable[[Array], Array]
_written: ContextVar[tuple[Array, str] | None] = ContextVar("written", default=None)


@contextlib.contextmanager
def written(A: Array, axes: str) -> Iterator[None]:
    """For what writes formulas down: in here every u is the rotation A, and its velocity is (0, rates / 2),
    rates about the given axes. So the functions below that know u by its matrix and its rates alone give
    formulas in these; what reads u in another way gives nonsense, which its writer must find."""
    token = _written.set((A, axes))
    try:
        yield
    finally:
        _written.reset(token)


def names(name: str) -> tuple[str, str, str, str]:
    """The coordinates of a rotation: names("u") is ("u0", "u1", "u2", "u3")."""
    return f"{name}0", f"{name}1", f"{name}2", f"{name}3"


def compose(first: Any, *others: Any) -> Array:
    """The product of quaternions: compose(a, b) turns by b, then by a."""
    product = jnp.asarray(first, float)
    for other in others:
        (a, x), y = (product[0], product[1:]), jnp.asarray(other, float)
        b, y = y[0], y[1:]
        product = jnp.concatenate([(a * b - jnp.dot(x, y))[None], a * y + b * x + jnp.cross(x, y)])
    return product


def matrix(u: Any) -> Array:
    """A of shape (3, 3): space = A body."""
    if (shown_as := _written.get()) is not None:
        return shown_as[0]
    a, b, c, d = jnp.asarray(u, float)
    rows = [
        [a * a + b * b - c * c - d * d, 2 * (b * c - a * d), 2 * (b * d + a * c)],
        [2 * (b * c + a * d), a * a - b * b + c * c - d * d, 2 * (c * d - a * b)],
        [2 * (b * d - a * c), 2 * (c * d + a * b), a * a - b * b - c * c + d * d],
    ]
    return jnp.array(rows) / (a * a + b * b + c * c + d * d)


def frame(axes: str) -> Callable[[Any], Array]:
    """The function of u whose value, of shape (4, 3), has as columns the du of unit rates about the axes of
    the "body" or of "space"; du = frame(axes)(u) @ rates."""
    if axes not in ("body", "space"):
        raise ValueError(f"`axes` must be 'body' or 'space', but {shown(axes)} was provided")
    s = 1.0 if axes == "body" else -1.0

    def columns(u: Any) -> Array:
        if (shown_as := _written.get()) is not None:
            A, given = shown_as
            turned = jnp.eye(3) if axes == given else A.T if axes == "space" else A
            return jnp.concatenate([jnp.zeros((1, 3)), turned]) / 2
        a, b, c, d = jnp.asarray(u, float)
        rows = [[-b, -c, -d], [a, -s * d, s * c], [s * d, a, -s * b], [-s * c, s * b, a]]
        return jnp.array(rows) / 2

    return columns


def body_rates(u: Any, du: Any) -> Array:
    """The angular velocity w in body axes."""
    return _rates("body", u, du)


def space_rates(u: Any, du: Any) -> Array:
    """The angular velocity W in space."""
    return _rates("space", u, du)


def _rates(axes: str, u: Any, du: Any) -> Array:
    u = jnp.asarray(u, float)
    return 4 / jnp.dot(u, u) * (frame(axes)(u).T @ jnp.asarray(du, float))


def from_rates(u: Any, w: Any) -> Array:
    """du of the angular velocity w in body axes."""
    return frame("body")(u) @ jnp.asarray(w, float)


def from_axis(axis: Any, angle: Any) -> Array:
    """The rotation by an angle about an axis of any length."""
    axis = jnp.asarray(axis, float)
    if axis.shape != (3,):
        raise ValueError(f"`axis` must have shape (3,), but {axis.shape} was provided")
    half = jnp.asarray(angle, float) / 2
    return jnp.concatenate([jnp.cos(half)[None], jnp.sin(half) * axis / jnp.sqrt(jnp.dot(axis, axis))])


def from_euler(sequence: str, angles: Any) -> Array:
    """The rotation by Euler angles about axes that turn with the body: A = A_1 A_2 ..., as "zxz" or "zyx"."""
    angles = jnp.asarray(angles, float)
    if not sequence or set(sequence) - set(AXES) or angles.shape != (len(sequence),):
        raise ValueError(
            f"`sequence` must be letters x, y, z with as many `angles`, but {shown(sequence)} and "
            f"{angles.size} were provided"
        )
    turns = [from_axis(np.eye(3)[AXES.index(x)], a) for x, a in zip(sequence, angles, strict=True)]
    return compose(*turns)


def from_matrix(A: Any) -> Array:
    """The unit quaternion of a rotation matrix, its largest component positive."""
    A = jnp.asarray(A, float)
    if A.shape != (3, 3):
        raise ValueError(f"`A` must have shape (3, 3), but {A.shape} was provided")
    t, odd, even = jnp.trace(A), A - A.T, A + A.T
    x, y, z = odd[2, 1], odd[0, 2], odd[1, 0]
    rows = [  # each is 4 u_i u, all of one quaternion
        [1 + t, x, y, z],
        [x, 1 - t + 2 * A[0, 0], even[0, 1], even[0, 2]],
        [y, even[0, 1], 1 - t + 2 * A[1, 1], even[1, 2]],
        [z, even[0, 2], even[1, 2], 1 - t + 2 * A[2, 2]],
    ]
    table = jnp.array(rows)
    best = table[jnp.argmax(jnp.diagonal(table))]
    return best / jnp.sqrt(jnp.dot(best, best))


def height(contact: Contact) -> Callable[[Any], Array]:
    """The function of u that is the height of the mass centre of a body that touches the plane z = 0."""

    def above(u: Any) -> Array:
        gamma = matrix(u)[2]
        return -jnp.dot(gamma, contact(gamma))

    return above


def rolling(contact: Contact) -> Callable[[Any], Array]:
    """The function of u whose value B, of shape (3, 4), says how the point that touches moves: with v + B du.
    Its last row is that of z - height(u)."""

    def moved(u: Any) -> Array:
        u = jnp.asarray(u, float)
        A = matrix(u)
        x, y, z = A @ contact(A[2])
        cross = jnp.array([[0.0, z, -y], [-z, 0.0, x], [y, -x, 0.0]])  # W x a = cross @ W
        return cross @ (4 / jnp.dot(u, u) * frame("space")(u).T)

    return moved
