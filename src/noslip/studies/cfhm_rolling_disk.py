"""CFHM sections 2 and 3: the rolling disk, its bracket and its energy-preserving integrator.

The running example of the paper, with m = 1.3, r = 0.7, J_phi = 0.6, J_theta = 0.4, which are none of
its symbols' special values. All printed matrices and the printed integrator are compared with what the
package derives from L and (2) alone; the motion is a circle in closed form. In X3 and X4 the paper
prints the angle phi where the heading theta belongs. See the errata of CFHM, 17.
"""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np

from noslip.analysis import jacobi_defect
from noslip.analysis.order import slope
from noslip.geometry.bracket import Bracket
from noslip.geometry.frames import Frame
from noslip.integrators.discrete_gradient import DiscreteGradient
from noslip.plots.panels import Curve, Panel
from noslip.simulate import simulate
from noslip.studies._base import Study, Track, check, exponent, judge, statement
from noslip.studies._rules import BROKEN, EQUAL, ZERO
from noslip.systems import rolling_disk

PAPER = "CFHM"
M, R, I, J = 1.3, 0.7, 0.6, 0.4
Q0, RATES = np.array([0.3, -0.4, 0.5, 0.2]), (0.9, 0.6)  # phidot, thetadot
H = 0.1
RHO = ((M * R**2 + I) * RATES[0], J * RATES[1])
ENERGY = 0.5 * (RHO[0] ** 2 / (M * R**2 + I) + RHO[1] ** 2 / J)
ROWS = {
    "Pi": statement("Pi of section 2.2: largest difference", "the printed matrix", ZERO, spread=None),
    "rho_1": statement("rho_1 = (m r^2 + J_phi) y^1", f"{RHO[0]:.6g}", EQUAL, RHO[0]),
    "rho_2": statement("rho_2 = J_theta y^2", f"{RHO[1]:.6g}", EQUAL, RHO[1]),
    "H": statement("H", f"{ENERGY:.6g}", EQUAL, ENERGY),
    "phi": statement(
        "X3, X4 with cos(phi), sin(phi): defect of orthogonality",
        "0",
        ZERO,
        reason="the heading theta belongs there (errata CFHM 17)",
    ),
    "theta": check("X3, X4 with cos(theta), sin(theta): defect of orthogonality", "0", ZERO, spread=None),
    "jacobi": statement("remark 2.1: largest Jacobi defect", "not 0 in general", BROKEN),
    "integrator": statement(
        "integrator of section 3.2: largest difference in a step", "the printed formulas", ZERO, spread=None
    ),
    "energy": statement("largest relative energy error", "preserved", ZERO, spread=None),
    "constraint": statement("largest constraint", "preserved", ZERO, spread=None),
    "order": exponent("order of the integrator", 2),
}


def run(full: bool, track: Track) -> Study:
    steps = 10_000 if full else 1000
    system = rolling_disk.system(m=M, r=R, I=I, J=J)
    spin, turn = RATES
    v0 = np.array([R * spin * np.cos(Q0[2]), R * spin * np.sin(Q0[2]), turn, spin])
    bracket = Bracket(Frame(system))
    z = bracket.from_velocity(jnp.asarray(Q0), jnp.asarray(v0))
    c, s = np.cos(Q0[2]), np.sin(Q0[2])
    X = np.array([[R * c, 0], [R * s, 0], [0, 1], [1, 0]])
    printed_pi = np.block([[np.zeros((4, 4)), X], [-X.T, np.zeros((2, 2))]])
    mass = np.asarray(system.mass_matrix(Q0))

    def complement(angle: float) -> float:
        """By how much X3 and X4, written with that angle, fail to be orthogonal to D."""
        rows = np.array([[1 / M, 0, 0, -R / I * np.cos(angle)], [0, 1 / M, 0, -R / I * np.sin(angle)]])
        return float(np.max(np.abs(rows @ mass @ X)))

    found = simulate(system, DiscreteGradient(), Q0, v0, step_size=H, steps=steps)
    ends = []
    hs = np.array([0.2, 0.1, 0.05])
    for h in track(hs.tolist(), "order"):
        n = round(2 / h)
        end = simulate(system, DiscreteGradient(), Q0, v0, step_size=h, steps=n, save_every=n).q[-1]
        ends.append(float(np.max(np.abs(end - rolling_disk.exact([2.0], Q0, v0, m=M, r=R)[0][0]))))
    ours = {
        "Pi": float(np.max(np.abs(bracket.matrix(z) - printed_pi))),
        "rho_1": float(z[4]),
        "rho_2": float(z[5]),
        "H": float(bracket.energy(z)),
        "phi": complement(Q0[3]),
        "theta": complement(Q0[2]),
        "jacobi": jacobi_defect(system, Q0, v0),
        "integrator": _difference(found.q, spin, turn),
        "energy": float(np.max(np.abs(found.energy / found.energy[0] - 1))),
        "constraint": float(np.max(np.abs(found.constraint_residual))),
        "order": slope(hs, np.array(ends)),
    }
    exact = rolling_disk.exact(found.t, Q0, v0, m=M, r=R)[0]
    part, early = found.t <= 10, found.t <= 100
    return Study(
        {"m": M, "r": R, "J_phi": I, "J_theta": J, "q0": Q0, "v0": v0, "h": H, "steps": steps},
        judge(ROWS, ours),
        (
            Panel(
                "contact point, t up to 10",
                "x_1",
                "x_2",
                (
                    Curve("exact", exact[part, 0], exact[part, 1]),
                    Curve("integrator, h = 0.1", found.q[part, 0], found.q[part, 1], "points"),
                ),
                equal=True,
            ),
            Panel(
                "distance from the exact contact point",
                "t",
                "distance",
                (Curve("h = 0.1", found.t[early], np.hypot(*(found.q - exact)[early, :2].T)),),
            ),
        ),
    )


def _difference(q: np.ndarray, spin: float, turn: float) -> float:
    """From the formulas printed for x_1', x_2', theta', phi', over the first 50 steps."""
    q = q[:51]
    before, after = q[:-1], q[1:]
    middle = (before[:, 2] + after[:, 2]) / 2
    rates = np.stack(
        [R * np.cos(middle) * spin, R * np.sin(middle) * spin, np.full(50, turn), np.full(50, spin)], axis=1
    )
    return float(np.max(np.abs(after - before - H * rates)))
