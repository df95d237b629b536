"""Many runs of one method: initial states, parameters or both vary; each member equals its single run."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp
import numpy as np

from noslip._inputs import as_floats, check_members, check_run, refuse_inadmissible, whole, whole_steps
from noslip.engine.members import STATISTICS, Inputs, Member, Row
from noslip.engine.program import CannotTranslate, TooLarge
from noslip.engine.runners import GpuMembers, NativeMembers, XlaMembers
from noslip.errors import Interrupted, SolveFailed, unknown_name
from noslip.integrators._base import Integrator
from noslip.integrators._solve import Status
from noslip.simulate import Meter, Progress, on_cpu, run_info
from noslip.system import System, is_traced
from noslip.trajectory import RunInfo

if TYPE_CHECKING:
    import xarray

BUILT_IN = ("energy", "energy_error", "constraint")
SECONDS_PER_CALL = 0.5  # how long one call may take, so that progress and Ctrl-C stay live


@dataclass(frozen=True)
class Observable:
    """A number watched at every step of every member, without storing the trajectory.

    `function` is f(q, v, p), the name of a first integral of the system, "energy", "energy_error" (distance
    from the initial energy) or "constraint" (the largest |phi|). `statistics` over the steps of a member
    are any of "max", "mean", "variance" and "last". Its values at the saved times are always kept.
    """

    function: Callable[..., Any] | str
    statistics: tuple[str, ...] = ("max", "mean", "variance")

    def __post_init__(self) -> None:
        given = (self.statistics,) if isinstance(self.statistics, str) else tuple(self.statistics)
        object.__setattr__(self, "statistics", given)
        for name in self.statistics:
            if name not in STATISTICS:
                raise ValueError(unknown_name("statistic", name, STATISTICS))
        if not callable(self.function) and not isinstance(self.function, str):
            raise TypeError(f"an observable must be a function or a name, but {self.function!r} was provided")


@dataclass(frozen=True)
class Ensemble:
    """Saved states of all members, member first; `status` is 0 where every solve succeeded.

    After a failure a member's states are NaN and `failed_step` says where it stopped. A member's states and
    multipliers have the bits of its single run; its energies may differ from that in the last one.
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

    def __repr__(self) -> str:
        members, failed = len(self.status), np.sum(self.status != 0)
        return (
            f"Ensemble({self.info.integrator}, {members} members, {failed} failed, {self.info.steps} steps "
            f"of {self.info.step_size:g}, {self.t.shape[-1]} saved times, {self.backend})"
        )

    @property
    def backend(self) -> str:
        """Where it ran: native, xla or gpu."""
        return self.info.backend

    @property
    def success(self) -> bool:
        """Whether no member failed."""
        return not np.any(self.status)

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
        variables |= {f"observed_{name}": (("member", "time"), x) for name, x in self.observed.items()}
        for name, kinds in self.statistics.items():
            variables |= {f"{name}_{kind}": (("member",), x) for kind, x in kinds.items()}
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
    q0s: Any,
    v0s: Any,
    *,
    step_size: float,
    steps: int | None = None,
    t_end: float | None = None,
    t0: float = 0.0,
    parameters: Mapping[str, Any] | None = None,
    save_every: int | None = None,
    observables: Mapping[str, Observable | str | Callable[..., Any]] | Sequence[str] | None = None,
    backend: str = "auto",
    threads: int | None = None,
    progress: bool | Progress | None = None,
    throw: bool = True,
) -> Ensemble:
    """Run `integrator` on `system` from every row of (q0s, v0s); see `simulate` for the common arguments.

    A state or parameter without the leading axis is shared by all members. By default the first and the last
    state are saved; `save_every` saves more. `observables` are watched at every step: names, or a mapping
    of names to `Observable`s, functions f(q, v, p) or names of what to watch.
    A failed member stops; with throw=False that is only recorded in `status`.
    """
    if not isinstance(system, System):
        raise TypeError(f"`system` must be a System, but {system!r} was provided")
    if is_traced(system, q0s, v0s, step_size, t0, parameters):
        raise ValueError("ensemble cannot run traced arguments (grad, jit, vmap); use jax.vmap of simulate")
    if not isinstance(parameters, Mapping | None):
        raise TypeError(f"`parameters` must be a mapping of names to values, but {parameters!r} was provided")
    h, start = (as_floats(name, x, (), False) for name, x in (("step_size", step_size), ("t0", t0)))
    threads = None if threads is None else whole("threads", threads, 1)
    q, v, shared, varying, members = check_members(system, q0s, v0s, parameters or {})
    system = system.with_parameters(shared)
    steps = whole_steps(steps, t_end, start, h)
    every = max(steps, 1) if save_every is None else whole("save_every", save_every, 1)
    watch = _watch(system, observables)
    initial = (q, v, start)
    inputs = Inputs(system, varying, h, initial, members)
    first = system.with_parameters({name: x[0] for name, x in varying.items()})
    q0, v0 = (np.broadcast_to(x, (members, system.n))[0] for x in (q, v))
    with on_cpu():
        check_run(first, integrator, q0, v0, start, h, backend, members=members)
        refuse_inadmissible(system, q, v, varying, members)
    runner = _runner(Member(integrator, watch), inputs, backend, threads)
    rows, marks, interrupted = _drive(runner, steps, every, progress)
    info = run_info(first, integrator, start, h, steps, every, runner.backend)
    result = _result(runner, rows, marks, info, watch, varying, integrator, float(start), float(h))
    if interrupted:
        raise Interrupted(
            f"interrupted after step {runner.reached} of {steps}; `trajectory` holds the rows up to step "
            f"{marks[-1]} and statistics up to step {runner.reached}",
            result,
        )
    if throw and not result.success:
        raise SolveFailed(_failure(result), result)
    return result


