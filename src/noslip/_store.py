"""An ensemble on disk: a Zarr folder that is filled chunk by chunk, and completed after any interruption.

The folder holds the arrays of `Ensemble.to_xarray` by the same names, the initial states, and for each chunk
of members one checkpoint: how many rows have been written, the step reached, and the whole state there. A
checkpoint is one file, and Zarr puts every file in place in one move; it is written after the rows that it
counts. So whatever a killed process left behind beyond its last checkpoint is written again, with the same
bits, and two processes on one chunk do no harm.
"""

from __future__ import annotations

import hashlib
import importlib.util
import json
import os
import re
import shutil
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental import multihost_utils

from noslip._inputs import whole
from noslip._plan import Arrays, Plan
from noslip.engine.members import Row
from noslip.engine.table import Table
from noslip.ensembles import Ensemble, plan_info
from noslip.errors import Interrupted
from noslip.simulate import Meter
from noslip.trajectory import RunInfo

CHUNK_BYTES = 2**25  # of saved rows in one chunk, at most, and of states
SECONDS_BETWEEN_CHECKPOINTS = 5.0
NOT_RUN = -1
DIMENSIONS = {"q": "coordinate", "v": "coordinate", "multipliers": "constraint"}


def require_zarr() -> Any:
    """The module, or a sentence."""
    if importlib.util.find_spec("zarr") is None:
        raise ImportError(
            "an ensemble on disk needs the package zarr, but it is not installed; pip install noslip[store]"
        )
    import zarr

    return zarr


def run_in_store(
    plan: Plan,
    q: np.ndarray,
    v: np.ndarray,
    varying: Mapping[str, Any],
    members: int,
    path: str | Path,
    chunk: int | None,
    cluster: Any,
    progress: Any,
) -> Ensemble:
    """Begin the store, or go on with it, until every member is there."""
    require_zarr()
    folder = Path(path)
    if cluster is not None and not isinstance(cluster, require_client()):
        raise TypeError(f"`cluster` must be a dask.distributed.Client, but {cluster!r} was provided")
    _begin(plan, q, v, varying, members, folder, None if chunk is None else whole("chunk", chunk, 1))
    store = _Store(folder)
    try:
        if cluster is None:
            share = slice(jax.process_index(), None, jax.process_count())
            _run_here(plan, folder, list(range(store.chunks))[share], progress)
            if jax.process_count() > 1:
                multihost_utils.sync_global_devices("the ensemble is complete")
        else:
            waiting = [k for k in range(store.chunks) if not store.is_done(k)]
            _run_on(cluster, plan, folder, waiting, progress)
    except KeyboardInterrupt:
        result = open_ensemble(folder)
        done = int(np.sum(result.status != NOT_RUN))
        raise Interrupted(
            f"interrupted with {done} of {members} members done; the same call goes on from '{folder}'",
            result,
        ) from None
    return open_ensemble(folder)


def _run_here(plan: Plan, folder: Path, chunks: list[int], progress: Any) -> None:
    total = plan.steps * len(chunks)
    with Meter(progress, total) as show:
        for number, k in enumerate(chunks):
            run_chunk(plan, folder, k, lambda done, before=number * plan.steps: show(before + done, total))


def _run_on(client: Any, plan: Plan, folder: Path, chunks: list[int], progress: Any) -> None:
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


def require_client() -> Any:
    """The class of Dask's clients, or a sentence."""
    if importlib.util.find_spec("distributed") is None:
        raise ImportError(
            "`cluster` needs the package distributed, but it is not installed; pip install noslip[cluster]"
        )
    from distributed import Client

    return Client


def run_chunk(plan: Plan, folder: Path, k: int, show: Any = lambda done: None) -> None:
    """Run the members of chunk k from its checkpoint to the end."""
    store = _Store(folder)
    if store.is_done(k):
        return
    runner = plan.runner(*store.inputs(k))
    written = store.restore(k, runner)
    rows: list[Row] = []
    last = time.monotonic()
    for done, row in plan.advance(runner, written):
        if row is not None:
            rows.append(row)
        full = written % store.rows_at_once + len(rows) >= store.rows_at_once
        if done == plan.steps or full or time.monotonic() > last + SECONDS_BETWEEN_CHECKPOINTS:
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
        self.checkpoints = self.group["resume/checkpoint"]

    def span(self, k: int) -> slice:
        return slice(k * self.chunk, min((k + 1) * self.chunk, self.members))

    def inputs(self, k: int) -> tuple[np.ndarray, np.ndarray, Arrays, int]:
        """Initial states and varying parameters of the members of chunk k, and their number."""
        span = self.span(k)
        q, v = (self.group[f"resume/{name}"][span] for name in ("q0", "v0"))
        return q, v, {name: self.group[f"parameter_{name}"][span] for name in self.varying}, len(q)

    def is_done(self, k: int) -> bool:
        return bool(self.checkpoints[k, 0])

    def restore(self, k: int, runner: Any) -> int:
        """Put the runner where the checkpoint is; the number of rows written until there."""
        _, written, reached, *_ = (int(x) for x in self.checkpoints[k, :3])
        if written:
            shape = runner.final()
            members = len(shape.carry.step)
            table = Table(jax.tree.map(lambda x: jax.ShapeDtypeStruct(x.shape[1:], x.dtype), shape))
            words = self.checkpoints[k, 3 : 3 + members * table.slots]
            runner.resume(table.unpack(words.reshape(members, table.slots, 1), members), reached)
        return written

    def checkpoint(self, k: int, runner: Any, written: int, finished: bool) -> None:
        words = np.zeros(self.checkpoints.shape[1], np.int64)
        words[:3] = finished, written, runner.reached
        if not finished:
            state = _words(runner)
            words[3 : 3 + len(state)] = state
        self.checkpoints[k] = words

    def write(self, k: int, arrays: Arrays, first: int | None) -> None:
        """Rows from number `first` on, or what has no time."""
        for name, values in arrays.items():
            if first is None:
                self.group[name][self.span(k)] = values
            else:
                self.group[name][self.span(k), first : first + values.shape[1]] = values


