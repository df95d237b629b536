"""Where a step is determined: the regularity condition of discrete nonholonomic equations, JS (61).

The equations JS (59), D1 L_d(q_k, q_{k+1}) + D2 L_d(q_{k-1}, q_k) = lam mu(q_k) and phi_d(q_k, q_{k+1}) = 0,
determine q_{k+1} and lam locally, and are a map of D_d, just where

    [ D1 D2 L_d(q_k, q_{k+1})   mu(q_k)^T ]
    [ D2 phi_d(q_k, q_{k+1})        0     ]                                                            (61)

is invertible. `regularity_matrix` is that matrix for any L_d and phi_d; JS proposition 5.1 says the same as
`restricted_matrix`: D1 D2 L_d between D_{q_k} and the directions that phi_d leaves to q_{k+1} (see the errata
for its printed form). `step_matrix` is the counterpart for any method: the derivative of the equations of a
step by its unknowns, which for the method of JS (59) is (61) up to factors of rows and columns. A run is
refused where it is singular at the start.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

import jax
import jax.flatten_util
import jax.numpy as jnp
import numpy as np
from jax import Array

from noslip.numerics.pytrees import PyTree
from noslip.system import System

SINGULAR = 1e-12  # ratio of singular values from which down a matrix counts as singular
Pair = Callable[[Array, Array], Array]


class StepEquations(Protocol):
    """What is asked of a method: the hooks of an implicit integrator."""

    def init(self, system: System, q: Array, v: Array, t: Array, h: Array) -> PyTree: ...
    def guess(self, system: System, state: PyTree, h: Array) -> PyTree: ...
    def scale(self, system: System, state: PyTree, guess: PyTree, h: Array) -> PyTree: ...
    def residual(self, system: System, state: PyTree, x: PyTree, h: Array) -> PyTree: ...


def regularity_matrix(L_d: Pair, phi_d: Pair, mu: Array, q0: Array, q1: Array) -> Array:
    """JS (61) at the pair (q0, q1), mu of shape (m, n) at q0; shape (n + m, n + m). Rows of the first block
    are the equations, columns the unknowns q1 and lam: its first block is d(D1 L_d)/dq1."""
    D = jax.jacfwd(jax.grad(L_d, 0), 1)(q0, q1)
    slope = jax.jacfwd(phi_d, 1)(q0, q1)
    return jnp.block([[D, mu.T], [slope, jnp.zeros((len(mu), len(mu)))]])


def restricted_matrix(L_d: Pair, phi_d: Pair, mu: Array, q0: Array, q1: Array) -> np.ndarray:
    """The form of JS proposition 5.1: v . D1 D2 L_d . w for bases v of ker mu and w of ker D2 phi_d.
    It is singular just where (61) is."""
    both = jax.jit(lambda *pair: (jax.jacfwd(jax.grad(L_d, 0), 1)(*pair), jax.jacfwd(phi_d, 1)(*pair)))
    D, slope = map(np.asarray, both(q0, q1))
    return _kernel(np.asarray(mu)).T @ D @ _kernel(slope)


def step_matrix(system: System, method: StepEquations, q: Array, v: Array, t: Array, h: Array) -> Array:
    """The derivative of a step's equations by its unknowns at the initial guess from the state (q, v);
    unknowns in units of their own size, equations in units of their largest entry."""
    state = method.init(system, q, v, t, h)
    guess = method.guess(system, state, h)
    flat, unravel = jax.flatten_util.ravel_pytree(guess)
    size = jax.flatten_util.ravel_pytree(method.scale(system, state, guess, h))[0]

    def residual(x: Array) -> Array:
        return jax.flatten_util.ravel_pytree(method.residual(system, state, unravel(x), h))[0]

    scaled = jax.jacfwd(residual)(flat) * jnp.where(size > 0, size, 1.0)
    return scaled / jnp.maximum(jnp.max(jnp.abs(scaled), axis=1, keepdims=True), 1e-300)


def small_singular_values(matrix: np.ndarray) -> np.ndarray:
    """All singular values if the smallest says that the matrix is singular, else none."""
    if not np.all(np.isfinite(matrix)):
        return np.full(min(matrix.shape), np.nan)
    values = np.linalg.svd(matrix, compute_uv=False)
    return values if values.size and values[-1] <= SINGULAR * values[0] else values[:0]


def _kernel(matrix: np.ndarray) -> np.ndarray:
    """An orthonormal basis of the kernel of a matrix of full rank, as columns."""
    return np.linalg.svd(matrix, full_matrices=True)[2][len(matrix) :].T
