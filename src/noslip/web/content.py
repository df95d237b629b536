"""What a page knows of a system and its methods: modules of WebAssembly, and where their numbers lie.

Everything is plain data, as JSON has it. Modules are gzipped; slots are counted in 8 bytes.
"""

from __future__ import annotations

import base64
import gzip
import json
from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from noslip.engine.backends import wasm
from noslip.engine.memory import Table
from noslip.engine.program import CannotTranslate, Program
from noslip.engine.translate import translate
from noslip.integrators import spelled
from noslip.integrators.base import Integrator
from noslip.numerics.linear import solve, spd_solve
from noslip.references import WORKS, keys
from noslip.run.pairing import Pairing, pairing_of
from noslip.run.record import Report, run_info
from noslip.run.step import TURN, Row
from noslip.scenes import scene
from noslip.system import System
from noslip.system.conditions import ADMISSIBLE
from noslip.system.inputs import Drive, Held
from noslip.system.positions import put_back
from noslip.version import __version__
from noslip.web.looks import Looks, as_a_point, looks_of

FORMAT = 2
STEP_SIZE, STEPS = 0.05, 1000
CHOSEN = ("parameters", "arguments", "step_size", "steps", "save_every")  # of a record, by the reader
Data = dict[str, Any]


@dataclass(frozen=True)
class Subject:
    """A system with a name, the words by which Python makes it, and a state to start from."""

    name: str
    title: str
    python: str
    system: System
    q: np.ndarray
    v: np.ndarray
    step_size: float = STEP_SIZE
    steps: int = STEPS


class CannotShow(ValueError):
    """A method that no page can run, with the reason."""


def content(subject: Subject, methods: Sequence[Integrator]) -> Data:
    """All that the page needs; methods that cannot run are named with the reason."""
    shown, refused = [], []
    for method in methods:
        try:
            shown.append(method_data(subject, method))
        except CannotShow as reason:
            refused.append({"name": spelled(method), "reason": str(reason)})
    if not shown:
        raise ValueError("; ".join(f"{x['name']}: {x['reason']}" for x in refused))
    return {
        "format": FORMAT,
        "version": __version__,
        "turn": TURN,
        "system": system_data(subject),
        "methods": shown,
        "refused": refused,
    }


def method_data(subject: Subject, method: Integrator) -> Data:
    """A method on the system; raises `CannotShow` where it does not apply or has no module."""
    pairing = pairing_of(subject.system, method)
    if reason := pairing.refusal or pairing.refusal_near(subject.q, subject.v):
        raise CannotShow(reason)
    if method.host_driven:
        raise CannotShow("it is driven by the host, not by steps of its own")
    try:
        programs = pairing.driven_programs(jax.tree.structure(_drive(subject.system)))
        inputs = programs.tables["drive"].slots
        module = wasm.module_of({"start": programs.start}, (programs.step, programs.save), inputs)
    except CannotTranslate as why:
        raise CannotShow(str(why)) from None
    tables = programs.tables
    carry = tables["carry"].first_slots
    return {
        "text": spelled(method),
        "name": _short(method),
        "order": method.order,
        "preserves": sorted(method.preserves),
        "works": [[WORKS[key].text, WORKS[key].url] for key in _keys(method)],
        "own_time": method.own_time,
        "info": _info(pairing, subject),
        "module": _module(module),
        "slots": {name: tables[name].slots for name in ("fixed", "initial", "carry", "row")},
        "row": _row_places(tables["row"]),
        "carry": {"step": carry.step, "status": carry.interval.status},
    }


def _drive(system: System) -> Drive:
    """Inputs that every step reads, where the system has any: a page holds them over a step."""
    return Held(dict.fromkeys(system.inputs, 0.0)) if system.inputs else None


def _info(pairing: Pairing, subject: Subject) -> str:
    """The record of a run without what the page chooses, as the inside of an object of JSON."""
    record = run_info(pairing, 0.0, subject.step_size, subject.steps, 1, "wasm")
    data = json.loads(record.attributes()["noslip"])
    kept = {name: value for name, value in data.items() if name not in CHOSEN}
    return json.dumps(kept, sort_keys=True)[1:-1]


