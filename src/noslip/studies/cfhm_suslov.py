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
from noslip.studies._base import Study, Track, number, round_off
from noslip.systems import suslov

PAPER = "CFHM"
I11, I22, I33, I13, I23 = 1.2, 1.6, 2.0, 0.3, -0.2
C1, C2 = I13 / I11, I23 / I22
H = 0.1


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
    rows = (
        number("C_12^1 = I13 / I11", round(C1, 12), structure[0, 1, 0], within=1e-12),
        number("C_12^2 = I23 / I22", round(C2, 12), structure[0, 1, 1], within=1e-12),
        round_off(
            "reduced equations: largest difference",
            "as printed",
            float(
                np.max(
                    np.abs(rate * np.array([I11, I22]) - (I13 * w[0] + I23 * w[1]) * np.array([-w[1], w[0]]))
                )
            ),
        ),
        round_off("integrator: largest residual of the printed equations", "0", _residual(rho)),
        round_off("largest |omega_3|", "0", float(np.max(np.abs(omega[:, 2])))),
        round_off(
            "largest relative energy error",
            "preserved",
            float(np.max(np.abs(found.energy / found.energy[0] - 1))),
        ),
        number(
            "I13 omega_1 + I23 omega_2 in the end",
            0,
            steady[-1],
            within=1e-6,
            spread=None,
            reason="the steady rotation to which every motion tends",
        ),
    )
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
        rows,
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
