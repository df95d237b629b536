"""The pieces of a run within which its inputs are smooth, each with the inputs of its steps.

Between two rows with no switch of inputs there is one piece. Else there is one for each step: its nodes come
from the classical Runge-Kutta method, begun at the first row, and what that misses of the second row is
spread over them by the cubic polynomial with a double zero at the first. So they are as good as the rows, to
order 4 in the step. Where a constraint contains an input that is held, a velocity jumps at a switch to the
nearest that satisfies it, as it does in the run.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax

from noslip.integrators.runge_kutta4 import RungeKutta4
from noslip.numerics.pytrees import PyTree, pytree
from noslip.numerics.tracing import Values, has_tracers, is_traced
from noslip.run.driving import of_step
from noslip.run.inputs import table_of
from noslip.run.interpolate import at_rows, at_rows_by_xla, within
from noslip.system import System
from noslip.system.inputs import Drive

ON_A_NODE = 1e-9  # of a step, as for times that are asked for


@pytree
class Pieces:
    """From (q, v) at t to (q1, v1) at a time H later, with the inputs there; and the velocity and the inputs
    `before` t, from which both may jump. The leading axes count intervals between rows, and their pieces."""

    t: Array
    H: Array
    q: Array
    v: Array
    q1: Array
    v1: Array
    drive: Drive
    v_before: Array
    drive_before: Drive


class Driving(NamedTuple):
    """The inputs of a run: a table by its steps, the k-th of which begins at t0 + k h."""

    table: Drive
    switches: np.ndarray  # the steps at whose start inputs, or their rates, change
    steps: int
    t0: float
    h: float

    @classmethod
    def of(cls, values: Mapping[str, Values], between: str, t0: float, h: float) -> Driving:
        """From the arrays that were given; where they are traced, they may change in every step."""
        linear = between == "linear"
        count = len(next(iter(values.values()))) - linear
        switches = np.arange(1, count)
        if not has_tracers(values):
            changed = [np.diff(x, n=1 + linear) != 0 for x in values.values()]
            switches = switches[np.any(changed, axis=0)]
        return cls(table_of(values, between, count, t0, h), switches, count, t0, h)

    def at(self, times: Values) -> Drive:
        """Those of the steps in which these times lie, or which they end."""
        k = np.floor((times - self.t0) / self.h - ON_A_NODE).astype(int)
        return of_step(self.table, np.clip(k, 0, self.steps - 1))

    def knots(self, start: np.ndarray, end: np.ndarray) -> np.ndarray:
        """The times (intervals, pieces + 1) that end pieces, from `start` to `end`, which may be repeated."""
        first = np.floor((start - self.t0) / self.h + ON_A_NODE).astype(int) + 1
        last = np.ceil((end - self.t0) / self.h - ON_A_NODE).astype(int) - 1
        some = np.searchsorted(self.switches, last, side="right") > np.searchsorted(self.switches, first)
        nodes = first[:, None] + np.arange(np.max(np.where(some, last - first + 1, 0), initial=0))
        inner = some[:, None] & (nodes <= last[:, None])
        times = np.where(inner, self.t0 + self.h * nodes, end[:, None])
        return np.concatenate([start[:, None], times, end[:, None]], axis=1)


def pieces(
    system: System, driving: Driving | None, t: np.ndarray, q: Values, v: Values, which: np.ndarray
) -> tuple[np.ndarray, Pieces]:
    """Those between row i and the next, i in `which`, and the times that end them."""
    later = np.minimum(which + 1, len(t) - 1)
    rows = q[which], v[which], q[later], v[later]
    if driving is None:
        knots = np.stack([t[which], t[later]], axis=1)
        return knots, _pieces(system, knots, *rows, None, None)
    knots = driving.knots(t[which], t[later])
    drive = driving.at((knots[:, :-1] + knots[:, 1:]) / 2)
    first = driving.at(t[which])
    xp = jnp if is_traced(drive) else np
    before = jax.tree.map(lambda x, y: xp.concatenate([x[:, None], y[:, :-1]], axis=1), first, drive)
    return knots, _pieces(system, knots, *rows, drive, before)


def _pieces(system: System, knots: np.ndarray, *rows: PyTree) -> Pieces:
    every = at_rows if knots.shape[1] == 2 else at_rows_by_xla
    found: Pieces = every(_of_interval, system, knots, *rows)
    return found


def _of_interval(
    system: System,
    knots: Array,
    q0: Array,
    v0: Array,
    q1: Array,
    v1: Array,
    drive: Drive,
    before: Drive,
) -> Pieces:
    ends = (knots[:-1], knots[1:], drive)
    q, v = _nodes(system, *ends, q0, v0, q1, v1) if len(knots) > 2 else (q0[None], v0[None])
    fresh = jax.vmap(lambda *x: _on_constraint(system, *x))(q, v, knots[:-1], drive)
    q1, v1 = (jnp.concatenate([x[1:], end[None]]) for x, end in ((q, q1), (v, v1)))
    return Pieces(knots[:-1], jnp.diff(knots), q, fresh, q1, v1, drive, v, before)


def _on_constraint(system: System, q: Array, v: Array, t: Array, drive: Drive) -> Array:
    if drive is None or not system.inputs_within(drive.values)[1]:
        return v
    return system.driven(drive).project_velocity(q, v, t)


def _nodes(
    system: System, t: Array, end: Array, drive: Drive, q0: Array, v0: Array, q1: Array, v1: Array
) -> tuple[Array, Array]:
    """The states at the times t of one interval."""
    method = RungeKutta4()

    def step(
        state: tuple[Array, Array], piece: tuple[Array, Array, Drive]
    ) -> tuple[tuple[Array, Array], tuple[Array, Array]]:
        (q, v), (t, end, drive) = state, piece
        there, h = system.driven(drive), end - t
        begun = method.init(there, q, _on_constraint(system, q, v, t, drive), t, h)
        seen = method.observe(method.step(there, begun, h))
        return (seen.q, seen.v), state

    (q_end, v_end), (q, v) = lax.scan(step, (q0, v0), (t, end, drive))
    q1, v1 = system.alike(q1, v1, q_end)
    d, H = q1 - q_end, end[-1] - t[0]
    s, e = ((t - t[0]) / H)[:, None], v1 - v_end
    return q + s**2 * ((3 - 2 * s) * d + (s - 1) * H * e), v + s * (6 * (1 - s) * d / H + (3 * s - 2) * e)


def between_inputs(
    system: System, driving: Driving, t: np.ndarray, q: Values, v: Values, times: np.ndarray
) -> tuple[Array, Array, Array]:
    """As `between`, of a run with these inputs; a time at a node has those of the step that led there."""
    rows = np.clip(np.searchsorted(t, times) - 1, 0, max(len(t) - 2, 0))
    which, place = np.unique(rows, return_inverse=True)
    knots, found = pieces(system, driving, t, q, v, which)
    piece = np.minimum(np.sum(knots[place, 1:] < times[:, None], axis=1), knots.shape[1] - 2)
    if not is_traced(found):
        found = jax.tree.map(np.asarray, found)
    chosen = jax.tree.map(lambda x: x[place, piece], found)
    seen: tuple[Array, Array, Array] = at_rows(_within_piece, system, chosen, times)
    return seen


def _within_piece(system: System, p: Pieces, time: Array) -> tuple[Array, Array, Array]:
    """q, v and multipliers at a time in this piece."""
    return within(system.driven(p.drive), p.t, p.H, p.q, p.v, p.q1, p.v1, time)
