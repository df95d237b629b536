"""Whether a step of -h undoes a step of h."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from noslip.integrators.base import Integrator
from noslip.numerics.linear import spd_solve
from noslip.numerics.pytrees import replaced
from noslip.run.choose import on_cpu, trajectory_runner
from noslip.run.pairing import pairing_of
from noslip.run.runner import TrajectoryRunner
from noslip.run.step import TURN
from noslip.system import System


def reversibility_defect(
    system: System, integrator: Integrator, q0: Any, v0: Any, *, step_size: float, steps: int, t0: float = 0.0
) -> float:
    """Go `steps` steps forth and as many back; the largest difference to the start, relative to the
    largest component of state along the way. NaN if a solve fails.

    The way back begins with the whole state at the end: what it knows of the start and the reaction that it
    remembers, which must come back too. Only the history from which a method guesses begins anew."""
    q, v = (np.asarray(x, dtype=float) for x in (q0, v0))
    with on_cpu():
        runner = _runner(system, integrator, q, v, t0, step_size)
        memory = _remembered(system, integrator, runner, step_size)
        there = _travel(system, runner, steps)
        carry = runner.snapshot()
        state = _turned_round(system, integrator, carry.state, -step_size)
        runner.restore(replaced(carry, state=jax.tree.map(np.asarray, state)))
        runner.step_size(-step_size)
        back = _travel(system, runner, 2 * steps)
        again = _remembered(system, integrator, runner, step_size)
    size = max(float(np.max(np.abs(x))) for x in (q, v, *there))
    pairs = zip((*back, again), (q, v, memory), strict=True)
    return max(float(np.max(np.abs(a - b))) for a, b in pairs) / (size or 1.0)


def _remembered(
    system: System, integrator: Integrator, runner: TrajectoryRunner[Any], h: float
) -> np.ndarray:
    """The change of velocity M^-1 h mu^T lam by the reaction that the state remembers."""
    if not integrator.remembers_reaction:
        return np.zeros(system.n)
    state: Any = jax.tree.map(jnp.asarray, runner.snapshot().state)
    t, q, v = integrator.observe(state)[:3]
    system = system.at(t)
    return np.asarray(spd_solve(system.mass_matrix(q), h * system.mu(q, v).T @ state.lam))


def _turned_round(system: System, integrator: Integrator, state: Any, h: float) -> Any:
    """The state as the start of a step of -h."""
    state, step = jax.tree.map(jnp.asarray, state), jnp.asarray(h)
    if integrator.history(state) is not None:
        seen = integrator.observe(state)
        fresh = integrator.init(system, seen.q, seen.v, state.t.value, step)
        state = integrator.with_history(state, integrator.history(fresh))
    return integrator.for_step(system, state, step)


def travelled(
    system: System, integrator: Integrator, q: Any, v: Any, t: Any, h: float, steps: int
) -> tuple[np.ndarray, np.ndarray]:
    """q and v after that many steps; h may be negative. NaN if a solve fails."""
    with on_cpu():
        return _travel(system, _runner(system, integrator, q, v, t, h), steps)


def _runner(
    system: System, integrator: Integrator, q: Any, v: Any, t: Any, h: float
) -> TrajectoryRunner[Any]:
    q, v = np.asarray(q, dtype=float), np.asarray(v, dtype=float)
    return trajectory_runner(pairing_of(system, integrator), q, v, float(t), float(h))


def _travel(system: System, runner: TrajectoryRunner[Any], stop: int) -> tuple[np.ndarray, np.ndarray]:
    """The state at step `stop`."""
    part, _, failed = runner.to(stop, stop, stop)
    if failed:
        return np.full(system.n, np.nan), np.full(system.n, np.nan)
    rows = runner.join([part])
    return np.asarray(rows.q[-1] + TURN * rows.turns[-1]), np.asarray(rows.v[-1])
