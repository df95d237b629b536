"""CFHM section 4.3: Suslov's problem on so(3) and the midpoint rule in the momenta.

I11 = 1.2, I22 = 1.6, I13 = 0.3, I23 = -0.2 (the paper keeps letters). The package builds the system from
the structure constants of so(3), the inertia and the constraint omega_3 = 0; the structure functions of
its bracket, the reduced equations and the integrator are compared with the printed ones. Every motion
runs from one steady rotation, I13 omega_1 + I23 omega_2 = 0, to the opposite one, on the ellipse of the
energy; the discrete one stays on that ellipse to round-off.
"""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np

from noslip.geometry.bracket import structure_functions
from noslip.geometry.frames import Frame
from noslip.integrators.discrete_gradient import DiscreteGradient
from noslip.plots.panels import Curve, Panel
from noslip.simulate import simulate
from noslip.studies._base import Study, Track, check, judge, statement
from noslip.studies._rules import EQUAL, VANISHES, ZERO
from noslip.systems import suslov

PAPER = "CFHM"
I11, I22, I33, I13, I23 = 1.2, 1.6, 2.0, 0.3, -0.2
C1, C2 = I13 / I11, I23 / I22
H = 0.1
ROWS = {
    "C1": statement("C_12^1 = I13 / I11", f"{C1:g}", EQUAL, C1),
    "C2": statement("C_12^2 = I23 / I22", f"{C2:g}", EQUAL, C2),
    "equations": statement("reduced equations: largest difference", "as printed", ZERO, spread=None),
    "integrator": statement(
        "integrator: largest residual of the printed equations", "as printed", ZERO, spread=None
    ),
    "omega_3": statement("largest |omega_3|", "0", ZERO, spread=None),
    "energy": statement("largest relative energy error", "preserved", ZERO, spread=None),
    "steady": check(
        "|I13 omega_1 + I23 omega_2| in the end over its largest",
        "every motion tends to a steady rotation",
        VANISHES,
        spread=None,
    ),
}


def run(full: bool, track: Track) -> Study:
    t_end = 1000.0 if full else 100.0
    system = suslov.system(I11, I22, I33, I13, I23)
    q0, v0 = suslov.typical_state()
    structure = np.asarray(structure_functions(Frame(system), q0))
    found = simulate(system, DiscreteGradient(), q0, v0, step_size=H, t_end=t_end)
    omega = np.array(
        [suslov.body_rates(jnp.asarray(q), jnp.asarray(v)) for q, v in zip(found.q, found.v, strict=True)]
    )
    rho = omega[:, :2] * np.array([I11, I22])
    w, a = omega[0, :2], system.acceleration(q0, v0)
    rate = _rate_of_omega(q0, v0, a)
    steady = I13 * omega[:, 0] + I23 * omega[:, 1]
    w1, w2 = w
    printed = (I13 * w1 + I23 * w2) * np.array([-w2, w1])
    ours = {
        "C1": float(structure[0, 1, 0]),
        "C2": float(structure[0, 1, 1]),
        "equations": float(np.max(np.abs(rate * np.array([I11, I22]) - printed))),
        "integrator": _residual(rho),
        "omega_3": float(np.max(np.abs(omega[:, 2]))),
        "energy": float(np.max(np.abs(found.energy / found.energy[0] - 1))),
        "steady": float(abs(steady[-1]) / np.max(np.abs(steady))),
    }
    angle = np.linspace(0, 2 * np.pi, 200)
    size = np.sqrt(2 * found.energy[0])
    ellipse = (size * np.sqrt(I11) * np.cos(angle), size * np.sqrt(I22) * np.sin(angle))
    return Study(
        {
            "I11": I11,
            "I22": I22,
            "I33": I33,
            "I13": I13,
            "I23": I23,
            "h": H,
            "t_end": t_end,
            "q0": q0,
            "v0": v0,
        },
        judge(ROWS, ours),
        (
            Panel(
                "momenta",
                "rho_1",
                "rho_2",
                (
                    Curve("integrator, h = 0.1", rho[:, 0], rho[:, 1], "points"),
                    Curve("the ellipse of the energy", *ellipse, "reference"),
                ),
                equal=True,
            ),
            Panel(
                "towards the steady rotation",
                "t",
                "|I13 omega_1 + I23 omega_2|",
                (Curve("h = 0.1", found.t, np.abs(steady)),),
                "y",
            ),
        ),
    )


def _rate_of_omega(q: jnp.ndarray, v: jnp.ndarray, a: jnp.ndarray) -> np.ndarray:
    import jax

    return np.asarray(jax.jvp(suslov.body_rates, (q, v), (v, a))[1])[:2]


def _residual(rho: np.ndarray) -> float:
    """Of the integrator that section 4.3 prints, over all steps."""
    before, after = rho[:-1], rho[1:]
    middle = (before + after) / 2
    k = C1 * middle[:, 0] + C2 * middle[:, 1]
    rates = np.stack([-k * middle[:, 1] / I22, k * middle[:, 0] / I11], axis=1)
    return float(np.max(np.abs(after - before - H * rates)))
