"""Host-driven runs of the reference flow. The flow lands on every saved time; what is shown of its states
is made by machine code, for all rows of a block at once."""

from __future__ import annotations

import time
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from noslip.integrators.solve import Status
from noslip.numerics.forks import require_xla
from noslip.numerics.pytrees import replaced
from noslip.run.driving import fed, of_step
from noslip.run.flow_code import AGAIN, GIVEN, LED, FlowCode, Shown, flow_code_of
from noslip.run.flows import LEAST
from noslip.run.pairing import Pairing
from noslip.run.runner import NOTHING, Happened, Piece, joined, last_of
from noslip.run.step import Carry, Interval, Row
from noslip.system import System
from noslip.system.inputs import Drive, Held

SECONDS = 0.1  # after which a call ends with its block


class ReferenceTrajectory:
    """The interface of the compiled loop, on top of an adaptive flow that lands on every saved time."""

    first_piece, brief = 2**20, 1
    join, last = staticmethod(joined), staticmethod(last_of)

    def __init__(
        self, pairing: Pairing, q: np.ndarray, v: np.ndarray, t: float, h: float, inputs: Drive = None
    ):
        require_xla()
        system = self.system = pairing.system
        self.integrator, self.inputs, self.n = pairing.integrator, inputs, system.n
        self.steered = isinstance(inputs, Held) and system.inputs_within(inputs.values)[1]
        self.h, self.t0 = h, t
        self.step, self.saved = 0, 0
        self.motion = flow_code_of(system, self.integrator.flow_tolerance, not pairing.events)
        self.backend = self.motion.flow.name
        self.fixed = self.motion.fixed(self._system_at_node(0))
        self.own = self.motion.begin(self.fixed, np.concatenate([q, v]), t, GIVEN)
        self.grain = LEAST if inputs else self.motion.flow.grain(system, self.own, t, h)
        self.first = self._here()

    @property
    def turns(self) -> np.ndarray:
        """Taken off the angles so far."""
        return self._begun[: self.n]

    @property
    def state(self) -> np.ndarray:
        """(q, v) where the flow has begun."""
        return np.concatenate([self.own[: self.n], self._begun[self.n : 2 * self.n]])

    @property
    def _begun(self) -> np.ndarray:
        return self.fixed[self.motion.leaves + self.motion.size :]

    @property
    def energies(self) -> np.ndarray:
        """The energy that the run has, and its scale."""
        return self.fixed[-2 * self.n - 3 : -2 * self.n - 1]

    @property
    def time(self) -> np.ndarray:
        """At which the run stands, as an array."""
        return self.fixed[-2 * self.n - 1 : -2 * self.n]

    def step_size(self, h: float) -> None:
        self.t0, self.h = self.t0 + self.step * (self.h - h), h
        self.time[0] = self.t0 + self.step * h

    def feed(self, drive: Drive) -> None:
        self.inputs = fed(self.inputs, self.step, drive)

    def happened(self) -> Happened:
        return NOTHING

    def snapshot(self) -> Carry:
        t, h = self.t0 + self.step * self.h, self.h
        here = [jnp.asarray(x) for x in (*np.split(self.state, 2), t, h)]
        state = self.integrator.init(self._system_at_node(self.step), *here)
        since = replaced(Interval.empty(), steps=jnp.asarray(self.step - self.saved))
        drive = of_step(self.inputs, max(self.step - 1, 0))
        return Carry(state, jnp.asarray(self.step), jnp.array(self.turns), since, drive=drive)

    def restore(self, carry: Carry) -> None:
        seen = self.integrator.observe(carry.state)
        self.step, self.saved = int(carry.step), int(carry.step - carry.interval.steps)
        self.turns[:] = carry.turns
        self._begin(np.concatenate([seen.q, seen.v]), self.t0 + self.step * self.h, AGAIN)

    def to(self, stop: int, last: int, every: int) -> Piece[Row]:
        """Advance past step `stop`; rows at the multiples of `every` and at `last`.

        The flow is restarted at the multiples of `grain` and nowhere else, so that the states do not depend
        on how the host cuts the run into calls. There angles are wrapped and the state is put back on its
        constraints: both lose digits along the way.
        """
        failed, parts, until = False, list[Row](), time.monotonic() + SECONDS
        while self.step < stop and not failed:
            failed = self._block(min(self._end_of_block(), last), last, every, parts)
            if time.monotonic() > until:  # somebody may want to stop it
                break
        rows = joined(parts) if parts else jax.tree.map(lambda x: x[:0], self.first)
        return Piece(failed_at(rows, self.step + 1) if failed else rows, self.step, failed)

    def aside(self, parts: np.ndarray) -> Row:
        """The motion from the start of the block, at these times; a failure is a row that is not finite."""
        ahead = parts > 0
        times = self.t0 + (self.step + parts) * self.h
        states = np.tile(self.own, (len(parts), 1))
        if ahead.any():
            start = self.t0 + self.step * self.h
            found, reached = self._flow_through(states[0], np.append(start, times[ahead]), parts[ahead])
            states[ahead] = np.nan
            states[np.flatnonzero(ahead)[:reached]] = found[:reached]
        steps = np.floor(self.step + parts).astype(int)
        rows = self._rows(steps, states, times, np.ceil(self.step + parts))
        for k in np.flatnonzero(~np.isfinite(states).all(axis=1)).tolist():
            rows.interval.status[k], rows.interval.failed_step[k] = Status.NOT_FINITE, steps[k] + 1
        return rows

    def _block(self, end: int, last: int, every: int, parts: list[Row]) -> bool:
        """On to step `end`; whether it failed."""
        marks = marks_of(self.step, end, every)
        times, marks, here = self.t0 + marks * self.h, marks[1:], self.step
        states, reached = self._flow_through(self.own, times, marks - here)
        failed = reached < len(marks)
        times = times[1 : reached + 1]
        marks, states = (marks[:reached], states[:reached]) if failed else (marks, states)
        shown, now = slice(None), int(marks[-1]) if reached else here
        if failed or now % every:
            shown = (marks % every == 0) | (marks == last) | (failed & (marks == now))
        if len(marks[shown]):
            parts.append(self._rows(marks[shown], states[shown], times[shown]))
        elif failed:  # the failure belongs to the row before, which `simulate` merges
            parts.append(self._here())
        if reached:
            self.step = now
            self._begin(states[-1], times[-1], LED)
        return failed

    def _end_of_block(self) -> int:
        return (self.step // self.grain + 1) * self.grain

    def _begin(self, state: np.ndarray, t: float, how: float) -> None:
        """Go on from there."""
        if self.inputs is not None:
            self.fixed[: self.motion.leaves] = self.motion.fixed(self._system_at_node(self.step))[
                : self.motion.leaves
            ]
        self.own = self.motion.begin(self.fixed, state, t, how)

    def _flow_through(self, y: np.ndarray, times: np.ndarray, parts: np.ndarray) -> tuple[np.ndarray, int]:
        """The states at times[1:], so many steps further, and how many were reached; with inputs, each step
        by itself. Positions and velocities leave their constraints by the errors of the flow."""
        flow = self.motion.flow
        if self.inputs is None:
            return flow.through(self.system, y, times)
        n, found = self.n, []
        for k in range(int(np.ceil(parts[-1]))):
            system, start = self._system_at_node(self.step + k + 1), self.t0 + (self.step + k) * self.h
            if self.steered:  # a constraint that has switched; with inputs, the flow's velocities are v
                y = np.concatenate([y[:n], system.project_velocity(y[:n], y[n:], start)])
            inside = [t for t, part in zip(times[1:], parts, strict=True) if k < part < k + 1]
            states, reached = flow.through(system, y, np.array([start, *inside, start + self.h]))
            found += list(states[: min(reached, len(inside))])
            if reached <= len(inside):
                break
            y = states[-1]
            found += [y] if k + 1 in parts else []
        return np.array(found).reshape(-1, len(y)), len(found)

    def _system_at_node(self, k: int) -> System:
        """With the inputs of the step that leads to node k, or of the first."""
        return self.system.driven(of_step(self.inputs, max(k - 1, 0)))

    def _here(self) -> Row:
        """The row of the state in which the run stands."""
        return self._rows(np.array([self.step]), self.own[None], self.time.copy())

    def _rows(
        self, marks: np.ndarray, states: np.ndarray, times: np.ndarray, nodes: np.ndarray | None = None
    ) -> Row:
        """Rows of states of the flow after so many steps; `nodes` are the ends of the steps whose inputs
        they have."""
        states = np.ascontiguousarray(states)
        if self.inputs is None:
            columns = self.motion.shown(self.fixed, states, times)
        else:
            ends = (marks if nodes is None else nodes).astype(int).tolist()
            columns = np.concatenate(
                [self._driven(end, states[k : k + 1], times[k : k + 1]) for k, end in enumerate(ends)], axis=1
            )
        since, self.saved = self.saved, int(marks[-1])
        return rows_of(self.motion, columns, marks, times, since)

    def _driven(self, end: int, state: np.ndarray, t: np.ndarray) -> np.ndarray:
        """What is shown of one state, with the inputs of the step that ends at this node."""
        fixed = self.motion.fixed(self._system_at_node(end))
        fixed[self.motion.leaves :] = self.fixed[self.motion.leaves :]
        return self.motion.shown(fixed, state, t)


def marks_of(begin: int, end: int, every: int) -> np.ndarray:
    """The steps from `begin` to `end` at which a flow is asked for its state: those two, and the multiples of
    `every` between them."""
    marks = np.arange(begin - begin % every, end + 1, every)
    marks[0] = begin
    return marks if marks[-1] == end else np.append(marks, end)


def rows_of(motion: FlowCode, columns: np.ndarray, marks: np.ndarray, times: np.ndarray, since: int) -> Row:
    """Rows of what is shown after so many steps; `since` that many there was another row."""
    shown: Shown = motion.shown.split(columns)
    values, count = dict[str, Any](vars(shown)), len(marks)
    for name in ("taken", "whole", "doubt"):
        del values[name]
    none: list[Any] = [np.zeros(count, kind) for kind in (int, float, float, int)]
    none = [np.diff(marks, prepend=since), *none, np.full(count, -1)]
    values["interval"] = Interval(*none)
    return Row(**values | {"step": marks, "t": times, "multiplier_t": times.copy()})


def failed_at(rows: Row, step: int) -> Row:
    """The last of these rows says that this step has failed."""
    rows.interval.status[-1], rows.interval.failed_step[-1] = Status.NOT_FINITE, step
    return rows
