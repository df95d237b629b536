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
from noslip.studies._base import Study, Track, claim, number, round_off
from noslip.systems import rolling_disk

PAPER = "CFHM"
M, R, I, J = 1.3, 0.7, 0.6, 0.4
Q0, RATES = np.array([0.3, -0.4, 0.5, 0.2]), (0.9, 0.6)  # phidot, thetadot
H = 0.1


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
    defect = jacobi_defect(system, Q0, v0)
    rho_1, rho_2 = (M * R**2 + I) * spin, J * turn
    energy = 0.5 * (rho_1**2 / (M * R**2 + I) + rho_2**2 / J)
    rows = (
        round_off(
            "Pi of section 2.2: largest difference",
            "the printed matrix",
            float(np.max(np.abs(bracket.matrix(z) - printed_pi))),
        ),
        number("rho_1 = (m r^2 + J_phi) y^1", round(rho_1, 12), float(z[4]), within=1e-12),
        number("rho_2 = J_theta y^2", round(rho_2, 12), float(z[5]), within=1e-12),
        number("H", round(energy, 12), float(bracket.energy(z)), within=1e-12),
        claim(
            "X3, X4 with cos(phi), sin(phi): defect of orthogonality",
            "0",
            complement(Q0[3]),
            complement(Q0[3]) < 1e-12,
            "the heading theta belongs there (errata CFHM 17)",
        ),
        round_off("X3, X4 with cos(theta), sin(theta): defect of orthogonality", "0", complement(Q0[2])),
        claim(
            "remark 2.1: largest Jacobi defect",
            "not 0 in general",
            defect,
            defect > 1e-3,
        ),
        round_off(
            "integrator of section 3.2: largest difference in a step",
            "the printed formulas",
            _difference(found.q, spin, turn),
        ),
        round_off(
            "largest relative energy error",
            "preserved",
            float(np.max(np.abs(found.energy / found.energy[0] - 1))),
        ),
        round_off("largest constraint", "preserved", float(np.max(np.abs(found.constraint_residual)))),
        number("order", 2, slope(hs, np.array(ends)), within=0.1, spread=1e-2),
    )
    exact = rolling_disk.exact(found.t, Q0, v0, m=M, r=R)[0]
    part, early = found.t <= 10, found.t <= 100
    return Study(
        {"m": M, "r": R, "J_phi": I, "J_theta": J, "q0": Q0, "v0": v0, "h": H, "steps": steps},
        rows,
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
