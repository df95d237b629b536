"""Frames of D: matrices X(q) of shape (n, r), r = n - m, whose columns span the admissible velocities.

- "system": the analytic frame of the system; where it has none, "householder". (The energy methods then use
  no frame at all, see `frame_free`.)
- "householder": the last r columns of Q in the Householder factorisation mu^T = Q R, CFHM Algorithm 1
  with A = mu^T. Its sign choices s are data of the frame, so that every point of a step sees the same
  vector fields; `renewed_signs` changes one where |w~| < |r| / 2, which may happen between steps only.
- "orthonormal": either of them made M-orthonormal by Gram and Schmidt, X^T M X = I.
- "coordinates": X = I without regard to the constraints, by which D* becomes the whole of T*Q.

Derivatives of a frame are those of the algorithm (CFHM's forward differentiation is what JAX does), or
central differences, CFHM remark 3.5; their steps are the displacements of a time step (`displacements`), so
that they are of second order in it whatever the units.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import jax
import jax.numpy as jnp
from jax import Array

from noslip.system import System
from noslip.system.derived import value

FRAMES = ("system", "householder", "orthonormal")
DERIVATIVES = ("exact", "finite_difference")


@dataclass(frozen=True)
class Frame:
    """A frame of a system by name; `difference` has the steps of central differences, None for exact."""

    system: System
    name: str = "system"
    signs: Array | None = None
    difference: Array | None = None

    @property
    def orthonormal(self) -> bool:
        return self.name == "orthonormal"

    def __call__(self, q: Array) -> Array:
        """X(q)."""
        if self.name == "coordinates":
            return jnp.eye(self.system.n)
        if uses_signs(self.system, self.name):
            signs = initial_signs(self.system, q) if self.signs is None else self.signs
            X = householder(self.system.mu(q, jnp.zeros_like(q)).T, signs)
        else:
            X = value(self.system, "frame", q)
        return orthonormalized(X, self.system.mass_matrix(q)) if self.orthonormal else X

    def around(self, q: Array) -> Callable[[Array], Array]:
        """The frame as a function to be differentiated at q, and nowhere else."""
        signs = self.signs
        if signs is None and uses_signs(self.system, self.name):
            signs = initial_signs(self.system, q)
        fixed = Frame(self.system, self.name, signs)
        if self.difference is None:
            return fixed
        steps = jnp.broadcast_to(self.difference, q.shape)
        there, back = jax.vmap(fixed)(q + jnp.diag(steps)), jax.vmap(fixed)(q - jnp.diag(steps))
        slopes = (there - back) / (2 * steps[:, None, None])
        X = fixed(q)
        return lambda x: X + jnp.tensordot(x - q, slopes, 1)


def displacements(system: System, q: Array, d: Array) -> Array:
    """How far each coordinate alone would move in a step as long as d in the kinetic metric: in the unit of
    each, and the same for d and -d. Where nothing moves no derivative of a frame is felt, and 1 will do."""
    M = system.mass_matrix(q)
    steps = jnp.sqrt(jnp.dot(d, M @ d) / jnp.diagonal(M))
    return jnp.where(steps > 0, steps, 1.0)


def uses_signs(system: System, name: str) -> bool:
    """Whether the frame of that name comes from Householder's algorithm."""
    return name == "householder" or (system.frame is None and name != "coordinates")


def householder(A: Array, signs: Array) -> Array:
    """The last n - m columns of Q in A = Q R, A of shape (n, m); CFHM Algorithm 1."""
    return _factorize(A, signs, keep=True)[0]


def null_basis(mu: Array) -> Array:
    """The frame of Algorithm 1 with the signs that avoid cancellation: a basis of the v with mu v = 0."""
    return _factorize(mu.T, jnp.zeros(len(mu)), keep=False)[0]


def initial_signs(system: System, q: Array) -> Array:
    """The choices that avoid cancellation at q: each s has the sign of what it is added to."""
    A = system.mu(q, jnp.zeros_like(q)).T
    return _factorize(A, jnp.zeros(A.shape[1]), keep=False)[1]


def renewed_signs(system: System, q: Array, signs: Array) -> Array:
    """The signs for the next step: as they were, but turned where |w~| < |r| / 2."""
    return _factorize(system.mu(q, jnp.zeros_like(q)).T, signs, keep=False)[1]


def _factorize(A: Array, signs: Array, keep: bool) -> tuple[Array, Array]:
    """X and the signs used; unless `keep`, those that cancel (or are 0) are turned first."""
    n, m = A.shape
    R, Q, used = A, jnp.eye(n), []
    for k in range(m):
        r = jnp.where(jnp.arange(n) >= k, R[:, k], 0.0)
        length, s = jnp.sqrt(jnp.dot(r, r)), signs[k]
        if not keep:
            # |w~|^2 = 2 |r| (|r| + s r_k), which is below |r|^2 / 4 where s r_k < -7/8 |r|
            best = jnp.where(r[k] >= 0, 1.0, -1.0)
            s = jnp.where((s == 0) | (s * r[k] < -0.875 * length), best, s)
        used.append(s)
        w = r + jnp.where(jnp.arange(n) == k, s * length, 0.0)  # w~
        factor = 1 / (length * (length + s * r[k]))  # 2 / |w~|^2
        R = R - factor * jnp.outer(w, w @ R)
        Q = Q - factor * jnp.outer(Q @ w, w)
    return Q[:, m:], jnp.stack(used) if used else signs


def orthonormalized(X: Array, M: Array) -> Array:
    """The columns of X made orthonormal in the metric M, in their order."""
    MX = M @ X
    columns: list[Array] = []
    images: list[Array] = []
    for j in range(X.shape[1]):
        x, y = X[:, j], MX[:, j]
        for u, w in zip(columns, images, strict=True):
            c = jnp.dot(u, y)
            x, y = x - c * u, y - c * w
        size = 1 / jnp.sqrt(jnp.dot(x, y))
        columns.append(size * x)
        images.append(size * y)
    return jnp.stack(columns, axis=1)
