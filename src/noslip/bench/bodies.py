"""What people bring: a ball in quaternions and a bicycle, without frames, from nothing to a result.

Each method runs in a process of its own, twice: with an empty cache, and with what the first has left there.
Times are those of the processor, after the imports and after a start was found.
"""

from __future__ import annotations

import importlib
import json
import tempfile
import time
from collections.abc import Callable, Iterator
from typing import Any

from noslip.analysis.timing import best_of_rounds
from noslip.bench.machine import printed_by, versions
from noslip.integrators.base import Integrator
from noslip.integrators.discrete_gradient import DiscreteGradient
from noslip.integrators.energy_collocation import EnergyCollocation
from noslip.integrators.semi_implicit_dla import SemiImplicitDLA
from noslip.markdown import table
from noslip.simulate import simulate

STEP = {"ball": 0.02, "bicycle": 0.005}
METHODS: dict[str, Integrator] = {
    "SemiImplicitDLA": SemiImplicitDLA(),
    "DiscreteGradient": DiscreteGradient(),
    "EnergyCollocation(3)": EnergyCollocation(3),
}
FEW, MANY, CALLS = 10, 10_000, 40
ROUNDS = 8  # after the first few of them code is the optimised one
Row = dict[str, Any]


def measure(show: Callable[[Row], None] = lambda row: None) -> dict[str, Any]:
    """All rows, each shown as soon as it is there."""
    rows = []
    for row in _rows():
        rows.append(row)
        show(row)
    return {"benchmark": "bodies", "versions": versions(), "rows": rows}


def _rows() -> Iterator[Row]:
    for body in STEP:
        for method in METHODS:
            with tempfile.TemporaryDirectory() as folder:
                code = f"from noslip.bench.bodies import print_times; print_times({body!r}, {method!r})"
                new, later = (printed_by(code, folder) for _ in range(2))
            yield {"body": body, "method": method} | new | {"second process": later["first result"]}


def print_times(body: str, method: str) -> None:
    """Those of a new process, as JSON."""
    print(json.dumps(times(body, METHODS[method])))


def times(body: str, method: Integrator, many: int = MANY) -> Row:
    """Seconds to the first result, per step of a long run, and of a short call when all is compiled."""
    module = importlib.import_module(f"noslip.bench.{body}")
    state, h = module.typical_state(), STEP[body]
    began = time.process_time()
    system = module.system()
    simulate(system, method, *state, step_size=h, steps=FEW)
    first = time.process_time() - began
    rivals = {
        "short": lambda: simulate(system, method, *state, step_size=h, steps=FEW),
        "long": lambda: simulate(system, method, *state, step_size=h, steps=many, save_every=many),
    }
    for _ in range(CALLS):
        rivals["short"]()
    seconds = best_of_rounds(rivals, ROUNDS, time.process_time)
    short = best_of_rounds({"short": rivals["short"]}, CALLS, time.process_time)["short"]
    per_step = (seconds["long"] - short) / (many - FEW)
    return {"first result": first, "us per step": 1e6 * per_step, "ms of ten steps": 1e3 * short}


def markdown(result: dict[str, Any]) -> str:
    """The rows as a Markdown table."""
    head = ("body", "method", "first result", "second process", "per step", "call of ten steps")
    rows = [
        (row["body"], row["method"], f"{row['first result']:.2f} s", f"{row['second process']:.2f} s",
         f"{row['us per step']:.3g} us", f"{row['ms of ten steps']:.2g} ms")
        for row in result["rows"]
    ]  # fmt: skip
    return table(head, rows)
