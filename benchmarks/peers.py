"""Work against precision: noslip and what a user would take instead, on problems that all solve alike.

The points are those of `noslip.analysis.work_precision`; of noslip's calls the part that is stepping is given
too. Absent peers and failed points are rows too.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from benchmarks.problems import Problem, bodies, problems
from benchmarks.solvers import Peer, peers_of
from noslip.analysis.timing import best_of_rounds, one_core
from noslip.analysis.work_precision import Call, Rival, Solver, WorkPoint, errors_at_end, points
from noslip.bench.machine import versions
from noslip.engine.backends.improved import NativeFunction
from noslip.integrators.base import Integrator
from noslip.integrators.composition import Composition
from noslip.integrators.discrete_gradient import DiscreteGradient
from noslip.integrators.energy_collocation import EnergyCollocation
from noslip.integrators.lobatto_spark import LobattoSpark
from noslip.integrators.reference_flow import ReferenceFlow
from noslip.integrators.runge_kutta4 import RungeKutta4
from noslip.integrators.semi_implicit_dla import SemiImplicitDLA
from noslip.markdown import table
from noslip.run.one_native import NativeTrajectory
from noslip.run.pairing import pairing_of

if TYPE_CHECKING:
    from matplotlib.figure import Figure

ACCURACY = 1e-10
TOLERANCES = tuple(10.0**-k for k in (4, 6, 8, 9, 10, 11, 12, 13, 14, 16))
LONGEST = 0.5  # seconds of a call after which finer ones of the same rival are not tried
FEWER = (1e-4, 1e-6, 1e-8, 1e-10, 1e-12)  # tolerances on the bodies, where heyoka compiles each for seconds
METHODS: dict[str, tuple[Integrator, tuple[int, ...]]] = {
    "EnergyCollocation(2)": (EnergyCollocation(2), (100, 400, 1600, 6400)),
    "EnergyCollocation(3)": (EnergyCollocation(3), (50, 100, 200, 400, 1600)),
    "EnergyCollocation(4)": (EnergyCollocation(4), (50, 100, 200, 400, 800, 1600)),
    "EnergyCollocation(5)": (EnergyCollocation(5), (25, 50, 80, 100, 200, 400, 800)),
    "EnergyCollocation(6)": (EnergyCollocation(6), (25, 50, 80, 100, 200, 400, 800)),
    "EnergyCollocation(5, nodes=5)": (EnergyCollocation(5, nodes=5), (25, 50, 80, 100, 200, 400, 800)),
    "EnergyCollocation(6, nodes=6)": (EnergyCollocation(6, nodes=6), (25, 50, 80, 100, 200, 400, 800)),
    "Composition(DiscreteGradient, kahan_li8)": (
        Composition(DiscreteGradient(), "kahan_li8"), (50, 100, 200, 400, 800, 1600)),
    "Composition(SemiImplicitDLA, kahan_li8)": (
        Composition(SemiImplicitDLA(), "kahan_li8"), (50, 100, 200, 400, 800, 1600)),
    "Composition(SemiImplicitDLA, suzuki4)": (
        Composition(SemiImplicitDLA(), "suzuki4"), (100, 400, 1600, 6400)),
    "LobattoSpark(4)": (LobattoSpark(4), (100, 200, 400, 800)),
    "RungeKutta4": (RungeKutta4(), (500, 2000, 8000, 32000)),
    "DiscreteGradient": (DiscreteGradient(), (500, 2000, 8000, 32000)),
    "SemiImplicitDLA": (SemiImplicitDLA(), (500, 2000, 8000, 32000)),
}  # fmt: skip
FLOW, FLOWS = "noslip ReferenceFlow", (1e-6, 1e-9, 1e-12)
OF_BODIES: dict[str, tuple[Integrator, tuple[int, ...]]] = {
    "SemiImplicitDLA": (SemiImplicitDLA(), (200, 800, 3200, 12800)),
    "DiscreteGradient": (DiscreteGradient(), (200, 800, 3200, 12800)),
    "Composition(SemiImplicitDLA, suzuki4)": (
        Composition(SemiImplicitDLA(), "suzuki4"), (100, 200, 400, 800)),
    "Composition(DiscreteGradient, kahan_li6)": (
        Composition(DiscreteGradient(), "kahan_li6"), (25, 50, 100, 200)),
    "Composition(SemiImplicitDLA, kahan_li8)": (
        Composition(SemiImplicitDLA(), "kahan_li8"), (25, 50, 100, 200)),
    "EnergyCollocation(3)": (EnergyCollocation(3), (25, 50, 100, 200)),
    "LobattoSpark(4)": (LobattoSpark(4), (25, 50, 100, 200)),
}  # fmt: skip
"""On the ball and the bicycle."""
SHOWN = (
    "noslip EnergyCollocation(4)", "noslip EnergyCollocation(6, nodes=6)",
    "noslip Composition(SemiImplicitDLA, kahan_li8)", "noslip DiscreteGradient", FLOW,
    "scipy DOP853", "scipy Radau", "scikit-sundae IDA", "solve_dae BDF", "pydy LSODA",
    "diffrax Dopri8", "diffrax Kvaerno5", "heyoka Taylor",
)  # fmt: skip
"""The curves of the picture of the small problems; the peers' are dashed. That of the bodies has all."""
ERRORS = ("error", "energy error", "constraint error")
Row = dict[str, Any]


