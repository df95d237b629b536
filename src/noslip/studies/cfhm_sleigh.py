"""CFHM figure 3, proposition 4.1 and remark 4.2: the Chaplygin sleigh by the method (23).

J = 8, a = m = 1, h = 0.5, from (-5, 0) with heading 0.1, rho_2 = -0.6 and rho_1 = 0.001 or -0.001: close
to the unstable motion backwards, from which both trajectories go to the stable motion forwards, (rho_1,
rho_2) = (0, 0.6).

The eigenvalue of proposition 4.1 is measured as rho_1' / rho_1 for one step from rho_1 = 1e-7. The
proposition's bound on h makes it positive; stability is decided by the sign of rho_2 for every h, as the
step of h = 40, beyond the bound, shows. The bound of remark 4.2 for Euler's method is taken from the
rate of rho_1 in the equations of motion. See the errata of CFHM, 21.
"""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np

from noslip.integrators.discrete_gradient import DiscreteGradient
from noslip.plots.panels import Curve, Panel
from noslip.simulate import simulate
from noslip.studies._base import Study, Track, claim, number, round_off
from noslip.systems import chaplygin_sleigh
from noslip.trajectory import Trajectory

PAPER = "CFHM"
M, J, A = 1.0, 8.0, 1.0
H, RHO_1, RHO_2 = 0.5, 0.001, -0.6
X1, X2, THETA = -5.0, 0.0, 0.1
TINY = 1e-7
C = A * np.sqrt(M) / (J + M * A**2)  # C_12^1
SYSTEM = chaplygin_sleigh.system(M, J, A)


def state(rho_1: float, rho_2: float, theta: float = THETA) -> tuple[np.ndarray, np.ndarray]:
    """(q, v) with the given momenta in the orthonormal frame of section 4.2."""
    along, turn = rho_2 / np.sqrt(M), rho_1 / np.sqrt(J + M * A**2)
    return np.array([X1, X2, theta]), np.array([along * np.cos(theta), along * np.sin(theta), turn])


def momenta(run: Trajectory) -> tuple[np.ndarray, np.ndarray]:
    theta = run.q[:, 2]
    along = run.v[:, 0] * np.cos(theta) + run.v[:, 1] * np.sin(theta)
    return np.sqrt(J + M * A**2) * run.v[:, 2], np.sqrt(M) * along


def eigenvalue(rho_2: float, h: float) -> float:
    """rho_1' / rho_1 of one step near the equilibrium (0, rho_2)."""
    rho_1, _ = momenta(simulate(SYSTEM, DiscreteGradient(), *state(TINY, rho_2), step_size=h, steps=1))
    return float(rho_1[1] / rho_1[0])


def run(full: bool, track: Track) -> Study:
    runs = {
        f"rho_1 = {rho_1:g}": simulate(
            SYSTEM, DiscreteGradient(), *state(rho_1, RHO_2), step_size=H, t_end=400.0
        )
        for rho_1 in track((RHO_1, -RHO_1), "two trajectories")
    }
    both = [momenta(r) for r in runs.values()]
    energy = max(float(np.max(np.abs(r.energy / r.energy[0] - 1))) for r in runs.values())
    constraint = max(float(np.max(np.abs(r.constraint_residual))) for r in runs.values())

    def printed(rho_2: float, h: float) -> float:
        return (2 - h * C * rho_2) / (2 + h * C * rho_2)

    q, v = state(TINY, 0.6)
    rate = float(np.sqrt(J + M * A**2) * SYSTEM.acceleration(jnp.asarray(q), jnp.asarray(v))[2]) / TINY
    at_rest = simulate(SYSTEM, DiscreteGradient(), *state(0.0, RHO_2), step_size=H, steps=100)
    beyond = eigenvalue(0.6, 40.0)
    rows = (
        number("rho_2 in the end, from rho_1 = 0.001", 0.6, both[0][1][-1], within=1e-6),
        number("rho_2 in the end, from rho_1 = -0.001", 0.6, both[1][1][-1], within=1e-6),
        number("rho_1 in the end, from rho_1 = 0.001", 0, both[0][0][-1], within=1e-6, spread=None),
        number("rho_1 in the end, from rho_1 = -0.001", 0, both[1][0][-1], within=1e-6, spread=None),
        round_off("largest relative energy error", "preserved", energy),
        round_off("largest constraint", "preserved", constraint),
        round_off(
            "rho_1 after 100 steps from (0, -0.6)",
            "0 (an equilibrium)",
            float(np.max(np.abs(momenta(at_rest)[0]))),
        ),
        number(
            "proposition 4.1: lambda_1 at rho_2 = 0.6, h = 0.5",
            round(printed(0.6, H), 6),
            eigenvalue(0.6, H),
            within=1e-6,
        ),
        number(
            "proposition 4.1: lambda_1 at rho_2 = -0.6, h = 0.5",
            round(printed(-0.6, H), 6),
            eigenvalue(-0.6, H),
            within=1e-6,
        ),
        number(
            "proposition 4.1: lambda_1 at the bound, h = |2 / (C rho_2)| = 30",
            0,
            eigenvalue(0.6, 30.0),
            within=1e-6,
            spread=None,
        ),
        claim(
            "proposition 4.1: lambda_1 beyond the bound, h = 40",
            "h < 30 assumed",
            beyond,
            not abs(beyond) < 1,
            "of modulus below 1: still stable, the bound is not needed for that (errata CFHM 21)",
        ),
        number(
            "remark 4.2: bound for Euler's method, 1 / (C rho_2), rho_2 = 0.6", 15, 1 / abs(rate), within=1e-6
        ),
    )
    first = next(iter(runs.values()))
    return Study(
        {
            "J": J,
            "a": A,
            "m": M,
            "h": H,
            "x1": X1,
            "x2": X2,
            "theta": THETA,
            "rho_1": [RHO_1, -RHO_1],
            "rho_2": RHO_2,
        },
        rows,
        (
            Panel(
                "a part of the trajectory",
                "x_1",
                "x_2",
                (Curve("rho_1 = 0.001", first.q[:, 0], first.q[:, 1]),),
                equal=True,
            ),
            Panel(
                "momenta",
                "rho_1",
                "rho_2",
                tuple(Curve(label, r1, r2) for label, (r1, r2) in zip(runs, both, strict=True)),
                equal=True,
            ),
        ),
    )
