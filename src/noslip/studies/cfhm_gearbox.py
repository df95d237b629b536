"""CFHM figure 4: energy and constraint of the gearbox over a long time.

GONZALEZ-R (on D*, Householder frame), GONZALEZ-F (15) and SI-DLA with h = 0.1. The paper takes random
initial values and sees the energy of SI-DLA grow exponentially. It depends on them. The growth needs a
pendulum that rotates, in one of the two senses, and the asymmetry term sin(2 q3). Rotating the other way
the energy falls; librating, or symmetric, it stays bounded. A likely reason, which we did not test: a
reversing symmetry then maps the motion to itself, so that the drift of a self-adjoint method may cancel.
The state that shows the paper's figure is q = (0.5, -0.3, 0.2), q3' = 2; the others change the sense,
the angle or the asymmetry. See the errata of CFHM, 16 (the sign of V) and 20.
"""

from __future__ import annotations

import numpy as np

from noslip.integrators.discrete_gradient import DiscreteGradient
from noslip.integrators.full_space_discrete_gradient import FullSpaceDiscreteGradient
from noslip.integrators.semi_implicit_dla import SemiImplicitDLA
from noslip.plots.panels import Curve, Panel
from noslip.simulate import simulate
from noslip.studies._base import Study, StudyRow, Track, claim, round_off
from noslip.systems import gearbox
from noslip.trajectory import Trajectory

PAPER = "CFHM"
H = 0.1
METHODS = {
    "GONZALEZ-R": DiscreteGradient(frame="householder"),
    "GONZALEZ-F": FullSpaceDiscreteGradient(),
    "SI-DLA": SemiImplicitDLA(),
}
ROTATING = "rotating"
CASES = {  # initial angle, its rate, asymmetry
    ROTATING: (0.2, 2.0, 0.2),
    "rotating the other way": (0.2, -2.0, 0.2),
    "rotating, symmetric": (0.2, 2.0, 0.0),
    "librating": (np.pi, 0.5, 0.2),
}


def run(full: bool, track: Track) -> Study:
    t_end = 5e4 if full else 1e4

    def trajectory(method: str, case: str) -> Trajectory:
        angle, rate, epsilon = CASES[case]
        q0, v0 = [0.5, -0.3, angle], [-0.4 * np.sin(angle), 0.4, rate]
        system = gearbox.system(epsilon=epsilon)
        return simulate(
            system, METHODS[method], q0, v0, step_size=H, t_end=t_end, save_every=round(t_end / 500)
        )

    runs = {name: trajectory(name, ROTATING) for name in track(list(METHODS), f"t up to {t_end:g}")}
    others = {case: trajectory("SI-DLA", case) for case in track(list(CASES)[1:], "other initial values")}
    energy = {name: np.abs(r.energy / r.energy[0] - 1) for name, r in runs.items()}
    constraint = {name: np.abs(r.constraint_residual[:, 0]) for name, r in runs.items()}
    dla = runs["SI-DLA"]
    rate = float(np.polyfit(dla.t, np.log(dla.energy), 1)[0])
    early, late = (float(np.max(part)) for part in np.array_split(constraint["SI-DLA"], 2))
    rows: list[StudyRow] = [
        round_off(
            "GONZALEZ-R: largest relative energy error", "machine precision", np.max(energy["GONZALEZ-R"])
        ),
        round_off(
            "GONZALEZ-F: largest relative energy error", "machine precision", np.max(energy["GONZALEZ-F"])
        ),
        claim("SI-DLA: rate of growth of log H", "exponential growth", rate, rate > 1e-5, ROTATING, 0.05),
        round_off("GONZALEZ-R: largest constraint", "machine precision", np.max(constraint["GONZALEZ-R"])),
        round_off(
            "SI-DLA: largest constraint",
            "machine precision, rising with the energy",
            np.max(constraint["SI-DLA"]),
            bound=1e-12,
        ),
        claim(
            "SI-DLA: constraint in the second half over that in the first",
            "increases",
            late / early,
            late > early,
            "the velocities grow, and their round-off with them",
            None,
        ),
        claim(
            "GONZALEZ-F: largest constraint",
            "not respected",
            np.max(constraint["GONZALEZ-F"]),
            np.max(constraint["GONZALEZ-F"]) > 1e-3,
            "",
            0.05,
        ),
    ]
    for case, found in others.items():
        change = float(found.energy[-1] / found.energy[0] - 1)
        told = {
            "rotating the other way": "the energy falls: the sense of the rotation decides (errata CFHM 20)",
            "rotating, symmetric": "without the asymmetry the energy stays bounded (errata CFHM 20)",
            "librating": "a pendulum that swings to and fro leaves the energy bounded (errata CFHM 20)",
        }[case]
        rows.append(
            claim(f"SI-DLA, {case}: change of H / H0", "exponential growth", change, change > 0.4, told, None)
        )
    every = {ROTATING: dla, **others}
    return Study(
        {
            "h": H,
            "t_end": t_end,
            "q0": [0.5, -0.3, "angle"],
            "v0": ["on the constraint", 0.4, "rate"],
            "angle, rate, asymmetry": CASES,
        },
        tuple(rows),
        (
            Panel(
                "energy, rotating pendulum",
                "t",
                "|(H - H0) / H0|",
                tuple(Curve(n, r.t[1:], energy[n][1:], "error") for n, r in runs.items()),
                "y",
            ),
            Panel(
                "constraint, rotating pendulum",
                "t",
                "|q1' + sin(q3) q2'|",
                tuple(Curve(n, r.t[1:], constraint[n][1:], "error") for n, r in runs.items()),
                "y",
            ),
            Panel(
                "energy of SI-DLA from four kinds of initial values",
                "t",
                "H / H0",
                tuple(Curve(case, r.t, r.energy / r.energy[0]) for case, r in every.items()),
                "y" if full else "",
            ),
        ),
    )
