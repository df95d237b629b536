"""The engine on this machine: native code and XLA, in nanoseconds per step and member.

Rivals are timed in turn in one run. Evaluations and operations say what the time is spent on. A checkout of
the repository adds its limit as rivals, the same scalar program printed as C and C written by hand, and then
rows give their ratio to the C that was printed.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, Protocol

import jax
import numpy as np
from numpy.typing import ArrayLike

from noslip.analysis.timing import best_of_rounds, one_core
from noslip.bench.machine import versions
from noslip.engine import shelf
from noslip.engine.backends import native
from noslip.engine.program import Block, Loop, Program, Rolled, count
from noslip.integrators.base import Integrator
from noslip.integrators.discrete_gradient import DiscreteGradient
from noslip.integrators.semi_implicit_dla import SemiImplicitDLA
from noslip.integrators.velocity_nonholonomic import VelocityNonholonomic
from noslip.markdown import table
from noslip.run import one_xla
from noslip.run.choose import on_cpu
from noslip.run.many_native import NativeMembers
from noslip.run.many_xla import XlaMembers
from noslip.run.member import Member, MemberGroup, MemberInputs
from noslip.run.one_native import NativeTrajectory
from noslip.run.pairing import pairing_of
from noslip.run.programs import StepPrograms
from noslip.simulate import simulate
from noslip.system import System
from noslip.systems import gearbox, quartic

METHODS: tuple[Integrator, ...] = (DiscreteGradient(), SemiImplicitDLA(), VelocityNonholonomic())
STEP = {"quartic": 0.05, "gearbox": 0.1}
MEMBERS, SPREAD = 4096, 0.05
Row = dict[str, Any]
Rivals = dict[str, Callable[[], None]]


class Limits(Protocol):
    """What the engine is measured against: rivals that do the same `steps`, by name."""

    def of_one(self, runner: NativeTrajectory, system: str, method: Integrator, steps: int) -> Rivals: ...

    def of_many(self, lanes: NativeMembers, steps: int) -> Rivals: ...


class _NoLimits:
    def of_one(self, runner: NativeTrajectory, system: str, method: Integrator, steps: int) -> Rivals:
        return {}

    def of_many(self, lanes: NativeMembers, steps: int) -> Rivals:
        return {}


def measure(show: Callable[[Row], None] = lambda row: None, limits: Limits | None = None) -> dict[str, Any]:
    """All rows, each shown as soon as it is there."""
    against = limits or _NoLimits()
    rows: list[Row] = []
    for part in (partial(one_trajectory, against), partial(ensembles, against), first_results):
        for row in part():
            rows.append(row)
            show(row)
    return {"benchmark": "engine", "versions": versions(), "rows": rows}


def markdown(result: dict[str, Any]) -> str:
    """The rows as a Markdown table."""
    head = ("what", "system", "method", "by", "per step and member", "ratio to C", "more")
    rows = []
    for row in result["rows"]:
        cost = f"{row['ns']:.4g} ns" if "ns" in row else f"{row['seconds']:.2f} s in all"
        ratio = f"{row['ratio to c']:.2f}" if "ratio to c" in row else ""
        more = {**row.get("parts", {}), **(row.get("work", {}) if row["by"] == "native" else {})}
        cells = (row["what"], row["system"], row["method"], row["by"], cost, ratio,
                 ", ".join(f"{name} {value:.3g}" for name, value in more.items()))  # fmt: skip
        rows.append(cells)
    return table(head, rows)


def line(row: Row) -> str:
    """A row for people."""
    text = f"{row['what']:22} {row['system']:8} {row['method']:22} {row['by']:12}"
    if "ns" in row:
        text += f" {row['ns']:9.2f} ns per step and member"
    if "seconds" in row:
        text += f" {row['seconds']:9.2f} s"
    if "ratio to c" in row:
        text += f"  {row['ratio to c']:6.2f} x C"
    more = {**row.get("parts", {}), **(row.get("work", {}) if row["by"] == "native" else {})}
    return text + "".join(f"  {name} {value:.3g}" for name, value in more.items())


def one_trajectory(limits: Limits) -> Iterator[Row]:
    """One trajectory of the quartic system and of the gearbox: the limits, native, XLA."""
    for method in METHODS:
        yield from _one(quartic.system(), *quartic.typical_state(), method, "quartic", limits)
    yield from _one(gearbox.system(), *gearbox.typical_state(), METHODS[0], "gearbox", limits)


def _one(
    system: System, q: ArrayLike, v: ArrayLike, method: Integrator, name: str, limits: Limits
) -> Iterator[Row]:
    h, steps, slow = STEP[name], 20000, 1000
    q, v = np.asarray(q), np.asarray(v)
    runner = NativeTrajectory(pairing_of(system, method), q, v, 0.0, h)
    advance, nothing = runner.programs.advance_one.improved(), np.zeros(1, np.int64)
    with on_cpu():
        carry, _ = one_xla.start(system, method, (), q, v, np.float64(0.0), np.float64(h))

    def compiled() -> None:
        advance(runner.fixed, runner.carry.copy(), nothing, 1, 0, steps, -1, steps + 1, 0)

    def xla() -> None:
        with on_cpu():
            jax.block_until_ready(one_xla.advance(system, method, (), carry, h, slow, slow, slow))

    xla()
    rivals = limits.of_one(runner, name, method, steps) | {"native": compiled, "xla": xla}
    seconds = best_of_rounds(rivals)
    report = simulate(system, method, q, v, step_size=h, steps=2000).report
    work = {
        "evaluations per step": float(np.mean(report.iterations[1:])),
        "operations per evaluation": per_evaluation(runner.programs.step),
        "operations beside": beside(runner.programs.step),
    }
    yield from _rows("one trajectory", name, method, _per_step(seconds, steps, "xla", slow), work)


def _per_step(seconds: dict[str, float], steps: int, by_xla: str, slow: int) -> dict[str, float]:
    """All rivals do `steps`, but the one by XLA, which does `slow`."""
    return {by: value / (slow if by == by_xla else steps) for by, value in seconds.items()}


def ensembles(limits: Limits) -> Iterator[Row]:
    """4096 members on one core: the limits, native lanes, jax.vmap."""
    for module, name, methods in ((quartic, "quartic", METHODS), (gearbox, "gearbox", METHODS[:1])):
        for method in methods:
            with one_core(), on_cpu():
                yield from _many(module, method, name, limits)


def _many(module: Any, method: Integrator, name: str, limits: Limits) -> Iterator[Row]:
    steps, slow = 100, 20
    inputs = members(module, STEP[name], MEMBERS)
    lanes, vmapped = NativeMembers(Member(method, ()), inputs, 1), XlaMembers(Member(method, ()), inputs)
    advance, nothing = lanes.code.function("advance"), np.zeros(1, np.int64)
    groups = len(lanes.full)

    def compiled() -> None:
        advance(lanes.lanes.fixed, lanes.full.copy(), nothing, groups, 0, steps, -1, steps + 1, 0)

    def vmap() -> None:
        jax.block_until_ready(vmapped.code.advance(vmapped.leaves, vmapped.full, slow, vmapped.drive))

    vmap()
    seconds = best_of_rounds(limits.of_many(lanes, steps) | {"native": compiled, "jax.vmap": vmap}, 3)
    work = {"members": MEMBERS, "lanes": native.lanes()}
    per_member = {by: value / MEMBERS for by, value in seconds.items()}
    yield from _rows("ensemble, one core", name, method, _per_step(per_member, steps, "jax.vmap", slow), work)


def members(module: Any, h: float, size: int) -> MemberInputs:
    """Members scattered about a typical state, their velocities put on the constraint. Where positions are
    bound too, by rotations or g(q) = 0, the velocities are scattered alone."""
    system, (q, v), rng = module.system(), module.typical_state(), np.random.default_rng(0)
    scattered = SPREAD * rng.normal(size=(size, system.n))
    bound = bool(system.rotations) or system.holonomic is not None
    q0s, v0s = (np.tile(x, (size, 1)) for x in (q, v))
    q0s, v0s = (q0s, v0s + scattered) if bound else (q0s + scattered, v0s)
    v0s = np.asarray(jax.jit(jax.vmap(system.project_velocity))(q0s, v0s))
    return MemberInputs(system, MemberGroup(q0s, v0s, {}, size), h, 0.0)


FIRST_RESULT = """
import json, sys, time
began = time.perf_counter()
import noslip
from noslip.systems import gearbox
from noslip.integrators.velocity_nonholonomic import VelocityNonholonomic
imported = time.perf_counter()
system = gearbox.system()
built = time.perf_counter()
run = lambda: noslip.simulate(system, VelocityNonholonomic(), *gearbox.typical_state(), step_size=0.1,
                              steps=1000, backend=sys.argv[1])