def system_data(subject: Subject) -> Data:
    """The system: names, parameters, state, what it looks like, and its own module: `onto` and `look`."""
    system = subject.system
    looks = looks_of(system, scene(system))
    try:
        onto, look, tables = _own_programs(system, looks)
    except CannotTranslate:
        looks = looks_of(system, as_a_point(system))
        onto, look, tables = _own_programs(system, looks)
    module = wasm.module_of({"onto": onto, "look": look})
    parameters, places = sorted(system.parameters), tables["system"].places
    return {
        "name": subject.name,
        "title": subject.title,
        "python": subject.python,
        "coordinates": list(system.coordinates),
        "angles": list(system.angles),
        "constraints": system.m,
        "holonomic": system.k,
        "integrals": list(system.first_integrals),
        "parameters": [
            {"name": name, "slot": place.start, "values": np.ravel(system.parameters[name]).tolist()}
            for name, place in zip(parameters, places, strict=True)
        ],
        "inputs": sorted(system.inputs),
        "q": subject.q.tolist(),
        "v": subject.v.tolist(),
        "step_size": subject.step_size,
        "steps": subject.steps,
        "module": _module(module),
        "onto": {"in": tables["onto"].slots, "out": len(onto.outputs)},
        "look": {"in": tables["look"].slots, "out": len(look.outputs)},
        "parts": looks.parts,
    }


def onto_constraints(system: System, state: tuple[Array, Array, Array]) -> tuple[Array, Array, Array]:
    """The state (q, v, held) put on the constraints: a position with g = 0, and the nearest velocity in the
    kinetic metric among those with the speeds that are `held` (1 or 0); and how far it is off, in units of
    what counts as admissible. Where nothing can move as asked, that is no small number."""
    q, v, held = state
    q = put_back(system, system.shown(q, v)[0], 8)
    if not system.rows:
        return q, v, jnp.zeros(())
    free = 1.0 - held
    M = system.mass_matrix(q) * free[:, None] * free + jnp.diag(held)
    for _ in range(8 if system.kind == "nonlinear" else 2):
        mu = system.mu(q, v) * free
        N = spd_solve(M, mu.T) * free[:, None]
        v = v - N @ solve(mu @ N, system.phi(q, v))
    off = jnp.abs(system.phi(q, v)) / (ADMISSIBLE * system.constraint_size(q, v) + 1e-300)
    return q, v, jnp.max(off)


def _own_programs(system: System, looks: Looks) -> tuple[Program, Program, dict[str, Table]]:
    x, scalar = jax.ShapeDtypeStruct((system.n,), float), jax.ShapeDtypeStruct((), float)
    lam = jax.ShapeDtypeStruct((system.m + system.k,), float)
    shape = jax.tree.map(lambda leaf: jax.ShapeDtypeStruct(np.shape(leaf), float), system)
    state, seen = (x, x, x), (x, lam, scalar)
    onto = translate(onto_constraints, shape, state)
    look = translate(looks.numbers, shape, seen)
    return onto, look, {"system": Table(shape), "onto": Table(state), "look": Table(seen)}


def _row_places(table: Table) -> Data:
    """The slot of each part of a row, with its size."""
    first = table.first_slots
    names = (
        "t", "q", "turns", "v", "multipliers", "multiplier_t", "energy", "energy_scale", "constraint",
        "holonomic",
    )  # fmt: skip
    sizes = dict(zip((f.name for f in fields(Row)), _sizes(table), strict=True))
    places = {name: [getattr(first, name), sizes[name]] for name in names}
    report = {f.name: getattr(first.interval, f.name) for f in fields(Report)}
    return places | {"step": first.step, "integrals": dict(first.first_integrals), "report": report}


def _sizes(table: Table) -> list[int]:
    """How many slots each field of a row takes."""
    marked = jax.tree.unflatten(table.structure, [place.stop - place.start for place in table.places])
    return [sum(jax.tree.leaves(getattr(marked, f.name))) for f in fields(Row)]


def _module(module: wasm.WasmModule) -> Data:
    def packed(code: bytes) -> str:
        return base64.b64encode(gzip.compress(code, 9, mtime=0)).decode()

    return {"relaxed": packed(module.relaxed), "plain": packed(module.plain), "free": module.free}


def _keys(method: Integrator) -> list[str]:
    """The works that a method of ours cites; others may cite what they like."""
    ours = type(method).__module__.startswith("noslip.")
    return keys(method.reference) if ours and method.reference else []


def _short(method: Integrator) -> str:
    """Its name, with the arguments that differ from the defaults."""
    cls = type(method)
    text = spelled(method)
    return cls.__name__ if text == spelled(cls()) else text
