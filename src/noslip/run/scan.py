"""One trajectory as one differentiable scan: what `simulate` is under jax.grad, jit and vmap."""

from __future__ import annotations

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax

from noslip.engine.kept import OF_XLA, jitted
from noslip.integrators.base import Integrator
from noslip.numerics.pytrees import PyTree, replaced
from noslip.run.along import failed_rows
from noslip.run.aside import row_aside
from noslip.run.at_times import steps_and_parts, steps_between
from noslip.run.driving import of_step
from noslip.run.events import Events, step_watching
from noslip.run.occurrences import Occurrences, first_of_each
from noslip.run.one_xla import start
from noslip.run.step import Carry, Row, save, step_or_stay
from noslip.system import System
from noslip.system.inputs import Drive

Looks = tuple[np.ndarray, float, float]  # times, and t0 and h, which a trace must know


def scan(
    system: System,
    integrator: Integrator,
    q: Array,
    v: Array,
    t: Array,
    h: Array,
    steps: int,
    every: int,
    looks: Looks | None = None,
    events: Events = (),
    inputs: Drive = None,
) -> tuple[Row, dict[str, Occurrences]]:
    """The whole run as one differentiable scan: all rows, the initial one first, or those of `looks`; and the
    first of each of the events.

    After a failed step the state stands still and the rows say so in their status, as do those that are not
    finite.
    """
    known = None if looks is None else (tuple(looks[0].tolist()), *looks[1:])
    inputs = jax.tree.map(jnp.asarray, inputs)
    rows, happened = _scan(system, integrator, q, v, t, h, steps, every, known, events, inputs)
    return rows, {name: Occurrences(*first) for name, first in happened.items()}


@partial(jitted, static=("integrator", "steps", "every", "looks", "events"), nodes=OF_XLA)
def _scan(
    system: System,
    integrator: Integrator,
    q: Array,
    v: Array,
    t: Array,
    h: Array,
    steps: int,
    every: int,
    looks: tuple[tuple[float, ...], float, float] | None,
    events: Events,
    inputs: Drive,
) -> tuple[Row, dict[str, tuple[Array, Array, Array]]]:
    """One function to JAX: a run under jax.grad alone is not compiled operation by operation."""
    carry, first = start(system, integrator, events, q, v, t, h, of_step(inputs, 0))
    happened: dict[str, tuple[Array, Array, Array]] = {}
    if looks is None:
        rows, happened = _every(system, integrator, events, carry, first, h, steps, every, inputs)
    else:
        rows = _at(system, integrator, carry, h, (np.array(looks[0]), *looks[1:]), inputs)
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
    inputs: Drive,
) -> tuple[Row, dict[str, tuple[Array, Array, Array]]]:

    def step(carry: Carry, drive: PyTree) -> tuple[Carry, PyTree]:
        if not events:
            return step_or_stay(system, integrator, carry, h, drive)[0], None
        new = step_watching(system, integrator, events, carry, h, drive, traced=True)[0]
        return new, (new.watch.which, new.watch.t, new.watch.q, new.watch.v)

    def to_next_save(carry: Carry, drives: Drive, length: int) -> tuple[Carry, tuple[Row, PyTree]]:
        carry, slots = lax.scan(step, carry, drives, length=length)
        row, carry = save(system, integrator, carry)
        return carry, (row, slots)

    def flat(slots: PyTree, axes: int) -> PyTree:
        return jax.tree.map(lambda x: x.reshape(-1, *x.shape[axes:]), slots)

    rows, seen = [jax.tree.map(lambda x: x[None], first)], []
    full, rest = divmod(steps, every)
    if full:
        drives = jax.tree.map(lambda x: x[: full * every].reshape(full, every), inputs)
        carry, (part, slots) = lax.scan(lambda c, d: to_next_save(c, d, every), carry, drives, length=full)
        rows.append(part)
        seen.append(flat(slots, 3))
    if rest:
        drives = jax.tree.map(lambda x: x[full * every :], inputs)
        carry, (row, slots) = to_next_save(carry, drives, rest)
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
    looks: Looks,
    inputs: Drive,
) -> Row:
    """Looks aside from the states after whole steps; the scan keeps the state of every step."""
    first, parts = steps_and_parts(*looks)
    drives = of_step(inputs, steps_between(*looks))

    def step(carry: Carry, drive: Drive) -> tuple[Carry, Carry]:
        new = step_or_stay(system, integrator, carry, h, drive)[0]
        return new, new

    def look(carry: Carry, part: Array, drive: Drive) -> Row:
        return row_aside(system, integrator, carry, h, part, drive)

    length = int(first[-1])
    _, later = lax.scan(step, carry, jax.tree.map(lambda x: x[:length], inputs), length=length)
    starts = jax.tree.map(lambda x, xs: jnp.concatenate([x[None], xs])[first], carry, later)
    rows = jax.vmap(look)(starts, jnp.asarray(parts), drives)
    t = jnp.asarray(looks[0])
    lam = jax.vmap(lambda q, v, t, drive: system.driven(drive).multipliers(q, v, t))(
        rows.q, rows.v, t, drives
    )
    return replaced(rows, t=t, multipliers=lam, multiplier_t=t)
