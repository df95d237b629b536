"""PP, the example: its table, in the reading that reproduces it, beside the true motion.

The particle zdot = y xdot in the potential x^2 + y^2 starts at the origin; the table has the fibre
coordinate z and the base coordinates x, y by the discrete equations (3.2) and "exact" (PP: x^1, x^1bar,
x^2bar). All 33 entries of the method come out to the six printed decimals with h = 0.01 (the first
column is t / 10), base velocities (1, 1), the slope at the previous pair, a first point on the solution,
and the minus sign of the printed equations.

That sign is wrong: virtual displacements satisfy delta z = y delta x, which makes it a plus. With the
minus the energy is not conserved, and the exact columns solve the same wrong equation: the agreement
inside the table is that of a discretisation with its own limit. The last rows put the true motion beside
them. See the errata of PP, 30 and 31.
"""

from __future__ import annotations

import itertools

import jax
import jax.numpy as jnp
import numpy as np
from scipy.integrate import solve_ivp

from noslip.geometry.discrete_chaplygin import discretize
from noslip.geometry.splitting import Splitting, splitting
from noslip.integrators.lagrange_dalembert_chaplygin import LagrangeDAlembertChaplygin
from noslip.plots.panels import Curve, Panel
from noslip.simulate import simulate
from noslip.studies._base import Study, StudyRow, Track, claim, number
from noslip.system import System
from noslip.systems import nonholonomic_particle

PAPER = "PP"
H, STEPS = 0.01, 51
Q0, V0 = jnp.zeros(3), jnp.array([1.0, 1.0, 0.0])
COLUMNS = {"x": 2, "y": 0, "z": 1}  # of the table: the fibre coordinate, then the base
PRINTED = {
    0: (0.0, 0.0, 0.0, 0.0, 0.0, 0.0),
    1: (0.000050, 0.010000, 0.010000, 0.000050, 0.010000, 0.010000),
    2: (0.000150, 0.019998, 0.019997, 0.000200, 0.019999, 0.019997),
    3: (0.000350, 0.029992, 0.029991, 0.000450, 0.029996, 0.029991),
    4: (0.000649, 0.039983, 0.039979, 0.000799, 0.039989, 0.039979),
    5: (0.001049, 0.049969, 0.049958, 0.001249, 0.049979, 0.049958),
    46: (0.093560, 0.440241, 0.428234, 0.095813, 0.441111, 0.428234),
    47: (0.097235, 0.448823, 0.436148, 0.099535, 0.449723, 0.436149),
    48: (0.100945, 0.457330, 0.443976, 0.103292, 0.458261, 0.443976),
    49: (0.104688, 0.465760, 0.451714, 0.107081, 0.466721, 0.451715),
    50: (0.108460, 0.474110, 0.459362, 0.110898, 0.475100, 0.459363),
    51: (0.112257, 0.482376, 0.466918, 0.114740, 0.483396, 0.466919),
}
POINT = (0.00097, 0.001999, -0.00002)
ROUNDED = 0.6e-6  # half a unit of the last printed digit, and the round-off of the table itself
WRONG_SIGN = (
    "the printed column solves the equation with the minus sign; this is the true motion (errata PP 30, 31)"
)
AT_REST = "with these data nothing moves; the table belongs to base velocities (1, 1) (errata PP 31)"


