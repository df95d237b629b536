"""The one time loop of all methods: checks, compiled calls, progress, interruption, result."""

from __future__ import annotations

import contextlib
import functools
import importlib
import importlib.metadata
import platform
import signal
import threading
import time
import warnings
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from noslip.engine.program import CannotTranslate, TooLarge
from noslip.errors import Interrupted, SolveFailed
from noslip.integrators.base import Integrator
from noslip.integrators.solve import Status
from noslip.numerics.pytrees import anatomy
from noslip.numerics.tracing import has_tracers, is_traced
from noslip.run import step as _loop
from noslip.run.arguments import as_floats, check_run, whole, whole_steps
from noslip.run.one_native import NativeRunner
from noslip.system import System
from noslip.trajectory import Report, RunInfo, Trajectory
from noslip.version import __version__

COUNTED = 512  # steps at a time that are looked at for the end of a run
SECONDS_PER_CALL = 0.2  # how long one compiled call may take, so that progress and Ctrl-C stay live
Progress = Callable[[int, int], None]


def simulate(
    system: System,
    integrator: Integrator,
    q0: Any,
    v0: Any,
    *,
    step_size: Any,
    steps: int | None = None,
    t_end: float | None = None,
    t0: Any = 0.0,
    parameters: Mapping[str, Any] | None = None,
    save_every: int = 1,
    backend: str = "auto",
    progress: bool | Progress | None = None,
    throw: bool = True,
) -> Trajectory:
    """Run `integrator` on `system` from (q0, v0) and return the saved states with all diagnostics.

    Give `steps` or `t_end` (a whole number of steps after t0). Every `save_every`-th state is saved,
    and always the last. `progress` is True for a bar, or a function of (steps done, steps in all).
    A failed solve raises `SolveFailed` with the part before it, or with throw=False ends the result there.
    With traced arguments (jax.grad, jit, vmap) the run is one differentiable scan.
    """
    if not isinstance(system, System):
        raise TypeError(f"`system` must be a System, but {system!r} was provided")
    if parameters is not None:
        system = system.with_parameters(parameters)
    traced = is_traced(system, q0, v0, step_size, t0)
    q, v = (as_floats(name, x, (system.n,), traced) for name, x in (("q0", q0), ("v0", v0)))
    h, t = (as_floats(name, x, (), traced) for name, x in (("step_size", step_size), ("t0", t0)))
    save_every = whole("save_every", save_every, 1)
    if t_end is not None and steps is None and _makes_its_own_time(integrator):
        if traced:
            raise ValueError(
                "`steps` must be given instead of `t_end` when a method with its own time is traced"
            )
        check_run(system, integrator, q, v, t, h, backend)
        steps, t_end = _steps_until(system, integrator, q, v, t, h, float(t_end), backend), None
    steps = whole_steps(steps, t_end, t, h)
    if traced:
        check_run(system, integrator, q, v, t, h, backend, traced)
        rows = _loop.scan(system, integrator, q, v, t, h, steps, save_every)
        return _result(system, integrator, rows, q, v, t, h, steps, save_every, "xla", jnp)
    with on_cpu():
        check_run(system, integrator, q, v, t, h, backend, traced)
        return _simulate(system, integrator, q, v, t, h, steps, save_every, backend, progress, throw)


def _makes_its_own_time(integrator: Any) -> bool:
    return isinstance(integrator, Integrator) and integrator.own_time


def _steps_until(
    system: System, integrator: Integrator, q: Any, v: Any, t: Any, h: Any, t_end: float, backend: str
) -> int:
    """How many steps a method that makes its own time needs until t >= t_end, or until it fails."""
    if not t_end >= float(t):
        raise ValueError(f"`t_end` must be a time after t0 = {float(t):g}, but {t_end!r} was provided")
    with on_cpu():
        runner = make_runner(system, integrator, q, v, t, h, backend)
        done, now, failed = 0, float(t), False
        while now < t_end and not failed:
            part, reached, failed = runner.to(done + COUNTED, 2**62, 1)
            rows = runner.join([part])
            if len(later := np.flatnonzero(rows.t >= t_end)):
                return done + int(later[0]) + 1
            if not failed and not rows.t[-1] > now:
                raise ValueError(f"`t_end` = {t_end:g} is never reached: time stands still at {now:g}")
            done, now = reached, float(rows.t[-1])
    return done + failed


def on_cpu() -> AbstractContextManager[Any]:
    """One trajectory is a long chain of tiny operations: a CPU's work, also where JAX prefers a GPU."""
    return jax.default_device(jax.local_devices(backend="cpu")[0])


