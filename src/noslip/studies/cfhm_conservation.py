"""CFHM figure 2, top right and bottom left: constraint and energy along one trajectory.

One random initial state of energy 3.06 (seed 0; the paper's is not printed), five methods, h = 0.1. All
keep the constraint; only the discrete gradient methods keep the energy.
"""

from __future__ import annotations

import numpy as np

from noslip.plots.panels import Curve, Panel
from noslip.simulate import simulate
from noslip.studies._base import DeclaredRow, Study, Track, judge, statement
from noslip.studies._quartic import ENERGY_PRESERVING, METHODS, SEED, random_states
from noslip.studies._rules import BROKEN, ZERO
from noslip.systems import quartic

PAPER = "CFHM"
H = 0.1


def _rows(name: str) -> dict[str, DeclaredRow]:
    what = f"{name}: largest relative energy error"
    return {
        f"{name} constraint": statement(
            f"{name}: largest constraint", "machine precision", ZERO, spread=None
        ),
        f"{name} energy": statement(what, "machine precision", ZERO, spread=None)
        if name in ENERGY_PRESERVING
        else statement(
            what, "not conserved", BROKEN, note="chaotic, so that only its size is known", spread=None
        ),
    }


ROWS = {key: row for name in METHODS for key, row in _rows(name).items()}


def run(full: bool, track: Track) -> Study:
    t_end = 1e4 if full else 500.0
    system, (q0s, v0s) = quartic.system(), random_states(1)
    ours: dict[str, float] = {}
    constraint, energy = [], []
    for name, method in track(list(METHODS.items()), "five methods"):
        steps = round(t_end / H)
        found = simulate(
            system, method, q0s[0], v0s[0], step_size=H, steps=steps, save_every=max(1, steps // 5000)
        )
        residual, error = np.abs(found.constraint_residual[:, 0]), np.abs(found.energy / found.energy[0] - 1)
        ours |= {f"{name} constraint": float(np.max(residual)), f"{name} energy": float(np.max(error))}
        constraint.append(Curve(name, found.t, residual, "error"))
        energy.append(Curve(name, found.t[1:], error[1:], "error"))
    return Study(
        {"h": H, "t_end": t_end, "seed": SEED, "q0": q0s[0], "v0": v0s[0]},
        judge(ROWS, ours),
        (
            Panel("constraint (20)", "t", "|xdot + sum w zdot|", tuple(constraint), "y"),
            Panel("energy", "t", "|(H - H0) / H0|", tuple(energy), "y"),
        ),
    )
