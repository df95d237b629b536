"""What 20 to 200 coordinates cost: a chain of bodies, the quartic system, and a system without zeros.

Each row is a process of its own with an empty cache; times are those of the processor.
"""

from __future__ import annotations

import json
import math
import tempfile
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from benchmarks.large_systems import Start, chain, full
from noslip.analysis.timing import best_of_rounds
from noslip.bench.machine import printed_by, versions
from noslip.integrators.base import Integrator
from noslip.integrators.discrete_gradient import DiscreteGradient
from noslip.integrators.semi_implicit_dla import SemiImplicitDLA
from noslip.markdown import table
from noslip.run.one_native import NativeTrajectory
from noslip.run.pairing import pairing_of
from noslip.simulate import simulate
from noslip.systems import quartic

METHODS: dict[str, Integrator] = {
    "SemiImplicitDLA": SemiImplicitDLA(),
    "DiscreteGradient, no frame": DiscreteGradient(frame="none"),
}
SIZES = {
    ("chain", "SemiImplicitDLA"): (7, 17, 34, 67),
    ("chain", "DiscreteGradient, no frame"): (7, 17, 34, 67),
    ("quartic", "SemiImplicitDLA"): (10, 25, 50),
    ("quartic", "DiscreteGradient, no frame"): (10, 25, 50),
    ("full", "SemiImplicitDLA"): (10, 20, 30, 50, 100),
    ("full", "DiscreteGradient, no frame"): (10, 20, 30, 50, 100),
}
STEP, FEW, STEPS = 0.02, 10, 200
Row = dict[str, Any]


def system_of(kind: str, length: int) -> Start:
    """The system of that kind, with a start."""
    if kind == "quartic":
        q, v = quartic.typical_state(length)
        return quartic.system(n=length), np.asarray(q), np.asarray(v)
    return chain(length) if kind == "chain" else full(length)


def measure(show: Callable[[Row], None] = lambda row: None) -> dict[str, Any]:
    """All rows, each shown as soon as it is there."""
    rows = []
    for (kind, method), lengths in SIZES.items():
        for length in lengths:
            rows.append(_process(kind, method, length))
            show(rows[-1])
    return {"benchmark": "large", "versions": versions(), "rows": rows}


def _process(kind: str, method: str, length: int) -> Row:
    code = f"from benchmarks.large import print_row; print_row({kind!r}, {method!r}, {length})"
    with tempfile.TemporaryDirectory() as folder:
        return printed_by(code, folder)


def print_row(kind: str, method: str, length: int) -> None:
    """That of a new process, as JSON."""
    print(json.dumps(row_of(kind, method, length)))


def row_of(kind: str, method: str, length: int) -> Row:
    """Seconds to the first ten steps, microseconds of a step when all is compiled, and operations."""
    (system, q, v), integrator = system_of(kind, length), METHODS[method]
    row: Row = {"system": kind, "method": method, "coordinates": system.n, "forms": system.m}
    began = time.process_time()
    run = simulate(system, integrator, q, v, step_size=STEP, steps=FEW)
    row |= {"first": time.process_time() - began, "by": run.backend}
    if run.backend == "xla":
        few, many = (
            partial(simulate, system, integrator, q, v, step_size=STEP, steps=s) for s in (FEW, STEPS)
        )
        seconds = best_of_rounds({"few": few, "many": many}, 3, time.process_time)
        return row | {"us": 1e6 * (seconds["many"] - seconds["few"]) / (STEPS - FEW)}
    runner = NativeTrajectory(pairing_of(system, integrator), q, v, 0.0, STEP)
    advance, nothing = runner.programs.advance_one.improved(), np.zeros(1, np.int64)

    def go() -> None:
        advance(runner.fixed, runner.carry.copy(), nothing, 1, 0, STEPS, -1, STEPS + 1, 0)

    best = best_of_rounds({"go": go}, 5, time.process_time)["go"]
    return row | {"us": 1e6 * best / STEPS, "operations": runner.programs.step.size()}


def markdown(result: dict[str, Any]) -> str:
    """The rows as a Markdown table, with the power of the coordinates by which each number has grown."""
    head = ("system", "method", "coordinates", "one-forms", "by", "operations", "first result", "per step",
            "power of n, first", "power of n, per step")  # fmt: skip
    cells = []
    before: Row = {}
    for row in result["rows"]:
        same = all(before.get(name) == row[name] for name in ("system", "method", "by"))
        powers = [_power(before, row, name) for name in ("first", "us")] if same else ["", ""]
        names = [row[name] for name in ("system", "method", "coordinates", "forms", "by")]
        values = [row.get("operations", ""), f"{row['first']:.2g} s", f"{row['us']:.3g} us"]
        cells.append([*names, *values, *powers])
        before = row
    return table(head, cells)


def _power(before: Row, row: Row, name: str) -> str:
    """p in n^p between two rows."""
    return f"{math.log(row[name] / before[name]) / math.log(row['coordinates'] / before['coordinates']):.1f}"
