"""The beginning of an ensemble on disk: its arrays and chunks, and the record of the call that made it."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from numpy.typing import ArrayLike

from noslip.numerics.pytrees import PyTree
from noslip.run.checked import AT_ONCE, AT_THE_END, BY_ROWS, Attributes, new_array, open_checked
from noslip.run.checkpoints import begin_folder, new_checkpoints, refuse_another_call, state_words
from noslip.run.events import Events
from noslip.run.member import MemberGroup
from noslip.run.observables import Function
from noslip.run.plan import Arrays, Plan
from noslip.run.record import RunInfo
from noslip.run.runner import MembersRunner
from noslip.system import System

CHUNK_BYTES = 2**25  # of saved rows in one chunk, at most, and of states
NOT_RUN = -1
DECIDE = (
    "integrator", "options", "coordinates", "angles", "step_size", "steps", "save_every", "t0", "backend",
)  # fmt: skip
DIMENSIONS = {
    "q": "coordinate", "v": "coordinate", "multipliers": "constraint",
    "holonomic_multipliers": "holonomic", "holonomic_residual": "holonomic",
}  # fmt: skip


def begin(plan: Plan, group: MemberGroup, folder: Path, chunk: int | None) -> str:
    """Make the folder in one move, or see that the one that is there was made by this very call; the backend
    that runs it."""
    probe = plan.runner(group.first(plan.system.n))
    call = _description(plan, group, probe.backend)
    rows, states = plan.saved([probe.row()]), len(members_words(probe))
    per_row = sum(x.nbytes for x in rows.values())
    large = CHUNK_BYTES * (64 if probe.backend == "gpu" else 1)  # a GPU wants many members at once
    fitting = large // max(8 * states, per_row * min(len(plan.saved_steps), 64))
    size = min(group.count, chunk or max(256, fitting // 256 * 256))
    what = "an ensemble"
    found = begin_folder(
        folder,
        lambda part: _make(part, plan, group, size, rows, plan.summary(probe), states, call),
        call,
        what,
    )
    there = found["layout"]["chunk"]
    refuse_another_call(folder, what, {"chunk": there}, {"chunk": chunk or there})
    return str(probe.backend)


def _make(
    folder: Path,
    plan: Plan,
    group: MemberGroup,
    chunk: int,
    rows: Arrays,
    summary: Arrays,
    states: int,
    call: Attributes,
) -> None:
    store, members = open_checked(folder, "w"), group.count
    marks = plan.saved_steps
    row_bytes = chunk * sum(x.nbytes for x in rows.values())
    rows_at_once = max(1, min(len(marks), CHUNK_BYTES // row_bytes))
    for name, x in rows.items():
        more = (DIMENSIONS[name],) if name in DIMENSIONS else ()
        new_array(
            store,
            name,
            BY_ROWS,
            shape=(members, len(marks), *x.shape[2:]),
            chunks=(chunk, rows_at_once, *(max(n, 1) for n in x.shape[2:])),
            dtype=x.dtype,
            fill_value=np.nan,
            dimension_names=("member", "time", *more),
        )
    for name, x in summary.items():
        fill = NOT_RUN if name == "status" else np.nan if x.dtype.kind == "f" else 0
        new_array(store, name, AT_THE_END, shape=(members,), chunks=(chunk,), dtype=x.dtype, fill_value=fill,
                  dimension_names=("member",))  # fmt: skip
    for name, x in group.varying.items():
        extra = tuple(f"{name}_{i}" for i in range(x.ndim - 1))
        new_array(store, f"parameter_{name}", AT_ONCE, data=x, dimension_names=("member", *extra))
    for name, x in plan.inputs.values.items():
        new_array(store, f"input_{name}", AT_ONCE, data=np.ascontiguousarray(x), dimension_names=("input",))
    if "t" not in rows:
        t = plan.t0 + plan.step_size * np.asarray(marks)
        new_array(store, "t", AT_ONCE, data=t, dimension_names=("time",))
    resume = store.create_group("resume")
    for name, x in zip(("q0", "v0"), group.states(plan.system.n), strict=True):
        new_array(resume, name, AT_ONCE, data=np.ascontiguousarray(x), chunks=(chunk, plan.system.n))
    new_checkpoints(resume, -(-members // chunk), chunk * states)
    store.attrs.update(
        plan.info(group, call["backend"]).attributes()
        | {
            "layout": {
                "members": members,
                "chunk": chunk,
                "rows": rows_at_once,
                "varying": list(group.varying),
                "columns": [name for name, _ in store.arrays()],
            },
            "statistics": {name: list(kinds) for name, _, kinds in plan.watch},
            "call": call,
        }
    )


def _description(plan: Plan, group: MemberGroup, backend: str) -> Attributes:
    """All that decides the bits of an ensemble, as JSON: names to what they are in this call."""
    states = {"q0s": group.q, "v0s": group.v} | {f"parameter {name}": x for name, x in group.varying.items()}
    watch = {"observables": [[name, list(kinds)] for name, _, kinds in plan.watch]}
    functions = {"functions of the system and the observables": "digest " + digest(_equations(plan).encode())}
    return {"members": group.count} | description_of_run(
        plan.info(group, backend), states, watch, functions, plan.inputs.values, group.varying
    )


def description_of_run(
    info: RunInfo,
    states: dict[str, np.ndarray],
    more: Mapping[str, object],
    functions: Mapping[str, str],
    inputs: Mapping[str, ArrayLike],
    left_out: Collection[str] = (),
) -> Attributes:
    """All that decides the bits of a run, as JSON; of arrays the digest."""
    said = json.loads(info.attributes()["noslip"])
    states = states | {f"inputs {name}": np.asarray(x) for name, x in inputs.items()}
    between = {"inputs_between": info.inputs_between} if inputs else {}
    return {
        **{k: said[k] for k in DECIDE},
        "parameters": {k: x for k, x in said["parameters"].items() if k not in left_out},
        **more,
        **between,
        **{name: "digest " + digest(np.ascontiguousarray(x).tobytes()) for name, x in states.items()},
        **functions,
        **{f"version of {k}": x for k, x in said["versions"].items() if k in ("noslip", "jax", "llvmlite")},
    }


def _equations(plan: Plan) -> str:
    named = [f for _, f, _ in plan.watch if not callable(f)]
    return equations(plan.system, [f for _, f, _ in plan.watch if callable(f)]) + repr(named)


def equations(system: System, watched: Sequence[Function] = ()) -> str:
    """The functions of the system, and of what is watched, as JAX sees them."""
    x, t = jax.ShapeDtypeStruct((system.n,), float), jax.ShapeDtypeStruct((), float)

    def all_of_it(system: System, q: Array, v: Array, t: Array) -> PyTree:
        here = system.at(t)
        p = here.parameters
        own = [jnp.asarray(f(q, v, p)) for f in watched]
        frame = None if system.frame is None else jnp.asarray(system.frame(q, p))
        placed = [here.g(q)] if system.k else []
        return system.lagrangian(q, v, p), here.phi(q, v), here.applied_force(q, v, t), frame, own, *placed

    return re.sub(r" at 0x[0-9a-f]+", "", str(jax.make_jaxpr(all_of_it)(system, x, x, t)))


def of_events(system: System, events: Events) -> dict[str, object]:
    """What decides where events happen and what they do; nothing where there are none."""
    if not events:
        return {}
    x, t = jax.ShapeDtypeStruct((system.n,), float), jax.ShapeDtypeStruct((), float)

    def all_of_it(system: System, q: Array, v: Array, t: Array) -> PyTree:
        p = system.at(t).parameters
        resets = [event.reset(q, v, p) for _, event in events if event.reset is not None]
        return [event.value(system, q, v, t) for _, event in events], resets

    made = jax.make_jaxpr(all_of_it)(system, x, x, t)
    text = re.sub(r" at 0x[0-9a-f]+", "", str(made)) + repr([np.asarray(c).tolist() for c in made.consts])
    kinds = [[name, event.direction, event.terminal, event.reset is not None] for name, event in events]
    return {"events": kinds, "functions of the events": "digest " + digest(text.encode())}


def digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()[:16]


def members_words(runner: MembersRunner) -> np.ndarray:
    """The state of all members, bit for bit."""
    full = runner.final()
    return state_words(full, len(full.carry.step))
