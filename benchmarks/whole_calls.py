"""What a whole call costs that ends with an error of at most 1e-10: noslip, diffrax and heyoka, in one run.

Each rival gets the longest steps, of those tried, or the loosest tolerance with which it is so good at the
end. All are compiled before; a call begins with a state and gives back the end. Then the reference flow at
its round-off with rows on the way, beside a bare call of heyoka that saves as many.
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

ERROR, ROUNDS, TIMES = 1e-10, 12, 20
TOLERANCES = tuple(float(x) for x in 10.0 ** np.arange(-8, -15.5, -0.5))
ROWS = (1, 500, 5000)  # up to the end
METHODS = {
    "LobattoSpark(4)": LobattoSpark(4),
    "Composition(SemiImplicitDLA, kahan_li8)": Composition(SemiImplicitDLA(), "kahan_li8"),
}
HEYOKA, GRID = "heyoka Taylor", "heyoka, {} rows"
Row = dict[str, Any]
Call = Callable[[], Any]


def measure(show: Callable[[Row], None] = lambda row: None) -> dict[str, Any]:
    """Microseconds per call, on every problem with a known end; beside each, those of the bare call of heyoka
    that does as much."""
    rows = []
    for problem in problems():
        rivals = dict(_rivals(problem))
        with one_core():
            often = {name: _often(x[0]) for name, x in rivals.items()}
            seconds = best_of_rounds(often, ROUNDS, time.process_time)
        for name, (_, how, error) in rivals.items():
            us = 1e6 * seconds[name] / TIMES
            bare = seconds.get(_bare(name))
            ratio = None if bare is None else seconds[name] / bare
            rows.append(
                {"problem": problem.name, "by": name, "us": us, "heyokas": ratio, "how": how, "error": error}
            )
            show(rows[-1])
    return {"benchmark": "whole calls", "versions": versions(), "rows": rows}


def _often(call: Call) -> Call:
    """So many calls, all but the first with what they need in the caches: as calls are where they matter."""
    for _ in range(TIMES):
        call()

    def calls() -> None:
        for _ in range(TIMES):
            call()

    return calls


def _bare(name: str) -> str:
    """The call of heyoka that a rival is beside."""
    rows = name.rpartition(", ")[2]
    return GRID.format(rows.removesuffix(" rows")) if rows.endswith(" rows") else HEYOKA


def _rivals(problem: Problem) -> Iterator[tuple[str, tuple[Call, str, float]]]:
    for name, method in METHODS.items():
        if found := _by_steps(problem, method):
            yield f"noslip prepared, {name}", found
    for name, call_of in (("simulate", _simulated), ("prepared", _prepared)):

        def flow_of(problem: Problem, tolerance: float, call_of: Any = call_of) -> Call:
            made: Call = call_of(problem, ReferenceFlow(tolerance=tolerance), 1)
            return made

        if found := _by_tolerance(problem, flow_of):
            yield f"noslip {name}, ReferenceFlow(tolerance)", found
    for peer in PEERS:
        known = peer.name in ("diffrax Dopri8", HEYOKA) and not peer.absent
        if known and (found := _by_tolerance(problem, peer.make)):
            yield peer.name, found
    flow = ReferenceFlow()
    for rows in ROWS:
        rivals = {
            f"noslip simulate, ReferenceFlow, {rows} rows": _simulated(problem, flow, rows),
            f"noslip prepared, ReferenceFlow, {rows} rows": _prepared(problem, flow, rows),
            f"noslip prepared, ReferenceFlow, all arrays, {rows} rows": _prepared(problem, flow, rows, True),
        }
        if importlib.util.find_spec("heyoka") is not None:
            rivals[GRID.format(rows)] = heyoka_rows(problem, rows)
        for name, call in rivals.items():
            yield name, (call, "its own steps", _error(problem, call()))


def _by_tolerance(problem: Problem, make: Callable[[Problem, float], Call]) -> tuple[Call, str, float] | None:
    for tolerance in TOLERANCES:
        call = make(problem, tolerance)
        if (error := _error(problem, call())) <= ERROR:
            return call, f"tolerance {tolerance:.0e}", error
    return None


def _simulated(problem: Problem, flow: ReferenceFlow, rows: int) -> Call:
    def call() -> tuple[Any, Any]:
        run = simulate(problem.system, flow, *problem.state, step_size=problem.span / rows, steps=rows)
        return run.q[-1], run.v[-1]

    return call


def _prepared(problem: Problem, flow: ReferenceFlow, rows: int, whole: bool = False) -> Call:
    prepared = prepare(problem.system, flow, step_size=problem.span / rows, steps=rows)

    def call() -> tuple[Any, Any]:
        run = prepared(*problem.state)
        if whole:
            assert run.report is not None  # with it all else is read
        return run.q[-1], run.v[-1]

    return call


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
    cells = {(row["by"], row["problem"]): _cell(row) for row in result["rows"]}
    rows = [[name, *(cells.get((name, problem), "not reached") for problem in found)] for name in names]
    return table((f"a call, with error {ERROR:g} or with rows", *found), rows)


def goals(result: dict[str, Any]) -> Iterator[tuple[str, str, bool]]:
    """What was aimed at, what was measured, and whether it suffices."""
    problems = list(dict.fromkeys(row["problem"] for row in result["rows"]))
    us = {(row["by"], row["problem"]): row["us"] for row in result["rows"]}

    def beside(name: str, other: str) -> list[float]:
        return [us[name, problem] / us[other, problem] for problem in problems]

    flow = {verb: f"noslip {verb}, ReferenceFlow(tolerance)" for verb in ("simulate", "prepared")}
    whole = f"a whole call of `{{}}` at error {ERROR:.0e}"
    ahead = beside("diffrax Dopri8", flow["simulate"])
    yield f"{whole.format('simulate')} ahead of diffrax by 3", _told(ahead), min(ahead) >= 3
    for verb, name in flow.items():
        ratios = beside(name, HEYOKA)
        word = verb if verb == "simulate" else "prepare"
        yield f"{whole.format(word)} within 5 of heyoka", _told(ratios), max(ratios) <= 5
    for rows in ROWS[1:]:
        ratios = beside(f"noslip simulate, ReferenceFlow, {rows} rows", GRID.format(rows))
        goal = f"`simulate` with `ReferenceFlow` and {rows} rows within 1.5 of heyoka"
        yield goal, _told(ratios), max(ratios) <= 1.5


def _told(ratios: list[float]) -> str:
    return ", ".join(f"{ratio:.2f}" for ratio in ratios)


def _cell(row: Row) -> str:
    beside = "" if row["heyokas"] is None or row["by"] == _bare(row["by"]) else f" ({row['heyokas']:.2f})"
    return f"{row['us']:.3g} us{beside}"
