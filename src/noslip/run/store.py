"""An ensemble on disk: a Zarr folder that is filled chunk by chunk, and completed after any interruption.

The folder holds the arrays of `Ensemble.to_xarray` by the same names, the initial states, and for each chunk
of members one checkpoint, as `checkpoints.py` has them.
"""

from __future__ import annotations

import importlib.util
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import jax
import numpy as np
from jax.experimental import multihost_utils

from noslip.errors import shown
from noslip.files import sweep
from noslip.run.arguments import whole
from noslip.run.checked import array_of, open_checked, require_zarr
from noslip.run.checkpoints import SECONDS_BETWEEN_CHECKPOINTS, Checkpoints, open_attributes, state_of
from noslip.run.member import MemberGroup, MemberRow
from noslip.run.pacing import Interruption, Meter, Progress
from noslip.run.plan import Arrays, Plan
from noslip.run.record import RunInfo
from noslip.run.runner import MembersRunner
from noslip.run.store_layout import begin, members_words

if TYPE_CHECKING:
    from distributed import Client

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
        raise TypeError(f"`cluster` must be a dask.distributed.Client, but {shown(cluster)} was provided")
    size = None if chunk is None else whole("chunk", chunk, 1)
    # from here on the backend is the one that was found, also on workers that have others
    plan = replace(plan, backend=begin(plan, group, folder, size))
    checkpoints = _Store(folder).checkpoints
    chunks = list(range(len(checkpoints)))
    if cluster is None:
        share = slice(jax.process_index(), None, jax.process_count())
        _run_here(plan, folder, chunks[share], progress)
        if jax.process_count() > 1:
            multihost_utils.sync_global_devices("the ensemble is complete")
    else:
        waiting = [k for k in chunks if not checkpoints.read(k).finished]
        _run_on(cluster, plan, folder, waiting, progress)
    sweep(folder, below=True)


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
    if store.checkpoints.read(k).finished:
        return
    runner = plan.runner(store.group_of(k))
    mark = store.checkpoints.take(k)
    written = store.restore(k, runner)
    rows: list[MemberRow] = []
    last = time.monotonic()
    for done, row in plan.advance(runner, written):
        if row is not None:
            rows.append(row)
        full, finished = written % store.rows_at_once + len(rows) >= store.rows_at_once, done == plan.steps
        if finished or full or time.monotonic() > last + SECONDS_BETWEEN_CHECKPOINTS:
            store.checkpoints.require_mark(k, mark, f"chunk {k} of this ensemble")
            if rows:
                store.write(k, plan.saved(rows), written)
            written, rows = written + len(rows), []
            if finished:
                store.write(k, plan.summary(runner), None)
            state = None if finished else members_words(runner)
            store.checkpoints.write(k, finished, written, runner.reached, state)
            last = time.monotonic()
        show(done)


class _Store:
    """The folder, by chunks of members."""

    def __init__(self, folder: Path):
        self.group = open_checked(folder, "r+")
        layout = self.group.attrs["layout"]
        self.members, self.chunk, self.rows_at_once = (layout[x] for x in ("members", "chunk", "rows"))
        self.varying = layout["varying"]
        self.checkpoints = Checkpoints(folder, self.group)

    def span(self, k: int) -> slice:
        return slice(k * self.chunk, min((k + 1) * self.chunk, self.members))

    def group_of(self, k: int) -> MemberGroup:
        """The members of chunk k."""
        span = self.span(k)
        q, v = (array_of(self.group, f"resume/{name}")[span] for name in ("q0", "v0"))
        varying = {name: array_of(self.group, f"parameter_{name}")[span] for name in self.varying}
        return MemberGroup(q, v, varying, len(q))

    def restore(self, k: int, runner: MembersRunner) -> int:
        """Put the runner where the checkpoint is; the number of rows written until there."""
        there = self.checkpoints.read(k)
        if there.written:
            shape = runner.final()
            runner.resume(state_of(there.state, shape, len(shape.carry.step), self.chunk), there.reached)
        return there.written

    def write(self, k: int, arrays: Arrays, first: int | None) -> None:
        """Rows from number `first` on, or what has no time."""
        for name, values in arrays.items():
            array = array_of(self.group, name)
            if first is None:
                array[self.span(k)] = values
            else:
                array[self.span(k), first : first + values.shape[1]] = values


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
    require_zarr()
    attributes = open_attributes(path, "an ensemble")
    group = open_checked(Path(path), "r")
    layout = attributes["layout"]
    names = layout["columns"] if "columns" in layout else [name for name, _ in group.arrays()]
    opened = {name: array_of(group, name) for name in names}
    arrays = {name: array if array.ndim > 1 else array[...] for name, array in opened.items()}
    parameters = {name: np.asarray(arrays[f"parameter_{name}"]) for name in layout["varying"]}
    inputs = {name.removeprefix("input_"): x for name, x in arrays.items() if name.startswith("input_")}
    return Stored(RunInfo.from_attributes(attributes), arrays, parameters, attributes["statistics"], inputs)
