"""One trajectory as one differentiable scan: what `simulate` is under jax.grad, jit and vmap."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax

from noslip.integrators.base import Integrator
from noslip.numerics.pytrees import replaced
from noslip.run.along import failed_rows
from noslip.run.aside import row_aside
from noslip.run.at_times import steps_and_parts
from noslip.run.events import Events, step_watching
from noslip.run.occurrences import Occurrences, first_of_each
from noslip.run.one_xla import start
from noslip.run.step import Carry, Row, save, step_or_stay
from noslip.system import System


def scan(
    system: System,
    integrator: Integrator,
    q: Array,
    v: Array,
    t: Array,
    h: Array,
    steps: int,
    every: int,
    times: np.ndarray | None = None,
    events: Events = (),
) -> tuple[Row, dict[str, Occurrences]]:
    """The whole run as one differentiable scan: all rows, the initial one first, or those at `times`; and the
    first of each of the events.

    After a failed step the state stands still and the rows say so in their status, as do those that are not
    finite.
    """
    carry, first = start(system, integrator, events, q, v, t, h)
    happened: dict[str, Occurrences] = {}
    if times is None:
        rows, happened = _every(system, integrator, events, carry, first, h, steps, every)
    else:
        rows = _at(system, integrator, carry, h, times, *steps_and_parts(times, float(t), float(h)))
    seen = failed_rows(rows, jax.tree.map(lambda x: x[:1], rows), jnp.zeros(()), False, jnp)
    interval = replaced(rows.interval, status=jnp.maximum(rows.interval.status, lax.cummax(seen)))
    return replaced(rows, interval=interval), happened


def _every(
    system: System,
    integrator: Integrator,
    events: Events,
    carry: Carry,
    first: Row,
    h: Array,
    steps: int,
    every: int,
) -> tuple[Row, dict[str, Occurrences]]:

    def step(carry: Carry, _: None) -> tuple[Carry, Any]:
        if not events:
            return step_or_stay(system, integrator, carry, h)[0], None
        new = step_watching(system, integrator, events, carry, h, traced=True)[0]
        return new, (new.watch.which, new.watch.t, new.watch.q, new.watch.v)

    def to_next_save(carry: Carry, length: int) -> tuple[Carry, tuple[Row, Any]]:
        carry, slots = lax.scan(step, carry, None, length=length)
        row, carry = save(system, integrator, carry)
        return carry, (row, slots)

    def flat(slots: Any, axes: int) -> Any:
        return jax.tree.map(lambda x: x.reshape(-1, *x.shape[axes:]), slots)

    rows, seen = [jax.tree.map(lambda x: x[None], first)], []
    full, rest = divmod(steps, every)
    if full:
        carry, (part, slots) = lax.scan(lambda c, _: to_next_save(c, every), carry, None, length=full)
        rows.append(part)
        seen.append(flat(slots, 3))
    if rest:
        carry, (row, slots) = to_next_save(carry, rest)
        rows.append(jax.tree.map(lambda x: x[None], row))
        seen.append(flat(slots, 2))
    together = jax.tree.map(lambda *x: jnp.concatenate(x), *rows)
    if not events or not seen:
        return together, {}
    return together, first_of_each(events, *jax.tree.map(lambda *x: jnp.concatenate(x), *seen))


def _at(
    system: System,
    integrator: Integrator,
    carry: Carry,
    h: Array,
    times: np.ndarray,
    first: np.ndarray,
    parts: np.ndarray,
) -> Row:
    """Looks aside from the states after steps `first`; the scan keeps the state of every step."""

    def step(carry: Carry, _: None) -> tuple[Carry, Carry]:
        new = step_or_stay(system, integrator, carry, h)[0]
        return new, new

    _, later = lax.scan(step, carry, None, length=int(first[-1]))
    starts = jax.tree.map(lambda x, xs: jnp.concatenate([x[None], xs])[first], carry, later)
    rows = jax.vmap(lambda c, part: row_aside(system, integrator, c, h, part))(starts, jnp.asarray(parts))
    t = jnp.asarray(times)
    lam = jax.vmap(system.multipliers)(rows.q, rows.v, t)
    return replaced(rows, t=t, multipliers=lam, multiplier_t=t)
