"""The result of a run from its rows; and that of a flow that was run before, straight from its columns."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from types import ModuleType
from typing import Any, NamedTuple, NoReturn, Protocol, SupportsIndex

import jax
import jax.numpy as jnp
import numpy as np

from noslip.errors import SolveFailed, stopped
from noslip.integrators.base import Integrator
from noslip.numerics import aligned
from noslip.numerics.tracing import Either, Values, is_eager
from noslip.run.choose import Beginning
from noslip.run.drive import Driven
from noslip.run.events import NEVER
from noslip.run.inputs import Inputs, given_inputs
from noslip.run.occurrences import Occurrences
from noslip.run.pairing import Pairing, pairing_of
from noslip.run.quick_flow import QuickFlow, brief
from noslip.run.record import Report, RunInfo, run_info
from noslip.run.step import TURN, Row
from noslip.system import Parameters, System
from noslip.trajectory import Origin, Trajectory

OFTEN = 8  # runs of the same length on the same system, before code for them alone is made
SEVERAL = 4  # lengths that are remembered


class Reader(Protocol):
    """Where a run is that has not been read yet."""

    def array(self, name: str) -> np.ndarray:
        """t, q, v or energy."""

    def trajectory(self) -> Trajectory:
        """All of it."""


class Unread(Trajectory):
    """A run still as machine code has left it; what is asked for most is taken out by itself."""

    def __init__(self, source: Reader):
        self.__dict__["source"] = source

    def __getattr__(self, name: str) -> Any:
        source = self.__dict__.get("source")
        if source is None:
            raise AttributeError(f"a Trajectory has no attribute '{name}'")
        if name in _OFTEN:
            array = self.__dict__[name] = source.array(name)
            return array
        made = vars(source.trajectory())
        del self.__dict__["source"]
        self.__dict__.update({**made, **self.__dict__})
        object.__setattr__(self, "__class__", Trajectory)
        return getattr(self, name)

    def __reduce_ex__(self, protocol: SupportsIndex) -> Any:
        assert self.report is not None  # read, it is a plain trajectory
        return self.__reduce_ex__(protocol)


_OFTEN = ("t", "q", "v", "energy")


def as_trajectory(
    pairing: Pairing,
    rows: Row,
    q0: np.ndarray,
    v0: np.ndarray,
    info: RunInfo,
    xp: ModuleType,
    origin: Origin | None = None,
    events: Mapping[str, Occurrences] | None = None,
    inputs: Mapping[str, Either] | None = None,
) -> Trajectory:
    """The result of a run from its rows."""
    # t0 + k h, not a sum of k terms; a method that makes its own time says so in `rows.t`
    uniform = xp.asarray(info.t0) + rows.step * xp.asarray(info.step_size)
    if info.stopped_by:
        uniform[-1] = rows.t[-1]
    m, end = pairing.system.m, pairing.system.m + pairing.system.k
    own = pairing.own_time or info.save_at or (xp is jnp and info.events)
    return Trajectory(
        t=rows.t if own else uniform,
        q=_unwrapped(rows, xp),
        v=rows.v,
        multipliers=rows.multipliers[:, :m],
        multiplier_t=rows.multiplier_t,
        energy=rows.energy,
        energy_scale=rows.energy_scale,
        constraint_residual=rows.constraint[:, :m],
        holonomic_multipliers=rows.multipliers[:, m:end],
        holonomic_residual=rows.holonomic,
        holonomic_rate=rows.constraint[:, m:end],
        first_integrals=_first_integrals(pairing.system, rows),
        report=Report(**vars(rows.interval)),
        q0=xp.asarray(q0),
        v0=xp.asarray(v0),
        info=info,
        origin=origin or Origin(pairing),
        events=events or {},
        inputs=inputs or {},
    )


def finished(
    start: Beginning, made: Driven, steps: int, every: int, at_times: bool, given: Inputs, throw: bool
) -> Trajectory:
    """The result of a run in memory, or the exception that holds it: of a run that was interrupted, and, with
    `throw`, of one with a solve that has failed."""
    pairing = start.pairing
    how = run_info(pairing, start.t, start.h, steps, every, made.runner.backend, given, at_times)
    happened: Mapping[str, Occurrences] = {}
    if made.log is not None:
        happened, by = made.log.occurrences(), made.log.stopped_by
        taken = int(made.rows.step[-1]) if by or steps == NEVER else steps
        how = replace(how, events=tuple(happened), stopped_by=by, steps=taken)
    origin = Origin(made.pairing, made.runner)
    run = as_trajectory(pairing, made.rows, start.q, start.v, how, np, origin, happened, given.values)
    if made.interrupted:
        done = part_of(int(made.rows.step[-1]), steps)
        raise stopped(made.interrupted, f"interrupted after step {done}; `trajectory` holds them", run)
    if throw and not run.success:
        refuse_failed(pairing, run, made.broken)
    return run


def part_of(done: int, steps: int) -> str:
    """How much of a run is done."""
    return f"{done}" if steps == NEVER else f"{done} of {steps}"


def refuse_failed(pairing: Pairing, run: Trajectory, broken: str = "") -> NoReturn:
    """Raise what is to be said of a run with a solve that has failed, or with a `broken` condition."""
    report, detail = run.report, broken or pairing.integrator.failure_detail(pairing.system, run)
    step = int(np.max(report.failed_step))
    raise SolveFailed(
        f"step {step} of {run.info.steps} (t = {run.t[-1]:g}) failed: {report.worst.message}{detail} "
        f"(last increment {report.increment[-1]:.1e}, residual {report.residual[-1]:.1e}); "
        f"`trajectory` of this exception holds the {len(run.t)} saved states before it",
        run,
    )


def _unwrapped(rows: Row, xp: ModuleType) -> Either:
    if xp is jnp:
        return rows.q + TURN * rows.turns
    return np.add(rows.q, TURN * rows.turns, out=aligned.empty(np.shape(rows.q)))


def _first_integrals(system: System, rows: Row) -> dict[str, Values]:
    """Those of the rows; one that has no scalar form is not in rows of native code."""
    found: dict[str, Values] = dict(rows.first_integrals)
    for name, integral in system.first_integrals.items():
        if name not in found:
            each = jax.jit(jax.vmap(lambda q, v, t, f=integral: f(q, v, system.at(t).parameters)))
            found[name] = np.array(each(rows.q, rows.v, rows.t), float)
    return {name: found[name] for name in system.first_integrals}


# ---- flows that were run before ---------------------------------------------------------------------------


class Flown(NamedTuple):
    """A run of a flow as columns, and how to read them."""

    quick: QuickFlow
    columns: np.ndarray
    q: np.ndarray
    v: np.ndarray
    parameters: Parameters | None = None

    def array(self, name: str) -> np.ndarray:
        return self.quick.array(self.columns, name)

    def trajectory(self) -> Trajectory:
        quick, (t0, h, steps, every) = self.quick, self.quick.how
        system = quick.system if self.parameters is None else quick.system.with_parameters(self.parameters)
        given = given_inputs(system, None, "hold", steps, t0, h)
        pairing = (
            quick.pairing if self.parameters is None else pairing_of(given.system, quick.pairing.integrator)
        )
        info = run_info(pairing, t0, h, steps, every, quick.motion().flow.name, given)
        rows = quick.rows(self.columns)
        return as_trajectory(pairing, rows, self.q, self.v, info, np, Origin(pairing), None, given.values)


class Again:
    """Runs of one length of a flow on one system: the first ones are counted."""

    def __init__(self, how: tuple[float, float, int, int]):
        self.how, self.asked = how, 0
        self.quick: QuickFlow | None = None

    def quickly(self, q0: Any, v0: Any) -> Trajectory | None:
        """The run from there by machine code alone, or None where there is a doubt."""
        quick = self.quick
        if quick is None or not (_plain(q0, quick.n) and _plain(v0, quick.n)) or not is_eager():
            return None
        if (box := quick.looked_at()) is None or (columns := quick.run(q0, v0, None, box)) is None:
            return None
        quick.system.refuse_changed()
        return Unread(Flown(quick, columns, q0.copy(), v0.copy()))

    def made(self, pairing: Pairing, began: float) -> None:
        """A run has been made with all care, which began then."""
        self.asked += 1
        if self.asked > OFTEN and self.quick is None and brief(self.how[2], began):
            self.quick = QuickFlow(pairing, *self.how)


def _plain(x: object, n: int) -> bool:
    return type(x) is np.ndarray and x.dtype == np.float64 and x.shape == (n,)


def flow_again(
    system: System, integrator: Integrator, t0: Any, h: Any, steps: Any, every: Any
) -> Again | None:
    """What is known of such runs, kept with the system; None where the method is no flow."""
    kinds = type(t0) is type(h) is float and type(steps) is type(every) is int
    if not (isinstance(integrator, Integrator) and integrator.host_driven and kinds):
        return None
    lengths = system.remembered.setdefault(("flows", integrator), {})
    how = (t0, h, steps, every)
    if how not in lengths:
        while len(lengths) >= SEVERAL:
            lengths.pop(next(iter(lengths)), None)
        lengths[how] = Again(how)
    return lengths.get(how)
