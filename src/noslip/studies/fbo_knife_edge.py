"""FBO section 5.3, figures 8 to 10: the knife edge on an inclined plane.

Slope 5 degrees, from the origin with xdot = phidot = 1, 100 steps of h = 0.07. The multiplier cos(phi)
vanishes at phi = pi/2 and 3 pi/2, which the motion passes between the steps 22 and 23, 67 and 68.

In tau = sin(phi) the motion turns back at tau = 1, and 100 steps of 0.07 do not fit: HDEL solves 14 and
stops, so that its curves in the figures cannot be judged beyond. RDLA and PTHDEL go through. The energies of
midpoints and difference quotients are bad near the two zeros for both. PTHDEL has the smaller peak, as the
paper has it, but RDLA the smaller error elsewhere; from the discrete Legendre transform PTHDEL is better
there too. See the errata of FBO, 28, 29 and 29b.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np

from noslip.studies._base import Study, Track, claim, number
from noslip.studies._fbo import (
    FROM_LEGENDRE,
    METHODS,
    Example,
    Measured,
    constraint_rows,
    largest,
    measure,
    of_order,
    panels,
)
from noslip.systems import knife_edge

PAPER = "FBO"
ZEROS = (math.pi / 2, 3 * math.pi / 2)  # of f, on the way
PASSED = ((23, "pi/2", ZEROS[0]), (68, "3 pi/2", ZEROS[1]))
NEAR = 5  # steps from a zero within which the paper calls the behaviour abrupt
NO_ROOM = "tau is at most 1: the equations have no real root after 14 steps (errata FBO 28)"
EXAMPLE = Example(
    knife_edge,
    (0.0, 0.0, 0.0),
    (1.0, 0.0, 1.0),
    0.07,
    dict.fromkeys(METHODS, 100),
    np.arcsin,  # (66), up to the first zero of f
)


def run(full: bool, track: Track) -> Study:
    found = {name: measure(EXAMPLE, name) for name in track(list(METHODS), "three methods")}
    rdla, hdel, pthdel = (found[name] for name in METHODS)
    h = EXAMPLE.h
    away = np.min(np.abs(np.subtract.outer(pthdel.middle, ZEROS)), axis=1) > NEAR * h
    legendre = {name: measure(EXAMPLE, name, FROM_LEGENDRE) for name in ("RDLA", "PTHDEL")}
    typical, better = _ratio(found), _ratio(legendre)
    rows = (
        number("energy E of the initial state", 1, rdla.run.energy[0], within=1e-15),
        number("time h N of the simulation", 7, rdla.run.t[-1], within=1e-12),
        number("tau(7)", 0.66, EXAMPLE.tau(7.0), within=5e-3),
        number("N_tau, the steps of HDEL", 100, len(hdel.run.t) - 1, within=0, reason=NO_ROOM),
        claim("largest tau of HDEL", "at most 1 / omega = 1", hdel.run.tau[-1], hdel.run.tau[-1] <= 1),
        *(
            number(f"step at which the motion passes phi = {angle}", step, zero / h, within=1)
            for step, angle, zero in PASSED
        ),
        *(
            number(
                f"{name}: first step past phi = {angle}",
                step,
                float(np.argmax(x.run.q[:, 2] > zero)),
                within=1,
                spread=0,
            )
            for name, x in (("RDLA", rdla), ("PTHDEL", pthdel))
            for step, angle, zero in PASSED
        ),
        of_order("figure 8 (a), RDLA: largest rmsd error", -3, largest(rdla.rmsd)),
        of_order("figure 8 (b), HDEL: largest rmsd error, up to its end", -3, largest(hdel.rmsd)),
        of_order("figure 8 (c), PTHDEL: largest rmsd error", -2, largest(pthdel.rmsd)),
        of_order("figure 9 (a), RDLA: largest energy error", -1, largest(rdla.energy)),
        of_order(
            "figure 9 (b), HDEL: largest energy error, up to its end",
            -1,
            largest(hdel.energy),
            "what is printed goes on beyond tau = 1, where there is no motion (errata FBO 28)",
        ),
        of_order(
            "figure 9 (c), PTHDEL: largest energy error, more than 5 steps from the zeros of f",
            -2,
            largest(pthdel.energy[away]),
        ),
        number(
            "figure 9 (a), RDLA: step of the largest energy error",
            68,
            _worst(rdla.energy),
            within=NEAR,
            spread=0,
        ),
        number(
            "figure 9 (c), PTHDEL: step of the largest energy error",
            23,
            _worst(pthdel.energy),
            within=NEAR,
            spread=0,
        ),
        claim(
            "figure 9: largest energy error of PTHDEL over that of RDLA",
            "PTHDEL has the best",
            largest(pthdel.energy) / largest(rdla.energy),
            largest(pthdel.energy) < largest(rdla.energy),
        ),
        claim(
            "figure 9: median of the energy error of PTHDEL over that of RDLA",
            "PTHDEL has the best",
            typical,
            typical < 1,
            "from this start it has the lower peaks at the zeros of f, but nothing else (errata FBO 29b)",
        ),
        claim(
            "figure 9: the same from the discrete Legendre transform",
            "PTHDEL has the best",
            better,
            better < 1,
        ),
        *constraint_rows(10, "y", found, dict.fromkeys(METHODS, -9)),
    )
    return Study(
        EXAMPLE.inputs() | {"alpha": math.pi / 36, "zeros of f": ZEROS},
        rows,
        panels("y", found, {"rmsd": 8, "energy": 9, "constraint": 10}),
    )


def _ratio(found: Mapping[str, Measured]) -> float:
    """Of the median energy errors, PTHDEL over RDLA."""
    return float(np.divide(*(np.median(np.abs(found[name].energy)) for name in ("PTHDEL", "RDLA"))))


def _worst(energy: np.ndarray) -> int:
    """The number of the point at the end of the step with the largest error."""
    return int(np.argmax(np.abs(energy))) + 1
