"""The implicit solve: an iteration run until its increments stagnate at round-off.

`solve` is for equations f(x) = 0. A chord iteration (one Jacobian, at the guess) does the work of almost
every step; where it does not settle, full Newton goes on from there. `iterate` is for x = F(x): the map
itself is iterated; for the steps on which that does not contract full Newton stands by, or a simplified
one if the method has it.
Nothing is dropped: each solve returns its record.
Derivatives come from the implicit function theorem, not from the iteration.
"""

from __future__ import annotations

import contextlib
import enum
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax
from jax.extend.core import get_opaque_trace_state
from jax.flatten_util import ravel_pytree

from noslip.numerics import linear
from noslip.numerics.pytrees import PyTree, pytree

EPS = float(np.finfo(float).eps)
SETTLED = 2 * EPS  # an increment this small, relative to the scale, changes nothing any more
ACCEPTED = 1e-9  # stagnation above this is not round-off but a failed solve
FAR = 1e-6  # above this an increment need not shrink from one iteration to the next
LIMIT = 50  # iterations
STAGNATED = 64 * EPS  # below this an increment of a fixed point that no longer shrinks is round-off
GROWTHS = 8  # that many increments larger than the one before mean that a map does not contract
GRAINS = 16 * EPS  # what is said of the size of an increment within the grain
NOTHING = 1e-290  # the inverse of a smaller size may be infinite
LEAST_RATE = 1 / 32  # a measured rate of contraction below this is not relied upon


MapAt = Callable[[PyTree], Callable[[PyTree], PyTree]]
Grain = Callable[[], PyTree]  # increments that round-off may make; asked where they no longer shrink


