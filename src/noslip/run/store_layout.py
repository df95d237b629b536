"""The beginning of an ensemble on disk: its arrays and chunks, and the record of the call that made it."""

from __future__ import annotations

import hashlib
import importlib.util
import json
import re
import shutil
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from noslip.engine.memory import Table
from noslip.files import beside
from noslip.numerics.pytrees import PyTree
from noslip.run.member import MemberGroup
from noslip.run.plan import Arrays, Plan
from noslip.run.runner import MembersRunner
from noslip.system import System

CHUNK_BYTES = 2**25  # of saved rows in one chunk, at most, and of states
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


def begin(plan: Plan, group: MemberGroup, folder: Path, chunk: int | None) -> str:
    """Make the folder in one move, or see that the one that is there was made by this very call; the backend
    that runs it."""
    if not folder.parent.is_dir():
        raise FileNotFoundError(f"cannot store in '{folder}': there is no folder '{folder.parent}'")
    probe = plan.runner(group.first(plan.system.n))
    call = _description(plan, group, probe.backend)
    if not folder.exists():
        rows, states = plan.saved([probe.row()]), len(state_words(probe))
        per_row = sum(x.nbytes for x in rows.values())
        large = CHUNK_BYTES * (64 if probe.backend == "gpu" else 1)  # a GPU wants many members at once
        fitting = large // max(8 * states, per_row * min(len(plan.saved_steps), 64))
        size = min(group.count, chunk or max(256, fitting // 256 * 256))
        partial = beside(folder)
        try:
            _make(partial, plan, group, size, rows, plan.summary(probe), states, call)
            partial.rename(folder)
        except OSError:
            if not folder.is_dir():  # else another process was quicker with the same call
                raise
        finally:
            shutil.rmtree(partial, ignore_errors=True)
    _refuse_another_call(folder, call, chunk)
    return str(probe.backend)


def _make(
    folder: Path,
    plan: Plan,
    group: MemberGroup,
    chunk: int,
    rows: Arrays,
    summary: Arrays,
    states: int,
    call: dict[str, Any],
) -> None:
    store, members = require_zarr().open_group(str(folder), mode="w"), group.count
    marks = plan.saved_steps
    row_bytes = chunk * sum(x.nbytes for x in rows.values())
    rows_at_once = max(1, min(len(marks), CHUNK_BYTES // row_bytes))
    for name, x in rows.items():
        more = (DIMENSIONS[name],) if name in DIMENSIONS else ()
        store.create_array(
            name,
            shape=(members, len(marks), *x.shape[2:]),
            chunks=(chunk, rows_at_once, *(max(n, 1) for n in x.shape[2:])),
            dtype=x.dtype,
            fill_value=np.nan,
            dimension_names=("member", "time", *more),
        )
    for name, x in summary.items():
        fill = NOT_RUN if name == "status" else np.nan if x.dtype.kind == "f" else 0
        store.create_array(name, shape=(members,), chunks=(chunk,), dtype=x.dtype, fill_value=fill,
                           dimension_names=("member",))  # fmt: skip
    for name, x in group.varying.items():
        extra = tuple(f"{name}_{i}" for i in range(x.ndim - 1))
        store.create_array(f"parameter_{name}", data=x, dimension_names=("member", *extra))
    for name, x in plan.inputs.values.items():
        store.create_array(f"input_{name}", data=np.asarray(x), dimension_names=("input",))
    if "t" not in rows:
        t = plan.t0 + plan.step_size * np.asarray(marks)
        store.create_array("t", data=t, dimension_names=("time",))
    resume = store.create_group("resume")
    for name, x in zip(("q0", "v0"), group.states(plan.system.n), strict=True):
        resume.create_array(name, data=np.ascontiguousarray(x), chunks=(chunk, plan.system.n))
    chunks, width = -(-members // chunk), 3 + chunk * states
    resume.create_array("checkpoint", shape=(chunks, width), chunks=(1, width), dtype="i8", fill_value=0)
    resume.create_array("mark", shape=(chunks,), chunks=(1,), dtype="i8", fill_value=0)
    store.attrs.update(
        plan.info(group, call["backend"]).attributes()
        | {
            "layout": {
                "members": members,
                "chunk": chunk,
                "rows": rows_at_once,
                "varying": list(group.varying),
            },
            "statistics": {name: list(kinds) for name, _, kinds in plan.watch},
            "call": call,
        }
    )


def _description(plan: Plan, group: MemberGroup, backend: str) -> dict[str, Any]:
    """All that decides the bits of an ensemble, as JSON: names to what they are in this call."""
    info = json.loads(plan.info(group, backend).attributes()["noslip"])
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
    parameters = {k: x for k, x in info["parameters"].items() if k not in group.varying}
    versions = {
        f"version of {k}": x for k, x in info["versions"].items() if k in ("noslip", "jax", "llvmlite")
    }
    states = {f"inputs {name}": x for name, x in plan.inputs.values.items()}
    states |= {"q0s": group.q, "v0s": group.v} | {f"parameter {name}": x for name, x in group.varying.items()}
    return {
        "members": group.count,
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

    def all_of_it(system: System, q: Array, v: Array, t: Array) -> PyTree:
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
    attributes = attributes_of(folder)
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


def attributes_of(folder: Path) -> dict[str, Any]:
    try:
        return dict(require_zarr().open_group(str(folder), mode="r").attrs)
    except (FileNotFoundError, ValueError, KeyError, NotADirectoryError):
        return {}


def state_words(runner: MembersRunner) -> np.ndarray:
    """The state of all members, bit for bit."""
    full = runner.final()
    shape = jax.tree.map(lambda x: jax.ShapeDtypeStruct(x.shape[1:], x.dtype), full)
    return Table(shape).pack(full, len(full.carry.step), 1).reshape(-1)
