"""FBO section 5.1, figures 1 to 4 and (61): the nonholonomic particle.

The particle zdot + x ydot = 0 from the origin with velocities (1, 1), h = 0.05: 200 steps in t, 60 in tau.
The errors of figure 1 are those of (x, y), for HDEL at the same tau; the energies of figure 2 are those of
midpoint and difference quotient. The numbers come out if the first point is q0 + h v0. From the discrete
Legendre transform, which keeps the order 2, the constant C is a fifth as large, and negative.

The energy of PTHDEL grows like C x, since f falls like 1/x; the full form shows it on a run a hundred times
as long. In the end x runs ahead of t, as the energy that it has gained demands. The bounds (36) and (61) are
right about the trapezoidal rule; the time that HDEL assigns also carries the error of its trajectory, and is
off by twice as much. The constraint of figure 3 cannot have been what footnote 7 says; its size is that of
arithmetic with ten digits. See the errata of FBO, 27, 29 and 29b.
"""

from __future__ import annotations

import numpy as np

from noslip.analysis import poincare_energy, time_errors
from noslip.plots.panels import Curve, Panel
from noslip.studies._base import Study, Track, claim, number, round_off
from noslip.studies._fbo import (
    FROM_LEGENDRE,
    METHODS,
    Example,
    constraint_rows,
    largest,
    measure,
    of_order,
    panels,
)
from noslip.systems import fbo_particle

PAPER = "FBO"
C = 5.2e-4
LAST_DIGIT = 0.05e-4  # half a unit of it
EXAMPLE = Example(
    fbo_particle,
    (0.0, 0.0, 0.0),
    (1.0, 1.0, 0.0),
    0.05,
    {"RDLA": 200, "HDEL": 60, "PTHDEL": 200},
    np.sinh,  # (55)
)