class Status(enum.IntEnum):
    """How a solve ended; the text of a failed one is advice to the user."""

    SOLVED = 0
    NOT_CONVERGED = 1
    NOT_FINITE = 2
    MULTIPLIER_ZERO = 3
    BROKEN_CONDITION = 4
    BLOWN_UP = 5
    TOO_MANY_EVENTS = 6

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
    Status.MULTIPLIER_ZERO: (
        "Chaplygin's multiplier f has a zero here, where the method's time ends; a system that declares its "
        "`multiplier` can be carried through by PoincareHamiltonizedDEL"
    ),
    Status.BROKEN_CONDITION: "a condition that the system met at the start is broken here",
    Status.BLOWN_UP: (
        "the energy, which the motion conserves, has grown to 1e9 times its size; try a smaller step_size"
    ),
    Status.TOO_MANY_EVENTS: (
        "more than 8 events happened within one step, as where a bouncing body comes to rest; make the event "
        "terminal, or try a smaller step_size"
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


def solve(
    residual: Callable[[PyTree], PyTree], guess: PyTree, scale: PyTree, grain: Grain | None = None
) -> tuple[PyTree, Solve]:
    """Solve residual(x) = 0 for a pytree x, from `guess`. Increments that no longer shrink and are no larger
    than `grain` are a solution too."""
    return _root(residual, lambda f: f, _newton, guess, scale, grain)


def iterate(
    function: Callable[[PyTree], PyTree],
    guess: PyTree,
    scale: PyTree,
    simplified_newton: MapAt | None = None,
    grain: Grain | None = None,
) -> tuple[PyTree, Solve]:
    """Solve x = function(x) for a pytree x, from `guess`. Where `function` does not contract, the map that
    `simplified_newton` makes at a given x is iterated instead. `grain` is that of `solve`."""
    unravel = ravel_pytree(guess)[1]

    def flat(x: Array) -> Callable[[Array], Array]:
        assert simplified_newton is not None
        made = simplified_newton(unravel(x))
        return lambda x: ravel_pytree(made(unravel(x)))[0]

    method = partial(_fixed_point, None if simplified_newton is None else flat)
    return _root(function, lambda F: lambda x: x - F(x), method, guess, scale, grain)


_not_differentiated: ContextVar[Any] = ContextVar("not differentiated", default=None)


@contextlib.contextmanager
def without_derivatives() -> Iterator[None]:
    """For loops that nobody differentiates: solves that are traced directly in here, not under a further
    transformation, come without the derivatives of the implicit function theorem, half of their tracing."""
    token = _not_differentiated.set(get_opaque_trace_state())
    try:
        yield
    finally:
        _not_differentiated.reset(token)


def _root(
    function: Callable[[PyTree], PyTree],
    equation: Callable[[Callable[[Array], Array]], Callable[[Array], Array]],
    method: Callable[[Callable[[Array], Array], Array, Array, Grain], tuple[Array, Solve]],
    guess: PyTree,
    scale: PyTree,
    grain: Grain | None,
) -> tuple[PyTree, Solve]:
    """The root of equation(function) by `method`; derivatives by the implicit function theorem."""
    x0, unravel = ravel_pytree(guess)
    sizes = lax.stop_gradient(ravel_pytree(scale)[0])
    sizes = jnp.where(sizes > 0, jnp.maximum(sizes, NOTHING), 1.0)

    def flat(x: Array) -> Array:
        return ravel_pytree(function(unravel(x)))[0]

    def small() -> Array:
        return jnp.zeros_like(x0) if grain is None else lax.stop_gradient(ravel_pytree(grain())[0])

    if get_opaque_trace_state() == _not_differentiated.get():
        # traced once, though it is asked for in several places
        x, record = method(jax.jit(flat), x0, sizes, small)
        return unravel(x), _whole_counts(record)

    def linear_solve(f: Callable[[Array], Array], y: Array) -> Array:
        return linear.inverse(jax.jacfwd(f)(jnp.zeros_like(y))) @ y

    x, record = lax.custom_root(
        equation(flat), x0, lambda _, x: method(flat, x, sizes, small), linear_solve, has_aux=True
    )
    return unravel(x), _whole_counts(record)


def _whole_counts(record: Solve) -> Solve:
    counts = [jnp.round(c).astype(int) for c in (record.iterations, record.status)]
    return Solve(counts[0], record.increment, record.residual, counts[1])


@pytree
class _Iteration:
    x: Array
    count: Array
    size: Array  # of the last increment, relative to the sizes of the unknowns
    before: Array  # of the one before


def _fixed_point(
    simplified_newton: MapAt | None, F: Callable[[Array], Array], x0: Array, sizes: Array, grain: Grain
) -> tuple[Array, Solve]:
    """Iterate F; where it does not contract, or too slowly, Newton for x - F(x), simplified or full."""
    weights = _weights(x0, sizes)

    def turn(carry: tuple[_Iteration, Array]) -> tuple[_Iteration, Array]:
        it, grown = carry
        it = _turn(F, it, weights)
        return it, grown + ~(it.size < it.before)

    def go_on(carry: tuple[_Iteration, Array]) -> Array:
        it, grown = carry
        # done when the next increment, foreseen from the rate size / before, would change nothing
        ahead = (it.size * it.size > EPS / 2 * it.before) | (it.size * LEAST_RATE > EPS / 2)
        unfinished = (it.size > SETTLED) & ahead
        # increments may grow now and then before they shrink; at round-off that is the end
        contracting = (grown < GROWTHS) & ((it.size < it.before) | (it.size > STAGNATED))
        return (it.count < 2) | (unfinished & contracting & (it.count < LIMIT))

    start = _Iteration(x0, jnp.array(0), jnp.array(1.0), jnp.array(1.0))
    settled, _ = lax.while_loop(go_on, turn, (start, jnp.array(0)))
    failed = ~((settled.size <= STAGNATED) & (settled.count < LIMIT))
    if simplified_newton is None:
        last, _ = _full_newton(lambda x: x - F(x), x0, settled, x0, failed, weights, grain)
    else:
        last = _simplified_newton(simplified_newton, x0, settled, failed, weights, grain)
    residual = last.size * jnp.max(sizes + jnp.abs(last.x))  # a bound, which costs nothing per evaluation
    return last.x, _record(last, residual)


def _turn(F: Callable[[Array], Array], it: _Iteration, weights: Array) -> _Iteration:
    x = F(it.x)
    return _Iteration(x, it.count + 1, _size(x - it.x, weights), it.size)


def _simplified_newton(
    map_at: MapAt, x0: Array, settled: _Iteration, failed: Array, weights: Array, grain: Grain
) -> _Iteration:
    """Where `failed`, iterate the map made at the last iterate, and make it anew whenever it does not halve
    the increment; elsewhere all as it is, and nothing is computed."""

    def newton_fallback(x0: Array, settled: _Iteration, failed: Array, weights: Array) -> _Iteration:
        small = grain()

        def with_a_new_map(carry: tuple[_Iteration, Array]) -> tuple[_Iteration, Array]:
            it, F = carry[0], map_at(carry[0].x)
            fresh = _Iteration(it.x, it.count, jnp.array(1e300), jnp.array(jnp.inf))

            def turn(carry: tuple[_Iteration, Array]) -> tuple[_Iteration, Array]:
                new = _turn(F, carry[0], weights)
                return new, _within(new.x - carry[0].x, small)

            return lax.while_loop(quick, turn, (fresh, jnp.array(False)))

        def quick(carry: tuple[_Iteration, Array]) -> Array:
            it = carry[0]
            return (it.size > SETTLED) & (it.size < 0.5 * it.before) & (it.count < 2 * LIMIT)

        def go_on(carry: tuple[_Iteration, Array]) -> Array:
            it, within = carry
            shrinking = (it.size < it.before) | ((it.size > STAGNATED) & ~within)
            return failed & (it.size > SETTLED) & shrinking & (it.count < 2 * LIMIT)

        start = _restart(x0, settled, failed), jnp.array(False)
        return _in_grains(*lax.while_loop(go_on, with_a_new_map, start))

    return jax.jit(newton_fallback)(x0, settled, failed, weights)


def _within(dx: Array, grain: Array) -> Array:
    return jnp.all(jnp.abs(dx) <= grain)


def _in_grains(last: _Iteration, within: Array) -> _Iteration:
    """An iteration whose last increment is `within` the grain has settled."""
    size = jnp.where(within, jnp.minimum(last.size, GRAINS), last.size)
    return _Iteration(last.x, last.count, size, last.before)


def _restart(x0: Array, settled: _Iteration, failed: Array) -> _Iteration:
    """Where `failed`, from the last iterate if the iteration was getting somewhere, else from the guess."""
    x = jnp.where(failed & ~(settled.size < 0.1), x0, settled.x)
    size = jnp.where(failed, 1e300, settled.size)
    before = jnp.where(failed, jnp.inf, settled.before)
    return _Iteration(x, settled.count, size, before)


def _newton(f: Callable[[Array], Array], x0: Array, sizes: Array, grain: Grain) -> tuple[Array, Solve]:
    """Chord iteration with the Jacobian at the guess; where it does not settle, full Newton."""
    J = jax.jacfwd(f)(x0)
    inverse, weights = linear.solver(J, sizes), _weights(x0, sizes)

    def turn(carry: tuple[_Iteration, Array]) -> tuple[_Iteration, Array]:
        it, r = carry[0], f(carry[0].x)
        dx = inverse(r)
        return _Iteration(it.x - dx, it.count + 1, _size(dx, weights), it.size), r

    def go_on(carry: tuple[_Iteration, Array]) -> Array:
        it = carry[0]
        return (it.size > SETTLED) & (it.size < 0.5 * it.before) & (it.count < LIMIT)

    # not by a Jacobian that is infinite: what is divided by it is 0, as if nothing were left to do
    begun = jnp.where(jnp.isfinite(jnp.sum(J)), 1e300, jnp.nan)
    start = _Iteration(x0, jnp.array(0), begun, jnp.array(jnp.inf))
    settled, r = lax.while_loop(go_on, turn, (start, jnp.zeros_like(x0)))
    # increments that stop shrinking above round-off mean that the Jacobian at the guess does not do
    failed = ~(settled.size <= 64 * EPS)
    last, r = _full_newton(f, x0, settled, r, failed, weights, grain)
    return last.x, _record(last, jnp.max(jnp.abs(r)))


def _weights(x0: Array, sizes: Array) -> Array:
    """Each increment is judged relative to the size of its unknown plus its value at the guess."""
    return 1.0 / (sizes + jnp.abs(x0))


def _size(dx: Array, weights: Array) -> Array:
    return jnp.max(jnp.abs(dx) * weights)


def _full_newton(
    f: Callable[[Array], Array], x0: Array, settled: _Iteration, r: Array, failed: Array, weights: Array,
    grain: Grain,
) -> tuple[_Iteration, Array]:  # fmt: skip
    """Newton's method with the Jacobian of every iterate, where `failed`; elsewhere all as it is."""

    def newton_fallback(
        x0: Array, settled: _Iteration, r: Array, failed: Array, weights: Array
    ) -> tuple[_Iteration, Array]:
        small = grain()

        def turn(carry: tuple[_Iteration, Array, Array]) -> tuple[_Iteration, Array, Array]:
            it = carry[0]
            r, J = linear.value_and_jacobian(f, it.x)
            dx = linear.solve(J, r)
            it = _Iteration(it.x - dx, it.count + 1, _size(dx, weights), it.size)
            return it, r, _within(dx, small)

        def go_on(carry: tuple[_Iteration, Array, Array]) -> Array:
            # near round-off an increment that no longer shrinks has stagnated; far from it Newton may wander
            it, _, within = carry
            shrinking = (it.size < 0.5 * it.before) | ((it.size > FAR) & ~within)
            return failed & (it.size > SETTLED) & shrinking & (it.count < 2 * LIMIT)

        start = _restart(x0, settled, failed), r, jnp.array(False)
        last, r, within = lax.while_loop(go_on, turn, start)
        return _in_grains(last, within), r

    return jax.jit(newton_fallback)(x0, settled, r, failed, weights)


def _record(last: _Iteration, residual: Array) -> Solve:
    finite = jnp.all(jnp.isfinite(last.x)) & jnp.isfinite(last.size)
    status = jnp.where(
        ~finite, Status.NOT_FINITE, jnp.where(last.size <= ACCEPTED, Status.SOLVED, Status.NOT_CONVERGED)
    )
    # floats, since integers have no place in the derivative rule of the solve
    return Solve(last.count.astype(float), last.size, residual, status.astype(float))


def explicit_step(state: PyTree) -> Solve:
    """The record of a step that needs no solve: it can only fail by leaving the finite numbers."""
    finite = jnp.all(jnp.array([jnp.all(jnp.isfinite(leaf)) for leaf in jax.tree.leaves(state)]))
    status = jnp.where(finite, int(Status.SOLVED), int(Status.NOT_FINITE))
    return Solve(jnp.array(0), jnp.array(0.0), jnp.array(0.0), status)
