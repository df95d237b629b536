"""Whether a step of -h undoes a step of h."""

from __future__ import annotations

from typing import Any

import jax
import numpy as np
from jax import Array
from numpy.typing import ArrayLike

from noslip.engine.backends.numpy_rows import evaluate_anyhow
from noslip.integrators.base import Integrator, OwnState
from noslip.numerics.linear import spd_solve
from noslip.numerics.pytrees import replaced
from noslip.numerics.tracing import Real
from noslip.run.choose import on_cpu, trajectory_runner
from noslip.run.pairing import pairing_of
from noslip.run.runner import Rows, TrajectoryRunner
from noslip.run.step import TURN
from noslip.system import System


def reversibility_defect(
    system: System,
    integrator: Integrator,
    q0: ArrayLike,
    v0: ArrayLike,
    *,
    step_size: float,
    steps: int,
    t0: float = 0.0,
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
        state = _turned_round(system, integrator, carry.state, -float(step_size))
        runner.restore(replaced(carry, state=jax.tree.map(np.asarray, state)))
        runner.step_size(-step_size)
        back = _travel(system, runner, 2 * steps)
        again = _remembered(system, integrator, runner, step_size)
    size = max(float(np.max(np.abs(x))) for x in (q, v, *there))
    pairs = zip((*back, again), (q, v, memory), strict=True)
    return max(float(np.max(np.abs(a - b))) for a, b in pairs) / (size or 1.0)


def _remembered(
    system: System, integrator: Integrator, runner: TrajectoryRunner[Rows], h: float
) -> np.ndarray:
    """The change of velocity M^-1 h mu^T lam by the reaction that the state remembers."""
    if not integrator.remembers_reaction:
        return np.zeros(system.n)
    state: OwnState = runner.snapshot().state
    t, q, v = integrator.observe(state)[:3]
    rows = (np.asarray(x)[None] for x in (t, q, v, h * state.lam))
    change: np.ndarray = evaluate_anyhow(_change_by, None, system, *rows)[0]
    return change


def _change_by(_: None, system: System, t: Array, q: Array, v: Array, impulse: Array) -> Array:
    here = system.at(t)
    return spd_solve(here.mass_matrix(q), here.mu(q, v).T @ impulse)


def _turned_round(system: System, integrator: Integrator, state: OwnState, h: float) -> Any:
    """The state as the start of a step of -h."""
    if integrator.history(state) is not None:
        seen = integrator.observe(state)
        fresh = _runner(system, integrator, seen.q, seen.v, state.t.value, h).snapshot().state
        state = integrator.with_history(state, integrator.history(fresh))
    leaves, structure = jax.tree.flatten(state)
    rows = (np.asarray(x)[None] for x in (h, *leaves))
    found = evaluate_anyhow(_for_step, (integrator, structure), system, *rows)
    return jax.tree.map(lambda x: x[0], found)


def _for_step(
    method: tuple[Integrator, jax.tree_util.PyTreeDef], system: System, h: Array, *leaves: Array
) -> Any:
    integrator, structure = method
    return integrator.for_step(system, jax.tree.unflatten(structure, leaves), h)


def travelled(
    system: System, integrator: Integrator, q: ArrayLike, v: ArrayLike, t: Real, h: float, steps: int
) -> tuple[np.ndarray, np.ndarray]:
    """q and v after that many steps; h may be negative. NaN if a solve fails."""
    with on_cpu():
        return _travel(system, _runner(system, integrator, q, v, t, h), steps)


def _runner(
    system: System, integrator: Integrator, q: ArrayLike, v: ArrayLike, t: Real, h: float
) -> TrajectoryRunner[Any]:
    q, v = np.asarray(q, dtype=float), np.asarray(v, dtype=float)
    return trajectory_runner(pairing_of(system, integrator), q, v, float(t), float(h))


def _travel(system: System, runner: TrajectoryRunner[Rows], stop: int) -> tuple[np.ndarray, np.ndarray]:
    """The state at step `stop`."""
    part, _, failed = runner.to(stop, stop, stop)
    if failed:
        return np.full(system.n, np.nan), np.full(system.n, np.nan)
    rows = runner.join([part])
    return np.asarray(rows.q[-1] + TURN * rows.turns[-1]), np.asarray(rows.v[-1])