def run(full: bool, track: Track) -> Study:
    system = fbo_particle.system()
    found = {name: measure(EXAMPLE, name) for name in track(list(METHODS), "three methods")}
    rdla, hdel, pthdel = (found[name] for name in METHODS)
    late = pthdel.middle > 5
    slope = float(np.polyfit(pthdel.middle[late], pthdel.energy[late], 1)[0])
    steps = 20_000 if full else 2_000
    long = EXAMPLE.simulate(METHODS["PTHDEL"], steps, save_every=steps // 100)
    kept = poincare_energy(system, METHODS["PTHDEL"], long)
    legendre = EXAMPLE.simulate(FROM_LEGENDRE["PTHDEL"], EXAMPLE.steps["PTHDEL"])
    times = time_errors(system, METHODS["HDEL"], hdel.run)  # type: ignore[arg-type]
    h, tau = EXAMPLE.h, times.tau
    quadrature = h / 2 * np.sum(np.cosh(tau[1:]) + np.cosh(tau[:-1])) - np.sinh(tau[-1])
    rows = (
        number("energy E of the initial state", 1, hdel.run.energy[0], within=1e-15),
        number("tau(10)", 2.998, EXAMPLE.tau(10.0), within=5e-4),
        number("tau(10) / h_tau, steps of HDEL", 60, EXAMPLE.tau(10.0) / h, within=0.5),
        of_order("figure 1 (a), RDLA: largest rmsd error", -4, largest(rdla.rmsd)),
        of_order("figure 1 (b), HDEL: largest rmsd error", -3, largest(hdel.rmsd)),
        of_order("figure 1 (c), PTHDEL: largest rmsd error", -2, largest(pthdel.rmsd)),
        number(
            "orders of magnitude between the errors of PTHDEL and RDLA",
            2,
            np.log10(largest(pthdel.rmsd) / largest(rdla.rmsd)),
            within=0.5,
        ),
        of_order("figure 2 (a), RDLA: largest energy error", -4, largest(rdla.energy)),
        of_order("figure 2 (b), HDEL: largest energy error", -4, largest(hdel.energy)),
        number("figure 2 (c), PTHDEL: slope of E - 1 over t, t > 5", C, slope, within=LAST_DIGIT),
        number(
            "figure 2 (c), PTHDEL: E - 1 = C t at t = 10", 10 * C, pthdel.energy[-1], within=10 * LAST_DIGIT
        ),
        number("figure 2 (d), PTHDEL: C at t = 10, at midpoints", C, pthdel.poincare[-1], within=LAST_DIGIT),
        number(
            "figure 2 (d), PTHDEL: C at t = 10, at nodes",
            C,
            poincare_energy(system, METHODS["PTHDEL"], pthdel.run)[-1],
            within=LAST_DIGIT,
        ),
        number(
            "figure 2 (d), PTHDEL from the discrete Legendre transform: C",
            C,
            poincare_energy(system, FROM_LEGENDRE["PTHDEL"], legendre)[-1],
            within=LAST_DIGIT,
            reason="the figures belong to the first point q0 + h v0 (errata FBO 27)",
        ),
        number("(50), long run of PTHDEL: f (E - 1) at the end", C, kept[-1], within=LAST_DIGIT),
        number(
            "(50), long run of PTHDEL: (E - 1) / t at the end",
            C,
            (long.energy[-1] - 1) / long.t[-1],
            within=LAST_DIGIT,
            reason="E - 1 = C x, and x runs ahead of t as the energy grows (errata FBO 29b)",
        ),
        *constraint_rows(3, "z", found, {"RDLA": -8, "HDEL": -9, "PTHDEL": -8}),
        number("(61): |delta t_1|", 1.04e-5, times.a_posteriori[1], within=0.5e-7),
        number("(61): |delta t_2|", 2.09e-5, times.a_posteriori[2], within=0.5e-7),
        number("(61): |delta t_60|", 2.14e-3, times.a_posteriori[60], within=0.5e-5),
        round_off(
            "(36) with C_i = cosh(tau_i), against the package",
            "equal",
            largest(times.a_priori[1:] - h**3 / 12 * np.cumsum(np.cosh(tau[1:]))),
        ),
        of_order("|delta t_60| of the trapezoidal rule on the exact motion", -3, abs(quadrature)),
        claim(
            "the same over its bound (36)",
            "at most 1",
            abs(quadrature) / times.a_priori[-1],
            abs(quadrature) <= times.a_priori[-1],
        ),
        claim(
            "actual error of the time of HDEL at the end, over the bound (61)",
            "at most 1",
            abs(times.actual[-1]) / times.a_posteriori[-1],
            abs(times.actual[-1]) <= times.a_posteriori[-1],
            "(36) is about the quadrature; the error of the trajectory comes on top (errata FBO 29)",
        ),
        of_order("actual error of the time of HDEL at the end", -3, abs(times.actual[-1])),
    )
    return Study(
        EXAMPLE.inputs() | {"long run of PTHDEL, steps": steps},
        rows,
        (
            *panels("z", found, {"rmsd": 1, "energy": 2, "constraint": 3}),
            Panel(
                "figure 4 and (61): errors in time",
                "tau",
                "|delta t|",
                (
                    Curve("bound (36), exact F''", tau[1:], times.a_priori[1:]),
                    Curve("estimate (60), (61)", tau[1:], times.a_posteriori[1:]),
                    Curve("actual error", tau[1:], np.abs(times.actual[1:])),
                    Curve(
                        "figure 4: bound less estimate",
                        tau[1:],
                        np.abs(times.a_priori - times.a_posteriori)[1:],
                    ),
                ),
                "y",
            ),
            Panel(
                "PTHDEL, the law (50) on a long run",
                "t",
                "E - 1",
                (
                    Curve("energy", long.t[1:], long.energy[1:] - 1),
                    Curve("C t", long.t[1:], C * long.t[1:], "reference"),
                ),
                "xy",
            ),
        ),
    )
