"""The implicit solve: Newton's method run until its increments stagnate at round-off.

A chord iteration (one Jacobian, at the guess) does the work of almost every step; where it does not
settle, full Newton goes on from there. Nothing is dropped: each solve returns its record.
Derivatives come from the implicit function theorem, not from the iteration.
"""

from __future__ import annotations

import enum
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax
from jax.flatten_util import ravel_pytree

from noslip._pytree import pytree
from noslip.geometry import linear

EPS = float(np.finfo(float).eps)
SETTLED = 2 * EPS  # an increment this small, relative to the scale, changes nothing any more
ACCEPTED = 1e-9  # stagnation above this is not round-off but a failed solve
FAR = 1e-6  # above this an increment need not shrink from one iteration to the next
LIMIT = 50  # iterations


class Status(enum.IntEnum):
    """How a solve ended; the text of a failed one is advice to the user."""

    SOLVED = 0
    NOT_CONVERGED = 1
    NOT_FINITE = 2

    @property
    def message(self) -> str:
        return _MESSAGES[self]


_MESSAGES = {
    Status.SOLVED: "solved",
    Status.NOT_CONVERGED: "the implicit equations did not converge; try a smaller step_size",
    Status.NOT_FINITE: (
        "the step produced NaN or infinity; the motion may have reached a singular point of the "
        "coordinates, or step_size may be too large"
    ),
}


@pytree
class Solve:
    """Record of one solve. `increment` is the last one, relative to the scale of the unknowns;
    `residual` is what that increment removed."""

    iterations: Array
    increment: Array
    residual: Array
    status: Array


@pytree
class _Iteration:
    x: Array
    inverse: Array  # of the Jacobian, at the guess or, when `newton`, at every x
    newton: Array
    count: Array
    size: Array
    before: Array
    residual: Array


def solve(residual: Callable[[Any], Any], guess: Any, scale: Any) -> tuple[Any, Solve]:
    """Solve residual(x) = 0 for a pytree x, from `guess`."""
    x0, unravel = ravel_pytree(guess)
    sizes = lax.stop_gradient(ravel_pytree(scale)[0])
    sizes = jnp.where(sizes > 0, sizes, 1.0)

    def flat(x: Array) -> Array:
        return ravel_pytree(residual(unravel(x)))[0]

    def linear_solve(f: Callable[[Array], Array], y: Array) -> Array:
        return linear.inverse(jax.jacfwd(f)(jnp.zeros_like(y))) @ y

    x, record = lax.custom_root(flat, x0, lambda f, x: _newton(f, x, sizes), linear_solve, has_aux=True)
    counts = [jnp.round(c).astype(int) for c in (record.iterations, record.status)]
    return unravel(x), Solve(counts[0], record.increment, record.residual, counts[1])


def _newton(f: Callable[[Array], Array], x0: Array, sizes: Array) -> tuple[Array, Solve]:
    def refreshed(it: _Iteration) -> Array:
        # a loop of one turn or none: under vmap it runs only if some member needs it
        def turn(_: tuple[Array, Array]) -> tuple[Array, Array]:
            return linear.inverse(jax.jacfwd(f)(it.x)), jnp.array(False)

        return lax.while_loop(lambda c: c[1], turn, (it.inverse, it.newton | (it.count == 0)))[0]

    def iterate(it: _Iteration) -> _Iteration:
        inverse, r = refreshed(it), f(it.x)
        dx = inverse @ r
        size = jnp.max(jnp.abs(dx) / (sizes + jnp.abs(it.x)))
        # a chord whose increments stop shrinking above round-off is given up: Newton goes on, from the
        # guess if the chord has jumped away
        crawled = ~it.newton & ~(size < 0.5 * it.size) & ~(size <= 64 * EPS)
        lost = crawled & ~(size < 0.1)
        x = jnp.where(lost, x0, it.x - dx)
        size, before = jnp.where(crawled, 1e300, size), jnp.where(crawled, jnp.inf, it.size)
        return _Iteration(x, inverse, it.newton | crawled, it.count + 1, size, before, jnp.max(jnp.abs(r)))

    def go_on(it: _Iteration) -> Array:
        # near round-off an increment that no longer shrinks has stagnated; far from it Newton may wander
        shrinking = (it.size < 0.5 * it.before) | (it.size > FAR)
        return (it.size > SETTLED) & shrinking & (it.count < LIMIT)

    n = x0.size
    start = _Iteration(
        x0,
        jnp.zeros((n, n)),
        jnp.array(False),
        jnp.array(0),
        jnp.array(1e300),
        jnp.array(jnp.inf),
        jnp.array(0.0),
    )
    last = lax.while_loop(go_on, iterate, start)
    finite = jnp.all(jnp.isfinite(last.x)) & jnp.isfinite(last.size)
    status = jnp.where(
        ~finite, Status.NOT_FINITE, jnp.where(last.size <= ACCEPTED, Status.SOLVED, Status.NOT_CONVERGED)
    )
    # floats, since integers have no place in the derivative rule of the solve
    return last.x, Solve(last.count.astype(float), last.size, last.residual, status.astype(float))


def explicit_step(state: Any) -> Solve:
    """The record of a step that needs no solve: it can only fail by leaving the finite numbers."""
    finite = jnp.all(jnp.array([jnp.all(jnp.isfinite(leaf)) for leaf in jax.tree.leaves(state)]))
    status = jnp.where(finite, int(Status.SOLVED), int(Status.NOT_FINITE))
    return Solve(jnp.array(0), jnp.array(0.0), jnp.array(0.0), status)
