"""CFHM figure 3, proposition 4.1 and remark 4.2: the Chaplygin sleigh by the method (23).

J = 8, a = m = 1, h = 0.5, from (-5, 0) with heading 0.1, rho_2 = -0.6 and rho_1 = 0.001 or -0.001: close
to the unstable motion backwards, from which both trajectories go to the stable motion forwards, (rho_1,
rho_2) = (0, 0.6).

The eigenvalue of proposition 4.1 is measured as rho_1' / rho_1 for one step from rho_1 = 1e-7. The
proposition's bound on h makes it positive; stability is decided by the sign of rho_2 for every h, as the
step of h = 40, beyond the bound, shows. See the errata of CFHM, 21. For remark 4.2 Euler's method and the
classical one of Runge and Kutta are applied to (22), whose right-hand sides come from the acceleration of the
system; the eigenvalue of each is measured on both sides of the equilibria, and for Euler at the bound.
"""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np

from noslip.integrators.discrete_gradient import DiscreteGradient
from noslip.plots.panels import Curve, Panel
from noslip.simulate import simulate
from noslip.studies._base import Study, Track, check, judge, statement
from noslip.studies._rules import EQUAL, LARGER, SMALLER, VANISHES, ZERO
from noslip.systems import chaplygin_sleigh
from noslip.trajectory import Trajectory

PAPER = "CFHM"
M, J, A = 1.0, 8.0, 1.0
H, RHO_1, RHO_2 = 0.5, 0.001, -0.6
X1, X2, THETA = -5.0, 0.0, 0.1
TINY = 1e-7
C = A * np.sqrt(M) / (J + M * A**2)  # C_12^1
SYSTEM = chaplygin_sleigh.system(M, J, A)
BOUND_OF_EULER = 1 / (C * 0.6)


def printed(rho_2: float, h: float) -> float:
    """lambda_1 of proposition 4.1."""
    return (2 - h * C * rho_2) / (2 + h * C * rho_2)


STABLE, UNSTABLE = "|lambda_1| < 1 for rho_2 > 0", "lambda_1 > 1 for rho_2 < 0"
FORWARDS = float(np.hypot(RHO_1, RHO_2))
ROWS = {
    "end +": statement(
        "rho_1 in the end over its largest, from rho_1 = 0.001", "a stable equilibrium", VANISHES, spread=None
    ),
    "end -": statement(
        "rho_1 in the end over its largest, from rho_1 = -0.001",
        "a stable equilibrium",
        VANISHES,
        spread=None,
    ),
    "forwards +": check("rho_2 in the end, from rho_1 = 0.001", "that of the energy", EQUAL, FORWARDS),
    "forwards -": check("rho_2 in the end, from rho_1 = -0.001", "that of the energy", EQUAL, FORWARDS),
    "energy": statement("largest relative energy error", "preserved", ZERO, spread=None),
    "constraint": statement("largest constraint", "preserved", ZERO, spread=None),
    "equilibrium": statement("rho_1 after 100 steps from (0, -0.6)", "an equilibrium", ZERO, spread=None),
    "lambda +": statement(
        "proposition 4.1: lambda_1 at rho_2 = 0.6, h = 0.5", f"{printed(0.6, H):.6g}", EQUAL, printed(0.6, H)
    ),
    "lambda -": statement(
        "proposition 4.1: lambda_1 at rho_2 = -0.6, h = 0.5",
        f"{printed(-0.6, H):.6g}",
        EQUAL,
        printed(-0.6, H),
    ),
    "bound": statement(
        "proposition 4.1: lambda_1 at the bound, h = |2 / (C rho_2)| = 30", "0", EQUAL, 0.0, spread=None
    ),
    "beyond": check(
        "proposition 4.1: |lambda_1| beyond the bound, h = 40",
        "still stable",
        SMALLER,
        note="the bound is not needed for stability (errata CFHM 21)",
    ),
    "Euler bound": statement(
        "remark 4.2: lambda_1 of Euler's method at its bound, h = 15", "0", EQUAL, 0.0, spread=None
    ),
    "Euler +": statement("remark 4.2: |lambda_1| of Euler's method, rho_2 = 0.6, h = 14", STABLE, SMALLER),
    "Euler -": statement("remark 4.2: lambda_1 of Euler's method, rho_2 = -0.6, h = 14", UNSTABLE, LARGER),
    "Euler beyond": check(
        "remark 4.2: |lambda_1| of Euler's method, rho_2 = 0.6, h = 31",
        STABLE,
        SMALLER,
        reason="beyond twice its bound Euler's method is unstable where the motion is stable",
    ),
    "RK4 +": statement("remark 4.2: |lambda_1| of Runge-Kutta 4, rho_2 = 0.6, h = 0.5", STABLE, SMALLER),
    "RK4 -": statement("remark 4.2: lambda_1 of Runge-Kutta 4, rho_2 = -0.6, h = 0.5", UNSTABLE, LARGER),
}


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


