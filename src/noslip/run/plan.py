"""What every group of members of an ensemble needs to run, wherever it runs: the plan, and its steps."""

from __future__ import annotations

import time
import warnings
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import jax
import numpy as np

from noslip.engine.program import CannotTranslate, TooLarge
from noslip.integrators.base import Integrator
from noslip.run.many import GpuMembers, NativeMembers, XlaMembers
from noslip.run.member import STATISTICS, Inputs, Member, Row, Watch
from noslip.simulate import on_cpu
from noslip.system import System

SECONDS_PER_CALL = 0.5  # how long one call may take, so that progress and Ctrl-C stay live
Arrays = dict[str, Any]


@dataclass(frozen=True)
class Plan:
    """An ensemble without its members' states and parameters, which come in groups."""

    system: System
    integrator: Integrator
    watch: Watch
    t0: float
    step_size: float
    steps: int
    save_every: int
    backend: str
    threads: int | None

    @property
    def saved_steps(self) -> list[int]:
        """The multiples of `save_every`, and the last."""
        marks = list(range(0, self.steps + 1, self.save_every))
        return marks if marks[-1] == self.steps else [*marks, self.steps]

    def runner(self, q: np.ndarray, v: np.ndarray, varying: Mapping[str, Any], members: int) -> Any:
        """These members at their start, on the backend of the plan."""
        member = Member(self.integrator, self.watch)
        initial = q, v, np.float64(self.t0)
        inputs = Inputs(self.system, varying, self.step_size, initial, members)
        if self.integrator.host_driven:
            name = type(self.integrator).__name__
            raise ValueError(f"{name} runs one trajectory at a time; call simulate for each member")
        has_gpu = jax.default_backend() == "gpu"
        if self.backend == "gpu" and not has_gpu:
            raise ValueError("backend 'gpu' needs a GPU that JAX can see, but there is none; use 'auto'")
        if self.backend == "xla":
            return XlaMembers(member, inputs)
        try:
            if self.backend == "gpu" or (self.backend == "auto" and has_gpu):
                return GpuMembers(member, inputs)
            with on_cpu():
                return NativeMembers(member, inputs, self.threads)
        except CannotTranslate as reason:
            if self.backend != "auto":
                raise ValueError(
                    f"backend '{self.backend}' cannot run this: {reason}; use 'auto' or 'xla'"
                ) from None
            if not isinstance(reason, TooLarge):
                warnings.warn(f"no compiled ensemble: {reason}; XLA runs this instead", stacklevel=4)
        return XlaMembers(member, inputs)

    def advance(self, runner: Any, rows_before: int = 0) -> Iterator[tuple[int, Row | None]]:
        """Steps reached, with the row where one is saved; pieces short enough to be interrupted."""
        done, piece = runner.reached, 8
        if rows_before == 0:
            yield 0, runner.row()
        while done < self.steps:
            target = min((done // self.save_every + 1) * self.save_every, self.steps)
            stop = min(-(-(done + piece) // runner.grain) * runner.grain, target)
            began = time.perf_counter()
            runner.to(stop)
            rate = (stop - done) / (time.perf_counter() - began)
            piece = max(1, min(8 * piece, int(rate * SECONDS_PER_CALL) + 1))
            done = stop
            yield done, runner.row() if done == target else None

    def saved(self, rows: list[Row]) -> Arrays:
        """Rows as arrays (member, time, ...), by the names that they have in a dataset."""
        # time first in memory: whole rows are copied, several times as fast as member by member
        rows_of = jax.tree.map(lambda *x: np.moveaxis(np.stack(x), 0, 1), *rows)
        arrays = {
            "q": rows_of.q,
            "v": rows_of.v,
            "multipliers": rows_of.multipliers,
            "energy": rows_of.energy,
            "constraint_residual": rows_of.constraint,
        }
        if self.integrator.own_time:
            arrays["t"] = rows_of.t
        return arrays | {f"observed_{name}": x for name, x in rows_of.observed.items()}

    def summary(self, runner: Any) -> Arrays:
        """What is known of each member as a whole."""
        full = runner.final()
        interval, count = full.carry.interval, np.asarray(full.carry.step) + 1.0
        found = {
            name: np.asarray(getattr(interval, name))
            for name in ("status", "failed_step", "iterations", "increment")
        }
        for name, _, kinds in self.watch:
            found |= {f"{name}_{kind}": STATISTICS[kind](full.sums[name], count) for kind in kinds}
        return found
