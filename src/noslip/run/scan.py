"""One trajectory as one differentiable scan: what `simulate` is under jax.grad, jit and vmap."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
from jax import Array, lax

from noslip.integrators.base import Integrator
from noslip.numerics.pytrees import replaced
from noslip.run.along import failed_rows
from noslip.run.driving import of_step
from noslip.run.one_xla import start
from noslip.run.step import Carry, Row, save, step_or_stay
from noslip.system import System
from noslip.system.inputs import Drive


def scan(
    system: System,
    integrator: Integrator,
    q: Array,
    v: Array,
    t: Array,
    h: Array,
    steps: int,
    every: int,
    inputs: Drive = None,
) -> Row:
    """The whole run as one differentiable scan; all rows, the initial one first.

    After a failed step the state stands still and the rows say so in their status, as do those that are not
    finite.
    """

    def step(carry: Carry, drive: Any) -> tuple[Carry, None]:
        return step_or_stay(system, integrator, carry, h, drive)[0], None

    def to_next_save(carry: Carry, drives: Any, length: int) -> tuple[Carry, Row]:
        carry, _ = lax.scan(step, carry, drives, length=length)
        row, carry = save(system, integrator, carry)
        return carry, row

    inputs = jax.tree.map(jnp.asarray, inputs)
    carry, first = start(system, integrator, q, v, t, h, of_step(inputs, 0))
    parts = [jax.tree.map(lambda x: x[None], first)]
    full, rest = divmod(steps, every)
    if full:
        drives = jax.tree.map(lambda x: x[: full * every].reshape(full, every), inputs)
        carry, rows = lax.scan(lambda c, d: to_next_save(c, d, every), carry, drives, length=full)
        parts.append(rows)
    if rest:
        carry, row = to_next_save(carry, jax.tree.map(lambda x: x[full * every :], inputs), rest)
        parts.append(jax.tree.map(lambda x: x[None], row))
    rows = jax.tree.map(lambda *x: jnp.concatenate(x), *parts)
    seen = failed_rows(rows, jax.tree.map(lambda x: x[:1], rows), jnp.zeros(()), False, jnp)
    interval = replaced(rows.interval, status=jnp.maximum(rows.interval.status, lax.cummax(seen)))
    return replaced(rows, interval=interval)
