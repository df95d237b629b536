"""Kernels on this machine's GPU: steps per second, seconds to the first step, and bits beside native code's.

The driver keeps what it has compiled: start with CUDA_CACHE_DISABLE=1 for the seconds of a machine that has
never seen these kernels.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from types import ModuleType
from typing import Any, NamedTuple

import jax
import numpy as np

from noslip.analysis.timing import best_of_rounds
from noslip.bench import bicycle
from noslip.bench.engine import beside, members, per_evaluation
from noslip.bench.machine import versions
from noslip.engine import shelf
from noslip.engine.backends import cuda, ptx
from noslip.integrators.base import Integrator
from noslip.integrators.discrete_gradient import DiscreteGradient
from noslip.integrators.energy_collocation import EnergyCollocation
from noslip.integrators.semi_implicit_dla import SemiImplicitDLA
from noslip.markdown import table
from noslip.run.many_gpu import GpuMembers
from noslip.run.many_native import NativeMembers
from noslip.run.many_xla import XlaMembers
from noslip.run.member import Member
from noslip.simulate import simulate
from noslip.systems import chaplygin_sphere, gearbox, quartic, rolling_coin

STEPS, COMPARED, VMAPPED = 200, 50, 10
Row = dict[str, Any]


class Trial(NamedTuple):
    """A method on so many members of a system."""

    module: ModuleType
    method: Integrator
    words: str
    h: float
    size: int
    rival: bool = False  # jax.vmap beside it, where JAX sees the GPU


NO_FRAME = DiscreteGradient(frame="none")
TRIALS = (
    Trial(gearbox, DiscreteGradient(), "DiscreteGradient", 0.1, 2**20, True),
    Trial(gearbox, NO_FRAME, "DiscreteGradient, no frame", 0.1, 2**20, True),
    Trial(gearbox, EnergyCollocation(3), "EnergyCollocation, 3 stages", 0.1, 2**20, True),
    Trial(quartic, DiscreteGradient(), "DiscreteGradient", 0.05, 2**20, True),
    Trial(quartic, NO_FRAME, "DiscreteGradient, no frame", 0.05, 2**20, True),
    Trial(quartic, SemiImplicitDLA(), "SemiImplicitDLA", 0.05, 2**20, True),
    # long steps: some members need Newton's method, in the second kernel
    Trial(gearbox, NO_FRAME, "DiscreteGradient, no frame, long steps", 1.0, 2**20),
    Trial(chaplygin_sphere, DiscreteGradient(), "DiscreteGradient", 0.02, 2**16),
    Trial(chaplygin_sphere, SemiImplicitDLA(), "SemiImplicitDLA", 0.02, 2**16),
    Trial(rolling_coin, DiscreteGradient(), "DiscreteGradient", 0.02, 2**16),
    Trial(rolling_coin, SemiImplicitDLA(), "SemiImplicitDLA", 0.02, 2**16),
    Trial(bicycle, DiscreteGradient(), "DiscreteGradient", 0.005, 2**17),
    Trial(bicycle, SemiImplicitDLA(), "SemiImplicitDLA", 0.005, 2**17),
)


def measure(show: Callable[[Row], None] = lambda row: None) -> dict[str, Any]:
    """A row for each trial, shown as soon as it is there."""
    if not cuda.count():
        raise ValueError("this needs a GPU, but the driver shows none")
    rows, met = [], set()
    for trial in TRIALS:
        row = _row(trial)
        if (made := (trial.module, trial.method)) in met:  # by the kernels of a row before
            del row["seconds to the first step"]
        met.add(made)
        rows.append(row)
        show(row)
    return {"benchmark": "kernels", "versions": versions(), "rows": rows}


def _row(trial: Trial) -> Row:
    member, few = Member(trial.method, ()), members(trial.module, trial.h, 32)
    with shelf.unused():
        first, _ = _timed(lambda: GpuMembers(member, few).to(1))
    inputs = members(trial.module, trial.h, trial.size)
    kernel, lanes = GpuMembers(member, inputs), NativeMembers(member, inputs, None)
    same, second = _beside_native(kernel, lanes)
    rivals: dict[str, Callable[[], None]] = {"kernel": partial(_go_on, kernel, STEPS)}
    if trial.rival and jax.default_backend() == "gpu":
        vmapped = XlaMembers(member, inputs)
        vmapped.to(1)
        rivals["vmap"] = partial(_go_on, vmapped, VMAPPED)
    seconds = best_of_rounds(rivals, 2)
    text, device = kernel.code.text("usual"), kernel.shares[0].device
    by_llvm, _ = _timed(partial(ptx.compiled, text, device.capability))
    in_all, usual = _timed(partial(device.kernel, text))
    operations = STEPS * trial.size / seconds["kernel"] * _operations(trial, kernel)
    row = {
        "system": trial.module.__name__.rpartition(".")[2],
        "method": trial.words,
        "members": trial.size,
        "steps per second": STEPS * trial.size / seconds["kernel"],
        "operations per second": operations,
        "seconds to the first step": first,
        "of them the driver": in_all - by_llvm,
        "members with the bits of native code": same,
        "in the second kernel": second,
        "failed": int(np.sum(kernel.final().carry.interval.status != 0)),
        "registers": usual.registers,
        "local bytes": usual.local,
    }
    if peak := device.peak():
        row["of the peak"] = operations / peak
    if "vmap" in seconds:
        row["steps per second by jax.vmap"] = VMAPPED * trial.size / seconds["vmap"]
    return row


def _timed(what: Callable[[], Any]) -> tuple[float, Any]:
    began = time.perf_counter()
    made = what()
    return time.perf_counter() - began, made


def _beside_native(kernel: GpuMembers, lanes: NativeMembers) -> tuple[int, int]:
    """How many members have the same state after some steps, and how many went through the second kernel."""
    for runner in (kernel, lanes):
        runner.to(COMPARED)
    pairs = zip(jax.tree.leaves(kernel.final()), jax.tree.leaves(lanes.final()), strict=True)
    same = [(_bytes(a) == _bytes(b)).all(axis=1) for a, b in pairs]
    return int(np.sum(np.all(same, axis=0))), sum(int(share.count.get((1,))[0]) for share in kernel.shares)


def _bytes(of_members: np.ndarray) -> np.ndarray:
    return np.ascontiguousarray(of_members).view(np.uint8).reshape(len(of_members), -1)


def _go_on(runner: Any, steps: int) -> None:
    runner.to(runner.reached + steps)


def _operations(trial: Trial, kernel: GpuMembers) -> float:
    """Of a step of the typical state: what surely runs, a comparison or a division counted as one."""
    q, v = trial.module.typical_state()
    report = simulate(trial.module.system(), trial.method, q, v, step_size=trial.h, steps=STEPS).report
    step = kernel.code.programs["step"]
    return float(np.mean(report.iterations[1:])) * per_evaluation(step) + beside(step)


def markdown(result: dict[str, Any]) -> str:
    """The rows as a Markdown table."""
    head = ("system", "method", "members", "steps/s", "by jax.vmap", "operations/s", "of the peak",
            "first step", "driver", "bits of native", "second kernel", "registers",
            "local bytes")  # fmt: skip
    rows = []
    for row in result["rows"]:
        vmapped, first = (
            row.get(key) for key in ("steps per second by jax.vmap", "seconds to the first step")
        )
        share = f"{row['of the peak']:.0%}" if "of the peak" in row else ""
        same, of = row["members with the bits of native code"], row["members"]
        rows.append((
            row["system"], row["method"], str(of), f"{row['steps per second']:.3g}",
            f"{vmapped:.2g}" if vmapped else "", f"{row['operations per second']:.2g}", share,
            f"{first:.2f} s" if first else "", f"{row['of them the driver']:.2f} s",
            "all" if same == of else str(same), str(row["in the second kernel"]),
            str(row["registers"]), str(row["local bytes"]),
        ))  # fmt: skip
    return table(head, rows)
