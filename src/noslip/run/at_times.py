"""A run that is looked at where the user wants: rows at given times, by shortened steps beside the run."""

from __future__ import annotations

from typing import Any

import jax
import numpy as np
from jax import Array
from numpy.typing import ArrayLike

from noslip.engine.backends.numpy_rows import evaluate_anyhow
from noslip.integrators.solve import Status
from noslip.numerics.pytrees import replaced
from noslip.numerics.tracing import Real, has_tracers
from noslip.run.arguments import as_floats
from noslip.run.choose import Beginning
from noslip.run.driving import of_step
from noslip.run.events import NEVER
from noslip.run.pacing import SECONDS_PER_CALL, Interruption, Meter, Pace, Progress
from noslip.run.runner import Rows, TrajectoryRunner
from noslip.run.step import Row
from noslip.system import System
from noslip.system.inputs import Drive

ON_A_NODE = 1e-9  # of a step: a time this near to a node is that node, as it is for `t_end`


def steps_and_parts(times: np.ndarray, t0: float, h: float, grain: int = 1) -> tuple[np.ndarray, np.ndarray]:
    """The steps after which a look aside begins, multiples of `grain`, and how many steps further it goes."""
    span = (times - t0) / h
    near = np.round(span)
    span = np.where(np.abs(span - near) <= np.minimum(ON_A_NODE * np.maximum(1.0, near), 1e-3), near, span)
    first = (np.floor(span) // grain * grain).astype(int)
    return first, span - first


def save_times(
    save_at: ArrayLike, every: int, own_time: bool, t0: Real, h: Real, steps: int | None, t_end: float | None
) -> tuple[np.ndarray, int | None]:
    """The times that are asked for, and as many steps as they need where no number is given."""
    if has_tracers(save_at, t0, h):
        raise ValueError(
            "`save_at`, `t0` and `step_size` must be known when a run with `save_at` is compiled"
        )
    times = as_floats("save_at", save_at, np.shape(save_at), False)
    if times.ndim != 1 or not times.size:
        raise ValueError(f"`save_at` must be a list of times, but {save_at!r} was provided")
    if not np.isfinite(times).all() or np.any(np.diff(times) <= 0):
        raise ValueError(f"`save_at` must be finite and increasing, but {save_at!r} was provided")
    if every != 1:
        raise ValueError("`save_at` and `save_every` cannot both be given, but both were")
    if own_time:
        raise ValueError("`save_at` needs steps of known length, but this method makes its own; use run.at")
    start, size = float(t0), float(h)
    if not 0 < size < np.inf:
        raise ValueError(f"`step_size` must be positive, but {size!r} was provided")
    if times[0] < start - ON_A_NODE * size:
        raise ValueError(f"`save_at` must not be before t0 = {start:g}, but {times[0]:.12g} was provided")
    if steps is None and t_end is None:
        first, parts = steps_and_parts(times, start, size)
        steps = int(first[-1]) + int(parts[-1] > 0)
    return times, steps


def refuse_after(times: np.ndarray, t0: Real, h: Real, steps: int) -> None:
    """Refuse times after the end of the run."""
    first, parts = steps_and_parts(times, float(t0), float(h))
    if first[-1] + parts[-1] > steps:
        end = float(t0) + steps * float(h)
        raise ValueError(f"`save_at` must end with the run, at t = {end:.12g}, but goes to {times[-1]:.12g}")


def rows_at(
    runner: TrajectoryRunner[Rows],
    start: Beginning,
    times: np.ndarray,
    steps: int,
    progress: bool | Progress | None,
) -> tuple[Row, BaseException | None]:
    """The rows at `times`, or before a failure, or before Ctrl-C or an exception in `progress`; the last of
    these, if it was one. The run goes on to step `steps`. The runner stands at the start."""
    first, parts = steps_and_parts(times, start.t, start.h, runner.grain)
    found: list[Any] = []
    done, failed, pace = 0, False, Pace(runner.first_piece, SECONDS_PER_CALL, runner.grain)
    with Meter(progress, steps) as show, Interruption(steps > runner.brief) as interruption:
        for k in sorted({*first.tolist(), steps}):
            while done < k and not failed and not interruption.asked:
                rows, done, failed = runner.to(pace.stop(done, k), steps, NEVER)
                found += [rows] if failed else []
                interruption.attend(show, done, steps)
                pace.reached(done)
            if failed or interruption.asked:
                break
            found += [runner.aside(parts[first == k])] if k in first else []
    cause = interruption.cause
    if not found:
        found.append(runner.aside(np.zeros(1)))  # interrupted before the first: where the run stands
    seen = runner.join(found)
    count = min(len(times), len(seen.step) - failed)
    return up_to_a_failure(placed(start, seen, times[:count])), cause


def placed(start: Beginning, rows: Row, times: np.ndarray) -> Row:
    """The rows with the times that were asked for and the multipliers of the motion there; rows beyond these
    times keep their own."""
    times = np.append(times, rows.t[len(times) :])
    driving = of_step(start.inputs, steps_between(times, start.t, start.h))
    return _of_the_motion(start.pairing.system, replaced(rows, t=times), driving)


def steps_between(times: np.ndarray, t0: float, h: float) -> np.ndarray:
    """The numbers, from 0, of the steps that these times are in or at the end of."""
    first, parts = steps_and_parts(times, t0, h)
    return np.maximum(first - (parts == 0), 0)


def up_to_a_failure(rows: Row) -> Row:
    """The rows before the first whose steps were not solved, which says so in the last of them; that one
    itself where there is no other."""
    bad = np.flatnonzero(rows.interval.status != Status.SOLVED)
    if not len(bad) or bad[0] == 0:
        return jax.tree.map(lambda x: x[:1], rows) if len(bad) else rows
    k = int(bad[0])
    kept = jax.tree.map(lambda x: np.array(x[:k]), rows)
    for name, values in vars(kept.interval).items():
        values[-1] = max(values[-1], getattr(rows.interval, name)[k])
    return kept


def _of_the_motion(system: System, rows: Row, driving: Drive) -> Row:
    """With the multipliers of the motion at each row, dated there, since those of a method belong to its own
    steps."""
    inputs, shape = jax.tree.flatten(driving)
    states = [np.asarray(x) for x in (rows.q, rows.v, rows.t, *inputs)]
    lam = evaluate_anyhow(_multipliers, shape, system, *states)
    return replaced(rows, multipliers=lam, multiplier_t=rows.t)


def _multipliers(
    shape: jax.tree_util.PyTreeDef, system: System, q: Array, v: Array, t: Array, *inputs: Array
) -> Array:
    return system.driven(jax.tree.unflatten(shape, inputs)).multipliers(q, v, t)
