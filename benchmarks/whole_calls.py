"""What a whole call costs that ends with an error of at most 1e-10: noslip, diffrax and heyoka, in one run.

Each rival gets the longest steps, of those tried, or the loosest tolerance with which it is so good at the
end. All are compiled before; a call begins with a state and gives back the end.
"""

from __future__ import annotations

import importlib.util
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from benchmarks.problems import Problem, problems
from benchmarks.solvers import PEERS, heyoka_rows
from noslip.analysis.timing import best_of_rounds, one_core
from noslip.bench.machine import versions
from noslip.integrators import Composition, LobattoSpark, ReferenceFlow, SemiImplicitDLA
from noslip.integrators.base import Integrator
from noslip.markdown import table
from noslip.prepared import prepare
from noslip.simulate import simulate

ERROR, ROUNDS = 1e-10, 12
ROWS = (500, 5000)  # on the way, of the reference flow
METHODS = {
    "LobattoSpark(4)": LobattoSpark(4),
    "Composition(SemiImplicitDLA, kahan_li8)": Composition(SemiImplicitDLA(), "kahan_li8"),
}
Row = dict[str, Any]
Call = Callable[[], Any]


def measure(show: Callable[[Row], None] = lambda row: None) -> dict[str, Any]:
    """Microseconds per call, on every problem with a known end."""
    rows = []
    for problem in problems():
        rivals = dict(_rivals(problem))
        with one_core():
            seconds = best_of_rounds({name: x[0] for name, x in rivals.items()}, ROUNDS, time.process_time)
        for name, (_, how, error) in rivals.items():
            row = {"problem": problem.name, "by": name, "us": 1e6 * seconds[name], "how": how, "error": error}
            rows.append(row)
            show(row)
    return {"benchmark": "whole calls", "versions": versions(), "rows": rows}


def _rivals(problem: Problem) -> Iterator[tuple[str, tuple[Call, str, float]]]:
    for name, method in METHODS.items():
        if found := _by_steps(problem, method):
            yield f"noslip prepared, {name}", found
    flow = ReferenceFlow()

    def reference() -> tuple[Any, Any]:
        run = simulate(problem.system, flow, *problem.state, step_size=problem.span, steps=1)
        return run.q[-1], run.v[-1]

    yield "noslip simulate, ReferenceFlow", (reference, "its own steps", _error(problem, reference()))
    for rows in ROWS:

        def with_rows(rows: int = rows) -> tuple[Any, Any]:
            h = problem.span / rows
            run = simulate(problem.system, flow, *problem.state, step_size=h, steps=rows)
            return run.q[-1], run.v[-1]

        rivals: dict[str, Call] = {"noslip simulate, ReferenceFlow": with_rows}
        if importlib.util.find_spec("heyoka") is not None:
            rivals["heyoka propagate_grid"] = heyoka_rows(problem, rows)
        for name, call in rivals.items():
            yield f"{name}, {rows} rows", (call, "its own steps", _error(problem, call()))
    for peer in PEERS:
        if peer.name in ("diffrax Dopri8", "heyoka Taylor") and not peer.absent:
            for tolerance in 10.0 ** np.arange(-8, -16.5, -0.5):
                call = peer.make(problem, float(tolerance))
                if (error := _error(problem, call())) <= ERROR:
                    yield peer.name, (call, f"tolerance {tolerance:.0e}", error)
                    break


def _by_steps(problem: Problem, method: Integrator) -> tuple[Call, str, float] | None:
    for steps in (2 ** (k / 2) for k in range(8, 28)):
        count = round(steps)
        prepared = prepare(
            problem.system, method, step_size=problem.span / count, steps=count, save_every=count
        )

        def call(prepared: Any = prepared) -> tuple[Any, Any]:
            run = prepared(*problem.state)
            return run.q[-1], run.v[-1]

        try:
            error = _error(problem, call())
        except Exception:  # steps that are far too long may fail
            continue
        if error <= ERROR:
            call()
            return call, f"{count} steps", error
    return None


def _error(problem: Problem, end: tuple[Any, Any]) -> float:
    """Relative to the size of what is large, absolute else."""
    pairs = zip(end, problem.end, strict=True)
    return max(float(np.max(np.abs(x - y) / np.maximum(1.0, np.abs(y)))) for x, y in pairs)


def markdown(result: dict[str, Any]) -> str:
    names = list(dict.fromkeys(row["by"] for row in result["rows"]))
    found = list(dict.fromkeys(row["problem"] for row in result["rows"]))
    cells = {(row["by"], row["problem"]): f"{row['us']:.3g} us, {row['how']}" for row in result["rows"]}
    rows = [[name, *(cells.get((name, problem), "not reached") for problem in found)] for name in names]
    return table((f"a call with error {ERROR:g}", *found), rows)
