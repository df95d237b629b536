"""The compiled part of a run: steps, wrapped angles, saved rows and the record of every solve."""

from __future__ import annotations

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax

from noslip.integrators.base import Integrator, Sum
from noslip.integrators.solve import Status, without_derivatives
from noslip.numerics.pytrees import pytree
from noslip.system import System

TURN = 6.283185307179586  # 2 pi rounded to a double ...
TURN_LOW = 2.4492935982947064e-16  # ... and what the rounding cut off
ROWS = 1024  # rows that one compiled call can save


@pytree
class Interval:
    """The worst of the solves since the last saved row."""

    steps: Array
    iterations: Array
    increment: Array
    residual: Array
    status: Array
    failed_step: Array

    @classmethod
    def empty(cls) -> Interval:
        zero = jnp.array(0)
        return cls(zero, zero, jnp.array(0.0), jnp.array(0.0), zero, jnp.array(-1))


@pytree
class Carry:
    """Everything that the next step needs."""

    state: Any
    step: Array
    turns: Array
    interval: Interval


@pytree
class Row:
    """One saved time. Angles are wrapped in `q` and counted in `turns`."""

    step: Array
    t: Array
    q: Array
    turns: Array
    v: Array
    multipliers: Array
    multiplier_t: Array
    energy: Array
    energy_scale: Array
    constraint: Array
    first_integrals: dict[str, Array]
    interval: Interval


def joined(parts: list[Row]) -> Row:
    """The rows of several calls."""
    return parts[0] if len(parts) == 1 else jax.tree.map(lambda *x: np.concatenate(x), *parts)


def _wrap(system: System, state: Any, turns: Array) -> tuple[Any, Array]:
    """Bring declared angles to [-pi, pi] without losing a digit, and count the turns taken off."""
    if not system.angles:
        return state, turns
    whole = jnp.where(system.angle_mask, jnp.round(state.q.value / TURN), 0.0)
    q = Sum(state.q.value - whole * TURN, state.q.low - whole * TURN_LOW)
    return type(state)(**{**vars(state), "q": q}), turns + whole


def step_regardless(system: System, integrator: Integrator, carry: Carry, h: Array) -> Carry:
    """One step whatever becomes of it; the interval says whether it failed."""
    state, record = integrator.advance(system, carry.state, h)
    state, turns = _wrap(system, state, carry.turns)
    finite = jnp.all(jnp.isfinite(state.q.value))
    status = jnp.where((record.status == Status.SOLVED) & ~finite, Status.NOT_FINITE, record.status)
    solved = status == Status.SOLVED
    old = carry.interval
    interval = Interval(
        old.steps + solved,
        jnp.maximum(old.iterations, record.iterations),
        jnp.maximum(old.increment, record.increment),
        jnp.maximum(old.residual, record.residual),
        jnp.maximum(old.status, status),
        jnp.where(solved | (old.failed_step >= 0), old.failed_step, carry.step + 1),
    )
    return Carry(state, carry.step + solved, turns, interval)


def _step(system: System, integrator: Integrator, carry: Carry, h: Array) -> Carry:
    """One step; a failed one leaves the state as it was and says so in the interval."""
    new = step_regardless(system, integrator, carry, h)
    solved = new.step > carry.step
    state, turns = jax.tree.map(
        lambda new, kept: jnp.where(solved, new, kept), (new.state, new.turns), (carry.state, carry.turns)
    )
    return Carry(state, new.step, turns, new.interval)


def _row(system: System, integrator: Integrator, carry: Carry) -> Row:
    seen = integrator.observe(carry.state)
    lam = system.multipliers(seen.q, seen.v, seen.t) if seen.multipliers is None else seen.multipliers
    return Row(
        carry.step, seen.t, seen.q, carry.turns, seen.v, lam, seen.multiplier_t,
        *energies(system, seen.q, seen.v), carry.interval,
    )  # fmt: skip


def energies(system: System, q: Array, v: Array) -> tuple[Array, Array, Array, dict[str, Array]]:
    """Energy, its scale, constraint and first integrals of one state."""
    integrals = {
        name: jnp.asarray(f(q, v, system.parameters), float) for name, f in system.first_integrals.items()
    }
    return system.energy(q, v), system.energy_scale(q, v), system.phi(q, v), integrals


