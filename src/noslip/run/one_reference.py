"""Host-driven runs of the reference flow. The flow lands on every saved time; what is shown of its states
is made by machine code, for all rows of a call at once."""

from __future__ import annotations

import time
from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jax import Array

from noslip.integrators.solve import Status
from noslip.numerics.forks import require_xla
from noslip.numerics.pytrees import replaced
from noslip.run import step as steps
from noslip.run.driving import fed, of_step
from noslip.run.flows import flow_of
from noslip.run.of_states import OfStates
from noslip.run.pairing import Pairing
from noslip.run.runner import NOTHING, Happened, Piece, RowsInSlots
from noslip.run.step import Carry, Interval, Row
from noslip.system import System
from noslip.system.inputs import Drive, Held
from noslip.system.positions import put_back

BLOCK = 256  # steps between restarts of the adaptive flow
SECONDS = 0.1  # after which a call ends with its block


class ReferenceTrajectory(RowsInSlots):
    """The interface of the compiled loop, on top of an adaptive flow that lands on every saved time."""

    first_piece, brief, grain = 2**20, 1, BLOCK

    def __init__(
        self, pairing: Pairing, q: np.ndarray, v: np.ndarray, t: float, h: float, inputs: Drive = None
    ):
        require_xla()
        system = self.system = pairing.system
        self.integrator, self.inputs, self.n = pairing.integrator, inputs, system.n
        self.steered = isinstance(inputs, Held) and system.inputs_within(inputs.values)[1]
        self.h, self.t0 = h, t
        self.step, self.saved = 0, 0
        self.flow = flow_of(system)
        self.backend = self.flow.name
        self.show, self.stand = _rows_of(system), _starts_of(system)
        self.rows = self.show.out
        q, self.v = (np.asarray(x) for x in system.shown(q, v))
        self.q, self.turns = q, np.zeros(self.n)
        self.first = self._here()
        places, numbers = self.rows.first_slots, self.first[0, 0, :, 0].view(float)
        self.q, self.turns = (numbers[x : x + self.n].copy() for x in (places.q, places.turns))

    def step_size(self, h: float) -> None:
        self.t0, self.h = self.t0 + self.step * (self.h - h), h

    def feed(self, drive: Drive) -> None:
        self.inputs = fed(self.inputs, self.step, drive)

    def happened(self) -> Happened:
        return NOTHING

    def snapshot(self) -> Carry:
        t, h = self.t0 + self.step * self.h, self.h
        here = [jnp.asarray(x) for x in (self.q, self.v, t, h)]
        state = self.integrator.init(self._system_at_node(self.step), *here)
        since = replaced(Interval.empty(), steps=jnp.asarray(self.step - self.saved))
        drive = of_step(self.inputs, max(self.step - 1, 0))
        return Carry(state, jnp.asarray(self.step), jnp.asarray(self.turns), since, drive=drive)

    def restore(self, carry: Carry) -> None:
        seen = self.integrator.observe(carry.state)
        self.q, self.v, self.turns = np.asarray(seen.q), np.asarray(seen.v), np.asarray(carry.turns)
        self.step, self.saved = int(carry.step), int(carry.step - carry.interval.steps)

    def to(self, stop: int, last: int, every: int) -> Piece[np.ndarray]:
        """Advance past step `stop`; rows at the multiples of `every` and at `last`.

        The flow is restarted at the multiples of BLOCK and nowhere else, so that the states do not depend
        on how the host cuts the run into calls. There angles are wrapped and the velocity is put back on
        the constraint: both lose digits along the way (1e-11 in 1e4 time units of the rotating gearbox).
        """
        failed, waiting, until = False, list[Seen](), time.monotonic() + SECONDS
        while self.step < stop and not failed:
            failed = self._block(min((self.step // BLOCK + 1) * BLOCK, last), last, every, waiting)
            if time.monotonic() > until:  # somebody may want to stop it
                break
        rows = self._shown(waiting)
        return Piece(self._failed(rows, self.step + 1) if failed else rows, self.step, failed)

    def aside(self, parts: np.ndarray) -> np.ndarray:
        """The motion from the start of the block, at these times; a failure is a row that is not finite."""
        ahead = parts > 0
        times = self.t0 + (self.step + parts) * self.h
        states = np.tile(np.concatenate([self.q, self.v]), (len(parts), 1))
        if ahead.any():
            start = self.t0 + self.step * self.h
            found, reached = self._flow_through(states[0], np.append(start, times[ahead]), parts[ahead])
            states[ahead] = np.nan
            states[np.flatnonzero(ahead)[:reached]] = found[:reached]
        steps = np.floor(self.step + parts).astype(int)
        rows = self._shown([Seen(steps, states, self.turns, ahead, times)], np.ceil(self.step + parts))
        for k in np.flatnonzero(~np.isfinite(states).all(axis=1)).tolist():
            self._failed(rows[:, : k + 1], int(steps[k]) + 1)
        return rows

    def _failed(self, rows: np.ndarray, step: int) -> np.ndarray:
        """The last of these rows says that this step has failed."""
        places = self.rows.first_slots.interval
        rows[0, -1, [places.status, places.failed_step], 0] = Status.NOT_FINITE, step
        return rows

    def _block(self, end: int, last: int, every: int, waiting: list[Seen]) -> bool:
        """On to step `end`; whether it failed. What is seen on the way waits to be shown."""
        marks = np.arange(self.step - self.step % every, end + 1, every)
        marks[0] = self.step
        if marks[-1] < end:
            marks = np.append(marks, end)
        times, marks = self.t0 + marks * self.h, marks[1:]
        here = np.concatenate([self.q, self.v])
        states, reached = self._flow_through(here, times, marks - self.step)
        failed, turns = reached < len(marks), self.turns
        if failed:
            marks, states = marks[:reached], states[:reached]
        if reached:
            self.step = int(marks[-1])
            self._stand_at(states[-1], times[reached])
        if failed or self.step % every:
            due = (marks % every == 0) | (marks == last) | (failed & (marks == self.step))
            marks, states = marks[due], states[due]
        waiting.append(Seen(marks, states, turns))
        if failed and not len(marks):  # the failure belongs to the row before, which `simulate` merges
            waiting.append(Seen(np.array([self.step]), here[None], turns, False))
        return failed

    def _stand_at(self, state: np.ndarray, t: float) -> None:
        """Begin anew from there, with angles wrapped and the velocity on the constraint."""
        n = self.n
        stand = self.stand if self.inputs is None else _starts_of(self._system_at_node(self.step))
        given = np.empty((1, 3 * n + 1))
        given[0, : 2 * n], given[0, 2 * n : 3 * n], given[0, 3 * n] = state, self.turns, t
        found = stand(given)[0].view(float)
        self.q, self.v, self.turns = found[:n], found[n : 2 * n], found[2 * n :]

    def _flow_through(self, y: np.ndarray, times: np.ndarray, parts: np.ndarray) -> tuple[np.ndarray, int]:
        """The states at times[1:], so many steps further, and how many were reached; with inputs, each step
        by itself. Positions and velocities leave their constraints by the errors of the flow."""
        if self.inputs is None:
            return self.flow.through(self.system, y, times)
        n, found = self.n, []
        for k in range(int(np.ceil(parts[-1]))):
            system, start = self._system_at_node(self.step + k + 1), self.t0 + (self.step + k) * self.h
            if self.steered:  # a constraint that has switched
                y = np.concatenate([y[:n], system.project_velocity(y[:n], y[n:], start)])
            inside = [t for t, part in zip(times[1:], parts, strict=True) if k < part < k + 1]
            states, reached = self.flow.through(system, y, np.array([start, *inside, start + self.h]))
            found += list(states[: min(reached, len(inside))])
            if reached <= len(inside):
                break
            y = states[-1]
            found += [y] if k + 1 in parts else []
        return np.array(found).reshape(-1, 2 * n), len(found)

    def _system_at_node(self, k: int) -> System:
        """With the inputs of the step that leads to node k, or of the first."""
        return self.system.driven(of_step(self.inputs, max(k - 1, 0)))

    def _here(self) -> np.ndarray:
        """The row of the state in which the run stands."""
        state = np.concatenate([self.q, self.v])[None]
        return self._shown([Seen(np.array([self.step]), state, self.turns, False)])

    def _shown(self, parts: list[Seen], nodes: np.ndarray | None = None) -> np.ndarray:
        """Rows; `nodes` are the ends of the steps whose inputs they have."""
        n, count = self.n, sum([len(part.step) for part in parts])
        values = np.empty((count, 3 * n + 4))
        first, k, t = 0, values[:, 3 * n], values[:, 3 * n + 1]
        for part in parts:
            rows = slice(first, first := first + len(part.step))
            values[rows, : 2 * n], values[rows, 2 * n : 3 * n] = part.states, part.turns
            k[rows], values[rows, 3 * n + 3] = part.step, part.flown
            t[rows] = self.t0 + part.step * self.h if part.times is None else part.times
        if count:
            values[0, 3 * n + 2] = k[0] - self.saved
            values[1:, 3 * n + 2] = k[1:] - k[:-1]
            self.saved = int(k[-1])
        if self.inputs is None:
            return self.show(values)[None, :, :, None]
        ends = (k if nodes is None else nodes).astype(int).tolist()
        codes = [_rows_of(self._system_at_node(end)) for end in ends]
        found = [code(row[None]) for code, row in zip(codes, values, strict=True)]
        return np.concatenate([np.empty((0, self.rows.slots), np.int64), *found])[None, :, :, None]


class Seen(NamedTuple):
    """States that have not been shown yet, with the turns taken off before; `flown` to, or stood at."""

    step: np.ndarray
    states: np.ndarray
    turns: np.ndarray
    flown: np.ndarray | bool = True
    times: np.ndarray | None = None  # t0 + step h if there are none


def _rows_of(system: System) -> OfStates:
    return OfStates(_row, system, ((system.n,),) * 3 + ((),) * 4)


def _starts_of(system: System) -> OfStates:
    return OfStates(_standing, system, ((system.n,),) * 3 + ((),))


def _row(
    system: System, q: Array, v: Array, turns: Array, k: Array, t: Array, taken: Array, flown: Array
) -> Row:
    """What is shown of a state, with angles wrapped: if the flow has led there, put back on its constraints.
    Nonlinear ones take twenty steps back, which only the start of a block is worth."""
    q, turns = _wrapped(system, q, turns)
    if system.kind != "nonlinear" or system.k or system.rotations:
        there = _put_back(system, q, v, t)
        q, v = (jnp.where(flown > 0, new, old) for new, old in zip(there, (q, v), strict=True))
    lam, interval = system.multipliers(q, v, t), replaced(Interval.empty(), steps=taken.astype(int))
    return Row(k.astype(int), t, q, turns, v, lam, t, *steps.energies(system.at(t), q, v), interval)


def _standing(system: System, q: Array, v: Array, turns: Array, t: Array) -> tuple[Array, Array, Array]:
    """The state from which the flow begins anew."""
    q, turns = _wrapped(system, q, turns)
    return *_put_back(system, q, v, t), turns


def _put_back(system: System, q: Array, v: Array, t: Array) -> tuple[Array, Array]:
    """The state nearby with g = 0, phi = 0 and quaternions of length 1."""
    q = put_back(system.at(t), q)
    q, v = system.shown(q, system.project_velocity(q, v, t))
    return q, v


def _wrapped(system: System, q: Array, turns: Array) -> tuple[Array, Array]:
    """Declared angles in [-pi, pi], and the turns taken off in all."""
    whole = jnp.where(system.angle_mask, jnp.round(q / steps.TURN), 0.0)
    return q - whole * steps.TURN - whole * steps.TURN_LOW, turns + whole
