"""Random systems under every integrator with random parameters, held to an independent motion.

    python tests/random_systems/random_runs.py --runs 1000 --seed 0          # minutes; hours with more
    python tests/random_systems/random_runs.py --seed 0 --group 17 --draw 2  # one run again, with its numbers

A group is a method with its parameters and a shape of system, compiled once; its draws are systems of that
shape. A run is broken if a result that the method calls solved contradicts a claim: the orders of (q, v) and
of the multipliers at their own dates, `constraint`, `deformed_constraint`, `energy`, `reversible`. A solve
that fails and says so is counted, not held against it.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from random_methods import HEAVY, METHODS, likely
from random_system import Motion, Shape, as_system, random_coefficients, random_shape, random_start

from noslip import System, simulate
from noslip.analysis import reversibility_defect
from noslip.engine.backends import native
from noslip.integrators.base import Integrator
from noslip.integrators.discrete_lagrange_dalembert import DiscreteLagrangeDAlembert
from noslip.trajectory import Trajectory

T_END = 1.0
STEPS = {1: 64, 2: 32, 4: 16, 6: 8}  # by order, of the first run; above 6: 4
RATIO = 4  # of the steps of each of three runs to the next, so that an error of a part in 1e4 stands out
REFINED = 2  # more such runs before an order counts as missed
FINE = 1e-5  # errors above this tell little, unless the order is 1
SLACK = 0.35  # of an order between two runs
FLOOR = 1e-10  # errors below this, relative to the state, are round-off and the reference's own
HELD = 1e-11  # a promise is kept up to this, relative to the terms it is about
ROWS = 16  # of a run, at which multipliers are compared
REACH = 1.6  # of T_END, since a method may make its own time
PATIENCE = 40  # shapes that a method may refuse; then others of its parameters are drawn
DRAWS = 12  # systems of one shape, which are compiled once


@dataclass
class Case:
    """A method on a system with a state, and the motion from there."""

    method: Integrator
    shape: Shape
    system: System
    motion: Motion
    path: Any  # SciPy's solution up to T_END, or beyond it
    numbers: dict[str, object] = field(default_factory=dict)

    def runs(self) -> Iterator[Trajectory]:
        """With h, h/4, h/16, ...; those that say that they could not be solved are left out."""
        q0, v0 = np.split(self.path.y[:, 0], 2)
        first = STEPS.get(self.method.order, 4)
        for k in range(3 + REFINED):
            steps = first * RATIO**k
            run = simulate(
                self.system, self.method, q0, v0, step_size=T_END / steps, steps=steps, throw=False
            )
            if run.success:
                yield run


def state_error(case: Case, run: Trajectory) -> float:
    """Of (q, v) at the end, relative to the size of the state. A method that makes its own time is judged at
    its last row of which the path knows."""
    row = int(np.searchsorted(run.t, case.path.t[-1], side="right")) - 1 if case.method.own_time else -1
    truth = case.path.sol(run.t[row]) if case.method.own_time else case.path.y[:, -1]
    found = np.concatenate([run.q[row], run.v[row]])
    return float(np.linalg.norm(found - truth) / (1 + np.linalg.norm(truth)))


def multiplier_error(case: Case, run: Trajectory) -> float:
    """The largest of some rows, the first among them, compared with the motion at the time given for each."""
    n, worst = case.shape.n, 0.0
    known = run.multiplier_t[1:] <= case.path.t[-1]
    times, values = run.multiplier_t[1:][known], run.multipliers[1:][known]
    rows = np.unique(np.linspace(0, len(times) - 1, ROWS).astype(int))
    for t, lam in zip(times[rows], values[rows], strict=True):
        z = case.path.sol(t)
        truth = case.motion.solved(z[:n], z[n:], t)[1]
        worst = max(
            worst, float(np.max(np.abs(lam - truth), initial=0.0) / (1 + np.max(np.abs(truth), initial=0.0)))
        )
    return worst


def falls_short(errors: list[float], order: float) -> bool:
    """Whether the last error is above the floor, or NaN, and neither the last two nor all shrink enough."""
    logs = np.log(np.array(errors) + 1e-300) / np.log(RATIO)
    slopes = [logs[-2] - logs[-1], -np.polyfit(np.arange(len(logs)), logs, 1)[0]]
    return not (errors[-1] <= FLOOR or max(slopes) >= order - SLACK)


def complaints(case: Case) -> list[str]:
    """What solved runs contradict, a sentence each."""
    order = 1 if case.method.exact else case.method.order  # the errors of an exact flow are at the floor
    dated = order if case.method.multiplier_order is None else case.method.multiplier_order
    states: list[float] = []
    multipliers: list[float] = []
    found: list[str] = []
    last = None
    for run in case.runs():
        last = run
        states.append(state_error(case, run))
        multipliers.append(multiplier_error(case, run))
        short = len(states) < 3 or falls_short(states, order) or falls_short(multipliers, dated)
        if not short and (states[-1] < FINE or order == 1):
            break
    case.numbers |= {"states": states, "multipliers": multipliers}
    if len(states) < 3:
        case.numbers["unsolved"] = True
    elif falls_short(states, order):
        found.append(f"order {order} is missed: errors {states}")
    elif falls_short(multipliers, dated):
        found.append(f"order {dated} of the multipliers at their dates is missed: errors {multipliers}")
    missed = [] if last is None else [(word, size) for word, size in defects(case, last) if not size <= HELD]
    return found + [f"'{word}' is promised but missed by {size:.1e}" for word, size in missed]


def defects(case: Case, run: Trajectory) -> Iterator[tuple[str, float]]:
    """Each promise that has a meaning here, with what is missed."""
    method, motion, h = case.method, case.motion, T_END / run.info.steps
    rows = np.unique(np.linspace(0, len(run.t) - 1, 100).astype(int))
    states = list(zip(run.q[rows], run.v[rows], strict=True))
    if "constraint" in method.preserves:
        yield "constraint", _relative([motion.constraint(q, v) for q, v in states])
    if (
        "deformed_constraint" in method.preserves
        and isinstance(method, DiscreteLagrangeDAlembert)
        and not method.rho
    ):
        betas = [method.beta, 1 - method.beta] if method.symmetrized else [method.beta]
        pairs = [[motion.constraint(q - (1 - b) * h * v, v) for b in betas] for q, v in states[1:]]
        yield "deformed_constraint", _relative(np.mean(pairs, axis=1))
    if "energy" in method.preserves and case.shape.kind == "linear" and not case.shape.forced:
        energies = np.array([motion.energy(q, v) for q, v in states])
        yield "energy", float(np.max(np.abs(energies[:, 0] - energies[0, 0])) / np.max(energies[:, 1]))
    if "reversible" in method.preserves and not method.exact:
        steps = min(20, run.info.steps)
        defect = reversibility_defect(case.system, method, run.q0, run.v0, step_size=h, steps=steps)
        case.numbers["reversible"] = defect
        yield "reversible", 0.0 if np.isnan(defect) else defect  # NaN: a solve that failed


def _relative(rows: Any) -> float:
    """The largest value of each constraint in a run relative to the largest sum of its terms."""
    values, terms = np.max(np.abs(np.array(rows)), axis=0)
    return float(np.max(values / (terms + 1e-300), initial=0.0))


def group(seed: int, number: int, all_sizes: bool = False) -> tuple[Integrator, Shape]:
    """A method and a shape of system on which it says it can run; len(METHODS) numbers have every method."""
    rng = np.random.default_rng([seed, number])
    name = list(METHODS)[(5 * number + seed) % len(METHODS)]
    largest = 8 if all_sizes else HEAVY.get(name, 8)
    while True:
        method = METHODS[name](rng)
        for _ in range(PATIENCE):
            shape = random_shape(rng, largest)
            while not likely(name, shape):
                shape = random_shape(rng, largest)
            if method.applies_to(as_system(shape, random_coefficients(rng, shape))) is None:
                return method, shape


def draw(seed: int, number: int, one: int, method: Integrator, shape: Shape) -> Case:
    """A system of the shape with a state from which the motion is well defined for a while."""
    rng = np.random.default_rng([seed, number, one])
    while True:
        motion = Motion(shape, random_coefficients(rng, shape))
        q0, v0 = random_start(rng, motion)
        path = motion.flow(q0, v0, (REACH if method.own_time else 1) * T_END)
        if path is not None:
            return Case(method, shape, as_system(shape, motion.p), motion, path)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=100)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--group", type=int, help="only this group")
    parser.add_argument("--draw", type=int, help="only this draw of each group")
    parser.add_argument(
        "--all-sizes", action="store_true", help="n up to 8 also where compiling takes minutes"
    )
    parser.add_argument("--verbose", action="store_true", help="the numbers of each run")
    options = parser.parse_args()
    native.OPTIMIZE = 0  # the bits are the same, and compiling is most of the time
    count, number, tally, broken = 0, options.group or 0, Counter(), 0
    while count < (1 if options.group is not None else options.runs):
        method, shape = group(options.seed, number, options.all_sizes)
        print(f"group {number}: {method} on {shape}", flush=True)
        for one in range(DRAWS) if options.draw is None else [options.draw]:
            case = draw(options.seed, number, one, method, shape)
            found = complaints(case)
            count, broken = count + 1, broken + bool(found)
            tally[type(method).__name__, "unsolved" if "unsolved" in case.numbers else "judged"] += 1
            if options.verbose or options.group is not None:
                print("   ", case.numbers)
            for sentence in found:
                print(
                    f"    BROKEN --seed {options.seed} --group {number} --draw {one}: {sentence}", flush=True
                )
        number += 1
    for (name, word), times in sorted(tally.items()):
        print(f"{name:30s} {word:10s} {times}")
    print(f"{count} runs, {broken} broken")
    return int(broken > 0)


if __name__ == "__main__":
    sys.exit(main())
