"""One run: the arguments are checked, a runner is chosen and driven, its rows become a `Trajectory`."""

from __future__ import annotations

from collections.abc import Mapping
from types import ModuleType
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from noslip.errors import Interrupted, SolveFailed
from noslip.integrators.base import Integrator
from noslip.numerics.tracing import has_tracers, is_traced
from noslip.run.along import conserves_energy, up_to_a_broken_condition
from noslip.run.arguments import as_floats, check_run, parallel_at, whole, whole_steps
from noslip.run.choose import on_cpu, trajectory_runner
from noslip.run.drive import all_rows, steps_until
from noslip.run.inputs import given_inputs
from noslip.run.pacing import Progress
from noslip.run.pairing import Pairing
from noslip.run.record import Report, RunInfo, run_info
from noslip.run.scan import scan
from noslip.run.step import TURN, Row
from noslip.system import System
from noslip.system.conditions import parallel_along
from noslip.trajectory import Trajectory

Real = Any  # whatever becomes an array of floats: numbers, lists, arrays, JAX's tracers


def simulate(
    system: System,
    integrator: Integrator,
    q0: Real,
    v0: Real,
    *,
    step_size: Real,
    steps: int | None = None,
    t_end: float | None = None,
    t0: Real = 0.0,
    parameters: Mapping[str, Real] | None = None,
    inputs: Mapping[str, Real] | None = None,
    inputs_between: str = "hold",
    save_every: int = 1,
    backend: str = "auto",
    progress: bool | Progress | None = None,
    throw: bool = True,
) -> Trajectory:
    """Run `integrator` on `system` from (q0, v0) and return the saved states with all diagnostics.

    `inputs` gives inputs of the system by name: arrays with one entry per step, held over it, or with
    inputs_between="linear" one per node, steps + 1; or functions of t, evaluated whenever the method asks.
    Give `steps` or `t_end` (a whole number of steps after t0). Every `save_every`-th state is saved,
    and always the last. `progress` is True for a bar, or a function of (steps done, steps in all).
    A failed solve raises `SolveFailed` with the part before it, or with throw=False ends the result there.
    With traced arguments (jax.grad, jit, vmap) the run is one differentiable scan.
    """
    if not isinstance(system, System):
        raise TypeError(f"`system` must be a System, but {system!r} was provided")
    if parameters is not None:
        system = system.with_parameters(parameters)
    traced = is_traced(system.parameters, q0, v0, step_size, t0, inputs)
    q, v = (as_floats(name, x, (system.n,), traced) for name, x in (("q0", q0), ("v0", v0)))
    h, t = (as_floats(name, x, (), traced) for name, x in (("step_size", step_size), ("t0", t0)))
    every = whole("save_every", save_every, 1)
    own_time = isinstance(integrator, Integrator) and integrator.own_time
    if t_end is not None and steps is None and own_time:
        if traced:
            raise ValueError(
                "`steps` must be given instead of `t_end` when a method with its own time is traced"
            )
        steps, t_end = _steps_until(system, integrator, q, v, float(t), float(h), float(t_end), backend), None
    steps = whole_steps(steps, t_end, t0, step_size)
    given = given_inputs(system, inputs, inputs_between, steps, t, h)
    system = given.system
    if own_time and given.table is not None:
        raise ValueError("`inputs` must be functions of t, not arrays, where a method makes its own time")
    if traced:
        pairing = check_run(system, integrator, q, v, t, h, backend, traced)
        rows = scan(system, integrator, q, v, t, h, steps, every, given.table)
        t, h = (x if has_tracers(x) else float(x) for x in (t, h))
        info = run_info(pairing, t, h, steps, every, "xla", **given.record)
        return _result(pairing, rows, q, v, given.values, info, jnp)
    t, h = float(t), float(h)
    with on_cpu():
        pairing = check_run(system, integrator, q, v, t, h, backend)
        stable = pairing.where_forms_are_parallel if parallel_at(pairing, q, v, t) else pairing
        while True:
            runner = trajectory_runner(stable, q, v, t, h, backend, given.table)
            rows, interrupted = all_rows(runner, steps, every, progress, conserves_energy(system))
            if interrupted or not parallel_along(
                stable.system, *(np.asarray(x) for x in (rows.q, rows.v, rows.t))
            ):
                break
            stable = pairing.where_forms_are_parallel  # they have become so on the way: once more
        rows, broken = up_to_a_broken_condition(system, rows)
        info = run_info(pairing, t, h, steps, every, runner.backend, **given.record)
        run = _result(pairing, rows, q, v, given.values, info, np)
        if interrupted:
            done = int(rows.step[-1])
            raise Interrupted(f"interrupted after step {done} of {steps}; `trajectory` holds them", run)
        if throw and not run.success:
            raise SolveFailed(_failure(run, broken or integrator.failure_detail(system, run)), run)
        return run


def _steps_until(
    system: System,
    integrator: Integrator,
    q: np.ndarray,
    v: np.ndarray,
    t: float,
    h: float,
    t_end: float,
    backend: str,
) -> int:
    """The number of steps of a method that makes its own time, counted by taking them."""
    with on_cpu():
        pairing = check_run(system, integrator, q, v, t, h, backend)
        if not t_end >= t:
            raise ValueError(f"`t_end` must be a time after t0 = {t:g}, but {t_end!r} was provided")
        return steps_until(trajectory_runner(pairing, q, v, t, h, backend), t, t_end)


def _result(
    pairing: Pairing,
    rows: Row,
    q0: np.ndarray,
    v0: np.ndarray,
    inputs: Mapping[str, Any],
    info: RunInfo,
    xp: ModuleType,
) -> Trajectory:
    # t0 + k h, not a sum of k terms; a method that makes its own time says so in `rows.t`
    uniform = xp.asarray(info.t0) + rows.step * xp.asarray(info.step_size)
    return Trajectory(
        t=rows.t if pairing.integrator.own_time else uniform,
        q=rows.q + TURN * rows.turns,
        v=rows.v,
        multipliers=rows.multipliers,
        multiplier_t=rows.multiplier_t,
        energy=rows.energy,
        energy_scale=rows.energy_scale,
        constraint_residual=rows.constraint,
        first_integrals=_first_integrals(pairing.system, rows),
        report=Report(**vars(rows.interval)),
        q0=xp.asarray(q0),
        v0=xp.asarray(v0),
        info=info,
        inputs=inputs,
    )


def _first_integrals(system: System, rows: Row) -> dict[str, Any]:
    """Those of the rows; one that has no scalar form is not in rows of native code."""
    found: dict[str, Any] = dict(rows.first_integrals)
    for name, integral in system.first_integrals.items():
        if name not in found:
            each = jax.jit(jax.vmap(lambda q, v, t, f=integral: f(q, v, system.at(t).parameters)))
            found[name] = np.array(each(rows.q, rows.v, rows.t), float)
    return {name: found[name] for name in system.first_integrals}


def _failure(run: Trajectory, detail: str) -> str:
    report = run.report
    step = int(np.max(report.failed_step))
    return (
        f"step {step} of {run.info.steps} (t = {run.t[-1]:g}) failed: {report.worst.message}{detail} "
        f"(last increment {report.increment[-1]:.1e}, residual {report.residual[-1]:.1e}); "
        f"`trajectory` of this exception holds the {len(run.t)} saved states before it"
    )
