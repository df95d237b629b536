"""CFHM's variance experiment (figure 2, bottom right) with as many initial conditions as one likes.

The quartic system with n = 3 from random states on the shell H = 3.06: the variance over members of
H(t) - H(0), divided by h^4, grows linearly. The paper has 200 members and the line 1e-4 t; slope and offset
come here from a least-squares line through the times after `TRANSIENT`, with standard errors over batches of
members that share nothing.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np

from noslip.bench._clock import versions
from noslip.ensembles import Observable, ensemble
from noslip.integrators.base import Integrator
from noslip.integrators.discrete_gradient import DiscreteGradient
from noslip.integrators.lobatto_spark import LobattoSpark
from noslip.integrators.semi_implicit_dla import SemiImplicitDLA
from noslip.integrators.velocity_nonholonomic import VelocityNonholonomic
from noslip.sampling import Ball, on_energy_shell
from noslip.systems import quartic

METHODS: dict[str, Integrator] = {
    "SI-DLA": SemiImplicitDLA(),
    "I-DLA": VelocityNonholonomic(),
    "SPARK": LobattoSpark(),
    "GONZALEZ": DiscreteGradient(),
}
PAPER_SLOPE, TRANSIENT, SAVES, BATCHES = 1e-4, 100.0, 40, 50
Row = dict[str, Any]


def measure(
    members: int,
    show: Callable[[Row], None] = lambda row: None,
    *,
    step_size: float = 0.1,
    t_end: float = 1000.0,
    methods: tuple[str, ...] = tuple(METHODS),
    backend: str = "auto",
    seed: int = 0,
) -> dict[str, Any]:
    """Slope and offset of each method, with the seconds of sampling and of the ensemble."""
    system = quartic.system()
    began = time.perf_counter()
    region = Ball(np.zeros(system.n), np.sqrt(2 * quartic.ENERGY))  # V >= |q|^2 / 2
    q, v = on_energy_shell(system, quartic.ENERGY, members, region=region, seed=seed)
    sampling = time.perf_counter() - began
    steps = round(t_end / step_size)
    rows: list[Row] = []
    for name in methods:
        began = time.perf_counter()
        run = ensemble(
            system, METHODS[name], q, v, step_size=step_size, steps=steps, save_every=steps // SAVES,
            observables={"drift": Observable("energy_error", ("max",))}, backend=backend, throw=False,
        )  # fmt: skip
        seconds = time.perf_counter() - began
        row = {"method": name, "members": members, "seconds": seconds, "backend": run.backend}
        row |= {"failed": int(np.sum(run.status != 0)), "steps per second": members * steps / seconds}
        rows.append(row | fit(run.t, run.energy, step_size))
        show(rows[-1])
    return {"benchmark": "variance", "versions": versions(), "sampling seconds": sampling, "rows": rows,
            "step size": step_size, "t_end": t_end, "seed": seed}  # fmt: skip


def fit(t: np.ndarray, energy: np.ndarray, h: float) -> Row:
    """The line through var(H(t) - H(0)) / h^4, from all members, and its errors from batches."""
    change = (energy - energy[:, :1])[np.all(np.isfinite(energy), axis=1)]
    late = t >= TRANSIENT

    def line(part: np.ndarray) -> tuple[float, float]:
        slope, offset = np.polyfit(t[late], np.var(part[:, late], axis=0, ddof=1) / h**4, 1)
        return float(slope), float(offset)

    batches = np.array([line(part) for part in np.array_split(change, min(BATCHES, len(change) // 4))])
    errors = np.std(batches, axis=0, ddof=1) / np.sqrt(len(batches))
    slope, offset = line(change)
    return {
        "slope": slope, "slope error": float(errors[0]), "offset": offset, "offset error": float(errors[1]),
        "largest": float(np.max(np.abs(change))),
    }  # fmt: skip


def markdown(result: dict[str, Any]) -> str:
    head = (
        "method",
        "members",
        "slope of var(dH) / h^4",
        "offset",
        "largest dH",
        "failed",
        "seconds",
        "backend",
    )
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    for row in result["rows"]:
        cells = (row["method"], str(row["members"]), f"{row['slope']:.3g} +- {row['slope error']:.1g}",
                 f"{row['offset']:.3g} +- {row['offset error']:.1g}", f"{row['largest']:.1e}",
                 str(row["failed"]), f"{row['seconds']:.1f}", row["backend"])  # fmt: skip
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)
