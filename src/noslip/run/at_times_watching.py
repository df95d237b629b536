"""Rows at given times of a run with events.

A look aside is made before the step that it looks into. Where that step then turns out to hold a reset, the
times after it are looked at once more, from the state that the reset gives; where the run ends in it, they
are left out.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from noslip.numerics.pytrees import replaced
from noslip.run.at_times import dated, steps_and_parts
from noslip.run.drive import SECONDS_PER_CALL
from noslip.run.driving import of_step
from noslip.run.events import NEVER, Events
from noslip.run.occurrences import Log, after_reset
from noslip.run.pacing import Interruption, Meter, Pace, Progress
from noslip.run.runner import Happened, TrajectoryRunner, joined
from noslip.run.step import Row
from noslip.system import System
from noslip.system.inputs import Drive

Elsewhere = Callable[[np.ndarray, np.ndarray, float, Drive], TrajectoryRunner[Any]]


def watched_rows_at(
    runner: TrajectoryRunner[Any],
    elsewhere: Elsewhere,
    system: System,
    events: Events,
    times: np.ndarray,
    t0: float,
    h: float,
    steps: int,
    progress: bool | Progress | None,
    log: Log,
    inputs: Drive = None,
) -> tuple[Row, BaseException | None]:
    """As `rows_at`; a terminal event's state is the last row. `elsewhere` makes a runner at another state."""
    looks = LooksAside(runner, elsewhere, system, events, times, t0, h, inputs)
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
    cause = interruption.before_the_end(done >= steps or failed or ended)
    found = [row for row in looks.rows if row is not None]
    count = len(found)
    if not found and not end:
        end = [runner.join([runner.aside(np.zeros(1))])]  # interrupted before the first
    seen = joined([*found, *end])
    seen.interval.steps[:] = np.diff(np.maximum.accumulate(seen.step), prepend=0)
    return dated(system, seen, np.append(times[:count], seen.t[count:]), t0, h, inputs), cause


class LooksAside:
    """The rows that have been looked at, by the number of their time."""

    def __init__(
        self,
        runner: TrajectoryRunner[Any],
        elsewhere: Elsewhere,
        system: System,
        events: Events,
        times: np.ndarray,
        t0: float,
        h: float,
        inputs: Drive,
    ):
        self.runner, self.elsewhere, self.system, self.events = runner, elsewhere, system, events
        self.times, self.t0, self.h, self.inputs = times, t0, h, inputs
        self.first, parts = steps_and_parts(times, t0, h, runner.grain)
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
        drive = of_step(self.inputs, done - 1)
        q, v = (jnp.asarray(x[i]) for x in (happened.q, happened.v))
        q, v = after_reset(reset, self.system.driven(drive), q, v, jnp.asarray(t))
        table = jax.tree.map(lambda x: np.asarray(x)[None], drive)
        there = self.elsewhere(np.asarray(q), np.asarray(v), t, table)
        return there.join([there.aside((times - t) / self.h)])

    def _keep(self, which: np.ndarray, rows: Row) -> None:
        for j, i in enumerate(np.flatnonzero(which)):
            row, old = jax.tree.map(lambda x, j=j: x[j : j + 1], rows), self.rows[i]
            self.rows[i] = row if old is None else replaced(row, step=old.step)