def measure(show: Callable[[Row], None] = lambda row: None) -> dict[str, Any]:
    """All points of all problems, and how sure the truth is."""
    rows: list[Row] = []
    truth: dict[str, dict[str, float]] = {}
    found: dict[str, str] = {}
    with one_core():
        for problem in (*problems(), *bodies()):
            truth[problem.name] = {"span": problem.span, "ReferenceFlow": _from_truth(problem)}
            for row in rows_of(problem):
                rows.append(row)
                show(row)
            found |= {peer.package: peer.version for peer in peers_of(problem) if not peer.absent}
    return {"benchmark": "work-precision", "versions": versions() | found, "rows": rows, "truth": truth}


def _from_truth(problem: Problem) -> float:
    """How far noslip's flow at round-off ends from the truth."""
    end = Call(problem.system, ReferenceFlow(), *problem.state, problem.span, 1)()
    return errors_at_end(problem.system, problem.state, lambda t: problem.end)(*end)[0]


def rows_of(problem: Problem) -> Iterator[Row]:
    """The points of one problem, those of absent peers last."""
    methods = OF_BODIES if problem.forms is None else METHODS
    calls = {
        (f"noslip {name}", f"{steps} steps"): Call(
            problem.system, method, *problem.state, problem.span, steps
        )
        for name, (method, counts) in methods.items()
        for steps in counts
    }
    rivals = [
        Rival(*key, lambda call=call: call, partial(_advance, call))  # type: ignore[misc]
        for key, call in calls.items()
    ]
    rivals += [_flow(problem, tolerance) for tolerance in FLOWS]
    rivals += [rival for peer in peers_of(problem) if not peer.absent for rival in _rivals(peer, problem)]
    errors = errors_at_end(problem.system, problem.state, lambda t: problem.end)
    found = points(rivals, errors, longest=LONGEST)
    done = {(point.by, point.setting) for point in found if point.seconds is not None}
    ours = {key: _stepping(call) for key, call in calls.items() if key in done}
    stepping = best_of_rounds(ours, 9, time.process_time)
    for point in found:
        row = {"system": problem.name, "by": point.by, "setting": point.setting} | _numbers(point)
        seconds = stepping.get((point.by, point.setting))
        yield row if seconds is None else row | {"stepping": seconds}
    for peer in peers_of(problem):
        if peer.absent:
            why = f"the package {peer.package} is not installed"
            yield {"system": problem.name, "by": peer.name, "setting": "-", "absent": why}


def _flow(problem: Problem, tolerance: float) -> Rival:
    call = Call(problem.system, ReferenceFlow(tolerance=tolerance), *problem.state, problem.span, 1)
    return Rival(FLOW, f"tolerance {tolerance:.0e}", lambda: call)


def _rivals(peer: Peer, problem: Problem) -> Iterator[Rival]:
    for steps in peer.steps:
        yield Rival(peer.name, f"{steps} steps", partial(_solver, peer, problem, steps))
    if peer.steps:
        return
    for tolerance in FEWER if problem.forms is None else TOLERANCES:
        if tolerance >= peer.finest:
            yield Rival(peer.name, f"tolerance {tolerance:.0e}", partial(_solver, peer, problem, tolerance))


def _solver(peer: Peer, problem: Problem, tolerance: float) -> Solver:
    run = peer.make(problem, tolerance)
    return lambda: (problem.span, *run())


def _numbers(point: WorkPoint) -> Row:
    if point.seconds is None:
        return {"failed": point.note}
    errors = (point.error, point.energy_error, point.constraint_error)
    return {
        "first call": point.first_call,
        **dict(zip(ERRORS, errors, strict=True)),
        "seconds": point.seconds,
    }