def run(full: bool, track: Track) -> Study:
    system = nonholonomic_particle.system(k=1.0)
    split = splitting(system, Q0, V0)
    times = H * np.arange(1, STEPS + 1)

    def motion(sign: float) -> np.ndarray:
        """(t, q) of (2.2) with that sign; row k is t = k h."""
        field = jax.jit(lambda z: jnp.concatenate([z[3:], split.acceleration(z[:3], z[3:], sign=sign)]))
        start = np.concatenate([Q0, V0])
        out = solve_ivp(
            lambda t, z: np.asarray(field(z)), (0, times[-1]), start, t_eval=times, rtol=1e-11, atol=1e-13
        )
        return np.vstack([start, out.y.T])

    wrong, true = (motion(sign) for sign in track([-1.0, 1.0], "motions with either sign"))
    discrete = discretize(split, H)
    table = np.asarray(discrete.sequence(Q0, jnp.asarray(wrong[1, :3]), STEPS, pair="previous", sign=-1.0))
    rows: list[StudyRow] = []
    parts = (("d", table, 0, ""), ("e", wrong, 3, ""), ("e, true motion", true, 3, WRONG_SIGN))
    for suffix, values, offset, reason in parts:
        for k, printed in PRINTED.items():
            for j, (letter, column) in enumerate(COLUMNS.items()):
                found, paper = float(values[k, column]), printed[offset + j]
                told = "" if abs(found - paper) <= ROUNDED else reason
                rows.append(
                    number(
                        f"line {k}: {letter}_{suffix}", paper, found, within=ROUNDED, reason=told, spread=1e-6
                    )
                )
    rows += _rows_of_the_text(system, split, wrong)
    corrected = simulate(system, LagrangeDAlembertChaplygin(), Q0, V0, step_size=H, steps=STEPS)
    t = H * np.arange(STEPS + 1)
    lines = list(PRINTED)
    base = (
        Curve("true motion", t, true[:, 0]),
        Curve("(2.2) as printed", t, wrong[:, 0]),
        Curve("(3.2) with the plus sign", corrected.t, corrected.q[:, 0]),
        Curve("the table, y_d", H * np.array(lines), [PRINTED[k][1] for k in lines], "points"),
    )
    energies = tuple(
        Curve(label, t, jax.vmap(system.energy)(jnp.asarray(z[:, :3]), jnp.asarray(z[:, 3:])))
        for label, z in (("true motion", true), ("(2.2) as printed", wrong))
    )
    return Study(
        {"h": H, "steps": STEPS, "q0": Q0, "v0": V0, "columns": "x is z, y is x, z is y of the particle"},
        tuple(rows),
        (
            Panel("x^1bar, the column y of the table", "t", "x^1bar", base),
            Panel("energy", "t", "E", energies),
        ),
    )


def _rows_of_the_text(system: System, split: Splitting, wrong: np.ndarray) -> list[StudyRow]:
    """The step, the initial velocities and the second point that the text gives for the table."""
    lines = np.array([k for k in PRINTED if k])
    y_bar = np.array([PRINTED[k][5] for k in PRINTED if k])  # sin(sqrt(2) t) / sqrt(2), whatever the sign
    times = np.arcsin(np.sqrt(2) * y_bar) / np.sqrt(2)
    step = float(np.median(times / lines))
    rest = float(np.max(np.abs(split.acceleration(Q0, jnp.zeros(3), sign=-1.0))))
    orders = [wrong[:, list(order)] for order in itertools.permutations(range(3))]
    away = min(float(np.min(np.linalg.norm(q - np.array(POINT), axis=1))) for q in orders)
    growth = float(system.energy(jnp.asarray(wrong[-1, :3]), jnp.asarray(wrong[-1, 3:])))
    return [
        number(
            "step of the table, from its column z_e",
            0.001,
            step,
            within=1e-5,
            reason="z_e is sin(sqrt(2) t) / sqrt(2), from which line k is at t = 0.01 k (errata PP 31)",
        ),
        number("steps up to the last line", 51, times[-1] / H, within=1e-3),
        claim(
            "largest initial acceleration with the printed velocities",
            "velocities 0",
            rest,
            rest > 0,
            AT_REST,
        ),
        claim(
            f"distance of the curve from the point {POINT}",
            "0",
            away,
            away < 1e-6,
            "no line of the table comes near it, in any order of the coordinates (errata PP 31)",
        ),
        claim(
            "energy at t = 0.51 along (2.2) as printed, 1 at first",
            "not printed; constant in mechanics",
            growth,
            abs(growth - 1) < 1e-6,
            "the sign (errata PP 30)",
        ),
    ]
