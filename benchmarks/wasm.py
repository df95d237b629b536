"""WebAssembly against native code: sizes, compile times, and steps per second in one run, by node."""

from __future__ import annotations

import gzip
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from benchmarks.in_node import NODE, flags, in_node, module_of, native_row, run_task, version
from noslip import integrators, systems
from noslip.bench.machine import versions
from noslip.markdown import table
from noslip.run.one_native import NativeTrajectory
from noslip.run.pairing import Pairing, pairing_of

PAIRS = (
    ("chaplygin_sleigh", "SemiImplicitDLA()"),
    ("chaplygin_sleigh", "RungeKutta4()"),
    ("gearbox", "DiscreteGradient()"),
    ("rolling_disk", "EnergyCollocation()"),
    ("rolling_disk", "LobattoSpark()"),
    ("snakeboard", "VelocityNonholonomic()"),
)
STEP, STEPS, FEW, ROUNDS = 0.05, 4000, 200, 60  # few steps of the form without relaxed SIMD
PIECES = 4  # native and wasm in turns, the best of all rounds of each: short ones, since machines are shared
Row = dict[str, Any]


def measure(show: Callable[[Row], None] = lambda row: None) -> dict[str, Any]:
    """A row for each pair. Times to compile are of the processor, for one form of a module, not its trace."""
    if NODE is None:
        raise ValueError("this needs node, but it is not installed")
    rows = []
    for name, method in PAIRS:
        rows.append(_row(name, method))
        show(rows[-1])
    what = {"benchmark": "wasm", "versions": versions(), "node": " with ".join([version(), *flags()])}
    return {**what, "steps": STEPS, "rows": rows}


def _row(name: str, text: str) -> Row:
    module, method = systems.find(name), integrators.parse(text)
    q, v = module.typical_state()
    pairing = pairing_of(module.system(), method)
    began = time.process_time()
    made = module_of(pairing)
    compiled = (time.process_time() - began) / 2
    task = {**run_task(pairing.system, method, q, v, STEP, STEPS), "rounds": ROUNDS}
    plain = {**task, "plainly": True, "steps": FEW}
    native, relaxed, soft = [], [], []
    for _ in range(PIECES):
        native += [_native_seconds(pairing, q, v) for _ in range(ROUNDS)]
        answers = in_node([task, plain], optimised=True)
        relaxed.append(answers[0])
        soft.append(answers[1])
    wanted, after_few = (native_row(pairing.system, method, q, v, STEP, n).tobytes() for n in (STEPS, FEW))
    best = min(native)
    return {
        "system": name,
        "method": text,
        "kB": len(made.relaxed) / 1000,
        "kB plain": len(made.plain) / 1000,
        "kB both gzipped": len(gzip.compress(made.relaxed + made.plain)) / 1000,
        "compile s": compiled,
        "native steps/s": STEPS / best,
        "relaxed": best / min(a["seconds"] for a in relaxed),
        "plain": best / STEPS * FEW / min(a["seconds"] for a in soft),
        "form": relaxed[0]["form"],
        "same bits": all(a["made"].tobytes() == wanted for a in relaxed)
        and all(a["made"].tobytes() == after_few for a in soft),
    }


def _native_seconds(pairing: Pairing, q: ArrayLike, v: ArrayLike) -> float:
    runner = NativeTrajectory(pairing, np.asarray(q), np.asarray(v), 0.0, STEP)
    runner.programs.advance_one.improved()  # before the clock starts
    began = time.perf_counter()
    runner.to(STEPS, STEPS, STEPS)
    return time.perf_counter() - began


def markdown(result: dict[str, Any]) -> str:
    head = ["system", "method", "kB", "kB plain", "both, gzipped", "compile s", "native steps/s",
            "relaxed SIMD / native", "plain / native", "same bits"]  # fmt: skip
    rows = [
        [row["system"], row["method"], f"{row['kB']:.0f}", f"{row['kB plain']:.0f}",
         f"{row['kB both gzipped']:.0f}", f"{row['compile s']:.2f}", f"{row['native steps/s']:.2g}",
         f"{row['relaxed']:.2f}", f"{row['plain']:.3f}", "yes" if row["same bits"] else "no"]
        for row in result["rows"]
    ]  # fmt: skip
    return table(head, rows)
