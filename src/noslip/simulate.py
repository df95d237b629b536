"""One run: the arguments are checked, a runner is chosen and driven, its rows become a `Trajectory`."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import jax.numpy as jnp
import numpy as np

from noslip.errors import shown, stopped
from noslip.integrators.base import Integrator
from noslip.numerics.tracing import has_tracers, is_traced
from noslip.results import as_trajectory, finished, flow_again, part_of, refuse_failed
from noslip.run.along import conserves_energy
from noslip.run.arguments import as_floats, check_manner, check_run, refuse_irregular, whole, whole_steps
from noslip.run.at_times import refuse_after, save_times
from noslip.run.choose import Beginning, on_cpu, trajectory_runner
from noslip.run.drive import driven, stable, steps_until
from noslip.run.events import Event
from noslip.run.given_events import bounded, checked
from noslip.run.inputs import Inputs, given_inputs, numbers_as_parameters, refuse_arrays
from noslip.run.looking import Looking
from noslip.run.pacing import Progress
from noslip.run.pairing import Pairing
from noslip.run.record import run_info
from noslip.run.runner import RowsRunner
from noslip.run.scan import Looks, scan
from noslip.run.sure import SMALL
from noslip.system import System
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
    save_at: Real | None = None,
    events: Mapping[str, Event] | None = None,
    max_steps: int | None = None,
    backend: str = "auto",
    progress: bool | Progress | None = None,
    throw: bool = True,
    store: str | Path | None = None,
) -> Trajectory:
    """Run `integrator` on `system` from (q0, v0) and return the saved states with all diagnostics.

    `inputs` gives inputs of the system by name: arrays with one entry per step, held over it, or with
    inputs_between="linear" one per node, steps + 1; or functions of t, evaluated whenever the method asks.
    Give `steps` or `t_end` (a whole number of steps after t0); a run with a terminal one among its `events`
    needs neither, and `max_steps` bounds it. Every `save_every`-th state is saved,
    and always the last; with `save_at` instead exactly the states at those times, by shortened steps beside
    the run, which does not notice them. `progress` is True for a bar, or a function of (steps done, steps
    in all).
    A failed solve raises `SolveFailed` with the part before it, or with throw=False ends the result there.
    With traced arguments (jax.grad, jit, vmap) the run is one differentiable scan.

    With `store` the rows go to that Zarr folder as they come, memory stays as it is, and the same call after
    an interruption, however sudden, goes on from there and ends with the same bits. The result reads its
    arrays from the disk when they are indexed.
    """
    if not isinstance(system, System):
        raise TypeError(f"`system` must be a System, but {shown(system)} was provided")
    plain = t_end is parameters is inputs is save_at is events is max_steps is progress is store is None
    plain = plain and throw is True and inputs_between == "hold" and backend == "auto"
    again = flow_again(system, integrator, t0, step_size, steps, save_every) if plain else None
    if again is not None and (run := again.quickly(q0, v0)) is not None:
        return run
    began = time.monotonic()
    check_manner(progress, throw, store)
    if not isinstance(parameters, Mapping | None):
        raise TypeError(f"`parameters` must be a mapping of names, but {shown(parameters)} was provided")
    if parameters is not None:
        system = system.with_parameters(parameters)
    traced = is_traced(system.parameters, q0, v0, step_size, t0, inputs)
    q, v = (as_floats(name, x, (system.n,), traced) for name, x in (("q0", q0), ("v0", v0)))
    h, t = (as_floats(name, x, (), traced) for name, x in (("step_size", step_size), ("t0", t0)))
    every = whole("save_every", save_every, 1)
    watches = bool(events) and (steps is t_end is None or _is_flow(integrator))
    if isinstance(inputs, Mapping) and (watches or _own_time(integrator)):
        system, inputs = numbers_as_parameters(system, inputs)
    if inputs and _own_time(integrator):
        refuse_arrays(inputs, "where a method makes its own time")
    if inputs and events and _is_flow(integrator):
        refuse_arrays(inputs, "where events are looked for along the motion itself")
    times = None
    if save_at is not None:
        times, steps = save_times(save_at, save_every, _own_time(integrator), t0, step_size, steps, t_end)
    if t_end is not None and steps is None and _own_time(integrator):
        if traced:
            raise ValueError(
                "`steps` must be given instead of `t_end` when a method with its own time is traced"
            )
        end = float(as_floats("t_end", t_end, (), False))
        moved = given_inputs(system, inputs, inputs_between, 0, t, h).system
        steps, t_end = _steps_until(moved, integrator, q, v, float(t), float(h), end, backend), None
    watched = checked(system, events)
    if watched and times is not None and traced:
        raise ValueError("`save_at` and `events` cannot both be given to a traced run (grad, jit, vmap)")
    steps = whole_steps(bounded(steps, t_end, max_steps, watched, traced), t_end, t0, step_size)
    if times is not None:
        refuse_after(times, t0, step_size, steps)
    given = given_inputs(system, inputs, inputs_between, steps, t, h)
    system = given.system
    if traced:
        if store is not None:
            raise ValueError("`store` cannot keep a run with traced arguments (grad, jit, vmap)")
        pairing = check_run(system, integrator, q, v, t, h, backend, traced, events=watched)
        looks = None if times is None else (times, float(t0), float(step_size))
        known = _number(t0), _number(step_size)
        return _traced(pairing, q, v, t, h, steps, every, looks, given, known)
    t, h = float(t), float(h)
    with on_cpu():
        # for larger systems that question takes longer than many a run: it is asked if the first step fails
        first = store is not None or system.n <= SMALL
        pairing = check_run(system, integrator, q, v, t, h, backend, regular=first, events=watched)
        start = Beginning(pairing, q, v, t, h, backend, given.table)
        if store is not None:
            return _in_store(start, steps, every, times, given, progress, throw, store)
        made = driven(start, steps, every, times, progress)
        if not first and made.rows.interval.failed_step[-1] == 1:
            refuse_irregular(pairing, q, v, t, h)
        run = finished(start, made, steps, every, times is not None, given, throw)
        if again is not None and made.pairing is pairing:
            again.made(pairing, began)
        return run


def _traced(
    pairing: Pairing,
    q: Real,
    v: Real,
    t: Real,
    h: Real,
    steps: int,
    every: int,
    looks: Looks | None,
    given: Inputs,
    known: tuple[Real, Real],
) -> Trajectory:
    """The run as one scan, which JAX can differentiate; with `looks`, at those times. On the record t and h
    are `known` numbers where they are not traced themselves."""
    system, integrator, events = pairing.system, pairing.integrator, pairing.events
    rows, happened = scan(system, integrator, q, v, t, h, steps, every, looks, events, given.table)
    info = run_info(pairing, *known, steps, every, "xla", given, looks is not None)
    info = replace(info, events=tuple(happened))
    return as_trajectory(pairing, rows, q, v, info, jnp, None, happened, given.values)


def _number(x: Real) -> Real:
    return x if has_tracers(x) else float(x)


def _own_time(integrator: Integrator) -> bool:
    return isinstance(integrator, Integrator) and integrator.own_time


def _is_flow(integrator: Integrator) -> bool:
    return isinstance(integrator, Integrator) and integrator.host_driven


def _in_store(
    start: Beginning,
    steps: int,
    every: int,
    times: np.ndarray | None,
    given: Inputs,
    progress: bool | Progress | None,
    throw: bool,
    store: str | Path,
) -> Trajectory:
    """The run in that folder, begun or gone on with."""
    from noslip.run.stored_rows import has_rows, read_rows
    from noslip.run.trajectory_store import Task, run_to_store

    pairing, system, usual = start.pairing, start.pairing.system, stable(start)

    def runner(orthogonal: bool) -> RowsRunner[Any]:
        here = start.orthogonal if orthogonal else usual
        return here.runner() if times is None else Looking(here.runner(), here, times)

    backend = runner(False).backend
    info = run_info(pairing, start.t, start.h, steps, every, backend, given, times is not None)
    info = replace(info, events=tuple(name for name, _ in pairing.events))
    task = Task(
        system,
        usual.pairing.system,
        runner,
        lambda rows, info: as_trajectory(
            pairing, rows, start.q, start.v, info, np, inputs=given.values
        ).columns(),
        info,
        pairing.events,
        steps,
        every,
        conserves_energy(system),
        times,
    )
    cause = run_to_store(task, store, progress)
    if cause and not has_rows(store):
        raise stopped(cause, f"interrupted before its first row; the same call goes on from '{store}'", None)
    found, run = read_rows(store), Trajectory.open(store)
    if cause:
        done = part_of(found.reached, steps)
        raise stopped(cause, f"interrupted after step {done}; the same call goes on from '{store}'", run)
    if throw and not run.success:
        refuse_failed(pairing, run, f": {found.ended}" if found.ended else "")
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
            raise ValueError(f"`t_end` must be a time after t0 = {t:g}, but {shown(t_end)} was provided")
        return steps_until(trajectory_runner(pairing, q, v, t, h, backend), t, t_end)
