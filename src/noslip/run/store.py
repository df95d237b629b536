"""An ensemble on disk: a Zarr folder that is filled chunk by chunk, and completed after any interruption.

The folder holds the arrays of `Ensemble.to_xarray` by the same names, the initial states, and for each chunk
of members one checkpoint: how many rows have been written, the step reached, and the whole state there. A
checkpoint is one file, and Zarr puts every file in place in one move; it is written after the rows that it
counts. So whatever a killed process left behind beyond its last checkpoint is written again, with the same
bits. Who takes a chunk up puts a mark on it, and who finds another's mark there stops: a worker that was
thought dead does not write into the work of its successor.
"""

from __future__ import annotations

import importlib.util
import secrets
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import jax
import numpy as np
from jax.experimental import multihost_utils

from noslip.engine.memory import Table
from noslip.run.arguments import whole
from noslip.run.member import MemberGroup, MemberRow
from noslip.run.pacing import Interruption, Meter, Progress
from noslip.run.plan import Arrays, Plan
from noslip.run.record import RunInfo
from noslip.run.runner import MembersRunner
from noslip.run.store_layout import attributes_of, begin, require_zarr, state_words

if TYPE_CHECKING:
    from distributed import Client

SECONDS_BETWEEN_CHECKPOINTS = 5.0
Show = bool | Progress | None


def run_in_store(
    plan: Plan,
    group: MemberGroup,
    path: str | Path,
    chunk: int | None,
    cluster: Client | None,
    progress: Show,
) -> None:
    """Begin the store, or go on with it, until every member is there; Ctrl-C ends it as KeyboardInterrupt."""
    require_zarr()
    folder = Path(path)
    if cluster is not None and not isinstance(cluster, require_client()):
        raise TypeError(f"`cluster` must be a dask.distributed.Client, but {cluster!r} was provided")
    size = None if chunk is None else whole("chunk", chunk, 1)
    # from here on the backend is the one that was found, also on workers that have others
    plan = replace(plan, backend=begin(plan, group, folder, size))
    store = _Store(folder)
    if cluster is None:
        share = slice(jax.process_index(), None, jax.process_count())
        _run_here(plan, folder, list(range(store.chunks))[share], progress)
        if jax.process_count() > 1:
            multihost_utils.sync_global_devices("the ensemble is complete")
    else:
        waiting = [k for k in range(store.chunks) if not store.is_done(k)]
        _run_on(cluster, plan, folder, waiting, progress)


def _run_here(plan: Plan, folder: Path, chunks: list[int], progress: Show) -> None:
    total = plan.steps * len(chunks)
    with Meter(progress, total) as show, Interruption() as interruption:
        for number, k in enumerate(chunks):

            def shown(done: int, before: int = number * plan.steps) -> None:
                show(before + done, total)
                if interruption.asked:
                    raise KeyboardInterrupt

            run_chunk(plan, folder, k, shown)


def _run_on(client: Client, plan: Plan, folder: Path, chunks: list[int], progress: Show) -> None:
    """Chunks as tasks; one whose worker dies is taken up by another, from its last checkpoint."""
    from distributed import as_completed

    absolute = folder.resolve()
    tasks = [client.submit(run_chunk, plan, absolute, k, pure=False) for k in chunks]
    with Meter(progress, plan.steps * len(chunks)) as show:
        try:
            for number, task in enumerate(as_completed(tasks), start=1):
                task.result()
                show(number * plan.steps, plan.steps * len(chunks))
        finally:
            client.cancel(tasks)


def require_client() -> type[Client]:
    """The class of Dask's clients, or a sentence."""
    if importlib.util.find_spec("distributed") is None:
        raise ImportError(
            "`cluster` needs the package distributed, but it is not installed; pip install noslip[cluster]"
        )
    from distributed import Client

    return Client


def run_chunk(plan: Plan, folder: Path, k: int, show: Callable[[int], None] = lambda done: None) -> None:
    """Run the members of chunk k from its checkpoint to the end."""
    store = _Store(folder)
    if store.is_done(k):
        return
    runner = plan.runner(store.group_of(k))
    mark = store.take(k)
    written = store.restore(k, runner)
    rows: list[MemberRow] = []
    last = time.monotonic()
    for done, row in plan.advance(runner, written):
        if row is not None:
            rows.append(row)
        full = written % store.rows_at_once + len(rows) >= store.rows_at_once
        if done == plan.steps or full or time.monotonic() > last + SECONDS_BETWEEN_CHECKPOINTS:
            store.require_mark(k, mark)
            if rows:
                store.write(k, plan.saved(rows), written)
            written, rows = written + len(rows), []
            if done == plan.steps:
                store.write(k, plan.summary(runner), None)
            store.checkpoint(k, runner, written, finished=done == plan.steps)
            last = time.monotonic()
        show(done)


