"""Every method on every system as a scalar program: how large it is, and how long it takes to make."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import numpy as np

from noslip.bench.engine import per_evaluation
from noslip.bench.machine import versions
from noslip.engine import shelf
from noslip.engine.backends import native
from noslip.engine.program import CannotTranslate
from noslip.integrators import discover as integrators
from noslip.integrators.base import Integrator
from noslip.run.pairing import pairing_of
from noslip.run.programs import StepPrograms
from noslip.system import System
from noslip.systems import discover as systems

HEAD = (
    "integrator", "system", "operations", "per evaluation", "translate, s", "compile, s", "lanes, s",
)  # fmt: skip
LEFT_OUT = ("integrator", "why not", "systems")


def measure() -> dict[str, Any]:
    """All rows; a pair without native code has the reason instead of numbers."""
    return {"benchmark": "programs", "versions": versions(), "rows": list(_rows())}


def cells(result: dict[str, Any]) -> list[list[str]]:
    """The rows under `HEAD`, for people."""
    return [[str(row[name]) for name in HEAD] for row in result["rows"] if "reason" not in row]


def left_out(result: dict[str, Any]) -> list[list[str]]:
    """What has no native code, under `LEFT_OUT`: systems with the same reason together."""
    found: dict[tuple[str, str], list[str]] = {}
    for row in result["rows"]:
        if "reason" in row:
            found.setdefault((row["integrator"], row["reason"]), []).append(row["system"])
    return [[*key, ", ".join(names)] for key, names in found.items()]


def _rows() -> Iterator[dict[str, Any]]:
    for name, kind in integrators().items():
        method = kind()
        if method.host_driven:
            continue
        for label, module in systems().items():
            system = module.system()
            row: dict[str, Any] = {"integrator": name, "system": label}
            if reason := method.refusal(system):
                yield row | {"reason": reason}
                continue
            try:
                with shelf.unused():
                    loop, seconds = _made(system, method)
            except CannotTranslate as cause:
                yield row | {"reason": str(cause)}
                continue
            yield row | {
                "operations": loop.step.size(),
                "per evaluation": per_evaluation(loop.step),
                **dict(zip(HEAD[4:], np.round(seconds, 3).tolist(), strict=True)),
            }


def _made(system: System, method: Integrator) -> tuple[StepPrograms, list[float]]:
    """The programs, and the seconds for them and for their machine code alone and in lanes."""
    began = time.perf_counter()
    loop = pairing_of(system, method).programs
    seconds = [time.perf_counter() - began]
    for width in (1, native.lanes()):
        began = time.perf_counter()
        native.advance_function(loop.step, None, loop.save, width).improved()
        seconds.append(time.perf_counter() - began)
    return loop, seconds
