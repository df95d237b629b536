"""What a call costs that does nothing but run: one step of noslip and of its peers, again and again.

All are compiled before; each is given a new initial state and gives back the end. A closed loop is a stepper
whose coordinates are read after every step.
"""

from __future__ import annotations

import importlib.util
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks.problems import Problem, problems
from noslip.analysis.timing import best_of_rounds, one_core
from noslip.bench.machine import versions
from noslip.integrators.runge_kutta4 import RungeKutta4
from noslip.integrators.semi_implicit_dla import SemiImplicitDLA
from noslip.markdown import table
from noslip.prepared import prepare
from noslip.simulate import simulate

STEP, CALLS, ROUNDS = 0.01, 100, 20
Row = dict[str, Any]
Call = Callable[[], Any]


def measure(show: Callable[[Row], None] = lambda row: None) -> dict[str, Any]:
    """Microseconds per call of one step, on every problem."""
    rows = []
    for problem in problems():
        rivals = _rivals(problem)
        for call in rivals.values():
            call(), call()
        batches = {name: _batch(call) for name, call in rivals.items()}
        with one_core():
            seconds = best_of_rounds(batches, ROUNDS, time.process_time)
        for name, value in seconds.items():
            rows.append({"problem": problem.name, "by": name, "us": 1e6 * value / CALLS})
            show(rows[-1])
    return {"benchmark": "calls", "versions": versions(), "rows": rows}


def _batch(call: Call) -> Call:
    def batch() -> None:
        for _ in range(CALLS):
            call()

    return batch


def _rivals(problem: Problem) -> dict[str, Call]:
    system, (q, v) = problem.system, problem.state
    prepared = {m: prepare(system, m, step_size=STEP, steps=1) for m in (SemiImplicitDLA(), RungeKutta4())}
    semi, plain = prepared.values()
    stepper = semi.start(q, v)
    slope = plain.value_and_gradient(lambda run: (run.q[-1] ** 2).sum())
    rivals: dict[str, Call] = {
        "noslip prepared, SemiImplicitDLA": lambda: semi(q, v),
        "noslip prepared, RungeKutta4": lambda: plain(q, v),
        "noslip prepared, RungeKutta4, q read": lambda: plain(q, v).q[-1],
        "noslip stepper, SemiImplicitDLA, q read": lambda: stepper.step().q,
        "noslip simulate, SemiImplicitDLA": lambda: simulate(
            system, SemiImplicitDLA(), q, v, step_size=STEP, steps=1
        ),
        "noslip value and gradient, RungeKutta4": lambda: slope(q, v),
    }
    if importlib.util.find_spec("diffrax") is not None:
        rivals |= _diffrax(problem)
    if importlib.util.find_spec("heyoka") is not None:
        rivals["heyoka propagate_until"] = _heyoka(problem)
    return rivals


def _diffrax(problem: Problem) -> dict[str, Call]:
    import diffrax
    import jax
    import jax.numpy as jnp

    n, y0 = problem.system.n, np.concatenate(problem.state)

    def field(t: Any, y: Any, _: Any) -> Any:
        return jnp.concatenate([y[n:], jnp.stack(problem.acceleration(jnp, y[:n], y[n:]))])

    def end(y: Any) -> Any:
        term, solver = diffrax.ODETerm(field), diffrax.Tsit5()
        return diffrax.diffeqsolve(term, solver, 0.0, STEP, STEP, y, max_steps=4).ys[-1]

    run, slope = jax.jit(end), jax.jit(jax.value_and_grad(lambda y: jnp.sum(end(y)[:n] ** 2)))
    return {
        "diffrax Tsit5": lambda: jax.block_until_ready(run(y0)),
        "diffrax Tsit5, value and gradient": lambda: jax.block_until_ready(slope(y0)),
    }


def _heyoka(problem: Problem) -> Call:
    import heyoka as hy

    n, y0 = problem.system.n, np.concatenate(problem.state)
    y = [hy.expression(f"y{k}") for k in range(2 * n)]
    slopes = [*y[n:], *problem.acceleration(hy, y[:n], y[n:])]
    solver = hy.taylor_adaptive(list(zip(y, slopes, strict=True)), y0.tolist())

    def run() -> np.ndarray:
        solver.time, solver.state[:] = 0.0, y0
        solver.propagate_until(STEP)
        return solver.state

    return run


def markdown(result: dict[str, Any]) -> str:
    names = list(dict.fromkeys(row["by"] for row in result["rows"]))
    found = list(dict.fromkeys(row["problem"] for row in result["rows"]))
    values = {(row["by"], row["problem"]): row["us"] for row in result["rows"]}
    rows = [[name, *(f"{values[name, problem]:.3g} us" for problem in found)] for name in names]
    return table(("a call of one step", *found), rows)
