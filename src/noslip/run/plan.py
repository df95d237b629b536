"""What every group of members of an ensemble needs to run, wherever it runs: the plan, and its steps."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import jax
import numpy as np

from noslip.integrators.base import Integrator
from noslip.integrators.solve import Status
from noslip.numerics import aligned
from noslip.numerics.threads import cores
from noslip.run.along import conserves_energy, failed_rows
from noslip.run.choose import members_runner
from noslip.run.events import Events
from noslip.run.inputs import Inputs
from noslip.run.member import Member, MemberGroup, MemberInputs, MemberRow
from noslip.run.observables import STATISTICS, Watched
from noslip.run.occurrences import Occurrences
from noslip.run.pacing import Pace
from noslip.run.pairing import pairing_of
from noslip.run.record import RunInfo, run_info
from noslip.run.runner import MembersRunner
from noslip.system import System

SECONDS_PER_CALL, FIRST_PIECE = 0.5, 8
Arrays = dict[str, Any]  # by the names that they have in a dataset; NumPy's, or Zarr's where they are on disk


@dataclass(frozen=True)
class Plan:
    """An ensemble without its members' states and parameters, which come in groups."""

    system: System
    integrator: Integrator
    watch: tuple[Watched, ...]
    t0: float
    step_size: float
    steps: int
    save_every: int
    backend: str
    threads: int | None
    inputs: Inputs
    events: Events = ()

    @property
    def saved_steps(self) -> list[int]:
        """The multiples of `save_every`, and the last."""
        marks = list(range(0, self.steps + 1, self.save_every))
        return marks if marks[-1] == self.steps else [*marks, self.steps]

    def runner(self, group: MemberGroup) -> MembersRunner:
        """These members at their start, on the backend of the plan."""
        inputs = MemberInputs(self.system, group, self.step_size, self.t0, self.inputs.table)
        member = Member(self.integrator, self.watch, self.events)
        return members_runner(member, inputs, self.backend, self.threads)

    def advance(self, runner: MembersRunner, rows_before: int = 0) -> Iterator[tuple[int, MemberRow | None]]:
        """Steps reached, with the row where one is saved; pieces short enough to be interrupted."""
        first: MemberRow | None = None
        if rows_before == 0:
            first = runner.row()
            yield 0, first
        pace = Pace(FIRST_PIECE, SECONDS_PER_CALL)
        done = runner.reached
        while done < self.steps:
            target = min((done // self.save_every + 1) * self.save_every, self.steps)
            done = runner.to(pace.stop(done, target))
            pace.reached(done)
            yield done, self._judged(runner, first) if done == target else None

    def _judged(self, runner: MembersRunner, first: MemberRow | None) -> MemberRow:
        """What is saved now. A member whose row is not finite though its steps were solved, or whose energy
        has gone, has failed here, as in a single run."""
        row = runner.row()
        start = row if first is None else first
        with np.errstate(all="ignore"):
            status = failed_rows(row, start, start.energy_scale, conserves_energy(self.system))
        if not status.any():
            return row
        full = jax.tree.map(np.array, runner.final())
        interval = full.carry.interval
        new = (status != Status.SOLVED) & (interval.status == Status.SOLVED)
        if not new.any():
            return row
        interval.status[new], interval.failed_step[new] = status[new], full.carry.step[new]
        runner.resume(full, runner.reached)
        return runner.row()

    def saved(self, rows: list[MemberRow]) -> Arrays:
        """Rows as arrays (member, time, ...)."""
        # time first in memory: whole rows are copied, several times as fast as member by member
        threads = self.threads or cores()
        rows_of = jax.tree.map(lambda *x: np.moveaxis(aligned.stacked(x, threads), 0, 1), *rows)
        arrays = {
            "q": rows_of.q,
            "v": rows_of.v,
            "multipliers": rows_of.multipliers[..., : self.system.m],
            "energy": rows_of.energy,
            "constraint_residual": rows_of.constraint,
        }
        if self.system.k:
            reactions = rows_of.multipliers[..., self.system.m : self.system.m + self.system.k]
            arrays |= {"holonomic_multipliers": reactions, "holonomic_residual": rows_of.holonomic}
        if self.integrator.own_time:
            arrays["t"] = rows_of.t
        return arrays | {f"observed_{name}": x for name, x in rows_of.observed.items()}

    def summary(self, runner: MembersRunner) -> Arrays:
        """What is known of each member as a whole."""
        full = runner.final()
        interval, count = full.carry.interval, np.asarray(full.carry.step) + 1.0
        found: Arrays = {
            name: np.asarray(getattr(interval, name))
            for name in ("status", "failed_step", "iterations", "increment")
        }
        for name, _, kinds in self.watch:
            found |= {f"{name}_{kind}": STATISTICS[kind](full.sums[name], count) for kind in kinds}
        return found

    def occurrences(self, runner: MembersRunner) -> tuple[dict[str, Occurrences], np.ndarray]:
        """The events of each member, and the name of the one that ended it, or nothing."""
        if not self.events:
            return {}, np.empty(0, str)
        full, names = runner.final(), np.array([*(name for name, _ in self.events), ""])
        found = {name: Occurrences(**full.sums[f"event_{name}"]) for name in names[:-1].tolist()}
        return found, names[np.asarray(full.carry.watch.stopped)]

    def info(self, group: MemberGroup, backend: str) -> RunInfo:
        """The record of the ensemble; of parameters that vary it names the first."""
        first = self.system.with_parameters({name: x[0] for name, x in group.varying.items()})
        pairing, how = (
            pairing_of(first, self.integrator),
            (self.t0, self.step_size, self.steps, self.save_every),
        )
        info = run_info(pairing, *how, backend, self.inputs)
        return replace(info, events=tuple(name for name, _ in self.events)) if self.events else info
