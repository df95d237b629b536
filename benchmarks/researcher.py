"""One trajectory of CFHM's experiment against the same scheme in NumPy and scipy.optimize, done with care."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from benchmarks import gonzalez_numpy as script
from noslip.analysis.timing import best_of_rounds, one_core
from noslip.bench.machine import versions
from noslip.integrators.discrete_gradient import DiscreteGradient
from noslip.markdown import table
from noslip.simulate import simulate
from noslip.systems import quartic

STEP, STEPS, SLOW_STEPS = 0.05, 20000, 100
Row = dict[str, Any]


def initial_state() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(q, v), and the same as a point (q, rho) of D*."""

    @jax.jit
    def start() -> tuple[jax.Array, jax.Array, jax.Array]:
        q, v = quartic.typical_state()
        return q, v, jnp.concatenate([q, quartic.frame(q, {}).T @ v])

    q, v, z = (np.asarray(x) for x in start())
    return q, v, z


def measure(show: Callable[[Row], None] = lambda row: None) -> dict[str, Any]:
    """Nanoseconds per step of noslip (whole calls of `simulate`) and of three solves in NumPy."""
    system, (q, v, z) = quartic.system(), initial_state()

    def ours() -> None:
        simulate(system, DiscreteGradient(), q, v, step_size=STEP, steps=STEPS, save_every=STEPS)

    solves = {
        "NumPy, scipy.optimize.root": script.by_powell,
        "NumPy, Newton by hand": script.by_newton,
        "NumPy, fixed point by hand": script.by_fixed_point,
    }
    rivals: dict[str, Callable[[], None]] = {"noslip simulate": ours}
    rivals |= {name: partial(script.run, z, STEP, SLOW_STEPS, solve) for name, solve in solves.items()}
    ours()
    with one_core():
        seconds = best_of_rounds(rivals, clock=time.process_time)
    per_step = {k: s / (STEPS if k == "noslip simulate" else SLOW_STEPS) for k, s in seconds.items()}
    end = simulate(system, DiscreteGradient(), q, v, step_size=STEP, steps=SLOW_STEPS).q[-1]
    rows = []
    for name, value in per_step.items():
        row: Row = {"by": name, "ns": 1e9 * value, "ratio": value / per_step["noslip simulate"]}
        if name in solves:
            row["difference"] = float(
                np.max(np.abs(script.run(z, STEP, SLOW_STEPS, solves[name])[: len(q)] - end))
            )
        rows.append(row)
        show(row)
    return {"benchmark": "researcher", "versions": versions(), "rows": rows}


def markdown(result: dict[str, Any]) -> str:
    head = ("by", "per step", "ratio to noslip", f"difference after {SLOW_STEPS} steps")
    rows = []
    for row in result["rows"]:
        off = f"{row['difference']:.0e}" if "difference" in row else ""
        rows.append([row["by"], f"{row['ns'] / 1e3:.3g} us", f"{row['ratio']:.4g}", off])
    return table(head, rows)