def save(system: System, integrator: Integrator, carry: Carry) -> tuple[Row, Carry]:
    """The row of a state, and the state with a new record of solves, unless it has failed."""
    failed = carry.interval.status != Status.SOLVED
    fresh = jax.tree.map(lambda zero, old: jnp.where(failed, old, zero), Interval.empty(), carry.interval)
    return _row(system, integrator, carry), Carry(carry.state, carry.step, carry.turns, fresh)


def step_or_stay(system: System, integrator: Integrator, carry: Carry, h: Array) -> tuple[Carry, Array]:
    """One step, unless an earlier one has failed; whether none has."""
    stepped = _step(system, integrator, carry, h)
    ok = carry.interval.status == Status.SOLVED
    kept = jax.tree.map(lambda new, old: jnp.where(ok, new, old), stepped, carry)
    return kept, kept.interval.status == Status.SOLVED


def strong(tree: Any) -> Any:
    """Without JAX's weak types, so that the first call and all later ones share one compilation."""
    return jax.tree.map(lambda x: lax.convert_element_type(x, x.dtype), tree)


def first_state(
    system: System, integrator: Integrator, q: Array, v: Array, t: Array, h: Array
) -> tuple[Carry, Row]:
    """State and row of the initial time."""
    whole = jnp.where(system.angle_mask, jnp.round(q / TURN), 0.0)
    state = integrator.init(system, q - whole * TURN, v, t, h)
    carry = strong(Carry(state, jnp.array(0), whole, Interval.empty()))
    return carry, _row(system, integrator, carry)


start = jax.jit(first_state, static_argnames="integrator")


@partial(jax.jit, static_argnames="integrator")
def advance(
    system: System, integrator: Integrator, carry: Carry, h: Array, stop: Array, last: Array, every: Array
) -> tuple[Carry, Row, Array]:
    """Step on to number `stop`, at most ROWS saves ahead; return the saved rows and their number.

    A row is saved at every multiple of `every`, at step `last`, and before a failed step.
    """

    def running(c: Carry) -> Array:
        return c.interval.status == Status.SOLVED

    def step(carry: Carry) -> Carry:
        with without_derivatives():
            return _step(system, integrator, carry, h)

    def to_next_save(loop: tuple[Carry, Row, Array]) -> tuple[Carry, Row, Array]:
        carry, rows, count = loop
        target = jnp.minimum((carry.step // every + 1) * every, stop)
        carry = lax.while_loop(lambda c: (c.step < target) & running(c), step, carry)
        row, fresh = save(system, integrator, carry)
        rows = jax.tree.map(lambda all_, one: all_.at[count].set(one), rows, row)
        due = (carry.step % every == 0) | (carry.step == last) | ~running(carry)
        carry = jax.tree.map(lambda new, old: jnp.where(due, new, old), fresh, carry)
        return carry, rows, count + due

    shapes = jax.eval_shape(lambda c: _row(system, integrator, c), carry)
    rows = jax.tree.map(lambda s: jnp.zeros((ROWS, *s.shape), s.dtype), shapes)
    return strong(
        lax.while_loop(
            lambda loop: (loop[0].step < stop) & (loop[2] < ROWS) & running(loop[0]),
            to_next_save,
            (carry, rows, jnp.array(0)),
        )
    )


def scan(
    system: System, integrator: Integrator, q: Array, v: Array, t: Array, h: Array, steps: int, every: int
) -> Row:
    """The whole run as one differentiable scan; all rows, the initial one first.

    After a failed step the state stands still and the rows say so in their status.
    """

    def step(carry: Carry, _: None) -> tuple[Carry, None]:
        return step_or_stay(system, integrator, carry, h)[0], None

    def to_next_save(carry: Carry, length: int) -> tuple[Carry, Row]:
        carry, _ = lax.scan(step, carry, None, length=length)
        row, carry = save(system, integrator, carry)
        return carry, row

    carry, first = start(system, integrator, q, v, t, h)
    parts = [jax.tree.map(lambda x: x[None], first)]
    full, rest = divmod(steps, every)
    if full:
        carry, rows = lax.scan(lambda c, _: to_next_save(c, every), carry, None, length=full)
        parts.append(rows)
    if rest:
        carry, row = to_next_save(carry, rest)
        parts.append(jax.tree.map(lambda x: x[None], row))
    return jax.tree.map(lambda *x: jnp.concatenate(x), *parts)