def _words(runner: Any) -> np.ndarray:
    """The state of all members, bit for bit."""
    full = runner.final()
    shape = jax.tree.map(lambda x: jax.ShapeDtypeStruct(x.shape[1:], x.dtype), full)
    return Table(shape).pack(full, len(full.carry.step), 1).reshape(-1)


# ---- the beginning -------------------------------------------------------------------------------------
def _begin(
    plan: Plan,
    q: np.ndarray,
    v: np.ndarray,
    varying: Mapping[str, Any],
    members: int,
    folder: Path,
    chunk: int | None,
) -> None:
    """Make the folder in one move, or see that the one that is there was made by this very call."""
    if not folder.parent.is_dir():
        raise FileNotFoundError(f"cannot store in '{folder}': there is no folder '{folder.parent}'")
    q0, v0 = (np.broadcast_to(x, (members, plan.system.n))[:1] for x in (q, v))
    probe = plan.runner(q0, v0, {name: x[:1] for name, x in varying.items()}, 1)
    call = _description(plan, q, v, varying, members, probe.backend)
    if not folder.exists():
        rows, states = plan.saved([probe.row()]), len(_words(probe))
        per_row = sum(x.nbytes for x in rows.values())
        large = CHUNK_BYTES * (64 if probe.backend == "gpu" else 1)  # a GPU wants many members at once
        fitting = large // max(8 * states, per_row * min(len(plan.saved_steps), 64))
        size = min(members, chunk or max(256, fitting // 256 * 256))
        partial = folder.with_name(f".{folder.name}.part-{os.getpid()}")
        try:
            _make(partial, plan, q, v, varying, members, size, rows, plan.summary(probe), states, call)
            partial.rename(folder)
        except OSError:
            if not folder.is_dir():  # else another process was quicker with the same call
                raise
        finally:
            shutil.rmtree(partial, ignore_errors=True)
    _refuse_another_call(folder, call, chunk)


def _make(
    folder: Path,
    plan: Plan,
    q: np.ndarray,
    v: np.ndarray,
    varying: Mapping[str, Any],
    members: int,
    chunk: int,
    rows: Arrays,
    summary: Arrays,
    states: int,
    call: dict[str, Any],
) -> None:
    group = require_zarr().open_group(str(folder), mode="w")
    marks = plan.saved_steps
    row_bytes = chunk * sum(x.nbytes for x in rows.values())
    rows_at_once = max(1, min(len(marks), CHUNK_BYTES // row_bytes))
    for name, x in rows.items():
        more = (DIMENSIONS[name],) if name in DIMENSIONS else ()
        group.create_array(
            name,
            shape=(members, len(marks), *x.shape[2:]),
            chunks=(chunk, rows_at_once, *(max(n, 1) for n in x.shape[2:])),
            dtype=x.dtype,
            fill_value=np.nan,
            dimension_names=("member", "time", *more),
        )
    for name, x in summary.items():
        fill = NOT_RUN if name == "status" else np.nan if x.dtype.kind == "f" else 0
        group.create_array(name, shape=(members,), chunks=(chunk,), dtype=x.dtype, fill_value=fill,
                           dimension_names=("member",))  # fmt: skip
    for name, x in varying.items():
        extra = tuple(f"{name}_{i}" for i in range(x.ndim - 1))
        group.create_array(f"parameter_{name}", data=x, dimension_names=("member", *extra))
    if "t" not in rows:
        t = plan.t0 + plan.step_size * np.asarray(marks)
        group.create_array("t", data=t, dimension_names=("time",))
    resume = group.create_group("resume")
    for name, x in (("q0", q), ("v0", v)):
        full = np.ascontiguousarray(np.broadcast_to(x, (members, plan.system.n)))
        resume.create_array(name, data=full, chunks=(chunk, plan.system.n))
    width = 3 + chunk * states
    resume.create_array(
        "checkpoint", shape=(-(-members // chunk), width), chunks=(1, width), dtype="i8", fill_value=0
    )
    group.attrs.update(
        plan_info(plan, varying, call["backend"]).attributes()
        | {
            "layout": {"members": members, "chunk": chunk, "rows": rows_at_once, "varying": list(varying)},
            "statistics": {name: list(kinds) for name, _, kinds in plan.watch},
            "call": call,
        }
    )


def _description(
    plan: Plan, q: np.ndarray, v: np.ndarray, varying: Mapping[str, Any], members: int, backend: str
) -> dict[str, Any]:
    """All that decides the bits of an ensemble, as JSON: names to what they are in this call."""
    info = json.loads(plan_info(plan, varying, backend).attributes()["noslip"])
    kept = (
        "integrator",
        "options",
        "coordinates",
        "angles",
        "step_size",
        "steps",
        "save_every",
        "t0",
        "backend",
    )
    parameters = {k: x for k, x in info["parameters"].items() if k not in varying}
    versions = {
        f"version of {k}": x for k, x in info["versions"].items() if k in ("noslip", "jax", "llvmlite")
    }
    states = {"q0s": q, "v0s": v} | {f"parameter {name}": x for name, x in varying.items()}
    return {
        "members": members,
        **{k: info[k] for k in kept},
        "parameters": parameters,
        "observables": [[name, list(kinds)] for name, _, kinds in plan.watch],
        **{name: "digest " + _digest(np.ascontiguousarray(x).tobytes()) for name, x in states.items()},
        "functions of the system and the observables": "digest " + _digest(_equations(plan).encode()),
        **versions,
    }


def _equations(plan: Plan) -> str:
    """The functions of the system and of the observables as JAX sees them."""
    system = plan.system
    x, t = jax.ShapeDtypeStruct((system.n,), float), jax.ShapeDtypeStruct((), float)

    def all_of_it(system: Any, q: Any, v: Any, t: Any) -> Any:
        p = system.parameters
        own = [jnp.asarray(f(q, v, p)) for _, f, _ in plan.watch if callable(f)]
        frame = None if system.frame is None else jnp.asarray(system.frame(q, p))
        return system.lagrangian(q, v, p), system.phi(q, v), system.applied_force(q, v, t), frame, own

    text = str(jax.make_jaxpr(all_of_it)(system, x, x, t))
    named = [f for _, f, _ in plan.watch if not callable(f)]
    return re.sub(r" at 0x[0-9a-f]+", "", text) + repr(named)


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()[:16]


def _refuse_another_call(folder: Path, call: dict[str, Any], chunk: int | None) -> None:
    attributes = _attributes(folder)
    if "call" not in attributes:
        raise ValueError(
            f"'{folder}' must be a new folder or an ensemble of noslip, but it is something else"
        )
    before = dict(attributes["call"]) | {"chunk": attributes["layout"]["chunk"]}
    now = json.loads(json.dumps(call)) | {"chunk": chunk or before["chunk"]}
    different = [k for k in dict.fromkeys([*before, *now]) if before.get(k) != now.get(k)]
    if different:
        k = different[0]
        raise ValueError(
            f"'{folder}' holds an ensemble of another call: {k} is {before.get(k)} there, but {now.get(k)} "
            "was provided; give another `store`, or delete that folder"
        )


def note(path: str | Path, name: str, text: str) -> None:
    """Keep a remark with the ensemble, such as the command that made it."""
    require_zarr().open_group(str(path), mode="r+").attrs[name] = text


def _attributes(folder: Path) -> dict[str, Any]:
    try:
        return dict(require_zarr().open_group(str(folder), mode="r").attrs)
    except (FileNotFoundError, ValueError, KeyError, NotADirectoryError):
        return {}


def open_ensemble(path: str | Path) -> Ensemble:
    """The ensemble in that folder; see `Ensemble.open`."""
    zarr, folder = require_zarr(), Path(path)
    if not folder.is_dir():
        raise FileNotFoundError(f"there is no folder '{folder}'")
    attributes = _attributes(folder)
    if "layout" not in attributes:
        raise ValueError(f"'{folder}' was not written by noslip: it has no attribute 'layout'")
    group = zarr.open_group(str(folder), mode="r")
    info = json.loads(attributes["noslip"])
    info |= {name: tuple(info[name]) for name in ("coordinates", "angles")}
    arrays = {name: array if array.ndim > 1 else array[...] for name, array in group.arrays()}
    parameters = {name: np.asarray(arrays[f"parameter_{name}"]) for name in attributes["layout"]["varying"]}
    return Ensemble.assemble(RunInfo(**info), arrays, parameters, attributes["statistics"])
