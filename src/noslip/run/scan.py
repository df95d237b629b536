"""One trajectory as one differentiable scan: what `simulate` is under jax.grad, jit and vmap."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax

from noslip.integrators.base import Integrator
from noslip.numerics.pytrees import replaced
from noslip.run.along import failed_rows
from noslip.run.aside import row_aside
from noslip.run.at_times import steps_and_parts
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
) -> Row:
    """The whole run as one differentiable scan; all rows, the initial one first, or those at `times`.

    After a failed step the state stands still and the rows say so in their status, as do those that are not
    finite.
    """
    carry, first = start(system, integrator, q, v, t, h)
    if times is None:
        rows = _every(system, integrator, carry, first, h, steps, every)
    else:
        rows = _at(system, integrator, carry, h, times, *steps_and_parts(times, float(t), float(h)))
    seen = failed_rows(rows, jax.tree.map(lambda x: x[:1], rows), jnp.zeros(()), False, jnp)
    interval = replaced(rows.interval, status=jnp.maximum(rows.interval.status, lax.cummax(seen)))
    return replaced(rows, interval=interval)


def _every(
    system: System, integrator: Integrator, carry: Carry, first: Row, h: Array, steps: int, every: int
) -> Row:

    def step(carry: Carry, _: None) -> tuple[Carry, None]:
        return step_or_stay(system, integrator, carry, h)[0], None

    def to_next_save(carry: Carry, length: int) -> tuple[Carry, Row]:
        carry, _ = lax.scan(step, carry, None, length=length)
        row, carry = save(system, integrator, carry)
        return carry, row

    parts = [jax.tree.map(lambda x: x[None], first)]
    full, rest = divmod(steps, every)
    if full:
        carry, rows = lax.scan(lambda c, _: to_next_save(c, every), carry, None, length=full)
        parts.append(rows)
    if rest:
        carry, row = to_next_save(carry, rest)
        parts.append(jax.tree.map(lambda x: x[None], row))
    return jax.tree.map(lambda *x: jnp.concatenate(x), *parts)


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
