"""What advances a run, in its two forms: one trajectory, or many members.

`choose.py` makes them, `pacing.py` says how far each call goes; nothing else knows which backend runs.
"""

from __future__ import annotations

from typing import Generic, NamedTuple, Protocol, TypeVar

import jax
import numpy as np

from noslip.numerics import aligned
from noslip.run.events import Watch
from noslip.run.member import MemberRow, MemberState
from noslip.run.step import TURN, Carry, Row
from noslip.system.inputs import Drive

Rows = TypeVar("Rows")  # saved rows as a backend keeps them until they are joined


class Piece(NamedTuple, Generic[Rows]):
    """What one call has done: the rows saved, the step reached, and whether a solve failed there."""

    rows: Rows
    reached: int
    failed: bool


class Happened(NamedTuple):
    """Events since the last call, in their order: which, when and in what state; and the number of the one
    that has ended the run, or -1."""

    which: np.ndarray
    t: np.ndarray
    q: np.ndarray
    v: np.ndarray
    stopped: int

    @classmethod
    def of(cls, watch: Watch) -> Happened:
        which = np.asarray(watch.which)
        some = which >= 0
        t, q, v = (np.array(x)[some] for x in (watch.t, watch.q, watch.v))
        return cls(which[some], t, q, v, int(watch.stopped))


NOTHING = Happened(np.empty(0, int), np.empty(0), np.empty(0), np.empty(0), -1)


class RowsRunner(Protocol[Rows]):
    """What makes the rows of a run, standing at some step with the whole state of the method."""

    backend: str
    first_piece: int  # steps of the first call, before their speed is known
    first: Rows  # the row of the initial time

    def to(self, stop: int, last: int, every: int) -> Piece[Rows]:
        """Go on towards step `stop`, as far as one call can, or to the next step with an event in it. Rows
        are saved at every multiple of `every`, at step `last`, before a failed step, at a terminal event."""

    def happened(self) -> Happened:
        """The events within the last step of the last call."""

    def join(self, parts: list[Rows]) -> Row:
        """The rows of several calls as arrays, time first."""

    def snapshot(self) -> Carry:
        """Everything that the next step needs."""

    def restore(self, carry: Carry) -> None:
        """Go on from there."""


class TrajectoryRunner(RowsRunner[Rows], Protocol[Rows]):
    """One trajectory."""

    brief: int  # runs of so many steps are over before anybody could interrupt them
    grain: int  # a look aside begins at multiples of this

    def feed(self, drive: Drive) -> None:
        """The inputs of the next step, of a run that was begun with some."""

    def aside(self, parts: np.ndarray) -> Rows:
        """Rows at these numbers of steps from here, increasing, from 0 up to `grain`: by one shortened step
        each. The run stands where it was; only its record of solves begins anew."""

    def last(self, rows: Rows) -> tuple[float, np.ndarray, np.ndarray]:
        """t, q with angles unwrapped, and v of the last of these rows."""

    def step_size(self, h: float) -> None:
        """Go on with another step, say backwards."""


class MembersRunner(Protocol):
    """Many members, all at the same step but those that have failed."""

    backend: str

    @property
    def reached(self) -> int:
        """The step at which the members stand."""

    def to(self, stop: int) -> int:
        """Go on to step `stop`, and return it."""

    def row(self) -> MemberRow:
        """What is saved of the members now."""

    def final(self) -> MemberState:
        """The whole state of every member."""

    def resume(self, full: MemberState, reached: int) -> None:
        """Go on from what `final` gave at step `reached`."""


def last_of(rows: Row) -> tuple[float, np.ndarray, np.ndarray]:
    """Of rows that are arrays already."""
    return float(rows.t[-1]), np.asarray(rows.q[-1] + TURN * rows.turns[-1]), np.asarray(rows.v[-1])


def joined(parts: list[Row]) -> Row:
    """The rows of several calls that are arrays already."""
    return parts[0] if len(parts) == 1 else jax.tree.map(lambda *x: aligned.joined(x), *parts)
