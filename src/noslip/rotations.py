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
import functools
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from types import ModuleType
from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import Array
from numpy.typing import ArrayLike

from noslip.errors import shown
from noslip.numerics.tracing import Values, has_tracers

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


def _computed(formula: Callable[..., Values], *values: Any) -> Array:
    """formula(xp, *values): with jax.numpy where JAX traces a value, else with NumPy, since of numbers JAX
    would compile each of dozens of small operations by itself."""
    if has_tracers(values):
        return jnp.asarray(formula(jnp, *(jnp.asarray(x, float) for x in values)))
    with np.errstate(all="ignore"):
        return jnp.asarray(formula(np, *(np.asarray(x, float) for x in values)))


def compose(first: ArrayLike, *others: Any) -> Array:
    """The product of quaternions: compose(a, b) turns by b, then by a."""
    return _computed(lambda xp, *all_of_them: functools.reduce(_product(xp), all_of_them), first, *others)


def _product(xp: ModuleType) -> Callable[[Values, Values], Values]:
    def times(u: Values, w: Values) -> Values:
        (a, x), (b, y) = (u[0], u[1:]), (w[0], w[1:])
        return xp.concatenate([(a * b - xp.dot(x, y))[None], a * y + b * x + xp.cross(x, y)])

    return times


def matrix(u: ArrayLike) -> Array:
    """A of shape (3, 3): space = A body."""
    if (shown_as := _written.get()) is not None:
        return shown_as[0]
    return _computed(_matrix, u)


def _matrix(xp: ModuleType, u: Values) -> Values:
    a, b, c, d = u
    rows = [
        [a * a + b * b - c * c - d * d, 2 * (b * c - a * d), 2 * (b * d + a * c)],
        [2 * (b * c + a * d), a * a - b * b + c * c - d * d, 2 * (c * d - a * b)],
        [2 * (b * d - a * c), 2 * (c * d + a * b), a * a - b * b - c * c + d * d],
    ]
    return xp.array(rows) / (a * a + b * b + c * c + d * d)


def frame(axes: str) -> Callable[[ArrayLike], Array]:
    """The function of u whose value, of shape (4, 3), has as columns the du of unit rates about the axes of
    the "body" or of "space"; du = frame(axes)(u) @ rates."""
    if axes not in ("body", "space"):
        raise ValueError(f"`axes` must be 'body' or 'space', but {shown(axes)} was provided")
    s = 1.0 if axes == "body" else -1.0

    def formula(xp: ModuleType, u: Values) -> Values:
        a, b, c, d = u
        return xp.array([[-b, -c, -d], [a, -s * d, s * c], [s * d, a, -s * b], [-s * c, s * b, a]]) / 2

    def columns(u: ArrayLike) -> Array:
        if (shown_as := _written.get()) is not None:
            A, given = shown_as
            turned = jnp.eye(3) if axes == given else A.T if axes == "space" else A
            return jnp.concatenate([jnp.zeros((1, 3)), turned]) / 2
        return _computed(formula, u)

    return columns


def body_rates(u: ArrayLike, du: ArrayLike) -> Array:
    """The angular velocity w in body axes."""
    return _rates("body", u, du)


def space_rates(u: ArrayLike, du: ArrayLike) -> Array:
    """The angular velocity W in space."""
    return _rates("space", u, du)


def _rates(axes: str, u: ArrayLike, du: ArrayLike) -> Array:
    return _computed(lambda xp, X, u, du: 4 / xp.dot(u, u) * (X.T @ du), frame(axes)(u), u, du)


def from_rates(u: ArrayLike, w: ArrayLike) -> Array:
    """du of the angular velocity w in body axes."""
    return _computed(lambda xp, X, w: X @ w, frame("body")(u), w)


def from_axis(axis: ArrayLike, angle: ArrayLike) -> Array:
    """The rotation by an angle about an axis of any length."""
    return _computed(_about, axis, angle)


def _about(xp: ModuleType, axis: Values, angle: Values) -> Values:
    if axis.shape != (3,):
        raise ValueError(f"`axis` must have shape (3,), but {axis.shape} was provided")
    half = angle / 2
    return xp.concatenate([xp.cos(half)[None], xp.sin(half) * axis / xp.sqrt(xp.dot(axis, axis))])


def from_euler(sequence: str, angles: ArrayLike) -> Array:
    """The rotation by Euler angles about axes that turn with the body: A = A_1 A_2 ..., as "zxz" or "zyx"."""

    def formula(xp: ModuleType, angles: Values) -> Values:
        if not sequence or set(sequence) - set(AXES) or angles.shape != (len(sequence),):
            raise ValueError(
                f"`sequence` must be letters x, y, z with as many `angles`, but {shown(sequence)} and "
                f"{angles.size} were provided"
            )
        turns = [_about(xp, np.eye(3)[AXES.index(x)], a) for x, a in zip(sequence, angles, strict=True)]
        return functools.reduce(_product(xp), turns)

    return _computed(formula, angles)


def from_matrix(A: ArrayLike) -> Array:
    """The unit quaternion of a rotation matrix, its largest component positive."""
    return _computed(_quaternion, A)


def _quaternion(xp: ModuleType, A: Values) -> Values:
    if A.shape != (3, 3):
        raise ValueError(f"`A` must have shape (3, 3), but {A.shape} was provided")
    t, odd, even = xp.trace(A), A - A.T, A + A.T
    x, y, z = odd[2, 1], odd[0, 2], odd[1, 0]
    rows = [  # each is 4 u_i u, all of one quaternion
        [1 + t, x, y, z],
        [x, 1 - t + 2 * A[0, 0], even[0, 1], even[0, 2]],
        [y, even[0, 1], 1 - t + 2 * A[1, 1], even[1, 2]],
        [z, even[0, 2], even[1, 2], 1 - t + 2 * A[2, 2]],
    ]
    table = xp.array(rows)
    best = table[xp.argmax(xp.diagonal(table))]
    return best / xp.sqrt(xp.dot(best, best))


def height(contact: Contact) -> Callable[[ArrayLike], Array]:
    """The function of u that is the height of the mass centre of a body that touches the plane z = 0."""

    def above(u: ArrayLike) -> Array:
        gamma = _vertical(matrix(u))
        return _computed(lambda xp, gamma, a: -xp.dot(gamma, a), gamma, contact(gamma))

    return above


def rolling(contact: Contact) -> Callable[[ArrayLike], Array]:
    """The function of u whose value B, of shape (3, 4), says how the point that touches moves: with v + B du.
    Its last row is that of z - height(u)."""

    def moved(u: ArrayLike) -> Array:
        A = matrix(u)
        return _computed(formula, A, contact(_vertical(A)), frame("space")(u), u)

    def formula(xp: ModuleType, A: Values, a: Values, X: Values, u: Values) -> Values:
        x, y, z = A @ a
        cross = xp.array([[0.0, z, -y], [-z, 0.0, x], [y, -x, 0.0]])  # W x a = cross @ W
        return cross @ (4 / xp.dot(u, u) * X.T)

    return moved


def _vertical(A: ArrayLike) -> Array:
    """gamma."""
    return _computed(lambda _, A: A[2], A)