def rates(rho: np.ndarray) -> np.ndarray:
    """The right-hand sides of (22), from the acceleration of the system."""
    q, v = state(*rho)
    theta = q[2]
    a = np.asarray(SYSTEM.acceleration(jnp.asarray(q), jnp.asarray(v)))
    heading, across = np.array([np.cos(theta), np.sin(theta)]), np.array([-np.sin(theta), np.cos(theta)])
    along = a[:2] @ heading + v[2] * (v[:2] @ across)
    return np.array([np.sqrt(J + M * A**2) * a[2], np.sqrt(M) * along])


def explicit(rho_2: float, h: float, stages: int) -> float:
    """rho_1' / rho_1 of one step near (0, rho_2), of Euler's method (1) or the classical one (4), on (22)."""
    rho = np.array([TINY, rho_2])
    k = [rates(rho)]
    for part in (0.5, 0.5, 1.0)[: stages - 1]:
        k.append(rates(rho + part * h * k[-1]))
    weights = {1: [1.0], 4: [1 / 6, 1 / 3, 1 / 3, 1 / 6]}[stages]
    return float((rho + h * np.array(weights) @ np.array(k))[0] / TINY)


def run(full: bool, track: Track) -> Study:
    runs = {
        f"rho_1 = {rho_1:g}": simulate(
            SYSTEM, DiscreteGradient(), *state(rho_1, RHO_2), step_size=H, t_end=400.0
        )
        for rho_1 in track((RHO_1, -RHO_1), "two trajectories")
    }
    both = [momenta(r) for r in runs.values()]
    at_rest = simulate(SYSTEM, DiscreteGradient(), *state(0.0, RHO_2), step_size=H, steps=100)
    ours = {
        **{
            f"end {s}": float(abs(r1[-1]) / np.max(np.abs(r1))) for s, (r1, _) in zip("+-", both, strict=True)
        },
        **{f"forwards {s}": float(r2[-1]) for s, (_, r2) in zip("+-", both, strict=True)},
        "energy": max(float(np.max(np.abs(r.energy / r.energy[0] - 1))) for r in runs.values()),
        "constraint": max(float(np.max(np.abs(r.constraint_residual))) for r in runs.values()),
        "equilibrium": float(np.max(np.abs(momenta(at_rest)[0]))),
        "lambda +": eigenvalue(0.6, H),
        "lambda -": eigenvalue(-0.6, H),
        "bound": eigenvalue(0.6, 30.0),
        "beyond": abs(eigenvalue(0.6, 40.0)),
        "Euler bound": explicit(0.6, BOUND_OF_EULER, 1),
        "Euler +": abs(explicit(0.6, 14.0, 1)),
        "Euler -": explicit(-0.6, 14.0, 1),
        "Euler beyond": abs(explicit(0.6, 31.0, 1)),
        "RK4 +": abs(explicit(0.6, H, 4)),
        "RK4 -": explicit(-0.6, H, 4),
    }
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
        judge(ROWS, ours),
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
