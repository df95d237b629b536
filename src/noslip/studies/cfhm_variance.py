"""CFHM figure 2, bottom right: the variance of the energy error over 200 initial conditions.

The paper compares var(H(t) - H(0)) / h^4 with the line 1e-4 t. That line is the growth: the variance is
offset + slope t, where the offset, the bounded oscillation of the energy error, is larger than the
growth up to t = 1000. Slope and offset are fitted here to 200 random states of energy 3.06 (seed 0), for
h = 0.1, and the power of h comes from a second ensemble with h = 0.2. See the errata of CFHM, 19. The full
form fits them to 10^4 states drawn on the energy shell as well, which gives them error bars.
"""

from __future__ import annotations

import numpy as np

from noslip.bench.variance import BATCHES, measure
from noslip.ensembles import ensemble
from noslip.plots.panels import Curve, Panel
from noslip.studies._base import Row, Study, Track, claim, number, round_off
from noslip.studies._quartic import ENERGY_PRESERVING, METHODS, SEED, random_states
from noslip.systems import quartic

PAPER = "CFHM"
MEMBERS, MANY, H, COARSE = 200, 10**4, 0.1, 0.2
EARLY = 50.0  # the fit leaves out the time in which the errors are not yet spread over the oscillation
RANDOM = 0.2  # relative change of a fitted number that another machine may show: the motion is chaotic


def run(full: bool, track: Track) -> Study:
    t_end = 1e4 if full else 1000.0
    system, states = quartic.system(), random_states(MEMBERS)

    def variance(name: str, h: float) -> tuple[np.ndarray, np.ndarray]:
        every = round(10.0 / h)
        many = ensemble(system, METHODS[name], *states, step_size=h, t_end=t_end, save_every=every)
        return many.t, np.var(many.energy - many.energy[:, :1], axis=0)

    rows: list[Row] = [number("initial conditions", 200, len(states[0]), within=0)]
    curves, variances = [], {}
    for name in track(list(METHODS), f"{MEMBERS} runs by each method"):
        t, var = variance(name, H)
        variances[name] = var
        curves.append(Curve(name, t[1:], var[1:] / H**4))
        if name in ENERGY_PRESERVING:
            rows.append(
                round_off(f"{name}: largest variance", "zero up to round-off", np.max(var), bound=1e-26)
            )
            continue
        slope, offset = np.polyfit(t[t >= EARLY], var[t >= EARLY] / H**4, 1)
        rows += [
            claim(
                f"{name}: slope of the variance / h^4",
                "1e-4",
                slope,
                3e-5 < slope < 3e-4,
                "a fit to 200 members; agrees within a factor of 3",
                None,
            ),
            claim(
                f"{name}: offset of the variance / h^4",
                "0 (the line is 1e-4 t)",
                offset,
                abs(offset) < 1e-2,
                "the oscillating part of the error; the line of the figure is the growth (errata CFHM 19)",
                RANDOM,
            ),
        ]
    fine, coarse = variances["SI-DLA"], variance("SI-DLA", COARSE)[1]
    power = float(np.log2(np.median(coarse[1:]) / np.median(fine[1:])) / np.log2(COARSE / H))
    rows.append(number("SI-DLA: power of h in the variance", 4, power, within=0.5, spread=0.1))
    if full:
        rows += _with_error_bars()
    line = np.array([10.0, t_end])
    reference = Curve("1e-4 t", line, 1e-4 * line, "reference")
    return Study(
        {"members": MEMBERS, "seed": SEED, "h": [H, COARSE], "t_end": t_end, "fit_from": EARLY},
        tuple(rows),
        (
            Panel(
                "variance of the energy error, h = 0.1", "t", "var(H - H0) / h^4", (*curves, reference), "xy"
            ),
            Panel("the three that grow", "t", "var(H - H0) / h^4", (*curves[:3], reference)),
        ),
    )


def _with_error_bars() -> list[Row]:
    rows = []
    for found in measure(MANY, methods=("SI-DLA", "I-DLA"), step_size=H)["rows"]:
        for what, paper, holds in (
            ("slope", "1e-4", 8e-5 < found["slope"] < 1.2e-4),
            ("offset", "0 (the line is 1e-4 t)", abs(found["offset"]) < 1e-2),
        ):
            error = f"standard error {found[f'{what} error']:.1g}, from {BATCHES} batches"
            quantity = f"{found['method']}: {what} of the variance / h^4, {MANY} members"
            rows.append(claim(quantity, paper, found[what], holds, error, RANDOM))
    return rows