def _simulate(
    system: System,
    integrator: Integrator,
    q: Any,
    v: Any,
    t: Any,
    h: Any,
    steps: int,
    save_every: int,
    backend: str,
    progress: bool | Progress | None,
    throw: bool,
) -> Trajectory:
    runner = make_runner(system, integrator, q, v, t, h, backend)
    saved, interrupted = _drive(runner, steps, save_every, progress)
    saved = _merge_failed_row(saved)
    run = _result(system, integrator, saved, q, v, t, h, steps, save_every, runner.backend, np)
    if interrupted:
        done = int(saved.step[-1])
        raise Interrupted(f"interrupted after step {done} of {steps}; `trajectory` holds them", run)
    if throw and not run.success:
        raise SolveFailed(_failure(run, integrator.failure_detail(system, run)), run)
    return run


def make_runner(
    system: System, integrator: Integrator, q: Any, v: Any, t: Any, h: Any, backend: str = "auto"
) -> Any:
    """What advances a run: native code, XLA's, or a host-driven loop where the method brings its own."""
    if integrator.host_driven:
        from noslip.run.one_reference import ReferenceRunner  # loads SciPy's integrators

        return ReferenceRunner(system, integrator, q, v, t, h)
    if backend == "xla":
        return _CompiledRunner(system, integrator, q, v, t, h)
    try:
        return NativeRunner(system, integrator, q, v, t, h)
    except CannotTranslate as reason:
        if backend == "native":
            raise ValueError(f"backend 'native' cannot run this: {reason}; use 'auto' or 'xla'") from None
        if not isinstance(reason, TooLarge):
            warnings.warn(f"no native code: {reason}; XLA runs this instead", stacklevel=4)
    return _CompiledRunner(system, integrator, q, v, t, h)


class _CompiledRunner:
    """Runs the compiled loop; the host decides how far each call goes."""

    backend = "xla"
    first_piece, brief = 64, 0
    join = staticmethod(_loop.joined)

    def __init__(self, system: System, integrator: Integrator, q: Array, v: Array, t: Array, h: Array):
        self.system, self.integrator, self.h = system, integrator, h
        self.carry, first = _loop.start(system, integrator, q, v, t, h)
        self.first = jax.tree.map(lambda x: np.array(x)[None], first)

    def step_size(self, h: Any) -> None:
        """Go on with another step, say backwards."""
        self.h = h

    def snapshot(self) -> _loop.Carry:
        """Everything that the next step needs."""
        return self.carry

    def restore(self, carry: _loop.Carry) -> None:
        """Go on from there."""
        self.carry = _loop.strong(jax.tree.map(jnp.asarray, carry))

    def to(self, stop: int, last: int, every: int) -> tuple[_loop.Row, int, bool]:
        """Advance towards step `stop`: the new rows, the step reached, and whether a solve failed."""
        self.carry, rows, count = _loop.advance(
            self.system, self.integrator, self.carry, self.h, stop, last, every
        )
        count = int(count)
        rows = jax.tree.map(lambda x: np.asarray(x)[:count], rows)
        failed = int(self.carry.interval.status) != Status.SOLVED
        return rows, int(self.carry.step), failed


def _drive(runner: Any, steps: int, every: int, progress: bool | Progress | None) -> tuple[_loop.Row, bool]:
    """Call the runner until the end, in pieces of about SECONDS_PER_CALL."""
    parts, joined = [runner.first], []
    done, piece, failed = 0, runner.first_piece, False
    with Meter(progress, steps) as show, Interruption(steps > runner.brief) as interruption:
        while done < steps and not failed and not interruption.asked:
            began, before = time.perf_counter(), done
            rows, done, failed = runner.to(min(done + piece, steps), steps, every)
            parts.append(rows)
            if done < steps:  # while they are in the cache; a short run is joined once
                joined.append(runner.join(parts))
                parts = []
            show(done, steps)
            rate = (done - before) / (time.perf_counter() - began)
            piece = max(1, min(8 * piece, int(rate * SECONDS_PER_CALL) + 1))
    if parts:
        joined.append(runner.join(parts))
    return _loop.joined(joined), interruption.asked and done < steps


def _merge_failed_row(rows: _loop.Row) -> _loop.Row:
    """A failure right after a saved row adds no state of its own: its record joins that row."""
    if len(rows.step) < 2 or rows.step[-1] != rows.step[-2]:
        return rows
    cut, last = jax.tree.map(lambda x: x[:-1].copy(), rows), rows.interval
    for name, values in vars(cut.interval).items():
        values[-1] = max(values[-1], getattr(last, name)[-1])
    return cut


def _result(
    system: System,
    integrator: Integrator,
    rows: _loop.Row,
    q0: Array,
    v0: Array,
    t0: Array,
    h: Array,
    steps: int,
    every: int,
    backend: str,
    xp: Any,
) -> Trajectory:
    info = run_info(system, integrator, t0, h, steps, every, backend)
    # t0 + k h, not a sum of k terms; a method that makes its own time says so in `rows.t`
    uniform = xp.asarray(t0) + rows.step * xp.asarray(h)
    return Trajectory(
        t=rows.t if integrator.own_time else uniform,
        q=rows.q + _loop.TURN * rows.turns,
        v=rows.v,
        multipliers=rows.multipliers,
        multiplier_t=rows.multiplier_t,
        energy=rows.energy,
        energy_scale=rows.energy_scale,
        constraint_residual=rows.constraint,
        first_integrals=_first_integrals(system, rows),
        report=Report(**vars(rows.interval)),
        q0=xp.asarray(q0),
        v0=xp.asarray(v0),
        info=info,
    )