def _watch(system: System, observables: Any) -> tuple[Any, ...]:
    """The observables as (name, function, statistics), first integrals looked up."""
    if observables is None:
        return ()
    if isinstance(observables, str) or not isinstance(observables, Mapping | Sequence):
        raise TypeError(f"`observables` must be a list or a mapping, but {observables!r} was provided")
    given = observables if isinstance(observables, Mapping) else {name: name for name in observables}
    for name in given:
        if not isinstance(name, str):
            raise TypeError(f"an observable must have a name, but {name!r} was provided; give a mapping")
    watch = []
    for name, what in given.items():
        item = what if isinstance(what, Observable) else Observable(what)
        function = item.function
        if isinstance(function, str) and function not in BUILT_IN:
            if function not in system.first_integrals:
                known = (*BUILT_IN, *system.first_integrals)
                raise ValueError(unknown_name("observable", function, known))
            function = system.first_integrals[function]
        if callable(function):
            _require_number(name, function, system)
        watch.append((name, function, item.statistics))
    return tuple(watch)


def _require_number(name: str, function: Callable[..., Any], system: System) -> None:
    x = jax.ShapeDtypeStruct((system.n,), float)
    shape = jax.eval_shape(lambda q, v, p: jnp.asarray(function(q, v, p)), x, x, dict(system.parameters))
    if shape.shape != () or shape.dtype.kind not in "fib":
        raise ValueError(
            f"observable '{name}' must be a real number, but {shape.dtype} {shape.shape} was returned"
        )


def _runner(member: Member, inputs: Inputs, backend: str, threads: int | None) -> Any:
    if getattr(member.integrator, "host_runner", None) is not None:
        name = type(member.integrator).__name__
        raise ValueError(f"{name} runs one trajectory at a time; call simulate for each member")
    has_gpu = jax.default_backend() == "gpu"
    if backend == "gpu" and not has_gpu:
        raise ValueError("backend 'gpu' needs a GPU that JAX can see, but there is none; use 'auto'")
    if backend == "xla":
        return XlaMembers(member, inputs)
    try:
        if backend == "gpu" or (backend == "auto" and has_gpu):
            return GpuMembers(member, inputs)
        with on_cpu():
            return NativeMembers(member, inputs, threads)
    except CannotTranslate as reason:
        if backend != "auto":
            raise ValueError(f"backend '{backend}' cannot run this: {reason}; use 'auto' or 'xla'") from None
        if not isinstance(reason, TooLarge):
            warnings.warn(f"no compiled ensemble: {reason}; XLA runs this instead", stacklevel=3)
    return XlaMembers(member, inputs)


def _drive(runner: Any, steps: int, every: int, progress: Any) -> tuple[list[Row], list[int], bool]:
    """Rows at the multiples of `every` and at the end; pieces short enough to be interrupted."""
    rows, marks, done, piece = [runner.row()], [0], 0, 8
    with Meter(progress, steps) as show:
        try:
            while done < steps:
                target = min((done // every + 1) * every, steps)
                stop = min(done + piece, target)
                began = time.perf_counter()
                runner.to(stop)
                rate = (stop - done) / (time.perf_counter() - began)
                piece = max(1, min(8 * piece, int(rate * SECONDS_PER_CALL) + 1))
                done = stop
                if done == target:
                    rows.append(runner.row())
                    marks.append(done)
                show(done, steps)
        except KeyboardInterrupt:
            return rows, marks, True
    return rows, marks, False


def _result(
    runner: Any,
    rows: list[Row],
    marks: list[int],
    info: RunInfo,
    watch: Any,
    varying: Mapping[str, Any],
    integrator: Integrator,
    t0: float,
    h: float,
) -> Ensemble:
    full = runner.final()
    interval = full.carry.interval
    saved = jax.tree.map(lambda *x: np.stack(x, axis=1), *rows)
    reached = np.asarray(full.carry.step)
    gone = np.asarray(marks)[None, :] > np.where(interval.status != Status.SOLVED, reached, np.inf)[:, None]

    def until_failure(x: np.ndarray) -> np.ndarray:
        return np.where(gone.reshape(gone.shape + (1,) * (x.ndim - 2)), np.nan, x)

    saved = jax.tree.map(until_failure, saved)
    count = reached + 1.0
    return Ensemble(
        t=saved.t if integrator.own_time else t0 + h * np.asarray(marks),
        q=saved.q,
        v=saved.v,
        multipliers=saved.multipliers,
        energy=saved.energy,
        constraint_residual=saved.constraint,
        observed=saved.observed,
        statistics={
            name: {kind: STATISTICS[kind](full.sums[name], count) for kind in kinds}
            for name, _, kinds in watch
        },
        status=np.asarray(interval.status),
        failed_step=np.asarray(interval.failed_step),
        iterations=np.asarray(interval.iterations),
        increment=np.asarray(interval.increment),
        parameters={name: np.asarray(x) for name, x in varying.items()},
        info=info,
    )


def _failure(result: Ensemble) -> str:
    failed = np.flatnonzero(result.status)
    first = failed[np.argmin(result.failed_step[failed])]
    return (
        f"{len(failed)} of {len(result.status)} members failed, first member {first} in step "
        f"{result.failed_step[first]}: {Status(int(result.status[first])).message}; `trajectory` of this "
        "exception holds the ensemble, throw=False returns it"
    )