def _stepping(call: Call) -> Callable[[], Any]:
    """Of a call, the stepping alone."""
    runner, advance = _advance(call)
    steps, nothing = call.steps, np.zeros(1, np.int64)
    return lambda: advance(runner.fixed, runner.carry.copy(), nothing, 1, 0, steps, -1, steps + 1, 0)


def _advance(call: Call) -> tuple[NativeTrajectory, NativeFunction]:
    """A run that stands at its start, and its machine code as it will stay."""
    q, v = np.asarray(call.q0, dtype=float), np.asarray(call.v0, dtype=float)
    pairing = pairing_of(call.system, call.method)
    runner = NativeTrajectory(pairing, q, v, 0.0, call.span / call.steps)
    return runner, runner.programs.advance_one.improved()


def quickest(result: dict[str, Any], accuracy: float = ACCURACY) -> list[Row]:
    """On the small problems the quickest point of noslip's steps, of its flow and of each peer within the
    accuracy, with its time over that of the steps."""
    found: list[Row] = []
    for system in _small(result):
        best: dict[str, Row] = {}
        for row in result["rows"]:
            if row["system"] != system:
                continue
            by = "noslip" if row["by"].startswith("noslip ") and row["by"] != FLOW else row["by"]
            if "seconds" not in row or not row["error"] <= accuracy:
                none = {"system": system, "by": by, "missing": f"no point below {accuracy:.0e}"}
                if "missing" in best.setdefault(by, none) and (why := row.get("absent") or row.get("failed")):
                    best[by]["missing"] = f"{none['missing']}: {why}"
            elif "missing" in best.get(by, {"missing": ""}) or row["seconds"] < best[by]["seconds"]:
                best[by] = row
        ours = best["noslip"]
        for by, row in best.items():
            ratios = {}
            if "seconds" in row and "seconds" in ours:
                ratios["ratio"] = row["seconds"] / ours["seconds"]
                ratios["ratio to stepping"] = row["seconds"] / ours["stepping"]
            found.append(row | ratios | {"rival": by})
    return found


def markdown(result: dict[str, Any]) -> str:
    """The quickest points within the accuracy."""
    head = ("problem", "by", "setting", "time", "ratio to noslip", "ratio to its stepping", "global error",
            "energy error", "constraint")  # fmt: skip
    rows: list[tuple[str, ...]] = []
    for row in quickest(result):
        if "missing" in row:
            rows.append((row["system"], row["by"], row["missing"]))
        else:
            rows.append((row["system"], row["by"], row["setting"], f"{1e3 * row['seconds']:.3g} ms",
                         f"{row['ratio']:.3g}", f"{row['ratio to stepping']:.3g}",
                         *(f"{row[name]:.0e}" for name in ERRORS)))  # fmt: skip
    return table(head, rows)


def _small(result: dict[str, Any]) -> list[str]:
    names = dict.fromkeys(row["system"] for row in result["rows"])
    return [name for name in names if name not in ("ball", "bicycle")]


def per_step(row: Row) -> str:
    """Of a method with steps of a fixed size: noslip's stepping alone, others' whole call."""
    count, _, unit = row["setting"].partition(" ")
    if unit != "steps":
        return ""
    seconds = row["stepping"] if "stepping" in row else row["seconds"]
    return f"{1e6 * seconds / int(count):.3g} us"


def all_points(result: dict[str, Any]) -> str:
    """Every point, as a table."""
    rows: list[tuple[str, ...]] = []
    for row in result["rows"]:
        which = (row["system"], row["by"], row["setting"])
        if "seconds" in row:
            times = (f"{1e3 * row['seconds']:.3g} ms", per_step(row), f"{row['first call']:.2g} s")
            rows.append((*which, *times, *(f"{row[name]:.1e}" for name in ERRORS)))
        else:
            rows.append((*which, row.get("absent") or "failed: " + row["failed"]))
    return table(("problem", "by", "setting", "time", "per step", "first call", *ERRORS), rows)


def curves_of(
    result: dict[str, Any], system: str, names: Sequence[str]
) -> dict[str, list[tuple[float, float]]]:
    """The points (error, seconds) of these on a problem."""
    rows = [row for row in result["rows"] if row["system"] == system and "seconds" in row]
    return {by: [(row["error"], row["seconds"]) for row in rows if row["by"] == by] for by in names}


def picture(result: dict[str, Any]) -> Figure:
    """Time against error, a panel for each small problem."""
    from noslip.plots.work_precision import plot_work_precision

    panels = {name: curves_of(result, name, SHOWN) for name in _small(result)}
    return plot_work_precision(panels, dashed=[by for by in SHOWN if not by.startswith("noslip ")])
