"""Every method with native code on every system of the catalogue as WebAssembly: whether its run in node ends
in the bits of the native one, how large the module is, and how long the compiler takes."""

from __future__ import annotations

import gzip
import statistics
import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from benchmarks.in_node import NODE, in_node, module_of, native_row, run_task
from noslip import integrators, systems
from noslip.bench.machine import versions
from noslip.engine.program import CannotTranslate
from noslip.integrators.base import Integrator
from noslip.markdown import table
from noslip.run.pairing import pairing_of

SIZES, STEPS = (0.05, 0.01, 0.002), 2000  # a smaller step where a solve fails with the larger
Row = dict[str, Any]


def measure(names: Sequence[str] = (), show: Callable[[Row], None] = lambda row: None) -> dict[str, Any]:
    """A row for each pair that runs, and the reason of each that does not. Compile times are those of the
    processor for one form; they are near 0 where the folder of the cache holds the module already."""
    if NODE is None:
        raise ValueError("this needs node, but it is not installed")
    rows, refused = [], []
    for name in names or systems.names():
        for cls in integrators.discover().values():
            try:
                rows.append(_row(name, cls()))
                show(rows[-1])
            except CannotTranslate as reason:
                refused.append({"system": name, "method": cls.__name__, "reason": str(reason)})
    return {
        "benchmark": "wasm pairs",
        "versions": versions(),
        "steps": STEPS,
        "rows": rows,
        "refused": refused,
    }


def _row(name: str, method: Integrator) -> Row:
    module = systems.find(name)
    q, v = (np.asarray(x, float) for x in module.typical_state())
    pairing = pairing_of(module.system(), method)
    if reason := pairing.refusal or pairing.refusal_near(q, v):
        raise CannotTranslate(reason)
    if method.host_driven:
        raise CannotTranslate("it is driven by the host, not by steps of its own")
    _ = pairing.programs
    began = time.process_time()
    made = module_of(pairing)
    compiled = (time.process_time() - began) / 2
    for step in SIZES:
        task = run_task(pairing.system, method, q, v, step, STEPS)
        relaxed, plain = in_node([task, {**task, "plainly": True}])
        if not relaxed["failed"]:
            break
    wanted = native_row(pairing.system, method, q, v, step, STEPS).tobytes()
    return {
        "system": name,
        "method": type(method).__name__,
        "kB": len(made.relaxed) / 1000,
        "kB plain": len(made.plain) / 1000,
        "kB both gzipped": len(gzip.compress(made.relaxed + made.plain)) / 1000,
        "compile s": compiled,
        "step": step,
        "relaxed": relaxed["form"] == "relaxed",
        "same bits": relaxed["made"].tobytes() == wanted,
        "same bits plain": plain["made"].tobytes() == wanted,
        "failed": relaxed["failed"],
    }


def markdown(result: dict[str, Any]) -> str:
    """A line for each system, and one for all."""
    head = ["system", "methods", "same bits", "kB, median", "kB, largest", "compile s, median", "largest"]
    names = list(dict.fromkeys(row["system"] for row in result["rows"]))
    groups = [(name, [row for row in result["rows"] if row["system"] == name]) for name in names]
    return table(head, [_line(name, rows) for name, rows in [*groups, ("all", result["rows"])]])


def _line(name: str, rows: list[Row]) -> list[str]:
    sizes, seconds = [row["kB"] for row in rows], [row["compile s"] for row in rows]
    same = sum(row["same bits"] and row["same bits plain"] for row in rows)
    return [
        name, str(len(rows)), str(same), f"{statistics.median(sizes):.0f}", f"{max(sizes):.0f}",
        f"{statistics.median(seconds):.2f}", f"{max(seconds):.2f}",
    ]  # fmt: skip
