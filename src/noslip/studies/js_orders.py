"""JS section 6: consistency orders (p, s) of all its schemes.

Definition 4.2 gives a scheme the order (p, s) if one step misses the state by O(eps^(p+1)) and the
multipliers by O(eps^(s+1)). Here one step is taken with four step sizes and compared with the exact
motion; p and s are the slopes in the doubly logarithmic picture, minus one. The general schemes (71) and
(76) run on a disk on an incline (constant mass matrix, two constraints whose forms turn with the disk),
those of section 6.4 on the free particle, whose motion is elementary. JS prints orders but no experiment,
so states and steps are ours.

Three statements need a reading. With the node rule as printed in (85)-(86), x' = x + eps v', the scheme
is of first order in q; with that of (76b), which the text before it defines, of second. The scheme (87)
is of order (1, 0) from data in the deformed D_eps if the one component that tells D_eps from D is left
out; from data in D its first step is not consistent. And s depends on the date of the multiplier: dated
at t + eps/2, where it acts, that of (76) has s = 1. See the errata of JS, 2, 7 and 9.
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
from noslip.studies._base import CHECK, DeclaredRow, Study, Track, exponent, judge, statement
from noslip.studies._rules import ZERO
from noslip.systems import nonholonomic_particle, rolling_disk_on_incline

PAPER = "JS"
Q0, V0 = np.array([0.3, 0.7, 0.1]), np.array([0.5, -0.4, 0.35])
"""A state of the free particle on D."""

DISK, PARTICLE = "disk on an incline", "free particle"
SCHEMES = (
    ("(71)-(72)", DISK, 0.0, (1, 0)),
    ("(76)-(77)", DISK, 0.5, (2, 0)),
    ("(81)-(82)", PARTICLE, 1.0, (1, 0)),
    ("(84) at the new nodes", PARTICLE, 0.5, (2, 0)),
)
"""Each with its beta: 0 is (71), the node q_k; 1 is (81), the node q_{k+1}; 1/2 is (76), (83)."""
NODE_RULE = "the node rule must be that of (76b), eps (v + v') / 2, for every coordinate (errata JS 2)"
FIRST_STEP = (
    "its force also carries the velocity from D to D_eps, so lam is half of the true one for every eps; "
    "from D_eps the step is consistent (errata JS 7)"
)
NOT_IN_D = (
    "data in D_eps miss D, and v_z the motion, by (eps/2) v_x v_y from the beginning; all other components "
    "have order 1 (errata JS 7)"
)


def _rows() -> dict[str, DeclaredRow]:
    rows = {}
    for name, problem, _, (p, s) in SCHEMES:
        rows[f"{name} p"] = exponent(f"{name}, {problem}: p", p)
        rows[f"{name} s"] = exponent(f"{name}, {problem}: s", s)
    rows |= {
        "(82) printed": statement(
            "(82): one step against the formulas printed after it", "equal", ZERO, spread=None
        ),
        "(86) q": exponent("(86) as printed: power of eps in the error of q", 3, reason=NODE_RULE),
        "(86) v": exponent("(86): power of eps in the error of v", 3),
        "(86) corrected": exponent("(86) with the nodes of (76b): power of eps, q", 3, kind=CHECK),
        "(89) p": exponent("(89), data in D_eps, all components: p", 1, reason=NOT_IN_D),
        "(89) adapted": exponent("(89), data in D_eps, all components but v_z: p", 1, kind=CHECK),
        "(89) s": exponent("(89), data in D_eps: s", 0),
        "(87) p": exponent("(87), data in D, first step: p", 1, reason=FIRST_STEP),
        "(87) s": exponent("(87), data in D, first step: s", 0, reason=FIRST_STEP),
    }
    for beta, order in ((0.0, 1), (0.5, 2), (1.0, 1)):
        rows[f"L_d {beta:g}"] = exponent(f"L_d with beta = {beta:g}: order of consistency", order)
    return rows


ROWS = _rows()


def run(full: bool, track: Track) -> Study:
    steps = (5, 10, 20, 40) if full else (5, 10, 20)
    problems = {
        DISK: (rolling_disk_on_incline.system(), *rolling_disk_on_incline.typical_state()),
        PARTICLE: (nonholonomic_particle.system(k=0.0), Q0, V0),
    }
    ours: dict[str, float | tuple[float, str]] = {}
    state: list[Curve] = []
    multiplier: list[Curve] = []
    for name, problem, beta, _ in track(SCHEMES, "orders of the schemes"):
        found = measured_order(*_with_method(problems[problem], beta), t_end=0.2, steps=steps)
        dated = f"dated t + eps/2, where it acts, s is {found.multiplier_dated:.2f}" if beta == 0.5 else ""
        ours |= {f"{name} p": found.p, f"{name} s": (found.s, dated)}
        h = found.step_sizes
        state.append(Curve(f"{name}, {problem}", h, np.max(found.local_errors[:, :2], axis=1), "marked"))
        multiplier.append(Curve(f"{name}, {problem}", h, found.local_errors[:, 2], "marked"))
    h = 0.2 / np.array(steps)
    state.append(Curve("(86) as printed", h, [_step_of_86(x)[0] for x in h], "marked"))
    of_89 = np.array([_step_of_89(x) for x in h])
    state.append(Curve("(89), data in D_eps", h, of_89[:, 0], "marked"))
    state.append(Curve("(89), without v_z", h, of_89[:, 1], "marked"))
    multiplier.append(Curve("(89), data in D_eps", h, of_89[:, 2], "marked"))
    ours |= _of_the_particle(h) | _of_the_action(h)
    guides = [
        Curve(f"slope {k}", h[[0, -1]], c * h[[0, -1]] ** k, "reference") for k, c in ((2, 0.7), (3, 0.02))
    ]
    return Study(
        {
            "steps": h,
            "disk": "typical state of rolling_disk_on_incline",
            "particle": {"q0": Q0, "v0": V0, "k": 0},
        },
        judge(ROWS, ours),
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


def _difference_from_82(h: float) -> float:
    """A step of beta = 1 against the explicit formulas after (82)."""
    run = simulate(
        nonholonomic_particle.system(k=0.0), VelocityNonholonomic(1.0), Q0, V0, step_size=h, steps=1
    )
    y, vy = Q0[1], V0[1]
    lam = V0[0] * vy / (1 + y * (y + h * vy))
    v = V0 + h * lam * np.array([-y, 0.0, 1.0])
    found = np.concatenate([run.q[1], run.v[1], run.multipliers[1]])
    return float(np.max(np.abs(found - np.concatenate([Q0 + h * v, v, [lam]]))))


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


def _step_of_89(h: float) -> tuple[float, float, float]:
    """Errors of (q, v), of the same without v_z, and of the multiplier, in a step from data in D_eps, which
    leave D in v_z alone."""
    q, v, lam = _step_of_87(h, V0 - np.array([0.0, 0.0, h / 2 * V0[0] * V0[1]]))
    exact_q, exact_v, exact_lam = _exact(h)
    away = np.abs(np.concatenate([q - exact_q, v - exact_v]))
    return float(np.max(away)), float(np.max(away[:5])), abs(lam - exact_lam)


def _step_of_87_in_d(h: float) -> tuple[float, float]:
    _, v, lam = _step_of_87(h, V0)
    _, exact_v, exact_lam = _exact(h)
    return float(np.max(np.abs(v - exact_v))), abs(lam - exact_lam)


def _of_the_particle(h: np.ndarray) -> dict[str, float]:
    def exponents(scheme: Callable[[float], tuple[float, ...]]) -> list[float]:
        return [slope(h, errors) for errors in np.array([scheme(x) for x in h]).T]

    printed, corrected = exponents(_step_of_86), exponents(lambda x: _step_of_86(x, printed=False))
    whole, adapted, multiplier = exponents(_step_of_89)
    in_d = exponents(_step_of_87_in_d)
    return {
        "(82) printed": _difference_from_82(float(h[0])),
        "(86) q": printed[0],
        "(86) v": printed[1],
        "(86) corrected": corrected[0],
        "(89) p": whole - 1,
        "(89) adapted": adapted - 1,
        "(89) s": multiplier - 1,
        "(87) p": in_d[0] - 1,
        "(87) s": in_d[1] - 1,
    }


def _of_the_action(h: np.ndarray) -> dict[str, float]:
    """End of section 5: L_d of (63) against the action along a motion; its order is the exponent minus 1."""
    system, (q0, v0) = rolling_disk_on_incline.system(), rolling_disk_on_incline.typical_state()
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
    return {f"L_d {beta:g}": slope(h, np.array(found)) - 1 for beta, found in errors.items()}