class _Store:
    """The folder, by chunks of members."""

    def __init__(self, folder: Path):
        self.group = require_zarr().open_group(str(folder), mode="r+")
        layout = self.group.attrs["layout"]
        self.members, self.chunk, self.rows_at_once = (layout[x] for x in ("members", "chunk", "rows"))
        self.varying = layout["varying"]
        self.chunks = -(-self.members // self.chunk)
        self.checkpoints, self.marks = self.group["resume/checkpoint"], self.group["resume/mark"]

    def span(self, k: int) -> slice:
        return slice(k * self.chunk, min((k + 1) * self.chunk, self.members))

    def group_of(self, k: int) -> MemberGroup:
        """The members of chunk k."""
        span = self.span(k)
        q, v = (self.group[f"resume/{name}"][span] for name in ("q0", "v0"))
        varying = {name: self.group[f"parameter_{name}"][span] for name in self.varying}
        return MemberGroup(q, v, varying, len(q))

    def is_done(self, k: int) -> bool:
        return bool(self.checkpoints[k, 0])

    def take(self, k: int) -> int:
        """Make the chunk this caller's own."""
        mark = secrets.randbits(62)
        self.marks[k] = mark
        return mark

    def require_mark(self, k: int, mark: int) -> None:
        if int(self.marks[k]) != mark:
            raise OSError(f"chunk {k} of this ensemble was taken up by another process, so this one stops")

    def restore(self, k: int, runner: MembersRunner) -> int:
        """Put the runner where the checkpoint is; the number of rows written until there."""
        _, written, reached, *_ = (int(x) for x in self.checkpoints[k, :3])
        if written:
            shape = runner.final()
            members = len(shape.carry.step)
            table = Table(jax.tree.map(lambda x: jax.ShapeDtypeStruct(x.shape[1:], x.dtype), shape))
            words = self.checkpoints[k, 3 : 3 + members * table.slots]
            runner.resume(table.unpack(words.reshape(members, table.slots, 1), members), reached)
        return written

    def checkpoint(self, k: int, runner: MembersRunner, written: int, finished: bool) -> None:
        words = np.zeros(self.checkpoints.shape[1], np.int64)
        words[:3] = finished, written, runner.reached
        if not finished:
            state = state_words(runner)
            words[3 : 3 + len(state)] = state
        self.checkpoints[k] = words

    def write(self, k: int, arrays: Arrays, first: int | None) -> None:
        """Rows from number `first` on, or what has no time."""
        for name, values in arrays.items():
            if first is None:
                self.group[name][self.span(k)] = values
            else:
                self.group[name][self.span(k), first : first + values.shape[1]] = values


def note(path: str | Path, name: str, text: str) -> None:
    """Keep a remark with the ensemble, such as the command that made it."""
    require_zarr().open_group(str(path), mode="r+").attrs[name] = text


@dataclass(frozen=True)
class Stored:
    """What a store holds: the record of the run, arrays (those with a time axis are read when they are
    indexed), the parameters that vary, the statistics of each observable, and the inputs."""

    info: RunInfo
    arrays: Arrays
    parameters: Arrays
    statistics: dict[str, list[str]]
    inputs: Arrays


def read_store(path: str | Path) -> Stored:
    """The ensemble in that folder, complete or not."""
    zarr, folder = require_zarr(), Path(path)
    if not folder.is_dir():
        raise FileNotFoundError(f"there is no folder '{folder}'")
    attributes = attributes_of(folder)
    if "layout" not in attributes:
        raise ValueError(f"'{folder}' was not written by noslip: it has no attribute 'layout'")
    group = zarr.open_group(str(folder), mode="r")
    arrays = {name: array if array.ndim > 1 else array[...] for name, array in group.arrays()}
    parameters = {name: np.asarray(arrays[f"parameter_{name}"]) for name in attributes["layout"]["varying"]}
    inputs = {name.removeprefix("input_"): x for name, x in arrays.items() if name.startswith("input_")}
    return Stored(RunInfo.from_attributes(attributes), arrays, parameters, attributes["statistics"], inputs)
