"""Work against precision: seconds of a whole call against the error at the end, noslip and its peers.

Every point is one call as a user writes it, repeated when all is compiled; noslip's includes its checks,
energies and report, and the part of it that is stepping is given too. Seconds are those of the process, which
a busy machine does not change much; only first calls are by the wall clock. The rivals are timed in turn,
the best of many rounds, or of a few where a point takes long.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from noslip.bench._clock import best_of_rounds, one_core, versions
from noslip.bench.peers import PEERS
from noslip.bench.problems import Problem, problems
from noslip.integrators.base import Integrator
from noslip.integrators.composition import Composition
from noslip.integrators.discrete_gradient import DiscreteGradient
from noslip.integrators.energy_collocation import EnergyCollocation
from noslip.integrators.lobatto_spark import LobattoSpark
from noslip.integrators.runge_kutta4 import RungeKutta4
from noslip.integrators.semi_implicit_dla import SemiImplicitDLA
from noslip.run.one_native import NativeTrajectory
from noslip.run.pairing import pairing_of
from noslip.simulate import simulate

ACCURACY = 1e-10
LONG, TOO_LONG = 0.05, 1.5  # seconds above which a point is timed less often, and finer ones are left out
TOLERANCES = tuple(10.0**-k for k in (4, 6, 8, 9, 10, 11, 12, 13, 14, 16))
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
Row = dict[str, Any]
_cpu_seconds = partial(best_of_rounds, clock=time.process_time)


def measure(show: Callable[[Row], None] = lambda row: None) -> dict[str, Any]:
    """All points; absent peers and failed points are rows too."""
    rows: list[Row] = []
    with one_core():
        for problem in problems():
            for row in _points(problem):
                rows.append(row)
                show(row)
    found = {peer.package: peer.version for peer in PEERS if not peer.absent}
    return {"benchmark": "work-precision", "versions": versions() | found, "rows": rows,
            "span": problems()[0].span}  # fmt: skip


def _points(problem: Problem) -> Iterator[Row]:
    runs: dict[tuple[str, str], Any] = {}
    rows: dict[tuple[str, str], Row] = {}
    once: dict[tuple[str, str], float] = {}
    slow: dict[str, float] = {}
    for key, make in _solvers(problem):
        by, setting = key
        rows[key] = {"system": problem.name, "by": by, "setting": setting}
        if isinstance(make, str):
            rows[key] |= {"absent": make}
        elif by in slow:
            rows[key] |= {"failed": f"not run, since the point before took {slow[by]:.2g} s"}
        else:
            try:
                runs[key], outcome = _first_calls(problem, make)
            except (ArithmeticError, RuntimeError) as error:
                rows[key] |= {"failed": str(error).partition("\n")[0]}
                continue
            once[key] = outcome.pop("seconds")
            rows[key] |= outcome
            if once[key] > TOO_LONG:
                slow[by] = once[key]
    quick = {key: run for key, run in runs.items() if once[key] < LONG}
    rest = {key: run for key, run in runs.items() if LONG <= once[key] < TOO_LONG}
    seconds = once | _cpu_seconds(quick, 15) | _cpu_seconds(rest, 2)
    stepping = _cpu_seconds({key: run.stepping() for key, run in runs.items() if isinstance(run, _Ours)}, 9)
    for key, row in rows.items():
        row |= {"seconds": seconds[key]} if key in seconds else {}
        yield row | ({"stepping": stepping[key]} if key in stepping else {})


def _first_calls(problem: Problem, make: Callable[[], Any]) -> tuple[Any, Row]:
    """A solver that has been called twice: its errors, and the seconds of both calls."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        began = time.perf_counter()
        run = make()
        q, v = run()
        first = time.perf_counter()
        before = time.process_time()
        run()
        seconds = time.process_time() - before
    return run, {"first call": first - began, "seconds": seconds} | problem.errors(q, v)


def _solvers(problem: Problem) -> Iterator[tuple[tuple[str, str], Any]]:
    """((by, setting), function that makes a solver), or why there is none."""
    for name, (method, counts) in METHODS.items():
        for steps in counts:
            yield (f"noslip {name}", f"{steps} steps"), partial(_Ours, problem, method, steps)
    for peer in PEERS:
        if peer.absent:
            yield (peer.name, "-"), f"the package {peer.package} is not installed"
            continue
        for tolerance in TOLERANCES:
            if tolerance >= peer.finest:
                yield (peer.name, f"tolerance {tolerance:.0e}"), partial(peer.make, problem, tolerance)


@dataclass(frozen=True)
class _Ours:
    """noslip: the call of `simulate`, and of it the stepping alone."""

    problem: Problem
    method: Integrator
    steps: int

    def __call__(self) -> tuple[Any, Any]:
        h, steps = self.problem.span / self.steps, self.steps
        done = simulate(
            self.problem.system, self.method, *self.problem.state, step_size=h, steps=steps, save_every=steps
        )
        return done.q[-1], done.v[-1]

    def stepping(self) -> Callable[[], Any]:
        h, steps = self.problem.span / self.steps, self.steps
        runner = NativeTrajectory(pairing_of(self.problem.system, self.method), *self.problem.state, 0.0, h)
        advance, nothing = runner.programs.advance_one, np.zeros(1, np.int64)
        return lambda: advance(runner.fixed, runner.carry.copy(), nothing, 1, 0, steps, -1, steps + 1, 0)


def quickest(result: dict[str, Any], accuracy: float = ACCURACY) -> list[Row]:
    """The quickest point of noslip and of each peer within the accuracy, with its time over noslip's."""
    found: list[Row] = []
    for system in dict.fromkeys(row["system"] for row in result["rows"]):
        best: dict[str, Row] = {}
        for row in result["rows"]:
            if row["system"] != system:
                continue
            by = "noslip" if row["by"].startswith("noslip ") else row["by"]
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
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    for row in quickest(result):
        if "missing" in row:
            cells = (row["system"], row["by"], row["missing"], *[""] * 6)
        else:
            cells = (row["system"], row["by"], row["setting"], f"{1e3 * row['seconds']:.3g} ms",
                     f"{row['ratio']:.3g}", f"{row['ratio to stepping']:.3g}",
                     *(f"{row[name]:.0e}" for name in ERRORS))  # fmt: skip
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)


ERRORS = ("error", "energy error", "constraint error")


def all_points(result: dict[str, Any]) -> str:
    """Every point, as a table."""
    head = ("problem", "by", "setting", "time", "first call", *ERRORS)
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    for row in result["rows"]:
        if "seconds" in row:
            alone = f", stepping {1e3 * row['stepping']:.3g} ms" if "stepping" in row else ""
            cells = (f"{1e3 * row['seconds']:.3g} ms{alone}", f"{row['first call']:.2g} s",
                     *(f"{row[name]:.1e}" for name in ERRORS))  # fmt: skip
        else:
            cells = (row.get("absent") or "failed: " + row["failed"], *[""] * 4)
        lines.append("| " + " | ".join((row["system"], row["by"], row["setting"], *cells)) + " |")
    return "\n".join(lines)
