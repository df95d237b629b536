"""Work against precision: seconds of a whole call against the error at the end, for any methods and systems.

A point is one call as a user writes it, repeated when all is compiled; of `simulate` it includes the checks,
energies and the report. Seconds are those of the process, which a busy machine does not change much; only
first calls are by the wall clock. The rivals are timed in turn, the best of many rounds, or of a few where a
point takes long.
"""

from __future__ import annotations

import functools
import time
import warnings
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike

from noslip.analysis.scoreboard import short_name
from noslip.analysis.timing import best_of_rounds
from noslip.integrators.base import Integrator
from noslip.integrators.reference_flow import ReferenceFlow
from noslip.markdown import table
from noslip.run.arguments import whole
from noslip.simulate import simulate
from noslip.system import System

STEPS = (50, 100, 200, 400, 800, 1600)
LONG, LONGEST = 0.05, 1.5  # seconds above which a point is timed less often, and finer ones are left out
ROUNDS, FEW = 15, 2
HEAD = ("by", "setting", "seconds", "first call", "error", "energy error", "constraint error")
State = tuple[np.ndarray, np.ndarray]
Solver = Callable[[], tuple[float, np.ndarray, np.ndarray]]
Errors = tuple[float, float, float]


@dataclass(frozen=True)
class Rival:
    """A way to the end with one setting: `make()` gives a solver, and calling that gives (t, q, v) there.
    `settle()` is called after the first call, and not timed: what would be optimised some calls later is."""

    by: str
    setting: str
    make: Callable[[], Solver]
    settle: Callable[[], object] = lambda: None


@dataclass(frozen=True)
class WorkPoint:
    """Seconds and errors of a rival; `note` says why there are none.

    `error` is the largest over q and v at the end, `energy_error` the distance of the energy there from the
    initial one, `constraint_error` the largest |phi| there, `first_call` the seconds until the first result.
    """

    by: str
    setting: str
    seconds: float | None = None
    first_call: float | None = None
    error: float | None = None
    energy_error: float | None = None
    constraint_error: float | None = None
    note: str = ""


@dataclass(frozen=True, eq=False)
class Call:
    """A call of `simulate` from (q0, v0) to the end, in so many steps, that saves the end alone."""

    system: System
    method: Integrator
    q0: ArrayLike
    v0: ArrayLike
    span: float
    steps: int
    t0: float = 0.0
    backend: str = "auto"

    def __call__(self) -> tuple[float, np.ndarray, np.ndarray]:
        run = simulate(
            self.system,
            self.method,
            self.q0,
            self.v0,
            step_size=self.span / self.steps,
            steps=self.steps,
            t0=self.t0,
            save_every=self.steps,
            backend=self.backend,
        )
        return float(run.t[-1]), run.q[-1], run.v[-1]


def work_precision(
    system: System,
    methods: Iterable[Integrator],
    q0: ArrayLike,
    v0: ArrayLike,
    *,
    t_end: float,
    t0: float = 0.0,
    steps: Sequence[int] = STEPS,
    reference: Callable[[float], State] | None = None,
    backend: str = "auto",
    longest: float = LONGEST,
) -> list[WorkPoint]:
    """A point for each method and number of steps, in this order; methods that do not apply come last.

    `reference(t)` is the true (q, v) at t, by default that of `ReferenceFlow`. A method that makes its own
    time is compared with the motion at the time that it has reached. After a point of more than `longest`
    seconds the method's next ones are not run.
    """
    span, counts = float(t_end) - t0, [whole("steps", count, 1) for count in steps]
    if not span > 0:
        raise ValueError(f"`t_end` must be a time after t0 = {t0:g}, but {t_end!r} was provided")
    truth = reference or reference_flow(system, q0, v0, t0)
    found: list[WorkPoint] = []
    rivals: list[Rival] = []
    for method in methods:
        if reason := method.refusal(system):
            found.append(WorkPoint(short_name(method), "-", note=reason))
            continue
        for count in counts:
            call = functools.partial(Call, system, method, q0, v0, span, count, t0, backend)
            rivals.append(Rival(short_name(method), f"{count} steps", call))
    return points(rivals, errors_at_end(system, (q0, v0), truth), longest=longest) + found


