"""Events along the motion itself: located by the flow, on the host."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import jax
import numpy as np
from jax import Array

from noslip.engine.backends.numpy_rows import evaluate_anyhow
from noslip.integrators.solve import Status
from noslip.numerics.pytrees import replaced
from noslip.run import step as steps
from noslip.run.events import LOCATED, SLOTS, TINY, Events, crosses
from noslip.run.flow_code import GIVEN, LED
from noslip.run.one_reference import ReferenceTrajectory, failed_at
from noslip.run.pairing import Pairing
from noslip.run.runner import NOTHING, Happened, Piece, joined
from noslip.run.step import Carry, Row
from noslip.system import System
from noslip.system.inputs import Drive

BLOCK = 256  # steps


Found = list[tuple[int, float, np.ndarray, np.ndarray]]  # events, when and in what state


class WatchingReference(ReferenceTrajectory):
    """A block of steps at a time; resets begin a new one, and what was computed of the old one is lost."""

    def __init__(
        self, pairing: Pairing, q: np.ndarray, v: np.ndarray, t: float, h: float, inputs: Drive = None
    ):
        assert inputs is None, "simulate refuses arrays of inputs here"
        super().__init__(pairing, q, v, t, h)
        self.events, self.told, self.grain = pairing.events, NOTHING, BLOCK
        self.values = self._values_here(t)

    def happened(self) -> Happened:
        return self.told

    def snapshot(self) -> Carry:
        return replaced(super().snapshot(), watch=np.concatenate([self.values, self.energies]))

    def restore(self, carry: Carry) -> None:
        super().restore(carry)
        self.values, self.energies[:] = np.split(np.array(carry.watch), [len(self.events)])

    def to(self, stop: int, last: int, every: int) -> Piece[Row]:
        parts: list[Row] = [jax.tree.map(lambda x: x[:0], self.first)]
        failed, self.told = False, NOTHING
        while self.step < stop and not failed and not len(self.told.which):
            rows, failed = self._watched(min(self._end_of_block(), last), last, every)
            parts += rows
        return Piece(joined(parts), self.step, failed)

    def _values_here(self, t: float) -> np.ndarray:
        n = self.n
        return self._values(self.state[:n] + steps.TURN * self.turns, self.state[n:], t)

    def _values(self, q: np.ndarray, v: np.ndarray, t: float) -> np.ndarray:
        rows = (np.asarray(x, float)[None] for x in (q, v, t))
        return evaluate_anyhow(_event_values, self.events, self.system, *rows)[0]

    def _watched(self, end: int, last: int, every: int) -> tuple[list[Row], bool]:
        """On to the end of the block, or to the end of a step in which the state was reset, or of the run."""
        n, offset = self.system.n, steps.TURN * self.turns
        marks = np.arange(self.step, end + 1)
        times = self.t0 + marks * self.h
        flown, reached = self.motion.flow.through(self.system, self.state, times)
        states = np.concatenate([self.state[None], flown[:reached]])
        q, v = states[:, :n] + offset, states[:, n:]
        f = evaluate_anyhow(_event_values, self.events, self.system, q, v, times[: len(states)])
        f[0] = self.values
        found: Found = []
        for k in np.flatnonzero(crosses(self.events, f[:-1], f[1:], np).any(axis=1)).tolist():
            outcome = self._step(states[k], times[k], times[k + 1], f[k], f[k + 1], offset, found)
            if outcome is not None:
                return self._cut(int(marks[k]), states[: k + 1], outcome, found, last, every)
        self.told = _told(found, -1, n)
        failed = reached < len(marks) - 1
        self.values = f[-1]
        return self._commit(marks[: len(states)], states, last, every, failed), failed

    def _step(
        self,
        state: np.ndarray,
        t: float,
        end: float,
        fa: np.ndarray,
        fb: np.ndarray,
        offset: np.ndarray,
        found: Found,
    ) -> Outcome | None:
        """The events between t and `end`; None where the run goes on as it was."""
        n, flow, changed, since, begun = self.system.n, self.motion.flow, None, t, None

        def at(time: float) -> np.ndarray:
            return flow.through(self.system, state, np.array([t, time]))[0][0] if time > t else state

        def value(time: float, e: int) -> float:
            x = at(time)
            return float(self._values(x[:n] + offset, x[n:], time)[e])

        for _ in range(SLOTS):
            open_ = np.flatnonzero(crosses(self.events, fa, fb, np))
            if not len(open_):
                return changed
            roots = [(self._root(value, int(e), since, end, fa[e]), int(e)) for e in open_]
            time, e = min(roots)
            since = time
            x, event = at(time), self.events[e][1]
            q, v = x[:n] + offset, x[n:]
            found.append((e, time, q, v))
            if event.terminal:
                return Outcome(e, x, time, begun)
            f = self._values(q, v, time)
            past = np.where(crosses(self.events, fa, f, np), 2 * np.sign(fa) * TINY, f)
            fa = np.where(np.arange(len(f)) == e, -np.sign(fa) * TINY, past)
            if event.reset is not None:
                q, v = (np.asarray(y) for y in event.reset(q, v, self.system.at(time).parameters))
                v = np.asarray(self.system.project_velocity(q, v, time))
                state, t = np.concatenate([q - offset, v]), time
                begun = state, t
                f, rate = self._values(q, v, t), self._values(q + 1e-8 * self.h * v, v, t)
                fa = np.where(np.abs(f) <= 10 * LOCATED, np.sign(rate - f) * TINY, f)
                x = at(end)
                fb = self._values(x[:n] + offset, x[n:], end)
                changed = Outcome(-1, x, end, begun)
        raise ValueError(Status.TOO_MANY_EVENTS.message)

    def _root(self, value: Callable[[float, int], float], e: int, a: float, b: float, fa: float) -> float:
        if abs(fa) <= TINY:  # it has just happened: find where it has left zero
            part = 0.5
            while np.sign(value(a + part * (b - a), e)) != np.sign(fa) and part > 1e-12:
                part /= 2
            a = a + part * (b - a)
        if np.sign(value(a, e)) == np.sign(value(b, e)):
            return a  # at the same time as the one before, but for the last digit
        from scipy.optimize import brentq  # slow to import, and hardly ever needed

        return float(brentq(value, a, b, (e,), xtol=4e-16 * max(1.0, abs(b)), rtol=1e-15))

    def _cut(
        self, before: int, states: np.ndarray, outcome: Outcome, found: Found, last: int, every: int
    ) -> tuple[list[Row], bool]:
        """The rows up to a step that ended otherwise than the flow."""
        which, x, time, begun = outcome
        marks = np.arange(before - len(states) + 1, before + 1)
        rows = self._commit(marks, states, -1, every, False)
        if begun is not None:  # what follows has the energy that the reset gave it
            turns = self.turns.copy()
            self._begin(*begun, GIVEN)
            self.turns[:] = turns
        self.step = before + 1
        if which >= 0 or self.step % every == 0 or self.step == last:
            rows.append(self._rows(np.array([self.step]), x[None], np.array([time])))
        self._begin(x, time, LED)
        self.values = self._values_here(time)
        self.told = _told(found, which, self.n)
        return rows, False

    def _commit(
        self, marks: np.ndarray, states: np.ndarray, last: int, every: int, failed: bool
    ) -> list[Row]:
        self.step = int(marks[-1])
        due = (marks % every == 0) | (marks == last) | (failed & (marks == self.step))
        keep, times = np.flatnonzero(due[1:]) + 1, self.t0 + marks * self.h
        rows = [self._rows(marks[keep], states[keep], times[keep])] if len(keep) else []
        if failed:
            rows = [failed_at(rows[0] if rows else self._here(), self.step + 1)]
        if len(marks) > 1:
            self._begin(states[-1], times[-1], LED)
        return rows


class Outcome(NamedTuple):
    """How a step has ended otherwise than the flow: by which event, or -1, in what state and when; and where
    the flow to it has begun, if that was a reset."""

    which: int
    state: np.ndarray
    time: float
    begun: tuple[np.ndarray, float] | None


def _told(found: Found, stopped: int, n: int) -> Happened:
    if not found:
        return NOTHING
    which, t, q, v = (np.array(x) for x in zip(*found, strict=True))
    return Happened(which, t, q.reshape(-1, n), v.reshape(-1, n), stopped)


def _event_values(events: Events, system: System, q: Array, v: Array, t: Array) -> Array:
    return jax.numpy.stack([event.value(system, q, v, t) for _, event in events])
