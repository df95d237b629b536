"""JS section 6: consistency orders (p, s) of all its schemes.

Definition 4.2 gives a scheme the order (p, s) if one step misses the state by O(eps^(p+1)) and the
multipliers by O(eps^(s+1)). Here one step is taken with four step sizes and compared with the exact
motion; p and s are the slopes in the doubly logarithmic picture, minus one. The general schemes (71) and
(76) run on a disk on an incline (constant mass matrix, two constraints whose forms turn with the disk),
those of section 6.4 on the free particle, whose motion is elementary. JS prints orders but no
experiment, so states and steps are ours.

Three statements need a reading. With the node rule as printed in (85)-(86), x' = x + eps v', the scheme
is of first order in q; with that of (76b), which the text before it defines, of second. The scheme (87)
is of order (1, 0) from data in the deformed D_eps, but from data in D its first step is not consistent.
And s depends on the date of the multiplier: dated at t + eps/2, where it acts, that of (76) has s = 1.
See the errata of JS, 2, 7 and 9.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.integrate import simpson

from noslip.analysis.order import measured_order, slope
from noslip.geometry.finite_difference_map import RhoBeta
from noslip.integrators.reference_flow import ReferenceFlow
from noslip.integrators.velocity_nonholonomic import VelocityNonholonomic
from noslip.plots.panels import Curve, Panel
from noslip.simulate import simulate
from noslip.studies._base import Study, StudyRow, Track, number
from noslip.systems import nonholonomic_particle, rolling_disk_on_incline

PAPER = "JS"
TOLERANCE = 0.1  # of an exponent fitted to steps that are not infinitely small
Q0, V0 = np.array([0.3, 0.7, 0.1]), np.array([0.5, -0.4, 0.35])
"""A state of the free particle on D."""

DISK, PARTICLE = "disk on an incline", "free particle"
SCHEMES = (
    ("(71)-(72)", DISK, 0.0, (1, 0)),
    ("(76)-(77)", DISK, 0.5, (2, 0)),
    ("(81)-(82)", PARTICLE, 0.0, (1, 0)),
    ("(84) at the new nodes", PARTICLE, 0.5, (2, 0)),
)


def run(full: bool, track: Track) -> Study:
    steps = (5, 10, 20, 40) if full else (5, 10, 20)
    problems = {
        DISK: (rolling_disk_on_incline.system(), *rolling_disk_on_incline.typical_state()),
        PARTICLE: (nonholonomic_particle.system(k=0.0), Q0, V0),
    }
    rows: list[StudyRow] = []
    state: list[Curve] = []
    multiplier: list[Curve] = []
    for name, problem, beta, (p, s) in track(SCHEMES, "orders of the schemes"):
        found = measured_order(*_with_method(problems[problem], beta), t_end=0.2, steps=steps)
        dated = "" if beta == 0 else f"dated t + eps/2, where it acts, s is {found.multiplier_dated:.2f}"
        rows += [
            number(f"{name}, {problem}: p", p, found.p, within=TOLERANCE, spread=1e-2),
            number(f"{name}, {problem}: s", s, found.s, within=TOLERANCE, reason=dated, spread=2e-2),
        ]
        h = found.step_sizes
        state.append(Curve(f"{name}, {problem}", h, np.max(found.local_errors[:, :2], axis=1), "marked"))
        multiplier.append(Curve(f"{name}, {problem}", h, found.local_errors[:, 2], "marked"))
    h = 0.2 / np.array(steps)
    for scheme, label in ((_step_of_86, "(86) as printed"), (_step_of_89, "(89), data in D_eps")):
        errors = np.array([scheme(x) for x in h])
        state.append(Curve(label, h, errors[:, 0], "marked"))
        if scheme is _step_of_89:
            multiplier.append(Curve(label, h, errors[:, 1], "marked"))
    rows += _rows_of_the_particle(h) + _rows_of_the_action(h)
    guides = [
        Curve(f"slope {k}", h[[0, -1]], c * h[[0, -1]] ** k, "reference") for k, c in ((2, 0.7), (3, 0.02))
    ]
    return Study(
        {
            "steps": h,
            "disk": "typical state of rolling_disk_on_incline",
            "particle": {"q0": Q0, "v0": V0, "k": 0},
        },
        tuple(rows),
        (
            Panel("error of (q, v) in one step", "step eps", "largest error", (*state, *guides), "xy"),
            Panel(
                "error of the multiplier in one step", "step eps", "largest error", tuple(multiplier), "xy"
            ),
        ),
    )


def _with_method(problem: tuple[Any, ...], beta: float) -> tuple[Any, ...]:
    system, q0, v0 = problem
    return system, VelocityNonholonomic(beta), q0, v0


def _exact(h: float) -> tuple[np.ndarray, np.ndarray, float]:
    (q,), (v,), ((lam,),) = nonholonomic_particle.exact(np.array([h]), Q0, V0)
    return q, v, float(lam)


def _step_of_86(h: float, printed: bool = True) -> tuple[float, float]:
    """One step of (86): errors of q and of v; with the printed node rule, or with that of (76b)."""
    y, vy = Q0[1], V0[1]
    lam = V0[0] * vy / (1 + (y + h * vy) * (y + h / 2 * vy))
    v = V0 + h * lam * np.array([-(y + h / 2 * vy), 0.0, 1.0])
    q = Q0 + (h * v if printed else h / 2 * (V0 + v))
    exact_q, exact_v, _ = _exact(h)
    return float(np.max(np.abs(q - exact_q))), float(np.max(np.abs(v - exact_v)))


def _step_of_87(h: float, v0: np.ndarray) -> tuple[np.ndarray, np.ndarray, float]:
    """One step of (87) from q0 = Q0 with the velocity v0, which need not be in D or D_eps."""
    y = Q0[1]
    ahead = y + h / 2 * v0[1]
    lam = -(v0[2] - ahead * v0[0]) / h / (1 + y * ahead)
    v = v0 + h * lam * np.array([-y, 0.0, 1.0])
    return Q0 + h * v, v, float(lam)


def _step_of_89(h: float) -> tuple[float, float]:
    """Errors of (q, v) and of the multiplier in a step from data in D_eps, which leave D in vz alone."""
    q, v, lam = _step_of_87(h, V0 - np.array([0.0, 0.0, h / 2 * V0[0] * V0[1]]))
    exact_q, exact_v, exact_lam = _exact(h)
    return float(np.max(np.abs(np.append((q - exact_q)[:2], (v - exact_v)[:2])))), abs(lam - exact_lam)


def _step_of_87_in_d(h: float) -> tuple[float, float]:
    _, v, lam = _step_of_87(h, V0)
    _, exact_v, exact_lam = _exact(h)
    return float(np.max(np.abs(v - exact_v))), abs(lam - exact_lam)


def _rows_of_the_particle(h: np.ndarray) -> list[StudyRow]:
    def exponents(scheme: Callable[[float], tuple[float, float]]) -> tuple[float, float]:
        first, second = np.array([scheme(x) for x in h]).T
        return slope(h, first), slope(h, second)

    printed, corrected = exponents(_step_of_86), exponents(lambda x: _step_of_86(x, printed=False))
    deformed, in_d = exponents(_step_of_89), exponents(_step_of_87_in_d)
    node_rule = "the node rule must be that of (76b), eps (v + v') / 2, for every coordinate (errata JS 2)"
    first_step = (
        "its force also carries the velocity from D to D_eps, so lam is half of the true one for every eps; "
        "from D_eps the step is consistent (errata JS 7)"
    )
    return [
        number(
            "(86) as printed: power of eps in the error of q",
            3,
            printed[0],
            within=TOLERANCE,
            reason=node_rule,
        ),
        number("(86) with the nodes of (76b): power of eps, q", 3, corrected[0], within=TOLERANCE),
        number("(86): power of eps in the error of v", 3, printed[1], within=TOLERANCE),
        number("(89), data in D_eps: power of eps, (q, v)", 2, deformed[0], within=TOLERANCE),
        number("(89), data in D_eps: p", 1, deformed[0] - 1, within=TOLERANCE),
        number("(89), data in D_eps: s", 0, deformed[1] - 1, within=TOLERANCE),
        number("(87), data in D, first step: p", 1, in_d[0] - 1, within=TOLERANCE, reason=first_step),
        number("(87), data in D, first step: s", 0, in_d[1] - 1, within=TOLERANCE, reason=first_step),
    ]


def _rows_of_the_action(h: np.ndarray) -> list[StudyRow]:
    """End of section 5: L_d of (63) against the action along a motion; its order is the exponent minus 1."""
    system, (q0, v0) = rolling_disk_on_incline.system(), rolling_disk_on_incline.typical_state()
    rows = []
    errors: dict[float, list[float]] = {0.0: [], 0.5: [], 1.0: []}
    for step in h:
        motion = simulate(system, ReferenceFlow(), q0, v0, step_size=step / 16, steps=16)
        values = [
            float(system.lagrangian(q, v, system.parameters)) for q, v in zip(motion.q, motion.v, strict=True)
        ]
        action = float(simpson(values, x=motion.t))
        for beta, found in errors.items():
            L_d = RhoBeta(beta).discrete_lagrangian(system, motion.q[0], motion.q[-1], step)
            found.append(abs(float(L_d) - action))
    for beta, order in ((0.0, 1), (0.5, 2), (1.0, 1)):
        measured = slope(h, np.array(errors[beta])) - 1
        rows.append(
            number(f"L_d with beta = {beta:g}: order of consistency", order, measured, within=TOLERANCE)
        )
    return rows
