"""CFHM figure 2, bottom right: the variance of the energy error over 200 initial conditions.

The paper compares var(H(t) - H(0)) / h^4 with the line 1e-4 t. That line is the growth: the variance is
offset + slope t, where the offset, the bounded oscillation of the energy error, is larger than the growth
up to t = 1000. Slope and offset are fitted here to 200 random states of energy 3.06 (seed 0), for h =
0.1, and the power of h comes from a second ensemble with h = 0.2. A slope from 200 members is uncertain
by a fifth. See the errata of CFHM, 19. The full form fits slope and offset of SI-DLA to 10^4 states drawn
on the energy shell as well, which gives them error bars; `measure` does that with as many states as one
likes, and `noslip bench variance` tells how long it takes.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from noslip.ensembles import Observable, ensemble
from noslip.markdown import table
from noslip.plots.panels import Curve, Panel
from noslip.sampling import Ball, on_energy_shell
from noslip.studies._base import CHECK, DeclaredRow, Study, Track, check, exponent, judge, number, statement
from noslip.studies._quartic import ENERGY_PRESERVING, METHODS, SEED, random_states
from noslip.studies._rules import SAME_ORDER, ZERO
from noslip.systems import quartic

PAPER = "CFHM"
MEMBERS, MANY, H, COARSE = 200, 10**4, 0.1, 0.2
EARLY = 50.0  # the fit leaves out the time in which the errors are not yet spread over the oscillation
TRANSIENT, SAVES, BATCHES = 100.0, 40, 50  # of `measure`; batches of members share nothing
MEASURED = ("SI-DLA", "I-DLA", "SPARK", "GONZALEZ")
RANDOM = 0.2  # relative change of a fitted number that another machine may show: the motion is chaotic
GROWING = tuple(name for name in METHODS if name not in ENERGY_PRESERVING)
LINE, OSCILLATION = "the line 1e-4 t", "the bounded oscillation of the error (errata CFHM 19)"


def _rows() -> dict[str, DeclaredRow]:
    rows = {
        "slope": number("SI-DLA: slope of the variance / h^4", "1e-4", note="200 members", spread=None),
        "power": replace(exponent("SI-DLA: power of h in the variance", 4), full=True),
    }
    for name in GROWING:
        if name != "SI-DLA":
            rows[f"{name} slope"] = statement(
                f"{name}: slope over that of SI-DLA", "behaves similarly", SAME_ORDER, spread=None
            )
        rows[f"{name} line"] = statement(
            f"{name}: variance / h^4 at the end over 1e-4 t",
            "in accordance with " + LINE,
            SAME_ORDER,
            spread=None,
        )
        rows[f"{name} offset"] = check(
            f"{name}: offset of the variance / h^4",
            "0, if it were " + LINE,
            ZERO,
            reason=OSCILLATION,
            spread=RANDOM,
        )
    for name in ENERGY_PRESERVING:
        rows[name] = statement(
            f"{name}: largest deviation of the energy error / H", "zero up to round-off", ZERO, spread=None
        )
    many = f"SI-DLA, {MANY} members"
    rows["slope of many"] = replace(
        number(f"{many}: slope of the variance / h^4", "1e-4", kind=CHECK), full=True
    )
    rows["offset of many"] = check(
        f"{many}: offset of the variance / h^4", "0, if it were " + LINE, ZERO, reason=OSCILLATION, full=True
    )
    return rows


ROWS = _rows()


def run(full: bool, track: Track) -> Study:
    t_end = 1e4 if full else 1000.0
    system, states = quartic.system(), random_states(MEMBERS)

    def variance(name: str, h: float) -> tuple[np.ndarray, np.ndarray]:
        every = round(10.0 / h)
        many = ensemble(system, METHODS[name], *states, step_size=h, t_end=t_end, save_every=every)
        return many.t, np.var(many.energy - many.energy[:, :1], axis=0)

    ours: dict[str, float | tuple[float, str]] = {}
    curves, variances, slopes = [], {}, {}
    for name in track(list(METHODS), f"{MEMBERS} runs by each method"):
        t, var = variance(name, H)
        variances[name] = var
        curves.append(Curve(name, t[1:], var[1:] / H**4))
        if name in ENERGY_PRESERVING:
            ours[name] = float(np.sqrt(np.max(var)) / quartic.ENERGY)
            continue
        slopes[name], ours[f"{name} offset"] = _line(t, var, H, EARLY)
        ours[f"{name} line"] = float(var[-1] / H**4 / (1e-4 * t[-1]))
    ours["slope"] = slopes["SI-DLA"]
    ours |= {f"{name} slope": slopes[name] / slopes["SI-DLA"] for name in GROWING[1:]}
    if full:
        coarse = np.median(variance("SI-DLA", COARSE)[1][1:]) / np.median(variances["SI-DLA"][1:])
        ours["power"] = float(np.log2(coarse) / np.log2(COARSE / H))
        ours |= _with_error_bars()
    line = np.array([10.0, t_end])
    reference = Curve("1e-4 t", line, 1e-4 * line, "reference")
    return Study(
        {"members": MEMBERS, "seed": SEED, "h": [H, COARSE], "t_end": t_end, "fit_from": EARLY},
        judge(ROWS, ours, full),
        (
            Panel(
                "variance of the energy error, h = 0.1", "t", "var(H - H0) / h^4", (*curves, reference), "xy"
            ),
            Panel("the three that grow", "t", "var(H - H0) / h^4", (*curves[:3], reference)),
        ),
    )


def _with_error_bars() -> dict[str, tuple[float, str]]:
    (found,) = measure(MANY, methods=("SI-DLA",), step_size=H)["rows"]
    return {
        f"{what} of many": (
            found[what],
            f"standard error {found[f'{what} error']:.1g}, from {BATCHES} batches",
        )
        for what in ("slope", "offset")
    }


def _line(t: np.ndarray, variance: np.ndarray, h: float, after: float) -> tuple[float, float]:
    """Slope and offset of the variance / h^4, by least squares through the times after `after`."""
    slope, offset = np.polyfit(t[t >= after], variance[t >= after] / h**4, 1)
    return float(slope), float(offset)


def measure(
    members: int,
    show: Callable[[dict[str, Any]], None] = lambda row: None,
    *,
    step_size: float = H,
    t_end: float = 1000.0,
    methods: tuple[str, ...] = MEASURED,
    backend: str = "auto",
    seed: int = SEED,
) -> dict[str, Any]:
    """Slope and offset of each method from random states on the shell H = 3.06, with their standard errors,
    and the seconds of sampling and of the ensemble."""
    system = quartic.system()
    began = time.perf_counter()
    region = Ball(np.zeros(system.n), np.sqrt(2 * quartic.ENERGY))  # V >= |q|^2 / 2
    q, v = on_energy_shell(system, quartic.ENERGY, members, region=region, seed=seed)
    sampling = time.perf_counter() - began
    steps = round(t_end / step_size)
    rows: list[dict[str, Any]] = []
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
    return {"sampling seconds": sampling, "rows": rows, "step size": step_size, "t_end": t_end, "seed": seed}


def fit(t: np.ndarray, energy: np.ndarray, h: float) -> dict[str, float]:
    """The line through var(H(t) - H(0)) / h^4, from all members, and its errors from batches."""
    change = (energy - energy[:, :1])[np.all(np.isfinite(energy), axis=1)]
    late = t >= TRANSIENT

    def line(part: np.ndarray) -> tuple[float, float]:
        return _line(t[late], np.var(part[:, late], axis=0, ddof=1), h, TRANSIENT)

    batches = np.array([line(part) for part in np.array_split(change, min(BATCHES, len(change) // 4))])
    errors = np.std(batches, axis=0, ddof=1) / np.sqrt(len(batches))
    slope, offset = line(change)
    return {
        "slope": slope, "slope error": float(errors[0]), "offset": offset, "offset error": float(errors[1]),
        "largest": float(np.max(np.abs(change))),
    }  # fmt: skip


def markdown(result: dict[str, Any]) -> str:
    """The rows of `measure` as a table."""
    head = ("method", "members", "slope of var(dH) / h^4", "offset", "largest dH", "failed", "seconds",
            "backend")  # fmt: skip
    rows = [
        (row["method"], row["members"], f"{row['slope']:.3g} +- {row['slope error']:.1g}",
         f"{row['offset']:.3g} +- {row['offset error']:.1g}", f"{row['largest']:.1e}", row["failed"],
         f"{row['seconds']:.1f}", row["backend"])
        for row in result["rows"]
    ]  # fmt: skip
    return table(head, rows)