run()
first = time.perf_counter()
run()
print(json.dumps({"import": imported - began, "system": built - imported, "first run": first - built,
                  "second run": time.perf_counter() - first, "total": first - began}))
"""


def first_results() -> Iterator[Row]:
    """Seconds from nothing to the first result of a catalogue system, in a new process."""
    for backend in ("native", "xla"):
        best: dict[str, float] = {}
        for _ in range(3):
            with shelf.unused():
                done = subprocess.run(
                    [sys.executable, "-c", FIRST_RESULT, backend], capture_output=True, text=True, check=True
                )
            now = json.loads(done.stdout)
            best = now if not best or now["total"] < best["total"] else best
        yield {"what": "time to first result", "system": "gearbox", "method": "VelocityNonholonomic",
               "by": backend, "seconds": best["total"], "parts": best}  # fmt: skip
    for method in METHODS:
        system = quartic.system()
        began = time.perf_counter()
        with shelf.unused():
            programs = StepPrograms(system, method)
            traced = time.perf_counter()
            programs.advance_one.improved()
            scalar = time.perf_counter()
            native.advance_function(programs.step, None, programs.save, native.lanes())
        parts = {
            "trace and translate": traced - began,
            "lanes": time.perf_counter() - scalar,
            "operations": programs.step.size(),
        }
        yield {"what": "compile", "system": "quartic", "method": type(method).__name__, "by": "native",
               "seconds": scalar - traced, "parts": parts}  # fmt: skip


def per_evaluation(program: Program) -> int:
    """Operations in the body of the solver's iteration: the largest loop beside a fallback, 0 without one."""
    substeps = [item.body for item in program.main.items if isinstance(item, Rolled)]
    largest = 0
    for block in (program.main, *substeps):
        loops = [item for item in block.items if isinstance(item, Loop)]
        if any(loop.rare for loop in loops):
            largest = max([largest, *(count(loop.body) for loop in loops if not loop.rare)])
    return largest


def beside(program: Program) -> int:
    """Operations of a step outside all loops."""
    return count(Block([item for item in program.main.items if not isinstance(item, Loop)]))


def _rows(what: str, system: str, method: Integrator, seconds: dict[str, float], work: Row) -> Iterator[Row]:
    limit = seconds.get("c")
    for by, value in seconds.items():
        row = {"what": what, "system": system, "method": type(method).__name__, "by": by, "ns": 1e9 * value}
        if limit is not None:
            row["ratio to c"] = value / limit
        yield row | {"work": work}
