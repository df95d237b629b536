"""The order of a method as it is, not as it is said to be: JS definition 4.2, local and global."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from noslip.integrators.base import Integrator
from noslip.integrators.reference_flow import ReferenceFlow
from noslip.simulate import simulate
from noslip.system import System
from noslip.trajectory import Trajectory

FLOOR = 1e-12  # errors below this are round-off of the reference and of the method


@dataclass(frozen=True)
class MeasuredOrder:
    """Errors (rows: step sizes; columns: q, v, multipliers) and the slopes of their logarithms.

    `local` are the exponents minus 1 of the error of one step, `global_` the exponents at t_end.
    The pair of JS definition 4.2 is `p`, `s`: of the states, and of the multipliers, both at the node.
    `multiplier_dated` is like the last column of `local`, with the reference taken when the method dates its
    multipliers; `multiplier_errors` are the largest of the whole run (of a step, for methods with none of
    their own) against it, and `multipliers` their slope: what `multiplier_order` promises.
    """

    step_sizes: np.ndarray
    local_errors: np.ndarray
    global_errors: np.ndarray
    local: np.ndarray
    global_: np.ndarray
    multiplier_dated: float
    multiplier_errors: np.ndarray

    @property
    def multipliers(self) -> float:
        return slope(self.step_sizes, self.multiplier_errors)

    @property
    def p(self) -> float:
        return float(np.min(self.local[:2]))

    @property
    def s(self) -> float:
        return float(self.local[2])


def slope(step_sizes: np.ndarray, errors: np.ndarray) -> float:
    """Least-squares exponent of errors ~ h^p over the points above round-off; NaN with fewer than three."""
    good = (errors > FLOOR) & np.isfinite(errors)
    if np.sum(good) < 3:
        return float("nan")
    return float(np.polyfit(np.log(step_sizes[good]), np.log(errors[good]), 1)[0])


def measured_order(
    system: System,
    integrator: Integrator,
    q0: ArrayLike,
    v0: ArrayLike,
    *,
    t_end: float,
    steps: tuple[int, ...],
    t0: float = 0.0,
) -> MeasuredOrder:
    """Measure on one problem: for each number of steps, the errors of the first step and at t_end."""
    hs = np.array([(t_end - t0) / n for n in steps])
    end = _reference(system, q0, v0, t0, t_end - t0)
    local, dated, global_, largest = [], [], [], []
    own = integrator.multiplier_order is not None
    for h, n in zip(hs, steps, strict=True):
        run = simulate(system, integrator, q0, v0, step_size=h, steps=n, t0=t0)
        one = _reference(system, q0, v0, t0, h)
        if integrator.own_time:
            one, end = (_reference(system, q0, v0, t0, float(run.t[k]) - t0) for k in (1, -1))
        local.append(_errors(system, run, 1, one))
        global_.append(_errors(system, run, -1, end))
        errors = _multiplier_errors(system, q0, v0, run, len(run.t) if own else 2)
        dated.append(errors[1])
        largest.append(np.max(errors))
    local_errors, global_errors = np.array(local), np.array(global_)
    return MeasuredOrder(
        step_sizes=hs,
        local_errors=local_errors,
        global_errors=global_errors,
        local=np.array([slope(hs, e) - 1 for e in local_errors.T]),
        global_=np.array([slope(hs, e) for e in global_errors.T]),
        multiplier_dated=slope(hs, np.array(dated)) - 1,
        multiplier_errors=np.array(largest),
    )


def _errors(system: System, run: Trajectory, row: int, reference: Trajectory) -> list[float]:
    q, v = system.alike(run.q[row], run.v[row], reference.q[-1])
    lam = _reactions(run)[row]
    pairs = ((q, reference.q[-1]), (v, reference.v[-1]), (lam, _reactions(reference)[-1]))
    return [float(np.max(np.abs(a - b), initial=0.0)) for a, b in pairs]


def _multiplier_errors(
    system: System, q0: ArrayLike, v0: ArrayLike, run: Trajectory, rows: int
) -> np.ndarray:
    """By how much the multipliers of the first rows miss those of the motion when the method dates them."""
    t0, first = float(run.t[0]), float(run.multiplier_t[1])
    there = _reference(system, q0, v0, t0, first - t0 if first > t0 else run.info.step_size)
    row = -1 if first > t0 else 0
    exact = [*_reactions(there)[[0, row]]]
    if rows > 2:
        apart = np.diff(run.multiplier_t[1:rows])
        h, even = run.info.step_size, np.ptp(apart) <= 1e-9 * np.max(apart)
        how: dict[str, Any] = {"steps": rows - 2} if even else {"save_at": run.multiplier_t[1:rows]}
        motion = simulate(system, ReferenceFlow(), there.q[row], there.v[row], step_size=h, t0=first, **how)
        exact.extend(_reactions(motion)[1:])
    return np.max(np.abs(_reactions(run)[:rows] - np.array(exact)), axis=1, initial=0.0)


def _reactions(run: Trajectory) -> np.ndarray:
    """The multipliers of both kinds of constraints."""
    return np.concatenate([run.multipliers, run.holonomic_multipliers], axis=1)


def _reference(system: System, q0: ArrayLike, v0: ArrayLike, t0: float, time: float) -> Trajectory:
    """The motion to round-off after `time`."""
    return simulate(system, ReferenceFlow(), q0, v0, step_size=time, steps=1, t0=t0)
