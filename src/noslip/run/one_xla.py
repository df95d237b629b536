"""One trajectory by XLA: the compiled loop, and the runner that calls it piece by piece."""

from __future__ import annotations

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax

from noslip.integrators.base import Integrator
from noslip.integrators.solve import Status, without_derivatives
from noslip.run.driving import of_step
from noslip.run.pairing import Pairing
from noslip.run.runner import Piece, joined
from noslip.run.step import Carry, Row, first_state, row_of, save, step, strong
from noslip.system import System
from noslip.system.inputs import Drive

ROWS = 1024  # rows that one compiled call can save

start = jax.jit(first_state, static_argnames="integrator")


@partial(jax.jit, static_argnames="integrator")
def advance(
    system: System,
    integrator: Integrator,
    carry: Carry,
    h: Array,
    stop: Array,
    last: Array,
    every: Array,
    inputs: Drive = None,
) -> tuple[Carry, Row, Array]:
    """Step on to number `stop`, at most ROWS saves ahead; return the saved rows and their number.

    A row is saved at every multiple of `every`, at step `last`, and before a failed step.
    """

    def running(c: Carry) -> Array:
        return c.interval.status == Status.SOLVED

    def one_step(carry: Carry) -> Carry:
        with without_derivatives():
            return step(system, integrator, carry, h, of_step(inputs, carry.step))

    def to_next_save(loop: tuple[Carry, Row, Array]) -> tuple[Carry, Row, Array]:
        carry, rows, count = loop
        target = jnp.minimum((carry.step // every + 1) * every, stop)
        carry = lax.while_loop(lambda c: (c.step < target) & running(c), one_step, carry)
        row, fresh = save(system, integrator, carry)
        rows = jax.tree.map(lambda all_, one: all_.at[count].set(one), rows, row)
        due = (carry.step % every == 0) | (carry.step == last) | ~running(carry)
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
    first_piece, brief = 64, 0
    join = staticmethod(joined)

    def __init__(
        self, pairing: Pairing, q: np.ndarray, v: np.ndarray, t: float, h: float, inputs: Drive = None
    ):
        self.system, self.integrator, self.h = pairing.system, pairing.integrator, np.float64(h)
        # as long as the next power of two, so that runs of other lengths share the compiled loop
        self.inputs = jax.tree.map(lambda x: np.resize(x, 1 << (len(x) - 1).bit_length()), inputs)
        drive = of_step(inputs, 0)
        self.carry, first = start(self.system, self.integrator, q, v, np.float64(t), self.h, drive)
        self.first = jax.tree.map(lambda x: np.array(x)[None], first)

    def step_size(self, h: float) -> None:
        self.h = np.float64(h)

    def snapshot(self) -> Carry:
        return self.carry

    def restore(self, carry: Carry) -> None:
        self.carry = strong(jax.tree.map(jnp.asarray, carry))

    def to(self, stop: int, last: int, every: int) -> Piece[Row]:
        until = (stop, last, every, self.inputs)
        self.carry, rows, count = advance(self.system, self.integrator, self.carry, self.h, *until)
        rows = jax.tree.map(lambda x: np.asarray(x)[: int(count)], rows)
        return Piece(rows, int(self.carry.step), int(self.carry.interval.status) != Status.SOLVED)
