"""Modules of the wasm backend run by node. Before version 21 node needs a flag for relaxed SIMD, which later
ones take for granted and no longer know."""

from __future__ import annotations

import base64
import functools
import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from noslip.engine.backends import wasm
from noslip.integrators.base import Integrator
from noslip.run.one_native import NativeTrajectory
from noslip.run.pairing import Pairing, pairing_of
from noslip.system import System

RUNNER = Path(__file__).with_name("wasm_runner.js")
NODE = shutil.which("node")
FLAG, NEEDED_BEFORE = "--experimental-wasm-relaxed-simd", 21
Task = dict[str, Any]


def text(data: bytes | np.ndarray) -> str:
    """Bytes as JSON can hold them."""
    return base64.b64encode(data if isinstance(data, bytes) else data.tobytes()).decode()


@functools.cache
def version() -> str:
    """Of node."""
    assert NODE is not None, "node is not installed"
    return subprocess.run([NODE, "--version"], capture_output=True, text=True, check=True).stdout.strip()


def flags() -> list[str]:
    """What node needs for relaxed SIMD."""
    return [FLAG] if int(version().removeprefix("v").split(".")[0]) < NEEDED_BEFORE else []


def module_task(module: wasm.WasmModule, plainly: bool) -> Task:
    """The part of a task that is the module; `plainly`, without relaxed SIMD whatever node can do."""
    forms = {"relaxed": text(module.relaxed), "plain": text(module.plain)}
    return {**forms, "free": module.free, "plainly": plainly}


def module_of(pairing: Pairing) -> wasm.WasmModule:
    """Start, time loop, and the row of a state."""
    programs = pairing.programs
    return wasm.module_of({"start": programs.start, "save": programs.save}, (programs.step, programs.save))


def run_task(
    system: System,
    method: Integrator,
    q: ArrayLike,
    v: ArrayLike,
    h: float,
    steps: int,
    plainly: bool = False,
) -> Task:
    """The task of a run from (q, v)."""
    pairing = pairing_of(system, method)
    tables = pairing.programs.tables
    return {
        **module_task(module_of(pairing), plainly),
        "fixed": text(tables["fixed"].pack([*pairing.leaves, h], 1, 1)),
        "initial": text(tables["initial"].pack((np.asarray(q), np.asarray(v), 0.0, None), 1, 1)),
        "carry": tables["carry"].slots,
        "row": tables["row"].slots,
        "status": tables["carry"].first_slots.interval.status,
        "steps": steps,
        "rounds": 1,
    }


def in_node(tasks: list[Task], optimised: bool = False) -> list[Task]:
    """The answers; what was made as floats. `optimised`: by code that is optimised before it runs; otherwise
    that happens while it runs, and late on a busy machine."""
    assert NODE is not None, "node is not installed"
    command = [NODE, *flags(), *(["--no-liftoff"] if optimised else []), str(RUNNER)]
    done = subprocess.run(command, input=json.dumps(tasks), capture_output=True, text=True, check=True)
    answers = json.loads(done.stdout)
    for answer in answers:
        answer["made"] = np.frombuffer(base64.b64decode(answer["made"]))
    return answers


def native_row(
    system: System, method: Integrator, q: ArrayLike, v: ArrayLike, h: float, steps: int
) -> np.ndarray:
    """The slots of the last row of a native run, also of one that fails."""
    runner = NativeTrajectory(pairing_of(system, method), np.asarray(q), np.asarray(v), 0.0, h)
    rows = runner.to(steps, steps, steps).rows
    return np.ascontiguousarray(rows[0, -1, :, 0]).view(np.float64)
