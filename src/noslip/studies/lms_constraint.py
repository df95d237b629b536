"""LMS sections 3 to 5: orders, and how well the constraint is kept with and without the projection.

The paper shows the constraint function along the particle of example 4.2, small for section 4 and
exactly zero for section 5, again without numbers. For that particle both are zero to round-off: its mass
matrix is constant and its constraint affine in q, so the constraint is bilinear in (q, p) and section 4
keeps it as well. The difference between the sections shows on a disk on an incline, which we add.

Remark 4.1 states an order, sections 3.1 and 3.2 powers of h for the constraint; both are measured on the
disk. In section 3.1 the force of (23) does have the power that is claimed; that of the line after it, in
which the force carries a derivative by q0, has one less.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike
from scipy.integrate import simpson

from noslip.analysis import constraint_error, measured_order
from noslip.analysis.order import slope
from noslip.geometry.exact_generating_function import approximate_constraint, terms
from noslip.integrators.generating_function import GeneratingFunction
from noslip.integrators.reference_flow import ReferenceFlow
from noslip.plots.panels import Curve, Panel
from noslip.simulate import simulate
from noslip.studies._base import Study, Track, check, exponent, judge, statement
from noslip.studies._rules import NEGLIGIBLE, ZERO
from noslip.systems import nonholonomic_particle, rolling_disk_on_incline

PAPER = "LMS"
H = 0.1
SECTION_4, SECTION_5 = GeneratingFunction(), GeneratingFunction(projected=True)
PLAIN, PROJECTED = "section 4", "section 5"
ORDERS = (
    ("remark 4.1: order of S_sym with alpha = 0.2", GeneratingFunction(0.2, symmetric=True), 2),
    ("remark 4.1: order of S_sym with alpha = 1", GeneratingFunction(1.0, symmetric=True), 2),
)
FORCE = "if the force is averaged like S, which the remark does not say (errata LMS, remark 4.1)"
COST = "h^r: a derivative by q0 or q1 costs a power of h (errata LMS, section 3.1)"
GOOD, EXACT = "very good, small scale", "exact preservation"
ROWS = {
    "particle, section 4": statement(
        f"particle, {PLAIN}: largest |phi|",
        GOOD,
        NEGLIGIBLE,
        note="round-off, since mu is affine in q (errata LMS 15)",
        spread=None,
    ),
    "particle, section 5": statement(f"particle, {PROJECTED}: largest |phi|", EXACT, ZERO, spread=None),
    "disk on an incline, section 4": check(
        f"disk on an incline, {PLAIN}: largest |phi|",
        GOOD,
        NEGLIGIBLE,
        reason="where the forms are not affine section 4 leaves the constraint (errata LMS 15)",
    ),
    "disk on an incline, section 5": statement(
        f"disk on an incline, {PROJECTED}: largest |phi|", EXACT, ZERO, spread=None
    ),
    **{quantity: exponent(quantity, order, note=FORCE) for quantity, _, order in ORDERS},
    "S": exponent("(22): power of h of S - S^h, r = 2", 3),
    "(23)": exponent("(23): power of h of the force, r = 2", 3),
    "force": exponent("the line after (23): power of h of its force, r = 2", 3, reason=COST),
    "phi~": exponent("section 3.1: power of h of phi~ on exact pairs, r = 2", 3, reason=COST),
    "step": statement(
        "section 3.2: |phi| after one step from the constraint",
        "0",
        ZERO,
        reason="the discrete flow leaves it by O(h^(r+1)) (errata LMS 13)",
        spread=1e-2,
    ),
}


def run(full: bool, track: Track) -> Study:
    t_end = 1e3 if full else 100.0
    problems = {"particle": nonholonomic_particle, "disk on an incline": rolling_disk_on_incline}
    kept: dict[tuple[str, str], float] = {}
    panels = []
    for name, module in track(list(problems.items()), "the constraint along runs"):
        runs = {
            label: simulate(module.system(), method, *module.typical_state(), step_size=H, t_end=t_end)
            for label, method in ((PLAIN, SECTION_4), (PROJECTED, SECTION_5))
        }
        kept |= {(name, label): constraint_error(r) for label, r in runs.items()}
        curves = tuple(
            Curve(label, r.t[1:], np.max(np.abs(r.constraint_residual[1:]), axis=1), "error")
            for label, r in runs.items()
        )
        panels.append(Panel(f"{name}, h = {H:g}", "t", "largest |phi(q, v)|", curves, "y"))
    disk = rolling_disk_on_incline
    ours: dict[str, float | tuple[float, str]] = {}
    for quantity, method, _ in track(ORDERS, "orders"):
        found = measured_order(disk.system(), method, *disk.typical_state(), t_end=1.0, steps=(20, 40, 80))
        ours[quantity] = min(found.global_[:2])
    ours |= {f"{name}, {label}": error for (name, label), error in kept.items()}
    ours |= _of_section_3()
    return Study(
        {
            "h": H,
            "t_end": t_end,
            "states": "typical states of nonholonomic_particle and rolling_disk_on_incline",
        },
        judge(ROWS, ours),
        tuple(panels),
    )


def _of_section_3() -> dict[str, float | tuple[float, str]]:
    """Powers of h in (22), (23), the line after it and (18) on exact pairs, r = 2; |phi| after a step from
    the constraint."""
    system, (q0, v0) = rolling_disk_on_incline.system(), rolling_disk_on_incline.typical_state()
    hs = np.array([0.1, 0.05, 0.025])
    errors: dict[str, list[float]] = {"S": [], "(23)": [], "force": [], "phi~": [], "step": []}

    def reaction(q: ArrayLike, v: ArrayLike) -> np.ndarray:
        return np.asarray(system.mu(q, v).T @ system.multipliers(q, v))

    for h in hs:
        pair = terms(system, q0, v0, h)
        node, w = (q0 + pair.q1) / 2, (pair.q1 - q0) / h
        run = simulate(system, SECTION_4, q0, v0, step_size=h, steps=1)
        motion = simulate(system, ReferenceFlow(), q0, v0, step_size=h / 8, steps=8)
        forces = [reaction(q, v) for q, v in zip(motion.q, motion.v, strict=True)]
        impulse = simpson(np.array(forces), x=motion.t, axis=0)
        errors["S"].append(abs(float(h * system.lagrangian(node, w, system.parameters) - pair.S)))
        errors["(23)"].append(float(np.max(np.abs(h * reaction(node, w) - impulse))))
        errors["force"].append(float(np.max(np.abs(h / 2 * reaction(node, w) - pair.force0))))
        errors["phi~"].append(float(np.max(np.abs(approximate_constraint(system, q0, pair.q1, h, 0.5)))))
        errors["step"].append(float(np.max(np.abs(run.constraint_residual[1]))))
    power = {name: slope(hs, np.array(values)) for name, values in errors.items()}
    ours: dict[str, float | tuple[float, str]] = {
        name: power[name] for name in ("S", "(23)", "force", "phi~")
    }
    return ours | {"step": (errors["step"][0], f"measured power of h {power['step']:.2f}")}
