"""One trajectory as one differentiable scan: what `simulate` is under jax.grad, jit and vmap."""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jax import Array, lax

from noslip.integrators.base import Integrator
from noslip.numerics.pytrees import replaced
from noslip.run.along import failed_rows
from noslip.run.one_xla import start
from noslip.run.step import Carry, Row, save, step_or_stay
from noslip.system import System


def scan(
    system: System, integrator: Integrator, q: Array, v: Array, t: Array, h: Array, steps: int, every: int
) -> Row:
    """The whole run as one differentiable scan; all rows, the initial one first.

    After a failed step the state stands still and the rows say so in their status, as do those that are not
    finite.
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
    rows = jax.tree.map(lambda *x: jnp.concatenate(x), *parts)
    seen = failed_rows(rows, jax.tree.map(lambda x: x[:1], rows), jnp.zeros(()), False, jnp)
    interval = replaced(rows.interval, status=jnp.maximum(rows.interval.status, lax.cummax(seen)))
    return replaced(rows, interval=interval)
