"""Rows at given times of a run with events.

A look aside is made before the step that it looks into. Where that step then turns out to hold a reset, the
times after it are looked at once more, from the state that the reset gives; where the run ends in it, they
are left out.
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from noslip.numerics.pytrees import replaced
from noslip.run.at_times import placed, steps_and_parts, up_to_a_failure
from noslip.run.choose import Beginning
from noslip.run.driving import of_step
from noslip.run.events import NEVER
from noslip.run.occurrences import Log, after_reset
from noslip.run.pacing import SECONDS_PER_CALL, Interruption, Meter, Pace, Progress
from noslip.run.runner import Happened, Rows, TrajectoryRunner, joined
from noslip.run.step import Row


def watched_rows_at(
    runner: TrajectoryRunner[Rows],
    start: Beginning,
    times: np.ndarray,
    steps: int,
    progress: bool | Progress | None,
    log: Log,
) -> tuple[Row, BaseException | None]:
    """As `rows_at`; a terminal event's state is the last row."""
    looks = LooksAside(runner, start, times)
    done, failed, ended, end = 0, False, False, list[Row]()
    pace = Pace(runner.first_piece, SECONDS_PER_CALL, runner.grain)
    with Meter(progress, steps) as show, Interruption(steps > runner.brief) as interruption:
        for k in sorted({*looks.first.tolist(), steps}):
            while done < k and not (failed or ended or interruption.asked):
                rows, done, failed = runner.to(pace.stop(done, k), steps, NEVER)
                happened = runner.happened()
                ended = log.note(happened)
                end = [runner.join([rows])] if failed or ended else []
                looks.amend(happened, done, ended)
                interruption.attend(show, done, steps)
                pace.reached(done)
            if failed or ended or interruption.asked:
                break
            looks.look(looks.first == k, k)
    cause = interruption.cause
    found = [row for row in looks.rows if row is not None]
    count = len(found)
    if not found and not end:
        end = [runner.join([runner.aside(np.zeros(1))])]  # interrupted before the first
    seen = joined([*found, *end])
    seen.interval.steps[:] = np.diff(np.maximum.accumulate(seen.step), prepend=0)
    return up_to_a_failure(placed(start, seen, times[:count])), cause


class LooksAside:
    """The rows that have been looked at, by the number of their time."""

    def __init__(self, runner: TrajectoryRunner[Any], start: Beginning, times: np.ndarray):
        self.runner, self.start, self.times = runner, start, times
        self.system, self.events = start.pairing.system, start.pairing.events
        self.first, parts = steps_and_parts(times, start.t, start.h, runner.grain)
        self.span = self.first + parts
        self.rows: list[Row | None] = [None] * len(times)

    def look(self, which: np.ndarray, step: int) -> None:
        """At these times from the runner, which stands at `step`."""
        if which.any():
            self._keep(which, self.runner.join([self.runner.aside(self.span[which] - step)]))

    def amend(self, happened: Happened, done: int, ended: bool) -> None:
        """After the step that has led to `done`."""
        if not len(happened.which):
            return
        seen = np.array([row is not None for row in self.rows])
        if ended:
            for late in np.flatnonzero(self.times >= happened.t[-1]):
                self.rows[late] = None
            seen &= self.times < happened.t[-1]
        resets = [i for i, e in enumerate(happened.which) if self.events[e][1].reset is not None]
        for i, end in zip(resets, [*happened.t[resets[1:]], np.inf], strict=False):
            which = seen & (self.times > happened.t[i]) & (self.times <= end) & (self.span <= done)
            if which.any():
                self._keep(which, self._after(happened, i, done, self.times[which]))
        if resets and not ended:
            self.look(seen & (self.span > done), done)

    def _after(self, happened: Happened, i: int, done: int, times: np.ndarray) -> Row:
        """From the state that reset i gives, up to the end of its step."""
        reset, t = self.events[happened.which[i]][1].reset, float(happened.t[i])
        drive = of_step(self.start.inputs, done - 1)
        q, v = (jnp.asarray(x[i]) for x in (happened.q, happened.v))
        q, v = after_reset(reset, self.system.driven(drive), q, v, jnp.asarray(t))
        table = jax.tree.map(lambda x: np.asarray(x)[None], drive)
        there = self.start.elsewhere(np.asarray(q), np.asarray(v), t, table).runner()
        return there.join([there.aside((times - t) / self.start.h)])

    def _keep(self, which: np.ndarray, rows: Row) -> None:
        for j, i in enumerate(np.flatnonzero(which)):
            row, old = jax.tree.map(lambda x, j=j: x[j : j + 1], rows), self.rows[i]
            self.rows[i] = row if old is None else replaced(row, step=old.step)
