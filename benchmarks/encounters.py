"""Close encounters: what `VariableStep` saves at equal error against equal steps of the same base.

A particle falls towards a centre and is held by a skewed nonholonomic constraint, twice round from the far
point of a Kepler ellipse of eccentricity e, or from its near one. Evaluations are those of the equations of
a step; the rate of the motion, one in every variable step, counts as one more. The error is the largest of q
at two hundred rows, and counts and times at a given error are read off between runs whose steps are halved.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import jax.numpy as jnp
import numpy as np

from noslip.analysis.timing import best_of_rounds, one_core
from noslip.bench.machine import versions
from noslip.integrators import (
    Composition,
    DiscreteGradient,
    EnergyCollocation,
    ReferenceFlow,
    SemiImplicitDLA,
    VariableStep,
)
from noslip.integrators.base import Integrator
from noslip.markdown import table
from noslip.prepared import prepare
from noslip.simulate import simulate
from noslip.system import System

ECCENTRICITIES = (0.6, 0.8, 0.95)
BASES = {
    "SemiImplicitDLA": SemiImplicitDLA(),
    "DiscreteGradient": DiscreteGradient(),
    "Composition(SemiImplicitDLA)": Composition(SemiImplicitDLA()),
    "EnergyCollocation(2)": EnergyCollocation(2),
}
ERRORS = {2: 1e-3, 4: 1e-5}  # by the order of the base
SPAN, ROWS, HALVINGS, ROUNDS = 4 * np.pi, 200, 16, 5
Row = dict[str, Any]


def _centre(q: Any, v: Any, p: Any) -> Any:
    return 0.5 * p["m"] * jnp.dot(v, v) + 1 / jnp.sqrt(q[0] ** 2 + q[1] ** 2)


def _skewed(q: Any, p: Any) -> Any:
    return jnp.array([[-0.3 * q[1], 0.2 * q[0], 1.0]])


SYSTEM = System(_centre, coordinates=("x", "y", "z"), one_forms=_skewed, parameters={"m": 1.0})


def start(e: float, far: bool = True) -> tuple[np.ndarray, np.ndarray]:
    """On the constraint, with the position and nearly the velocity of the ellipse there."""
    s = e if far else -e
    q, v = np.array([1 + s, 0.0, 0.1]), np.array([0.0, np.sqrt((1 - s) / (1 + s)), 0.0])
    return q, np.asarray(SYSTEM.project_velocity(q, v))


def point(method: Integrator, q: np.ndarray, v: np.ndarray, h: float, timed: bool) -> np.ndarray | None:
    """Error, evaluations and, if `timed`, seconds of one run; None where a step of this length fails."""
    varying = method.own_time
    if varying:
        run = simulate(SYSTEM, method, q, v, step_size=h, t_end=SPAN, throw=False)
    else:
        count = int(np.ceil(SPAN / h))
        run = simulate(SYSTEM, method, q, v, step_size=SPAN / count, steps=count, throw=False)
    if not run.success:
        return None
    steps = len(run.t) - 1
    k = np.unique(np.linspace(1, steps, ROWS).astype(int))
    exact = simulate(SYSTEM, ReferenceFlow(), q, v, step_size=1.0, save_at=run.t[k])
    evaluations = np.sum(np.maximum(run.report.iterations, 1)) + varying * steps
    seconds = 1.0
    if timed:
        prepared = prepare(SYSTEM, method, step_size=run.info.step_size, steps=steps, save_every=steps)
        prepared(q, v)
        with one_core():
            seconds = best_of_rounds({0: lambda: prepared(q, v)}, ROUNDS, time.process_time)[0]
    return np.array([np.max(np.abs(run.q[k] - exact.q)), evaluations, seconds])


def at_error(
    method: Integrator, q: np.ndarray, v: np.ndarray, h: float, error: float, timed: bool
) -> np.ndarray:
    """Evaluations and seconds that this error takes, from the two runs around it."""
    before = None
    for _ in range(HALVINGS):
        here = point(method, q, v, h, timed)
        if here is not None and here[0] <= error:
            if before is None:
                break
            part = np.log(before[0] / error) / np.log(before[0] / here[0])
            return np.asarray(before * (here / before) ** part)[1:]
        before, h = here, h / 2
    raise ValueError(f"{method} does not come down to the error {error:g} by halving its steps")


def fewer(base: Integrator, e: float, far: bool = True, timed: bool = False) -> Row:
    """How many times fewer evaluations, and how much less CPU time, variable steps take."""
    (q, v), error, near = start(e, far), ERRORS[base.order], (1 - e) ** 1.5
    equal = at_error(base, q, v, near, error, timed)
    variable = at_error(VariableStep(base), q, v, 0.5 if far else near, error, timed)
    ratio, quicker = equal / variable
    return {"fewer": float(ratio), "quicker": float(quicker), "evaluations": float(variable[0])}


def measure(show: Callable[[Row], None] = lambda row: None) -> dict[str, Any]:
    """All bases, eccentricities and both starts."""
    rows = []
    for far in (True, False):
        for name, base in BASES.items():
            for e in ECCENTRICITIES:
                row = {"base": name, "from": "far" if far else "near", "e": e, "error": ERRORS[base.order]}
                rows.append(row | fewer(base, e, far, timed=True))
                show(rows[-1])
    return {"benchmark": "encounters", "versions": versions(), "rows": rows}


def markdown(result: dict[str, Any]) -> str:
    cells: dict[tuple[str, str, float], list[str]] = {}
    for row in result["rows"]:
        key = row["from"], row["base"], row["error"]
        cells.setdefault(key, []).append(f"{row['fewer']:.1f} ({row['quicker']:.1f})")
    rows = [[f"{place} point, {base}", f"{error:g}", *x] for (place, base, error), x in cells.items()]
    return table(("from the", "error", *(f"e = {e:g}" for e in ECCENTRICITIES)), rows)
