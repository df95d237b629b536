"""A run that goes on where it ended."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, replace
from typing import Any

import numpy as np

from noslip.results import as_trajectory, refuse_failed
from noslip.run.along import conserves_energy
from noslip.run.arguments import whole
from noslip.run.choose import BACKENDS, on_cpu, trajectory_runner
from noslip.run.drive import all_rows
from noslip.run.inputs import given_inputs, with_later_inputs
from noslip.run.occurrences import Log
from noslip.run.record import Report
from noslip.simulate import simulate
from noslip.trajectory import Origin, Trajectory

ROW_ARRAYS = (
    "t", "q", "v", "multipliers", "multiplier_t", "energy", "energy_scale", "constraint_residual",
    "holonomic_multipliers", "holonomic_residual", "holonomic_rate",
)  # fmt: skip


def resume(run: Trajectory, *, steps: int, inputs: Mapping[str, Any] | None = None) -> Trajectory:
    """The run that goes on for `steps` more: with the bits that it has when it is not interrupted. A run with
    arrays of inputs needs those of the steps to come, which `inputs` are, as `simulate` takes them."""
    if not isinstance(run, Trajectory):
        raise TypeError(f"`run` must be a Trajectory, but {run!r} was provided")
    more = whole("steps", steps, 0)
    flow = run.origin is not None and run.origin.pairing.integrator.host_driven
    if run.origin is None or (run.origin.runner is None and not flow):
        raise ValueError(
            "this run has no state of its method to go on from, since it was loaded or traced; "
            "noslip.rerun(path).run has"
        )
    if not run.success:
        raise ValueError(f"a run that has failed cannot go on: {run.report.worst.message}")
    if run.info.save_at:
        raise ValueError("a run with `save_at` has no rows to go on with; use simulate, or noslip.prepare")
    if run.stopped_by:
        raise ValueError(f"a run that the event '{run.stopped_by}' has ended cannot go on")
    info, pairing = run.info, run.origin.pairing
    h, t0, every, done = info.step_size, info.t0, info.save_every, info.steps
    joined = with_later_inputs(pairing.system, run.inputs, inputs, info.inputs_between, more)
    driven = given_inputs(pairing.system, joined, info.inputs_between, done + more, t0, h)
    if flow:  # it has no steps to go on from: its bits depend on its blocks
        how = {"step_size": h, "steps": done + more, "t0": t0, "save_every": every, "inputs": driven.values}
        events, between = dict(pairing.events) or None, info.inputs_between
        return simulate(
            pairing.system, pairing.integrator, run.q0, run.v0, events=events, inputs_between=between, **how
        )
    with on_cpu():
        backend = info.backend if info.backend in BACKENDS else "auto"
        runner = trajectory_runner(pairing, run.q0, run.v0, t0, h, backend, driven.table)
        assert run.origin.runner is not None
        runner.restore(run.origin.runner.snapshot())
        log = Log(pairing.system, pairing.events)
        rows, _ = all_rows(runner, done + more, every, None, conserves_energy(pairing.system), done, log)
        end = int(rows.step[-1]) if log.stopped_by else done + more
        whole_info, here = replace(info, steps=end, stopped_by=log.stopped_by), Origin(pairing, runner)
        happened = log.occurrences()
        later = as_trajectory(pairing, rows, run.q0, run.v0, whole_info, np, here, happened, driven.values)
        result = _joined(run, later, done % every != 0 and more > 0)
    if not result.success:
        refuse_failed(pairing, result)
    return result


def _joined(run: Trajectory, later: Trajectory, unplanned: bool) -> Trajectory:
    """Both parts as one. The first row of the later one is the last of the other, and goes, as does an
    `unplanned` last row, that was saved only because the run ended there: its record joins the next."""
    end = len(run.t) - unplanned

    def join(before: Any, after: Any) -> Any:
        return np.concatenate([before[:end], after[1:]])

    names = [f.name for f in fields(Report)]
    report = {name: join(getattr(run.report, name), getattr(later.report, name)) for name in names}
    if unplanned and len(report["steps"]) > end:
        for name, values in report.items():
            both = getattr(run.report, name)[-1], values[end]
            values[end] = sum(both) if name == "steps" else max(both)
    integrals = {name: join(x, later.first_integrals[name]) for name, x in run.first_integrals.items()}
    arrays = {name: join(getattr(run, name), getattr(later, name)) for name in ROW_ARRAYS}
    events = {name: there.then(later.events[name]) for name, there in run.events.items()}
    return replace(later, **arrays, first_integrals=integrals, report=Report(**report), events=events)
