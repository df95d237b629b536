"""Small dense linear algebra: the one place through which every little solve of the package goes.

Matrices of mechanics (mass matrix, C = mu M^-1 mu^T) are symmetric positive definite and small, so
LDL^T without pivoting is stable and, written out, has no branches: XLA, the Taylor integrator and
scalar code can all run it. Newton matrices are saddle-point matrices and need pivoting.

A solve is one operation of JAX, `small_solve`, so that the engine sees it whole and puts scalar code in its
place, its derivative is another solve instead of that of an elimination, and many right sides share a matrix.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax
from jax.extend.core import Primitive
from jax.interpreters import ad, batching, mlir

from noslip.numerics.tracing import is_traced

NEARLY = 1e-2  # the sine of an angle; its inverse squared is what the condition of C costs
WRITTEN_OUT = 12  # above this size LAPACK is quicker to compile and to run


def spd_solve(a: Array, b: Array) -> Array:
    """Solve a x = b for symmetric positive definite `a` (n, n) and `b` (n,) or (n, k)."""
    return _solve(a, b, True)


def solve(a: Array, b: Array) -> Array:
    """Solve a x = b for a general square matrix, with partial pivoting; `b` is (n,) or (n, k)."""
    return _solve(a, b, False)


def inverse(a: Array) -> Array:
    """The inverse of a general square matrix; for iterations that use one matrix many times."""
    return solve(a, jnp.eye(a.shape[-1]))


def solver(a: Array, sizes: Array) -> Callable[[Array], Array]:
    """y -> a^-1 y for a general square matrix and vectors, in iterations that use one matrix many times. In
    scalar programs a matrix with many known zeros is eliminated once, and what comes of that is no number
    where it is not accurate for unknowns of these `sizes`; everywhere else it is the inverse that is used."""
    found = inverse(a)
    return lambda y: solve_again_p.bind(a, found, sizes, y)


def value_and_jacobian(f: Callable[[Array], Array], x: Array) -> tuple[Array, Array]:
    """f and df/dx, column by column in a loop: for places that run rarely, where small code matters most. Of
    a `jvp` the part without the direction leaves the loop; to linearize would take several times as long. A
    column with an infinite entry is no number: a quotient by infinity is 0, and Newton's method would think
    that it is done."""

    def column(e: Array) -> Array:
        found = jax.jvp(f, (x,), (e,))[1]
        return jnp.where(jnp.isfinite(jnp.sum(found)), found, jnp.nan)

    return f(x), lax.map(column, jnp.eye(x.size)).T


def orthogonal_rows(mu: Array) -> tuple[Array, Array]:
    """Orthonormal rows T mu, and T: Gram and Schmidt's process, twice, which is enough."""
    m = mu.shape[0]
    rows = jnp.column_stack([mu, jnp.eye(m)])
    for _ in range(2):
        done: list[Array] = []
        for k in range(m):
            row = rows[k]
            for unit in done:
                row = row - jnp.dot(row[:-m], unit[:-m]) * unit
            done.append(row / jnp.sqrt(jnp.dot(row[:-m], row[:-m])))
        rows = jnp.stack(done)
    return rows[:, :-m], rows[:, -m:]


def independence(mu: Array) -> Array:
    """Positive where the rows are surely not `nearly_parallel`: the volume of m unit vectors is at most
    sigma_min / sigma_max times m^(m/2)."""
    m, volume = len(mu), jnp.ones(())
    done: list[Array] = []
    for k in range(m):
        row = mu[k] / jnp.sqrt(jnp.dot(mu[k], mu[k]))
        for unit in done:
            row = row - jnp.dot(row, unit) * unit
        length = jnp.sqrt(jnp.dot(row, row))
        done.append(row / length)
        volume = volume * length
    return volume / float(m) ** (m / 2) - NEARLY


def nearly_parallel(mu: np.ndarray) -> bool:
    """Whether in one of these matrices (..., m, n) a row is so nearly a combination of the others that
    mu M^-1 mu^T would cost digits; one that is not finite does not count."""
    mu = mu[np.isfinite(mu).all(axis=(-2, -1))]
    if mu.shape[-2] < 2:
        return False
    values = np.linalg.svd(mu / np.linalg.norm(mu, axis=-1, keepdims=True), compute_uv=False)
    return bool((values[..., -1] < NEARLY * values[..., 0]).any())


def _solve(a: Array, b: Array, spd: bool) -> Array:
    if is_traced(a, b):
        return _one_operation(a, b, spd)
    return _compiled(np.asarray(a, float), np.asarray(b, float), spd)