def reference_flow(system: System, q0: ArrayLike, v0: ArrayLike, t0: float = 0.0) -> Callable[[float], State]:
    """The motion from (q0, v0), to round-off; each time is computed once."""

    @functools.cache
    def at(t: float) -> State:
        run = simulate(system, ReferenceFlow(), q0, v0, step_size=t - t0, steps=1, t0=t0)
        return run.q[-1], run.v[-1]

    return at


def errors_at_end(
    system: System, start: tuple[ArrayLike, ArrayLike], reference: Callable[[float], State]
) -> Callable[[float, np.ndarray, np.ndarray], Errors]:
    """The function of (t, q, v) that gives the errors of `WorkPoint`."""
    initial = float(system.energy(*start))

    def errors(t: float, q: ArrayLike, v: ArrayLike) -> Errors:
        true_q, true_v = reference(t)
        q, v = (np.asarray(x, float) for x in system.alike(q, v, true_q))
        return (
            float(max(np.max(np.abs(q - true_q)), np.max(np.abs(v - true_v)))),
            abs(float(system.energy(q, v)) - initial),
            float(np.max(np.abs(system.phi(q, v)), initial=0.0)),
        )

    return errors


def points(
    rivals: Iterable[Rival],
    errors: Callable[[float, np.ndarray, np.ndarray], Errors],
    *,
    longest: float = LONGEST,
) -> list[WorkPoint]:
    """A point for each rival; those of one name come from coarse to fine."""
    found: list[WorkPoint] = []
    solvers: dict[int, Solver] = {}
    slow: dict[str, float] = {}
    for number, rival in enumerate(rivals):
        if rival.by in slow:
            note = f"not run, since the point before took {slow[rival.by]:.2g} s"
            found.append(WorkPoint(rival.by, rival.setting, note=note))
            continue
        try:
            solvers[number], point = _first_calls(rival, errors)
        except (ArithmeticError, RuntimeError) as error:
            found.append(WorkPoint(rival.by, rival.setting, note=str(error).partition("\n")[0]))
            continue
        found.append(point)
        if point.seconds is not None and point.seconds > longest:
            slow[rival.by] = point.seconds
    for number, seconds in _again(solvers, found, longest).items():
        found[number] = replace(found[number], seconds=seconds)
    return found


def _first_calls(
    rival: Rival, errors: Callable[[float, np.ndarray, np.ndarray], Errors]
) -> tuple[Solver, WorkPoint]:
    """A solver that has been called twice: its errors, and the seconds of both calls."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        began = time.perf_counter()
        solver = rival.make()
        end = solver()
        first = time.perf_counter() - began
        rival.settle()
        before = time.process_time()
        solver()
        seconds = time.process_time() - before
    return solver, WorkPoint(rival.by, rival.setting, seconds, first, *errors(*end))


def _again(solvers: dict[int, Solver], found: list[WorkPoint], longest: float) -> dict[int, float]:
    """The best of more rounds, where a point does not take long."""
    once = {number: found[number].seconds or 0.0 for number in solvers}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        quick = {number: solver for number, solver in solvers.items() if once[number] < LONG}
        rest = {number: solver for number, solver in solvers.items() if LONG <= once[number] < longest}
        return best_of_rounds(quick, ROUNDS, time.process_time) | best_of_rounds(rest, FEW, time.process_time)


def cells(point: WorkPoint) -> list[str]:
    """The point under `HEAD`, for people."""
    if point.seconds is None:
        return [point.by, point.setting, point.note]
    times = (point.seconds, point.first_call)
    small = (point.error, point.energy_error, point.constraint_error)
    return [point.by, point.setting, *(f"{x:.3g}" for x in times), *(f"{x:.1e}" for x in small)]


def as_markdown(found: Iterable[WorkPoint]) -> str:
    """All points in one table."""
    return table(HEAD, [[f"`{name}`", *rest] for name, *rest in map(cells, found)])
