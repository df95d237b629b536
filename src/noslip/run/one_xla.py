"""One trajectory by XLA: the compiled loop, and the runner that calls it piece by piece."""

from __future__ import annotations

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax

from noslip.engine.kept import OF_XLA, jitted
from noslip.integrators.base import Integrator
from noslip.integrators.solve import Status, without_derivatives
from noslip.numerics.forks import require_xla
from noslip.numerics.pytrees import replaced
from noslip.run.aside import row_aside
from noslip.run.driving import fed, of_step
from noslip.run.events import Events, first_of_run, step_watching
from noslip.run.pairing import Pairing
from noslip.run.runner import NOTHING, Happened, Piece, joined, last_of
from noslip.run.step import Carry, Row, row_of, save, step, strong
from noslip.system import System
from noslip.system.inputs import Drive

ROWS = 1024  # rows that one compiled call can save

start = jitted(first_of_run, static=("integrator", "events"), nodes=OF_XLA)
saved = jitted(save, static=("integrator",))


@partial(jitted, static=("integrator",))
def looks_aside(
    system: System, integrator: Integrator, carry: Carry, h: Array, parts: Array, inputs: Drive = None
) -> Row:
    """One shortened step for each of `parts`."""

    def one(part: Array) -> Row:
        with without_derivatives():
            return row_aside(system, integrator, carry, h, part, of_step(inputs, carry.step))

    return lax.map(one, parts)


@partial(jitted, static=("integrator", "events"), nodes=OF_XLA)
def advance(
    system: System,
    integrator: Integrator,
    events: Events,
    carry: Carry,
    h: Array,
    stop: Array,
    last: Array,
    every: Array,
    inputs: Drive = None,
) -> tuple[Carry, Row, Array]:
    """Step on to number `stop`, at most ROWS saves ahead; return the saved rows and their number.

    A row is saved at every multiple of `every`, at step `last`, before a failed step and at a terminal event.
    """

    def ended(c: Carry) -> Array:
        failed = c.interval.status != Status.SOLVED
        return failed | (c.watch.stopped >= 0) if events else failed

    def running(c: Carry) -> Array:
        return ~ended(c) & (c.watch.which[0] < 0) if events else ~ended(c)

    def one_step(carry: Carry) -> Carry:
        with without_derivatives():
            drive = of_step(inputs, carry.step)
            if events:
                return step_watching(system, integrator, events, carry, h, drive)[0]
            return step(system, integrator, carry, h, drive)

    def to_next_save(loop: tuple[Carry, Row, Array]) -> tuple[Carry, Row, Array]:
        carry, rows, count = loop
        target = jnp.minimum((carry.step // every + 1) * every, stop)
        carry = lax.while_loop(lambda c: (c.step < target) & running(c), one_step, carry)
        row, fresh = save(system, integrator, carry)
        rows = jax.tree.map(lambda all_, one: all_.at[count].set(one), rows, row)
        due = (carry.step % every == 0) | (carry.step == last) | ended(carry)
        carry = jax.tree.map(lambda new, old: jnp.where(due, new, old), fresh, carry)
        return carry, rows, count + due

    shapes = jax.eval_shape(lambda c: row_of(system, integrator, c), carry)
    rows = jax.tree.map(lambda s: jnp.zeros((ROWS, *s.shape), s.dtype), shapes)
    return strong(
        lax.while_loop(
            lambda loop: (loop[0].step < stop) & (loop[2] < ROWS) & running(loop[0]),
            to_next_save,
            (carry, rows, jnp.array(0)),
        )
    )


class XlaTrajectory:
    """Runs the compiled loop; the host decides how far each call goes."""

    backend = "xla"
    first_piece, brief, grain = 64, 0, 1
    join, last = staticmethod(joined), staticmethod(last_of)

    def __init__(
        self, pairing: Pairing, q: np.ndarray, v: np.ndarray, t: float, h: float, inputs: Drive = None
    ):
        require_xla()
        self.system, self.integrator, self.h = pairing.system, pairing.integrator, np.float64(h)
        self.events = pairing.events
        # as long as the next power of two, so that runs of other lengths share the compiled loop
        self.inputs = jax.tree.map(lambda x: np.resize(x, 1 << (len(x) - 1).bit_length()), inputs)
        begin = (q, v, np.float64(t), self.h, of_step(inputs, 0))
        self.carry, first = start(self.system, self.integrator, self.events, *begin)
        self.first = jax.tree.map(lambda x: np.array(x)[None], first)

    def step_size(self, h: float) -> None:
        self.h = np.float64(h)

    def snapshot(self) -> Carry:
        return self.carry

    def restore(self, carry: Carry) -> None:
        self.carry = strong(jax.tree.map(jnp.asarray, carry))

    def aside(self, parts: np.ndarray) -> Row:
        here = (self.system, self.integrator, self.carry, self.h)
        rows = [looks_aside(*here, x, self.inputs) for x in parts[:, None]]
        self.carry = strong(saved(self.system, self.integrator, self.carry)[1])
        return joined([jax.tree.map(np.asarray, row) for row in rows])

    def feed(self, drive: Drive) -> None:
        self.inputs = fed(self.inputs, int(self.carry.step), drive)

    def happened(self) -> Happened:
        return Happened.of(self.carry.watch) if self.events else NOTHING

    def to(self, stop: int, last: int, every: int) -> Piece[Row]:
        if self.events:
            watch = replaced(self.carry.watch, which=jnp.full_like(self.carry.watch.which, -1))
            self.carry = replaced(self.carry, watch=watch)
        how = (self.h, stop, last, every, self.inputs)
        self.carry, rows, count = advance(self.system, self.integrator, self.events, self.carry, *how)
        rows = jax.tree.map(lambda x: np.asarray(x)[: int(count)], rows)
        return Piece(rows, int(self.carry.step), int(self.carry.interval.status) != Status.SOLVED)
