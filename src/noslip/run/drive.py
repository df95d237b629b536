"""One trajectory from its first row to its last: calls of a runner, paced, with progress and Ctrl-C."""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import numpy as np

from noslip.run.along import (
    conserves_energy,
    forms_become_parallel,
    parallel_at,
    surely_good,
    up_to_a_broken_condition,
    up_to_a_failed_row,
)
from noslip.run.at_times import rows_at
from noslip.run.at_times_watching import watched_rows_at
from noslip.run.choose import Beginning
from noslip.run.events import NEVER
from noslip.run.occurrences import Log
from noslip.run.pacing import SECONDS_PER_CALL, Interruption, Meter, Pace, Progress
from noslip.run.pairing import Pairing
from noslip.run.runner import Rows, TrajectoryRunner, joined
from noslip.run.step import Row

COUNTED = 512  # steps at a time that are looked at for the end of a run


class Driven(NamedTuple):
    """A run in memory: its rows, the runner at their end, and the pairing that was run; the events, if there
    were any to look out for; why it was interrupted, if it was, and the condition that was broken."""

    rows: Row
    runner: TrajectoryRunner[Any]
    pairing: Pairing
    log: Log | None
    interrupted: BaseException | None
    broken: str


def stable(start: Beginning) -> Beginning:
    """The same start, with one-forms that are made orthogonal where they are nearly parallel there."""
    return start.orthogonal if parallel_at(start.pairing, start.q, start.v, start.t) else start


def driven(
    start: Beginning, steps: int, every: int, times: np.ndarray | None, progress: bool | Progress | None
) -> Driven:
    """The run with every `every`-th row, or with those at `times`."""
    pairing, here = start.pairing, stable(start)
    while True:
        runner = here.runner()
        log = Log(pairing.system, pairing.events) if pairing.events else None
        if times is None:
            conserved = conserves_energy(pairing.system)
            rows, interrupted = all_rows(runner, steps, every, progress, conserved, 0, log)
        elif log is not None:
            rows, interrupted = watched_rows_at(runner, here, times, steps, progress, log)
        else:
            rows, interrupted = rows_at(runner, here, times, steps, progress)
        if interrupted or not forms_become_parallel(here.pairing, rows):
            break
        here = start.orthogonal  # they have become parallel on the way: once more
    rows, broken = up_to_a_broken_condition(pairing.system, rows)
    return Driven(rows, runner, here.pairing, log, interrupted, broken)


def all_rows(
    runner: TrajectoryRunner[Rows],
    steps: int,
    every: int,
    progress: bool | Progress | None,
    conserved: bool = False,
    done: int = 0,
    log: Log | None = None,
) -> tuple[Row, BaseException | None]:
    """The rows from step `done`, where the runner stands, up to step `steps`, or to a failure, or to Ctrl-C
    or an exception in `progress`; the last of these, if it was one. A row that is not finite, or whose energy
    has gone though the motion conserves it (`conserved`), is a failure too. Events go to the `log`; a
    terminal one is the end."""
    parts, together = [runner.first], []
    failed, ended, pace = False, False, Pace(runner.first_piece, SECONDS_PER_CALL)
    with Meter(progress, steps) as show, Interruption(steps > runner.brief) as interruption:
        while done < steps and not failed and not ended and not interruption.asked:
            rows, done, failed = runner.to(pace.stop(done, steps), steps, every)
            ended = log is not None and log.note(runner.happened())
            parts.append(rows)
            if done < steps and not ended:  # while they are in the cache; a short run is joined once
                together.append(runner.join(parts))
                parts = []
                if not surely_good(together[-1], conserved, together[0]):
                    seen = [*together[:1], *together[-1:]]
                    failed = failed or len(up_to_a_failed_row(joined(seen), conserved).step) < _count(seen)
            interruption.attend(show, done, steps)
            pace.reached(done)
    if parts:
        together.append(runner.join(parts))
    rows_of_all = together[0] if len(together) == 1 else joined(together)
    rows_of_all = up_to_a_failed_row(merge_failed_row(rows_of_all), conserved)
    return rows_of_all, interruption.cause


def _count(parts: list[Row]) -> int:
    return sum(len(part.step) for part in parts)


def merge_failed_row(rows: Row) -> Row:
    """A failure right after a saved row adds no state of its own: its record joins that row."""
    if len(rows.step) < 2 or rows.step[-1] != rows.step[-2]:
        return rows
    cut, last = jax.tree.map(lambda x: x[:-1].copy(), rows), rows.interval
    for name, values in vars(cut.interval).items():
        values[-1] = max(values[-1], getattr(last, name)[-1])
    return cut


def steps_until(runner: TrajectoryRunner[Rows], t: float, t_end: float) -> int:
    """How many steps a method that makes its own time needs until t >= t_end, or until it fails."""
    done, now, failed = 0, t, False
    while now < t_end and not failed:
        part, reached, failed = runner.to(done + COUNTED, NEVER, 1)
        times = runner.join([part]).t
        if len(later := np.flatnonzero(times >= t_end)):
            return done + int(later[0]) + 1
        if not failed and not times[-1] > now:
            raise ValueError(f"`t_end` = {t_end:g} is never reached: time stands still at {now:g}")
        done, now = reached, float(times[-1])
    return done + failed