def _first_integrals(system: System, rows: _loop.Row) -> dict[str, Any]:
    """Those of the rows; one that has no scalar form is not in rows of native code."""
    found: dict[str, Any] = dict(rows.first_integrals)
    for name, integral in system.first_integrals.items():
        if name not in found:
            each = jax.jit(jax.vmap(lambda q, v, f=integral: f(q, v, system.parameters)))
            found[name] = np.array(each(rows.q, rows.v), float)
    return {name: found[name] for name in system.first_integrals}


def run_info(
    system: System, integrator: Integrator, t0: Any, h: Any, steps: int, every: int, backend: str
) -> RunInfo:
    """What is run, for the record."""
    leaves, structure, shapes = anatomy(system)
    multiplier_source, source = _facts(integrator, structure, shapes)
    return RunInfo(
        integrator=type(integrator).__name__,
        options=integrator.options(),
        coordinates=system.coordinates,
        parameters=dict(system.parameters),
        step_size=h if has_tracers(h) else float(h),
        steps=steps,
        save_every=every,
        t0=t0 if has_tracers(t0) else float(t0),
        backend=backend,
        multiplier_source=multiplier_source,
        angles=system.angles,
        source="" if has_tracers(leaves) else source,
        arguments=dict(system.parameters),
        versions=versions(),
    )


@functools.lru_cache(maxsize=256)  # a trace costs more than a short run
def _facts(integrator: Integrator, structure: Any, shapes: tuple[Any, ...]) -> tuple[str, str]:
    """Whether the multipliers are the method's own, and the name of the system in the catalogue, if it is
    exactly what is made there."""
    system = jax.tree.unflatten(structure, [jax.ShapeDtypeStruct(s, float) for s in shapes])
    x, t = jax.ShapeDtypeStruct((system.n,), float), jax.ShapeDtypeStruct((), float)

    def observe(system: System, q: Array, v: Array, t: Array, h: Array) -> Any:
        return integrator.observe(integrator.init(system, q, v, t, h)).multipliers

    multipliers = jax.eval_shape(observe, system, x, x, t, t)
    module = system.lagrangian.__module__ or ""
    known = module.startswith("noslip.systems.") and _catalogue_structure(module) == structure
    name = module.removeprefix("noslip.systems.") if known else ""
    return "node" if multipliers is None else "method", name


@functools.cache
def _catalogue_structure(module: str) -> Any:
    return jax.tree.structure(importlib.import_module(module).system())


@functools.cache
def versions() -> dict[str, str]:
    found = {"noslip": __version__, "python": platform.python_version()}
    for name in ("jax", "jaxlib", "llvmlite", "numpy", "scipy", "heyoka"):
        with contextlib.suppress(importlib.metadata.PackageNotFoundError):
            found[name] = importlib.metadata.version(name)
    return found


def _failure(run: Trajectory, detail: str) -> str:
    report = run.report
    step = int(np.max(report.failed_step))
    return (
        f"step {step} of {run.info.steps} (t = {run.t[-1]:g}) failed: {report.worst.message}{detail} "
        f"(last increment {report.increment[-1]:.1e}, residual {report.residual[-1]:.1e}); "
        f"`trajectory` of this exception holds the {len(run.t)} saved states before it"
    )


class Interruption:
    """Context in which Ctrl-C asks to stop after the call under way; asked twice, it stops at once.
    Of no use to runs that are over at once, which are not `watched`."""

    def __init__(self, watched: bool = True) -> None:
        self.asked = False
        self.mine = watched and threading.current_thread() is threading.main_thread()

    def __enter__(self) -> Interruption:
        if self.mine:
            self.before = signal.signal(signal.SIGINT, self._ask)
        return self

    def _ask(self, number: int, frame: Any) -> None:
        if self.asked:
            raise KeyboardInterrupt
        self.asked = True

    def __exit__(self, *_: object) -> None:
        if self.mine:
            signal.signal(signal.SIGINT, self.before)


class Meter:
    """Context that yields show(done, total): a bar, the user's function, or nothing."""

    def __init__(self, progress: bool | Progress | None, total: int):
        self.progress, self.total = progress, total
        self.bar: Any = None

    def __enter__(self) -> Progress:
        if callable(self.progress):
            return self.progress
        if not self.progress:
            return lambda *_: None
        from rich.progress import Progress as Bar

        self.bar = Bar(transient=True)
        self.bar.start()
        task = self.bar.add_task("steps", total=self.total)
        return lambda done, _: self.bar.update(task, completed=done)

    def __exit__(self, *_: object) -> None:
        if self.bar is not None:
            self.bar.stop()
