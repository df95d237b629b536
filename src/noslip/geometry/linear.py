"""Small dense linear algebra: the one place through which every little solve of the package goes.

Matrices of mechanics (mass matrix, C = mu M^-1 mu^T) are symmetric positive definite and small, so
LDL^T without pivoting is stable and, written out, has no branches: XLA, the Taylor integrator and
scalar code can all run it. Newton matrices are saddle-point matrices and need pivoting.
"""

import jax
import jax.numpy as jnp
from jax import Array

WRITTEN_OUT = 12  # above this size LAPACK is quicker to compile and to run


def spd_solve(a: Array, b: Array) -> Array:
    """Solve a x = b for symmetric positive definite `a` (n, n) and `b` (n,) or (n, k)."""
    n = a.shape[0]
    if n > WRITTEN_OUT:
        return jax.scipy.linalg.cho_solve(jax.scipy.linalg.cho_factor(a), b)
    low: list[list[Array]] = [[] for _ in range(n)]
    diagonal: list[Array] = []
    for j in range(n):
        scaled = [low[j][k] * diagonal[k] for k in range(j)]
        diagonal.append(a[j, j] - sum(low[j][k] * scaled[k] for k in range(j)))
        for i in range(j + 1, n):
            low[i].append((a[i, j] - sum(low[i][k] * scaled[k] for k in range(j))) / diagonal[j])
    y: list[Array] = []
    for i in range(n):
        y.append(b[i] - sum(low[i][k] * y[k] for k in range(i)))
    x: list[Array] = [y[0]] * n
    for i in reversed(range(n)):
        x[i] = y[i] / diagonal[i] - sum(low[k][i] * x[k] for k in range(i + 1, n))
    return jnp.stack(x)


def solve(a: Array, b: Array) -> Array:
    """Solve a x = b for a general square matrix, with partial pivoting; `b` is (n,) or (n, k)."""
    n = a.shape[0]
    if n > WRITTEN_OUT:
        return jnp.linalg.solve(a, b)
    table = jnp.column_stack([a, b])
    rows = jnp.arange(n)
    for k in range(n):  # Gauss-Jordan: after step k, column k is that of the identity
        pivot = k + jnp.argmax(jnp.abs(table[k:, k]))
        table = table[jnp.where(rows == k, pivot, jnp.where(rows == pivot, k, rows))]
        row = table[k] / table[k, k]
        table = jnp.where((rows == k)[:, None], row, table - table[:, k, None] * row)
    return table[:, n:].reshape(b.shape)


def inverse(a: Array) -> Array:
    """The inverse of a general square matrix; for iterations that use one matrix many times."""
    return solve(a, jnp.eye(a.shape[0]))
