"""CFHM figure 2, top right and bottom left: constraint and energy along one trajectory.

One random initial state of energy 3.06 (seed 0; the paper's is not printed), five methods, h = 0.1. All
keep the constraint; only the discrete gradient methods keep the energy. Machine precision means below
1e-13 here.
"""

from __future__ import annotations

import numpy as np

from noslip.plots.panels import Curve, Panel
from noslip.simulate import simulate
from noslip.studies._base import Study, StudyRow, Track, claim, round_off
from noslip.studies._quartic import ENERGY_PRESERVING, METHODS, SEED, random_states
from noslip.systems import quartic

PAPER = "CFHM"
H = 0.1


def run(full: bool, track: Track) -> Study:
    t_end = 1e4 if full else 500.0
    system, (q0s, v0s) = quartic.system(), random_states(1)
    rows: list[StudyRow] = []
    constraint, energy = [], []
    for name, method in track(list(METHODS.items()), "five methods"):
        steps = round(t_end / H)
        found = simulate(
            system, method, q0s[0], v0s[0], step_size=H, steps=steps, save_every=max(1, steps // 5000)
        )
        residual, error = np.abs(found.constraint_residual[:, 0]), np.abs(found.energy / found.energy[0] - 1)
        rows.append(round_off(f"{name}: largest constraint", "machine precision", np.max(residual)))
        if name in ENERGY_PRESERVING:
            rows.append(
                round_off(f"{name}: largest relative energy error", "machine precision", np.max(error))
            )
        else:
            rows.append(
                claim(
                    f"{name}: largest relative energy error",
                    "not conserved",
                    np.max(error),
                    np.max(error) > 1e-6,
                    "chaotic, so that only its size can be compared",
                    None,
                )
            )
        constraint.append(Curve(name, found.t, residual, "error"))
        energy.append(Curve(name, found.t[1:], error[1:], "error"))
    return Study(
        {"h": H, "t_end": t_end, "seed": SEED, "q0": q0s[0], "v0": v0s[0]},
        tuple(rows),
        (
            Panel("constraint (20)", "t", "|xdot + sum w zdot|", tuple(constraint), "y"),
            Panel("energy", "t", "|(H - H0) / H0|", tuple(energy), "y"),
        ),
    )
