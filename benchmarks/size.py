"""Cost against size: one trajectory of the quartic system with 2 n + 1 coordinates, natively and by XLA."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any

import jax
import numpy as np

from noslip.analysis.timing import best_of_rounds, one_core
from noslip.bench.machine import versions
from noslip.engine.program import CannotTranslate
from noslip.integrators.base import Integrator
from noslip.integrators.discrete_gradient import DiscreteGradient
from noslip.integrators.semi_implicit_dla import SemiImplicitDLA
from noslip.markdown import table
from noslip.run import one_xla
from noslip.run.choose import on_cpu
from noslip.run.one_native import NativeTrajectory
from noslip.run.pairing import pairing_of
from noslip.systems import quartic

SIZES = (2, 3, 8, 16, 31, 50)
METHODS: tuple[Integrator, ...] = (SemiImplicitDLA(), DiscreteGradient())
STEP = 0.05
Row = dict[str, Any]


def measure(show: Callable[[Row], None] = lambda row: None, sizes: tuple[int, ...] = SIZES) -> dict[str, Any]:
    rows = []
    with one_core(), on_cpu():
        for method in METHODS:
            for n in sizes:
                for row in _rows(method, n):
                    rows.append(row)
                    show(row)
    return {"benchmark": "size", "versions": versions(), "rows": rows}


def _rows(method: Integrator, n: int) -> Iterator[Row]:
    system, (q, v) = quartic.system(n=n), quartic.typical_state(n)
    start = (np.asarray(q), np.asarray(v), np.float64(0.0), np.float64(STEP))
    common = {"method": type(method).__name__, "n": n, "coordinates": 2 * n + 1}
    rivals: dict[str, Callable[[], None]] = {}
    parts: dict[str, Row] = {}
    began = time.perf_counter()
    steps = max(20, 20000 // n**2)
    try:
        runner = NativeTrajectory(pairing_of(system, method), *start[:2], 0.0, STEP)
        advance, nothing = runner.programs.advance_one.improved(), np.zeros(1, np.int64)
        rivals["native"] = lambda: advance(
            runner.fixed, runner.carry.copy(), nothing, 1, 0, steps, -1, steps + 1, 0
        )
        parts["native"] = {"first": time.perf_counter() - began, "operations": runner.programs.step.size()}
    except CannotTranslate as reason:
        yield common | {"by": "native", "refused": str(reason)}
    began = time.perf_counter()
    carry, _ = one_xla.start(system, method, (), *start)

    def xla() -> None:
        jax.block_until_ready(one_xla.advance(system, method, (), carry, STEP, steps, steps, steps))

    xla()
    parts["xla"] = {"first": time.perf_counter() - began}
    seconds = best_of_rounds(rivals | {"xla": xla}, 5)
    for by, value in seconds.items():
        yield common | {"by": by, "ns": 1e9 * value / steps, "ratio": value / seconds["xla"]} | parts[by]


def markdown(result: dict[str, Any]) -> str:
    head = ("method", "n", "coordinates", "native, per step", "XLA, per step", "native / XLA", "operations",
            "native, first", "XLA, first")  # fmt: skip
    rows = []
    pairs: dict[Any, dict[str, Row]] = {}
    for row in result["rows"]:
        pairs.setdefault((row["method"], row["n"], row["coordinates"]), {})[row["by"]] = row
    for (method, n, coordinates), by in pairs.items():
        native, xla = by["native"], by["xla"]
        if "refused" in native:
            cells = ["refused", f"{xla['ns'] / 1e3:.3g} us", "", "", "", f"{xla['first']:.2g} s"]
        else:
            cells = [f"{native['ns'] / 1e3:.3g} us", f"{xla['ns'] / 1e3:.3g} us", f"{native['ratio']:.3f}"]
            cells += [str(native["operations"]), f"{native['first']:.2g} s", f"{xla['first']:.2g} s"]
        rows.append([method, n, coordinates, *cells])
    return table(head, rows)
