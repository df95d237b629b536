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

from noslip.studies._base import Study, Track, check, judge, number, statement
from noslip.studies._fbo import (
    FROM_LEGENDRE,
    METHODS,
    Example,
    Measured,
    constraint_rows,
    constraints,
    largest,
    measure,
    of_order,
    panels,
)
from noslip.studies._rules import AT_MOST, LARGER, SMALLER
from noslip.systems import knife_edge

PAPER = "FBO"
ZEROS = (math.pi / 2, 3 * math.pi / 2)  # of f, on the way
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

BEST, ABRUPT = "PTHDEL has the best", "abrupt near 23 and 68"
ROWS = {
    "tau": number("tau(7)", "0.66"),
    "N": number("N_tau, the steps of HDEL", "100", reason=NO_ROOM, spread=0),
    "bounded": statement("largest tau of HDEL", "at most 1 / omega = 1", AT_MOST, 1.0),
    "23": number("first i with phi(i h) past pi/2, along the motion", "23", spread=0),
    "68": number("first i with phi(i h) past 3 pi/2, along the motion", "68", spread=0),
    "8a": of_order("figure 8 (a), RDLA: largest rmsd error", -3),
    "8b": of_order("figure 8 (b), HDEL: largest rmsd error, up to its end", -3),
    "8c": of_order("figure 8 (c), PTHDEL: largest rmsd error", -2),
    "abrupt RDLA": statement(
        f"RDLA: largest energy error within {NEAR} steps of the zeros of f over the largest elsewhere",
        ABRUPT,
        LARGER,
    ),
    "abrupt PTHDEL": statement(
        f"PTHDEL: largest energy error within {NEAR} steps of the zeros of f over the largest elsewhere",
        ABRUPT,
        LARGER,
    ),
    "9a": of_order("figure 9 (a), RDLA: largest energy error", -1),
    "9b": of_order(
        "figure 9 (b), HDEL: largest energy error, up to its end",
        -1,
        "what is printed goes on beyond tau = 1, where there is no motion (errata FBO 28)",
    ),
    "9c": of_order(
        f"figure 9 (c), PTHDEL: largest energy error, more than {NEAR} steps from the zeros of f", -2
    ),
    "best": statement("figure 9: largest energy error of PTHDEL over that of RDLA", BEST, SMALLER),
    "best away": check(
        f"figure 9: the same more than {NEAR} steps from the zeros of f",
        BEST,
        SMALLER,
        reason="from this start it has the lower peaks at the zeros of f, but nothing else (errata FBO 29b)",
    ),
    "best median": check(
        "figure 9: median of the energy error of PTHDEL over that of RDLA",
        BEST,
        SMALLER,
        reason="from this start it has the lower peaks at the zeros of f, but nothing else (errata FBO 29b)",
    ),
    "best legendre": check("figure 9: the median from the discrete Legendre transform", BEST, SMALLER),
    **constraint_rows(10, "y", dict.fromkeys(METHODS, -9)),
}


def run(full: bool, track: Track) -> Study:
    found = {name: measure(EXAMPLE, name) for name in track(list(METHODS), "three methods")}
    rdla, hdel, pthdel = (found[name] for name in METHODS)
    legendre = {name: measure(EXAMPLE, name, FROM_LEGENDRE) for name in ("RDLA", "PTHDEL")}
    near = np.min(np.abs(np.subtract.outer(pthdel.middle, ZEROS)), axis=1) <= NEAR * EXAMPLE.h
    phi = EXAMPLE.exact(EXAMPLE.h * np.arange(101))[:, 2]
    ours = {
        "tau": EXAMPLE.tau(7.0),
        "N": len(hdel.run.t) - 1,
        "bounded": float(hdel.run.tau[-1]),
        "23": int(np.argmax(phi > ZEROS[0])),
        "68": int(np.argmax(phi > ZEROS[1])),
        "8a": largest(rdla.rmsd),
        "8b": largest(hdel.rmsd),
        "8c": largest(pthdel.rmsd),
        "abrupt RDLA": largest(rdla.energy[near]) / largest(rdla.energy[~near]),
        "abrupt PTHDEL": largest(pthdel.energy[near]) / largest(pthdel.energy[~near]),
        "9a": largest(rdla.energy),
        "9b": largest(hdel.energy),
        "9c": largest(pthdel.energy[~near]),
        "best": largest(pthdel.energy) / largest(rdla.energy),
        "best away": largest(pthdel.energy[~near]) / largest(rdla.energy[~near]),
        "best median": _ratio(found),
        "best legendre": _ratio(legendre),
        **constraints(found),
    }
    return Study(
        EXAMPLE.inputs() | {"alpha": math.pi / 36, "zeros of f": ZEROS},
        judge(ROWS, ours),
        panels("y", found, {"rmsd": 8, "energy": 9, "constraint": 10}),
    )


def _ratio(found: Mapping[str, Measured]) -> float:
    """Of the median energy errors, PTHDEL over RDLA."""
    return float(np.divide(*(np.median(np.abs(found[name].energy)) for name in ("PTHDEL", "RDLA"))))