def _one_operation(a: Array, b: Array, spd: bool) -> Array:
    a, b = jnp.asarray(a, float), jnp.asarray(b, float)
    if b.size == 0:  # no unknowns or no right sides
        return b
    return small_solve_p.bind(a, b.reshape(len(b), -1), spd=spd).reshape(b.shape)


_compiled = jax.jit(_one_operation, static_argnums=2)  # of numbers: one compilation in place of four


# ---- the algorithms, written out ----------------------------------------------------------------------
def written_out(a: Array, b: Array, spd: bool) -> Array:
    """a^-1 b as plain operations; leading axes, if any, count many such pairs."""
    algorithm = _ldl if spd else _gauss_jordan
    for _ in a.shape[2:]:
        algorithm = jax.vmap(algorithm)
    return algorithm(a, b)


def _ldl(a: Array, b: Array) -> Array:
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


def _gauss_jordan(a: Array, b: Array) -> Array:
    n = a.shape[0]
    if n > WRITTEN_OUT:
        return jnp.linalg.solve(a, b)
    table = jnp.column_stack([a, b])
    rows = jnp.arange(n)
    for k in range(n):  # after step k, column k is that of the identity
        pivot = k + jnp.argmax(jnp.abs(table[k:, k]))
        table = table[jnp.where(rows == k, pivot, jnp.where(rows == pivot, k, rows))]
        row = table[k] / table[k, k]
        table = jnp.where((rows == k)[:, None], row, table - table[:, k, None] * row)
    return table[:, n:]


# ---- the operation ------------------------------------------------------------------------------------
small_solve_p = Primitive("small_solve")


def _derivative(primals: Any, tangents: Any, *, spd: bool) -> tuple[Array, Any]:
    """d(a^-1 b) = a^-1 (db - da a^-1 b)."""
    (a, b), (da, db) = primals, tangents
    x = small_solve_p.bind(a, b, spd=spd)
    if type(da) is ad.Zero and type(db) is ad.Zero:
        return x, jnp.zeros_like(x)
    change = jnp.zeros_like(x) if type(db) is ad.Zero else db
    if type(da) is not ad.Zero:
        change = change - da @ x
    return x, small_solve_p.bind(a, change, spd=spd)


def _transpose(cotangent: Any, a: Array, b: Any, *, spd: bool) -> list[Any]:
    if type(cotangent) is ad.Zero:
        return [None, ad.Zero(b.aval)]
    return [None, small_solve_p.bind(jnp.swapaxes(a, -1, -2), cotangent, spd=spd)]


def _batch(args: Any, axes: Any, *, spd: bool) -> tuple[Array, int]:
    (a, b), (ia, ib) = args, axes
    if ia is None and a.ndim == 2:  # one matrix, many right sides: columns of one solve
        columns = jnp.moveaxis(b, ib, 1)
        x = small_solve_p.bind(a, columns.reshape(len(a), -1), spd=spd)
        return x.reshape(columns.shape), 1
    size = next(x.shape[i] for x, i in zip(args, axes, strict=True) if i is not None)
    first = [
        jnp.broadcast_to(x, (size, *x.shape)) if i is None else jnp.moveaxis(x, i, 0)
        for x, i in ((a, ia), (b, ib))
    ]
    return small_solve_p.bind(*first, spd=spd), 0


@small_solve_p.def_abstract_eval
def _shape(a: Any, b: Any, *, spd: bool) -> Any:
    return b


small_solve_p.def_impl(partial(jax.jit, static_argnames="spd")(written_out))
mlir.register_lowering(small_solve_p, mlir.lower_fun(written_out, multiple_results=False))
ad.primitive_jvps[small_solve_p] = _derivative
ad.primitive_transposes[small_solve_p] = _transpose
batching.primitive_batchers[small_solve_p] = _batch

# ---- the same matrix again ----------------------------------------------------------------------------
solve_again_p = Primitive("solve_again")


def _by_inverse(a: Array, found: Array, sizes: Array, y: Array) -> Array:
    return found @ y


def _batch_again(args: Any, axes: Any) -> tuple[Array, int]:
    return jax.vmap(_by_inverse, axes)(*args), 0


@solve_again_p.def_abstract_eval
def _shape_again(a: Any, found: Any, sizes: Any, y: Any) -> Any:
    return y


solve_again_p.def_impl(jax.jit(_by_inverse))
mlir.register_lowering(solve_again_p, mlir.lower_fun(_by_inverse, multiple_results=False))
batching.primitive_batchers[solve_again_p] = _batch_again
