"""Long runs of the rotating gearbox (CFHM (24)): what exact energy is worth, and for how long it stays exact.

Two tables. `parts` has many methods over 500 000 steps: total energy, the energies of oscillators and
pendulum (first integrals, one by one), the constraint, the error against the exact flow, and the cost.
`long` has the methods that promise the energy over ten million steps, and if asked Gonzalez over a thousand
million; energy and constraint are watched at every step, and the slope of the energy error, with its
standard error, is that of a straight line through the saved times. Times are those of the processor.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import Array

from noslip.analysis.conservation import constraint_error, drift
from noslip.analysis.scoreboard import short_name
from noslip.analysis.timing import one_core
from noslip.bench.machine import versions
from noslip.ensembles import Observable, ensemble
from noslip.integrators.base import Integrator
from noslip.integrators.composition import Composition
from noslip.integrators.discrete_gradient import DiscreteGradient
from noslip.integrators.energy_collocation import EnergyCollocation
from noslip.integrators.full_space_discrete_gradient import FullSpaceDiscreteGradient
from noslip.integrators.lobatto_spark import LobattoSpark
from noslip.integrators.projected import Projected
from noslip.integrators.reference_flow import ReferenceFlow
from noslip.integrators.runge_kutta4 import RungeKutta4
from noslip.integrators.semi_implicit_dla import SemiImplicitDLA
from noslip.integrators.velocity_nonholonomic import VelocityNonholonomic
from noslip.markdown import table
from noslip.simulate import simulate
from noslip.systems import gearbox

STEP, EARLY = 0.1, 1000.0  # the error is measured at t = EARLY
PART_STEPS, LONG_STEPS, LONGEST_STEPS = 500_000, 10**7, 10**9
SAVED = 10_000  # times through which the line of the energy error is drawn
KEPT = 1e-12  # an integral that changes by less counts as kept
PARTS = ("oscillator_energy", "pendulum_energy")
Row = dict[str, Any]

LONG: tuple[Integrator, ...] = (
    DiscreteGradient(),
    DiscreteGradient("mean_value"),
    DiscreteGradient("mean_value", "orthonormal"),
    DiscreteGradient("coordinate_increment"),
    EnergyCollocation(),
    Projected(),
)
COMPARED: tuple[Integrator, ...] = (
    DiscreteGradient(),
    DiscreteGradient(frame="householder"),
    DiscreteGradient(frame="orthonormal"),
    DiscreteGradient("mean_value"),
    DiscreteGradient("mean_value", "orthonormal"),
    DiscreteGradient("coordinate_increment", "orthonormal"),
    FullSpaceDiscreteGradient(),
    EnergyCollocation(),
    EnergyCollocation(3),
    EnergyCollocation(4),
    EnergyCollocation(2, "orthonormal"),
    Composition(),
    Projected(),
    Projected(EnergyCollocation()),
    Projected(EnergyCollocation(3)),
    SemiImplicitDLA(),
    VelocityNonholonomic(),
    LobattoSpark(),
    LobattoSpark(3),
    RungeKutta4(),
)


def measure(show: Callable[[Row], None] = lambda row: None, full: bool = False) -> dict[str, Any]:
    """All rows, each shown as soon as it is there; `full` adds the thousand million steps."""
    rows: list[Row] = []
    with one_core():
        for row in _all(full):
            rows.append(row)
            show(row)
    return {"benchmark": "energy", "versions": versions(), "system": _setting(), "rows": rows}


def _all(full: bool) -> Iterator[Row]:
    exact = exact_position(EARLY)
    for method in COMPARED:
        yield parts(method, PART_STEPS, exact)
    for method in LONG:
        yield long(method, LONG_STEPS)
    if full:
        yield long(LONG[0], LONGEST_STEPS)


def _setting() -> dict[str, Any]:
    q, v = gearbox.typical_state()
    parameters = dict(gearbox.system().parameters)
    return {"name": "gearbox", "parameters": parameters, "q": q.tolist(), "v": v.tolist(), "step_size": STEP}


def exact_position(t: float) -> np.ndarray:
    """q(t) by `ReferenceFlow`."""
    start = gearbox.typical_state()
    return simulate(gearbox.system(), ReferenceFlow(), *start, step_size=t, steps=1).q[-1]


def parts(method: Integrator, steps: int, exact: np.ndarray) -> Row:
    """The largest relative changes of the energies over `steps`, or up to where the energy has become 1e9
    times what it was; the error at t = EARLY, and the cost."""
    system, start = gearbox.system(), gearbox.typical_state()
    run = simulate(system, method, *start, step_size=STEP, steps=steps, throw=False)
    steps = len(run.t) - 1
    began = time.process_time()
    simulate(system, method, *start, step_size=STEP, steps=steps, save_every=steps)
    seconds = time.process_time() - began
    early = round(EARLY / STEP)
    return {
        "what": "parts",
        "method": short_name(method),
        "steps": steps,
        "energy": _change(run.energy),
        **{name: _change(run.first_integrals[name]) for name in PARTS},
        "constraint": constraint_error(run),
        "error": float(np.max(np.abs(run.q[early] - exact))),
        "evaluations": None if method.is_explicit(system) else float(np.mean(run.report.iterations[1:])),
        "ns": 1e9 * seconds / steps,
    }


def _change(values: np.ndarray) -> float:
    return float(np.max(np.abs(values / values[0] - 1)))


def long(method: Integrator, steps: int) -> Row:
    """Energy, parts and constraint at every step; the slope of the energy error per 1e6 steps."""
    system, (q, v) = gearbox.system(), gearbox.typical_state()
    began = time.process_time()
    run = ensemble(
        system,
        method,
        q[None],
        v[None],
        step_size=STEP,
        steps=steps,
        save_every=max(1, steps // SAVED),
        observables={
            "energy": Observable("energy_error", ("max",)),
            "constraint": Observable("constraint", ("max",)),
            **{name: Observable(_away_from_start(name), ("max",)) for name in PARTS},
        },
        backend="native",
        threads=1,
    )
    seconds = time.process_time() - began
    energy, largest = run.energy[0], {name: float(x["max"][0]) for name, x in run.statistics.items()}
    line = drift(run.t / STEP / 1e6, energy / energy[0] - 1)
    return {
        "what": "long",
        "method": short_name(method),
        "steps": steps,
        "energy": largest["energy"] / abs(float(energy[0])),
        "slope": line.slope,
        "standard error": line.standard_error,
        **{name: largest[name] for name in PARTS},
        "constraint": largest["constraint"],
        "seconds": seconds,
        "backend": run.backend,
    }


def _away_from_start(name: str) -> Callable[..., Array]:
    """The relative distance of a first integral from its initial value, as an observable."""
    system, (q, v) = gearbox.system(), gearbox.typical_state()
    integral = system.first_integrals[name]
    first = float(integral(q, v, system.parameters))
    return lambda q, v, p: jnp.abs(integral(q, v, p) / first - 1)


def line(row: Row) -> str:
    """A row for people."""
    text = f"{row['method']:70} {row['steps']:.0e} steps  |dH/H| {row['energy']:.1e}"
    if row["what"] == "long":
        text += f"  slope {row['slope']:.1e} +- {row['standard error']:.1e} per 1e6 steps"
    text += f"  parts {row[PARTS[0]]:.1e} {row[PARTS[1]]:.1e}  constraint {row['constraint']:.1e}"
    if row["what"] == "long":
        return text + f"  {row['seconds']:.0f} s"
    return text + f"  error at t = {EARLY:g} {row['error']:.1e}  {row['ns']:.0f} ns per step"


def markdown(result: dict[str, Any]) -> tuple[str, str]:
    """The tables `parts` and `long`."""
    return _table(result, "parts", PARTS_COLUMNS), _table(result, "long", LONG_COLUMNS)


def _kept(change: float) -> str:
    return f"**{change:.1e}**" if change < KEPT else f"{change:.1e}"


def _number(name: str, form: str = ".1e") -> Callable[[Row], str]:
    return lambda row: "-" if row[name] is None else format(row[name], form)


PARTS_COLUMNS: dict[str, Callable[[Row], str]] = {
    "method": lambda row: f"`{row['method']}`",
    "steps": lambda row: f"{row['steps']:.3g}".replace("e+0", "e"),
    "energy": _number("energy"),
    "oscillators": lambda row: _kept(row["oscillator_energy"]),
    "pendulum": lambda row: _kept(row["pendulum_energy"]),
    "constraint": _number("constraint"),
    "error at 1000": _number("error"),
    "evaluations": _number("evaluations", ".1f"),
    "ns / step": _number("ns", ".0f"),
}
LONG_COLUMNS: dict[str, Callable[[Row], str]] = {
    "method": PARTS_COLUMNS["method"],
    "steps": lambda row: f"{row['steps']:.0e}".replace("+0", ""),
    "energy": _number("energy"),
    "slope per 1e6 steps": lambda row: f"{row['slope']:.1e} +- {row['standard error']:.1e}",
    "oscillators": PARTS_COLUMNS["oscillators"],
    "pendulum": PARTS_COLUMNS["pendulum"],
    "constraint": _number("constraint"),
    "seconds": _number("seconds", ".0f"),
}


def _table(result: dict[str, Any], what: str, columns: dict[str, Callable[[Row], str]]) -> str:
    rows = [[cell(row) for cell in columns.values()] for row in result["rows"] if row["what"] == what]
    return table([*columns], rows)
