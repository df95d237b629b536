"""Many runs of one method: initial states, parameters or both vary; each member equals its single run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from noslip.errors import Interrupted, SolveFailed, shown, stopped
from noslip.integrators.base import Integrator
from noslip.integrators.solve import Status
from noslip.markdown import html_table
from noslip.numerics.tracing import is_traced
from noslip.run.arguments import (
    as_floats,
    check_manner,
    check_members,
    check_run,
    refuse_inadmissible,
    whole,
    whole_steps,
)
from noslip.run.choose import on_cpu
from noslip.run.events import Event
from noslip.run.given_events import bounded, checked
from noslip.run.inputs import given_inputs
from noslip.run.member import MemberGroup
from noslip.run.observables import Observable, Observables, watched
from noslip.run.occurrences import Occurrences
from noslip.run.pacing import Interruption, Meter, Progress
from noslip.run.plan import Plan
from noslip.run.record import RunInfo
from noslip.system import System
from noslip.system.conditions import parallel_along
from noslip.system.derived import Parameters
from noslip.texts import listed

if TYPE_CHECKING:
    import xarray
    from distributed import Client

__all__ = ["Ensemble", "Observable", "ensemble"]


_HOLONOMIC = ("holonomic_multipliers", "holonomic_residual")


@dataclass(frozen=True)
class Ensemble:
    """Saved states of all members, member first; `status` is 0 where every solve succeeded, and -1 in a store
    for members that have not run yet.

    `events` has for each event its first time and state in each member and how often it happened,
    `stopped_by` the name of the terminal one that ended a member, whose state stays what it was then.
    After a failure a member's states are NaN and `failed_step` says where it stopped. In native code and on
    GPUs a member's states and multipliers have the bits of its single run by native code; its energies may
    differ from that in the last one, and by XLA all of it. What is holonomic is None where there are no
    holonomic constraints.
    """

    t: np.ndarray
    q: np.ndarray
    v: np.ndarray
    multipliers: np.ndarray
    energy: np.ndarray
    constraint_residual: np.ndarray
    observed: Mapping[str, np.ndarray]
    statistics: Mapping[str, Mapping[str, np.ndarray]]
    status: np.ndarray
    failed_step: np.ndarray
    iterations: np.ndarray
    increment: np.ndarray
    parameters: Mapping[str, np.ndarray]
    info: RunInfo = field(repr=False)
    events: Mapping[str, Occurrences] = field(default_factory=dict, repr=False)
    stopped_by: np.ndarray = field(default_factory=lambda: np.empty(0, str), repr=False)
    inputs: Mapping[str, np.ndarray] = field(default_factory=dict)
    holonomic_multipliers: np.ndarray | None = field(default=None, repr=False)
    holonomic_residual: np.ndarray | None = field(default=None, repr=False)

    def __repr__(self) -> str:
        members, failed, waiting = len(self.status), np.sum(self.status > 0), np.sum(self.status < 0)
        more = f", {waiting} not run yet" if waiting else ""
        return (
            f"Ensemble({self.info.integrator}, {members} members, {failed} failed{more}, "
            f"{self.info.steps} steps of {self.info.step_size:g}, {self.t.shape[-1]} saved times, "
            f"{self.backend})"
        )

    def _repr_html_(self) -> str:
        """For notebooks."""
        info, members = self.info, len(self.status)
        rows = [
            ("method", f"{info.integrator}({listed(info.options)})"),
            ("system", f"{info.source or 'of the user'}: {', '.join(info.coordinates)}"),
            (
                "members",
                f"{members}, {np.sum(self.status > 0)} failed, {np.sum(self.status < 0)} not run yet",
            ),
            ("varying", ", ".join(self.parameters) or "the initial states"),
            ("steps", f"{info.steps} of {info.step_size:g}, {self.t.shape[-1]} rows, {self.backend}"),
            ("observables", ", ".join(self.observed) or "none"),
        ]
        return html_table("Ensemble", rows)

    @property
    def backend(self) -> str:
        """Where it ran: native, xla or gpu."""
        return self.info.backend

    @property
    def success(self) -> bool:
        """Whether all members ran to the end."""
        return not np.any(self.status)

    @classmethod
    def assemble(
        cls,
        info: RunInfo,
        arrays: Mapping[str, Any],
        parameters: Parameters,
        statistics: Mapping[str, Sequence[str]],
        inputs: Mapping[str, Any],
    ) -> Ensemble:
        """From arrays by the names that they have in a dataset."""
        own = ("t", "q", "v", "multipliers", "energy", "constraint_residual")
        return cls(
            **{name: arrays[name] for name in (*own, "status", "failed_step", "iterations", "increment")},
            observed={name: arrays[f"observed_{name}"] for name in statistics},
            statistics={
                name: {kind: arrays[f"{name}_{kind}"] for kind in kinds} for name, kinds in statistics.items()
            },
            parameters=parameters,
            info=info,
            inputs=inputs,
            holonomic_multipliers=arrays.get("holonomic_multipliers"),
            holonomic_residual=arrays.get("holonomic_residual"),
        )

    @classmethod
    def open(cls, path: str | Path) -> Ensemble:
        """An ensemble that `ensemble(..., store=path)` has written, or is writing; states are read from the
        disk when they are indexed."""
        from noslip.run.store import read_store

        stored = read_store(path)
        return cls.assemble(stored.info, stored.arrays, stored.parameters, stored.statistics, stored.inputs)

    def to_xarray(self) -> xarray.Dataset:
        """With dimensions member, time, coordinate, constraint; parameters that vary are coordinates."""
        import xarray

        times = ("time",) if self.t.ndim == 1 else ("member", "time")
        variables: dict[str, Any] = {
            "q": (("member", "time", "coordinate"), self.q),
            "v": (("member", "time", "coordinate"), self.v),
            "multipliers": (("member", "time", "constraint"), self.multipliers),
            "energy": (("member", "time"), self.energy),
            "constraint_residual": (("member", "time"), self.constraint_residual),
            "status": (("member",), self.status),
            "failed_step": (("member",), self.failed_step),
            "iterations": (("member",), self.iterations),
            "increment": (("member",), self.increment),
        }
        if self.holonomic_residual is not None:
            variables |= {name: (("member", "time", "holonomic"), getattr(self, name)) for name in _HOLONOMIC}
        variables |= {f"observed_{name}": (("member", "time"), x) for name, x in self.observed.items()}
        for name, kinds in self.statistics.items():
            variables |= {f"{name}_{kind}": (("member",), x) for kind, x in kinds.items()}
        for name, x in self.inputs.items():
            variables[f"input_{name}"] = (("member", "input") if x.ndim > 1 else ("input",), x)
        coordinates: dict[str, Any] = {
            "t": (times, self.t),
            "coordinate": list(self.info.coordinates),
        }
        for name, values in self.parameters.items():
            extra = tuple(f"{name}_{k}" for k in range(np.ndim(values) - 1))
            coordinates[f"parameter_{name}"] = (("member", *extra), values)
        return xarray.Dataset(variables, coordinates, attrs=self.info.attributes())


def ensemble(
    system: System,
    integrator: Integrator,
    q0s: ArrayLike,
    v0s: ArrayLike,
    *,
    step_size: float,
    steps: int | None = None,
    t_end: float | None = None,
    t0: float = 0.0,
    parameters: Parameters | None = None,
    inputs: Mapping[str, Any] | None = None,
    inputs_between: str = "hold",
    save_every: int | None = None,
    observables: Observables = None,
    events: Mapping[str, Event] | None = None,
    max_steps: int | None = None,
    backend: str = "auto",
    threads: int | None = None,
    progress: bool | Progress | None = None,
    throw: bool = True,
    store: str | Path | None = None,
    chunk: int | None = None,
    cluster: Client | None = None,
) -> Ensemble:
    """Run `integrator` on `system` from every row of (q0s, v0s); see `simulate` for the common arguments.

    A state, parameter or input without the leading axis is shared by all members. By default the first and
    the last state are saved; `save_every` saves more. `observables` are watched at every step: names, or a
    mapping of names to `Observable`s, functions f(q, v, p) or names of what to watch.
    A failed member stops; with throw=False that is only recorded in `status`.

    With `store` the ensemble is written to that Zarr folder while it runs, `chunk` members at a time, and
    the same call after an interruption, however sudden, goes on from there and ends with the same bits.
    `cluster`, a dask.distributed.Client, runs the chunks on its workers, which must see the folder;
    processes of jax.distributed share them by themselves.
    """
    if not isinstance(system, System):
        raise TypeError(f"`system` must be a System, but {shown(system)} was provided")
    check_manner(progress, throw, store)
    if is_traced(system, q0s, v0s, step_size, t0, parameters):
        raise ValueError("ensemble cannot run traced arguments (grad, jit, vmap); use jax.vmap of simulate")
    if not isinstance(parameters, Mapping | None):
        raise TypeError(
            f"`parameters` must be a mapping of names to values, but {shown(parameters)} was provided"
        )
    if not isinstance(inputs, Mapping | None):
        raise TypeError(f"`inputs` must be a mapping of names to values, but {shown(inputs)} was provided")
    h, start = (as_floats(name, x, (), False) for name, x in (("step_size", step_size), ("t0", t0)))
    threads = None if threads is None else whole("threads", threads, 1)
    group, shared = check_members(system, q0s, v0s, parameters or {}, inputs or {})
    system = system.with_parameters(shared)
    if t_end is not None and isinstance(integrator, Integrator) and integrator.own_time:
        raise ValueError("`steps` must be given instead of `t_end` where every member makes its own time")
    looked_for = checked(system, events)
    if looked_for and store is not None:
        raise ValueError("`events` cannot be kept in a `store`; run the ensemble in memory")
    steps = whole_steps(bounded(steps, t_end, max_steps, looked_for, True), t_end, start, h)
    given = given_inputs(system, inputs, inputs_between, steps, float(start), float(h), group.count)
    system = given.system
    every = max(steps, 1) if save_every is None else whole("save_every", save_every, 1)
    watch = watched(system, observables)
    first = group.first(system.n)
    one = system.with_parameters({name: x[0] for name, x in first.varying.items()})
    with on_cpu():
        check_run(one, integrator, first.q[0], first.v[0], start, h, backend, members=group.count)
        refuse_inadmissible(system.at(float(start)), replace(group, varying={**group.varying, **given.first}))
        if parallel_along(one, *group.states(system.n), np.full(group.count, float(start))):
            system = system.with_orthogonal_forms()
    where = (float(start), float(h), steps, every)
    plan = Plan(system, integrator, watch, *where, backend, threads, given, looked_for)
    if store is not None:
        if any(x.ndim > 1 for x in given.values.values()):
            raise ValueError("`inputs` must be shared by all members of an ensemble with a `store`")
        result = _run_in_store(plan, group, store, chunk, cluster, progress)
    elif chunk is not None or cluster is not None:
        name = "chunk" if chunk is not None else "cluster"
        raise ValueError(f"`{name}` must come with `store`, the folder where the ensemble is kept")
    else:
        result = _run_in_memory(plan, group, progress)
    if throw and not result.success:
        raise SolveFailed(_failure(result), result)
    return result


def _run_in_memory(plan: Plan, group: MemberGroup, progress: bool | Progress | None) -> Ensemble:
    runner, rows = plan.runner(group), []
    with Meter(progress, plan.steps) as show, Interruption() as interruption:
        for done, row in plan.advance(runner):
            if row is not None:
                rows.append(row)
            interruption.attend(show, done, plan.steps)
            if interruption.asked:
                break
    marks = plan.saved_steps[: len(rows)]
    result = Ensemble.assemble(
        plan.info(group, runner.backend),
        {"t": plan.t0 + plan.step_size * np.asarray(marks)} | plan.saved(rows) | plan.summary(runner),
        group.varying,
        {name: kinds for name, _, kinds in plan.watch},
        plan.inputs.values,
    )
    if plan.events:
        happened, stopped_by = plan.occurrences(runner)
        result = replace(result, events=happened, stopped_by=stopped_by)
    if cause := interruption.cause:
        message = (
            f"interrupted after step {runner.reached} of {plan.steps}; `trajectory` holds the rows up to "
            f"step {marks[-1]} and statistics up to step {runner.reached}"
        )
        raise stopped(cause, message, result)
    return result


def _run_in_store(
    plan: Plan,
    group: MemberGroup,
    store: str | Path,
    chunk: int | None,
    cluster: Client | None,
    progress: bool | Progress | None,
) -> Ensemble:
    from noslip.run.store import run_in_store

    try:
        run_in_store(plan, group, store, chunk, cluster, progress)
    except KeyboardInterrupt:
        result = Ensemble.open(store)
        done = int(np.sum(result.status >= 0))
        raise Interrupted(
            f"interrupted with {done} of {group.count} members done; the same call goes on from '{store}'",
            result,
        ) from None
    return Ensemble.open(store)


def _failure(result: Ensemble) -> str:
    failed = np.flatnonzero(result.status)
    first = failed[np.argmin(result.failed_step[failed])]
    return (
        f"{len(failed)} of {len(result.status)} members failed, first member {first} in step "
        f"{result.failed_step[first]}: {Status(int(result.status[first])).message}; `trajectory` of this "
        "exception holds the ensemble, throw=False returns it"
    )
