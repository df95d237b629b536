"""A runner whose rows are those at given times, for runs on disk: it goes on in pieces, each of which leaves
nothing to look at behind it, so that a run that was interrupted goes on from where it stands alone."""

from __future__ import annotations

from typing import Any

import jax
import numpy as np

from noslip.run.at_times import placed, steps_and_parts
from noslip.run.at_times_watching import LooksAside
from noslip.run.choose import Beginning
from noslip.run.events import NEVER
from noslip.run.runner import NOTHING, Happened, Piece, TrajectoryRunner, joined
from noslip.run.step import Carry, Row


class Looking:
    """What a store asks of a runner, with rows at `times`; `runner` stands at the start."""

    def __init__(self, runner: TrajectoryRunner[Any], start: Beginning, times: np.ndarray):
        self.runner, self.start, self.times = runner, start, times
        self.backend = runner.backend
        self.first_piece = runner.first_piece if runner.grain == 1 else runner.grain
        self.first = runner.join([runner.first])
        self.marks = steps_and_parts(times, start.t, start.h, runner.grain)[0]
        self.done, self.seen = 0, NOTHING

    def to(self, stop: int, last: int, every: int) -> Piece[Row]:
        """Past step `stop`, to where a look may begin, or to the end; with the rows before it, those at the
        end of the run, a row that has failed, and the state of a terminal event."""
        grain = self.runner.grain
        stop = min(-(-stop // grain) * grain, last)
        low, high = np.searchsorted(self.marks, [self.done, stop + (stop == last)])
        times, found = self.times[low:high], list[Happened]()
        looks = LooksAside(self.runner, self.start, times)
        failed = ended = False
        end, parts = list[Row](), list[Any]()
        for k in sorted({*looks.first.tolist(), stop}):
            early = False
            while self.done < k and not (failed or ended or early):
                rows, self.done, failed = self.runner.to(k, last, NEVER)
                found.append(self.runner.happened())
                ended = found[-1].stopped >= 0
                end = [self.runner.join([rows])] if failed or ended else []
                looks.amend(found[-1], self.done, ended)
                early = self.done < k and self.done % grain == 0  # somebody may want to stop it
            if failed or ended or early:
                break
            if looks.events:
                looks.look(looks.first == k, k)
            elif (here := looks.first == k).any():
                parts.append(self.runner.aside(looks.span[here] - k))
        self.seen = _together(found)
        kept = [row for row in looks.rows if row is not None] + ([self.runner.join(parts)] if parts else [])
        count = sum(len(row.step) for row in kept)
        rows = joined([jax.tree.map(lambda x: x[:0], self.first), *kept, *end])
        return Piece(placed(self.start, rows, times[:count]), self.done, failed)

    def happened(self) -> Happened:
        return self.seen

    def join(self, parts: list[Row]) -> Row:
        return joined(parts)

    def snapshot(self) -> Carry:
        return self.runner.snapshot()

    def restore(self, carry: Carry) -> None:
        self.runner.restore(carry)
        self.done = int(carry.step)


def _together(found: list[Happened]) -> Happened:
    """The events of several calls."""
    some = [x for x in found if len(x.which)]
    if not some:
        return found[-1] if found else NOTHING
    which, t, q, v = (np.concatenate([x[i] for x in some]) for i in range(4))
    return Happened(which, t, q, v, found[-1].stopped)
