"""Members times steps per second against the number of members: native threads, jax.vmap, and a GPU."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import jax

from noslip.analysis.timing import best_of_rounds
from noslip.bench.engine import members
from noslip.bench.machine import versions
from noslip.integrators.base import Integrator
from noslip.integrators.discrete_gradient import DiscreteGradient
from noslip.integrators.semi_implicit_dla import SemiImplicitDLA
from noslip.markdown import table
from noslip.run.choose import on_cpu
from noslip.run.many_gpu import GpuMembers
from noslip.run.many_native import NativeMembers
from noslip.run.many_xla import XlaMembers
from noslip.run.member import Member
from noslip.systems import quartic

METHODS: tuple[Integrator, ...] = (DiscreteGradient(), SemiImplicitDLA())
SIZES = (1, 64, 4096, 32768)
GPU_SIZES = (2**12, 2**16, 2**20)
STEP = 0.05
Row = dict[str, Any]


def measure(show: Callable[[Row], None] = lambda row: None, cpu: bool = True) -> dict[str, Any]:
    """Both methods on the CPU, unless that is left out, and on a GPU if JAX sees one."""
    rows = []
    for method in METHODS:
        for part in (_on_cpu, _on_gpu) if cpu else (_on_gpu,):
            for row in part(method):
                rows.append(row)
                show(row)
    return {"benchmark": "ensembles", "versions": versions(), "rows": rows}


def _on_cpu(method: Integrator) -> Iterator[Row]:
    for size in SIZES:
        with on_cpu():
            inputs = members(quartic, STEP, size)
            runners = {
                "native, 1 thread": NativeMembers(Member(method, ()), inputs, 1),
                "native, 2 threads": NativeMembers(Member(method, ()), inputs, 2),
                "jax.vmap": XlaMembers(Member(method, ()), inputs),
            }
            yield from _rates(
                method, size, runners, {"jax.vmap": max(5, 2**14 // size)}, max(50, 2**18 // size)
            )


def _on_gpu(method: Integrator) -> Iterator[Row]:
    if jax.default_backend() != "gpu":
        return
    for size in GPU_SIZES:
        inputs = members(quartic, STEP, size)
        runners = {
            "GPU kernel": GpuMembers(Member(method, ()), inputs),
            "GPU, jax.vmap": XlaMembers(Member(method, ()), inputs),
        }
        yield from _rates(method, size, runners, {"GPU, jax.vmap": 10}, 512)


def _rates(
    method: Integrator, size: int, runners: dict[str, Any], fewer: dict[str, int], steps: int
) -> Iterator[Row]:
    """Steps per second of each runner, timed in turn."""

    def go_on(runner: Any, steps: int) -> None:
        runner.to(runner.reached + steps)

    counts = {by: min(fewer.get(by, steps), steps) for by in runners}
    rivals = {by: partial(go_on, runner, counts[by]) for by, runner in runners.items()}
    best_of_rounds(rivals, 1)  # compiles
    seconds = best_of_rounds(rivals, 3)
    for by, value in seconds.items():
        yield {
            "method": type(method).__name__,
            "members": size,
            "by": by,
            "steps per second": size * counts[by] / value,
        }


def markdown(result: dict[str, Any]) -> str:
    """Millions of member steps per second."""
    names = list(dict.fromkeys(row["by"] for row in result["rows"]))
    head = ("method", "members", *names)
    found: dict[Any, dict[str, float]] = {}
    for row in result["rows"]:
        found.setdefault((row["method"], row["members"]), {})[row["by"]] = row["steps per second"]
    rows = [
        [method, size, *(f"{by[name] / 1e6:.3g}" if name in by else "" for name in names)]
        for (method, size), by in found.items()
    ]
    return table(head, rows)
