"""One trajectory on disk: a Zarr folder that grows row by row, and goes on after any interruption.

The folder holds the arrays of `Trajectory.to_xarray` by the same names, and one checkpoint, as
`checkpoints.py` has them, with all that the method and the judgement of rows need to go on. What is asked of
the rows of a run in memory is asked here of each chunk of rows when it is full, so that it does not matter
where a run was interrupted. Events have arrays of their own, which grow as they happen; the checkpoint counts
them before the state.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import jax
import numpy as np

from noslip.errors import Damaged
from noslip.files import sweep
from noslip.integrators.solve import Status
from noslip.run.along import up_to_a_failed_row
from noslip.run.at_times import steps_between, up_to_a_failure
from noslip.run.checked import AT_ONCE, BY_ROWS, array_of, new_array, open_checked, require_zarr
from noslip.run.checkpoints import (
    HEAD,
    SECONDS_BETWEEN_CHECKPOINTS,
    Checkpoints,
    begin_folder,
    new_checkpoints,
    note,
    state_of,
    state_words,
)
from noslip.run.drive import merge_failed_row
from noslip.run.events import NEVER, Events
from noslip.run.occurrences import Log
from noslip.run.pacing import SECONDS_PER_CALL, Interruption, Meter, Pace, Progress
from noslip.run.record import RunInfo
from noslip.run.runner import RowsRunner, joined
from noslip.run.step import TURN, Carry, Row
from noslip.run.store_layout import CHUNK_BYTES, description_of_run, digest, equations, of_events
from noslip.run.stored_rows import WHAT
from noslip.system import System
from noslip.system.conditions import broken_along, parallel_along

SHARE_OF_WRITING = 0.1  # of the time, where rows come slowly
EVENTS_AT_ONCE = 2**15  # of one kind, in a chunk
Block = dict[str, np.ndarray]  # rows of the columns that have a time axis
Columns = dict[str, tuple[tuple[str, ...], np.ndarray]]  # name: dimensions and values; rows have "time" first


@dataclass(frozen=True)
class Task:
    """A run, without the place where its rows go."""

    system: System
    stepped: System  # the same, perhaps with orthogonal one-forms
    runner: Callable[[bool], RowsRunner[Any]]  # at the start; whether one-forms are made orthogonal
    columns: Callable[[Row, RunInfo], Columns]
    info: RunInfo
    events: Events
    steps: int
    every: int
    conserved: bool
    times: np.ndarray | None = None  # of the rows, where they were asked for


def run_to_store(task: Task, path: str | Path, progress: bool | Progress | None) -> BaseException | None:
    """Begin the store, or go on with it, until the last row is there; or why it was interrupted before."""
    require_zarr()
    folder = Path(path)
    runner = task.runner(False)
    first = runner.join([runner.first])
    going = _Going(runner.snapshot(), first, first, first, np.zeros(1, int))
    begin_folder(folder, lambda part: _make(part, task, first, going), _call(task, first), WHAT)
    writer = _Writer(task, folder, runner, going)
    return None if writer.finished else writer.run(progress)


def _call(task: Task, first: Row) -> dict[str, object]:
    """All that decides the bits of the trajectory, as JSON."""
    of_run = task.columns(first, task.info)
    states = {name: of_run[name][1] for name in ("q0", "v0")}
    functions = {"functions of the system": "digest " + digest(equations(task.system).encode())}
    given = {name: x for name, (dims, x) in of_run.items() if dims == ("input",)}
    if task.times is not None:
        states["save_at"] = task.times
    return description_of_run(task.info, states, of_events(task.system, task.events), functions, given)


def _make(folder: Path, task: Task, first: Row, going: _Going) -> None:
    store, columns = open_checked(folder, "w"), task.columns(first, task.info)
    per_row = sum(x.nbytes for dims, x in columns.values() if dims[0] == "time")
    rows = max(1, CHUNK_BYTES // per_row)
    for name, (dims, x) in columns.items():
        how: dict[str, Any] = {"dimension_names": dims}
        if dims[0] != "time":
            new_array(store, name, AT_ONCE, data=np.ascontiguousarray(x), **how)
            continue
        how |= {"chunks": (rows, *(max(n, 1) for n in x.shape[1:])), "dtype": x.dtype}
        fill = np.nan if x.dtype.kind == "f" else 0
        new_array(store, name, BY_ROWS, shape=(0, *x.shape[1:]), fill_value=fill, **how)
    events = _event_columns(task)
    for name, (dims, kind, x) in events.items():
        chunks = (EVENTS_AT_ONCE, *x.shape[1:])
        new_array(store, name, BY_ROWS, HEAD + kind, shape=x.shape, chunks=chunks, dtype=x.dtype,
                  fill_value=np.nan, dimension_names=dims)  # fmt: skip
    columns |= {name: (dims, x) for name, (dims, _, x) in events.items()}
    resume = store.create_group("resume")
    new_checkpoints(resume, 1, len(task.events) + len(going.words()))
    layout = {"rows": rows, "columns": {name: list(dims) for name, (dims, _) in columns.items()}}
    store.attrs.update(task.info.attributes() | {"layout": layout, "call": _call(task, first)})
    Checkpoints(folder, store).write(0, False, 0, 0, None)


def _event_columns(task: Task) -> dict[str, tuple[tuple[str, ...], int, np.ndarray]]:
    """Of each array of an event: its dimensions, the number of the event, and itself while it is empty."""
    found = {}
    for k, (name, there) in enumerate(Log(task.system, task.events).occurrences().items()):
        for column, (dims, x) in there.columns(name).items():
            found[column] = dims, k, x
    return found


@dataclass
class _Going:
    """What is needed to go on: the state of the method, the first two rows and the last one, by which the
    next rows are judged, and whether the one-forms are made orthogonal."""

    carry: Carry
    first: Row
    second: Row
    last: Row
    orthogonal: np.ndarray

    def words(self) -> np.ndarray:
        carry = jax.tree.map(lambda x: np.asarray(x)[None], self.carry)
        return state_words((carry, self.first, self.second, self.last, self.orthogonal), 1)

    @classmethod
    def of(cls, words: np.ndarray, like: _Going) -> _Going:
        carry = jax.tree.map(lambda x: np.asarray(x)[None], like.carry)
        tree = (carry, like.first, like.second, like.last, like.orthogonal)
        carry, *rest = state_of(words, tree, members=1, room=1)
        return cls(jax.tree.map(lambda x: x[0], carry), *rest)


@dataclass
class _Writer:
    """Drives the runner and puts its rows into the folder."""

    task: Task
    folder: Path
    runner: RowsRunner[Any]
    going: _Going
    waiting: list[Row] = field(default_factory=list)  # rows that are not on disk yet
    amended: bool = False  # whether the first of them replaces the last one on disk
    tail: Block = field(default_factory=dict)  # of the chunk that is not full yet

    def __post_init__(self) -> None:
        self.group = open_checked(self.folder, "r+")
        self.layout = self.group.attrs["layout"]
        self.at_once = self.layout["rows"]
        self.names = [name for name, dims in self.layout["columns"].items() if dims[0] == "time"]
        self.checkpoints = Checkpoints(self.folder, self.group)
        there = self.checkpoints.read(0)
        self.finished, self.written, self.reached = there.finished, there.written, there.reached
        kinds = len(self.task.events)
        self.counts, self.log = there.state[:kinds].copy(), Log(self.task.system, self.task.events)
        self.info = self.task.info
        if self.finished:
            return
        self.mark = self.checkpoints.take(0)
        sweep(self.folder, below=True)
        if self.written or self.reached:
            self.going = _Going.of(there.state[kinds:], self.going)
            if self.going.orthogonal[0]:
                self.runner = self.task.runner(True)
            self.runner.restore(self.going.carry)
            self._read_tail(self.written)
        else:
            self._begin()

    def run(self, progress: bool | Progress | None) -> BaseException | None:
        """On to the end, or to a failure, or until interrupted; then what there is gets written."""
        steps, every = self.task.steps, self.task.every
        pace, last, pause = Pace(self.runner.first_piece, SECONDS_PER_CALL), time.monotonic(), 0.0
        with Meter(progress, steps) as show, Interruption() as interruption:
            self.finished = self.reached >= steps and self.written > 0
            while not interruption.asked:
                if not self.finished:
                    rows, self.reached, failed = self.runner.to(pace.stop(self.reached, steps), steps, every)
                    ended = self.log.note(self.runner.happened())
                    self.finished = self._take(self.runner.join([rows]), failed) or ended
                    self.finished = self.finished or self.reached >= steps
                    pace.reached(self.reached)
                if self._is_full() or time.monotonic() > last + max(SECONDS_BETWEEN_CHECKPOINTS, pause):
                    began = time.monotonic()
                    self._write()
                    last = time.monotonic()
                    pause = (last - began) / SHARE_OF_WRITING
                interruption.attend(show, self.reached, steps)
                if self.finished:
                    break
            if not self.finished:
                self._write()
        return interruption.cause

    def _begin(self) -> None:
        self.waiting = [self.going.first] if self.task.times is None else []
        self.amended, self.tail = False, {}
        self.written = self.reached = 0
        self.counts, self.log = 0 * self.counts, Log(self.task.system, self.task.events)
        self.info, self.finished = self.task.info, False

    def _is_full(self) -> bool:
        count = sum(len(rows.step) for rows in self.waiting) - self.amended
        return self.finished or self.written % self.at_once + count >= self.at_once

    def _take(self, rows: Row, failed: bool) -> bool:
        """Rows as they come, judged by those before; whether they are the last, since one has failed."""
        count = self.written + sum(len(part.step) for part in self.waiting) - self.amended
        if count == 1 and len(rows.step):
            self.going.second = _row(rows, 0)
        known = [self.going.first, self.going.second, self.going.last][: min(count, 3)]
        if self.task.times is not None:
            known = [self.going.last][: min(count, 1)]
            self._count_steps(rows, int(known[0].step[0]) if known else 0)
        whole = joined([*known, rows])
        judged = self._judged(whole)
        if failed or len(judged.step) < len(whole.step):
            self._replace_last()
            rows, failed = jax.tree.map(lambda x: x[max(len(known) - 1, 0) :], judged), True
        else:
            rows = jax.tree.map(lambda x: x[len(known) :], judged)
        if len(rows.step):
            self.waiting.append(rows)
            self.going.last = _row(rows, -1)
        return failed

    def _judged(self, rows: Row) -> Row:
        """Up to one that has failed."""
        if self.task.times is not None:
            return up_to_a_failure(rows)
        return up_to_a_failed_row(merge_failed_row(rows), self.task.conserved)

    def _count_steps(self, rows: Row, before: int) -> None:
        """Of rows at given times of a run with events, some of which were looked at from resets."""
        if self.task.events and len(rows.step):
            rows.interval.steps[:] = np.diff(np.maximum.accumulate(rows.step), prepend=before)

    def _replace_last(self) -> None:
        """Leave room for the last row once more, as the failure after it has changed its record."""
        while self.waiting and not len(self.waiting[-1].step):
            self.waiting.pop()
        if self.waiting:
            self.waiting[-1] = jax.tree.map(lambda x: x[:-1], self.waiting[-1])
        else:
            self.amended = True

    def _write(self) -> None:
        """Rows, then the checkpoint that counts them. Full chunks are looked at first."""
        self.checkpoints.require_mark(0, self.mark, f"'{self.folder}'")
        self.going.carry = self.runner.snapshot()
        if self.finished:
            self._end(int(self.going.last.step[0]))
        waiting = [part for part in self.waiting if len(part.step)]
        if waiting:
            first = self.written - self.amended
            if first // self.at_once < self.written // self.at_once:
                self._read_tail(first)
            start = first // self.at_once * self.at_once
            new = self.task.columns(joined(waiting), self.info)
            block = {name: np.concatenate([self.tail[name][: first - start], new[name][1]])
                     if self.tail else new[name][1] for name in self.names}  # fmt: skip
            if (looked := self._looked(start, block)) is None:
                return
            self._put(*looked)
        self._put_events()
        state = self.counts if self.finished else np.concatenate([self.counts, self.going.words()])
        if self.finished:
            self._cut()
            if self.info is not self.task.info:
                note(self.folder, **self.info.attributes())
        self.checkpoints.write(0, self.finished, self.written, self.reached, state)
        if self.finished:
            sweep(self.folder, below=True)

    def _end(self, step: int) -> None:
        """What only the end of a run tells: the event that it was, and after how many steps."""
        by = self.log.stopped_by
        if by or self.task.steps == NEVER:
            self.info = replace(self.task.info, stopped_by=by, steps=step)

    def _put_events(self) -> None:
        """Those since the last time; what a killed process has left there is written again."""
        for k, (name, there) in enumerate(self.log.occurrences().items()):
            if not len(there):
                continue
            first, last = int(self.counts[k]), int(self.counts[k]) + len(there)
            for column, (_, values) in there.columns(name).items():
                array = array_of(self.group, column)
                if array.shape[0] < last:
                    array.resize((last, *array.shape[1:]))
                array[first:last] = values
            self.counts[k] = last
        self.log.forget()

    def _put(self, start: int, block: Block) -> None:
        count = len(next(iter(block.values())))
        for name, values in block.items():
            array = array_of(self.group, name)
            if array.shape[0] < start + count:
                array.resize((start + count, *array.shape[1:]))
            array[start : start + count] = values
        self.written, self.waiting, self.amended = start + count, [], False
        kept = count // self.at_once * self.at_once
        self.tail = {name: values[kept:].copy() for name, values in block.items()}

    def _read_tail(self, rows: int) -> None:
        """The rows of the last chunk up to number `rows`, from the disk."""
        start = rows // self.at_once * self.at_once
        self.tail = {name: array_of(self.group, name)[start:rows] for name in self.names}
        if any(len(x) < rows - start for x in self.tail.values()):
            raise Damaged(f"'{self.folder}' is damaged: it has fewer rows than its checkpoint counts")

    def _cut(self) -> None:
        for name in self.names:
            array = array_of(self.group, name)
            if array.shape[0] > self.written:
                array.resize((self.written, *array.shape[1:]))
        for name, (_, kind, _) in _event_columns(self.task).items():
            array, count = array_of(self.group, name), int(self.counts[kind])
            if array.shape[0] > count:
                array.resize((count, *array.shape[1:]))

    # ---- what is asked of the system along the way --------------------------------------------------------

    def _looked(self, start: int, block: Block) -> tuple[int, Block] | None:
        """The block, looked at where a chunk of it is full or the last: cut where a condition is broken,
        which ends the run. None where one-forms are parallel: the run begins anew, with orthogonal ones."""
        system, count = self.task.system, len(block["q"])
        ends = [*range(self.at_once, count + 1, self.at_once)]
        if self.finished and (not ends or ends[-1] < count):
            ends.append(count)
        for end in ends:
            first = max((end - 1) // self.at_once * self.at_once, 1 if start == 0 else 0)
            if first == end:
                continue
            q, v, t = (block[name][first:end] for name in ("q", "v", "time"))
            q = np.where(system.angle_mask, q - TURN * np.round(q / TURN), q)
            if not self.going.orthogonal[0] and parallel_along(self.task.stepped, q, v, t):
                self.checkpoints.write(0, False, 0, 0, None)
                self.runner, self.going.orthogonal = self.task.runner(True), np.ones(1, int)
                self._begin()
                return None
            if found := broken_along(system, q, v, t):
                return self._ended_at(start, block, first + found[0], found[1])
        return start, block

    def _ended_at(self, start: int, block: Block, row: int, reason: str) -> tuple[int, Block]:
        """Without this row and those after it; the one before says why."""
        step = int(self.going.last.step[0]) - int(np.sum(block["report_steps"][row + 1 :]))
        if self.task.times is not None:
            step = 1 + int(steps_between(block["time"][row : row + 1], self.info.t0, self.info.step_size)[0])
        self._end(step - int(block["report_steps"][row]))
        if row == 0:  # the one before is in the chunk before
            start, row = start - self.at_once, self.at_once
            block = {name: array_of(self.group, name)[start : start + row] for name in self.names}
        block = {name: values[:row].copy() for name, values in block.items()}
        block["report_status"][-1], block["report_failed_step"][-1] = Status.BROKEN_CONDITION, step
        note(self.folder, ended=reason)
        self.finished = True
        return start, block


def _row(rows: Row, k: int) -> Row:
    return jax.tree.map(lambda x: x[k : k + 1] if k >= 0 else x[-1:], rows)
