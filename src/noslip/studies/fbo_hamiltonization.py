"""FBO sections 3 and 4: the multipliers, the Lagrangians made from them, and what is symplectic.

The package finds Chaplygin's multiplier from metric and curvature alone, in symbols and in numbers (there
as d ln f, which is carried along a path). Here it does so for the three systems of the paper, whose own
multipliers are taken away first, and for others: Veselova's problem, a planimeter with a base of three
dimensions, the rolling disk with f = 1 and, under the group of the plane, the two-wheeled robot, whose f
gains a factor with every turn of a wheel. The density of the invariant measure is f^(m - 1), m the dimension
of the base. Not every system has a multiplier: the constraint zdot + (x + k y) ydot = 0 is that of the
particle for k = 0, and for k = 1 it is refused with its defect, in symbols and in numbers; so is the
Chaplygin sleigh under translations.

Table 2 says which methods are variational. Their steps keep dr ^ dP on the reduced phase space to round-off,
as differences of order 8 show; those of RDLA do not. See the errata of FBO, 25 and 29a.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from types import ModuleType

import jax
import jax.numpy as jnp
import numpy as np
import sympy as sp
from jax import Array
from sympy.physics.mechanics import dynamicsymbols

from noslip import symbolic
from noslip.analysis import multiplier_along, symplecticity_defect
from noslip.engine.backends.numpy_rows import evaluate_anyhow
from noslip.errors import NotHamiltonizable
from noslip.geometry.chaplygin import Reduction, make_group
from noslip.geometry.groups import Group
from noslip.geometry.hamiltonization import Hamiltonization, hamiltonize
from noslip.integrators.base import Integrator
from noslip.numerics.linear import spd_solve
from noslip.plots.panels import Curve, Panel
from noslip.studies._base import DeclaredRow, Study, Track, check, judge, statement
from noslip.studies._fbo import FROM_LEGENDRE, largest
from noslip.studies._rules import BROKEN, EQUAL, ZERO
from noslip.symbolic import SymbolicHamiltonization, SymbolicSystem
from noslip.system import System
from noslip.systems import (
    chaplygin_sleigh,
    fbo_particle,
    knife_edge,
    planimeter,
    rolling_disk,
    sinusoidal_particle,
    two_wheeled_robot,
    veselova,
)

PAPER = "FBO"
EXAMPLES = {
    "particle": (fbo_particle, "x", "(1 + x^2)^(-1/2)"),
    "sinusoidal particle": (sinusoidal_particle, "x", "(1 + sin(x)^2)^(-1/2)"),
    "knife edge": (knife_edge, "phi", "cos(phi)"),
}
"""The coordinate that f depends on, and f as printed."""
OTHERS = {
    "rolling disk": (rolling_disk, "translations", "f = 1"),
    "Veselova": (veselova, "translations", ""),
    "planimeter": (planimeter, "translations", "a base of three dimensions"),
    "two-wheeled robot": (two_wheeled_robot, "planar", "f on the covering space (errata FBO 29a)"),
}
STEP = 0.1
END = 1.4  # of the paths along which f is found, short of the zero of cos
X = 0.8  # where the formulas of section 3 are looked at
DEFECT = "defect of the symplectic form"
NOT_EVERY = "not every system is Hamiltonizable"
REFUSED = (
    "zdot + (x + y) ydot = 0, in numbers",
    "zdot + (x + y) ydot = 0, in symbols",
    "Chaplygin sleigh under translations",
)
IN_SYMBOLS = {
    "particle: f in symbols": "(1 + x^2)^(-1/2)",
    "sinusoidal particle: f in symbols": "(1 + sin(x)^2)^(-1/2)",
    "knife edge: f in symbols": "cos(phi)",
    "particle: Lc": "(30)",
    "particle: Hc": "(31)",
    "particle: Poincare Lagrangian": "(51), with ydot^2",
    "knife edge: Lc": "(68)",
    "knife edge: Poincare Lagrangian, E = 1": "(68)",
}


def _rows() -> dict[str, DeclaredRow]:
    rows = {}
    for name, (_, _, formula) in EXAMPLES.items():
        what = f"{name}: f in numbers, difference from the printed"
        rows[f"{name} f"] = statement(what, formula, ZERO, spread=None)
        rows[f"{name} measure"] = statement(
            f"{name}: divergence of the measure f dr dp", "f^(m - 1) is its density", ZERO, spread=None
        )
    for what, formula in IN_SYMBOLS.items():
        rows[what] = statement(f"{what}, difference", formula, ZERO, spread=None)
    rows["(51)"] = statement(
        "particle: Poincare Lagrangian as printed, difference",
        "(51), with y^2",
        ZERO,
        reason="ydot^2 is meant (errata FBO 25)",
    )
    rows["x'"] = statement(
        f"section 3, particle: x' / xdot at x = {X:g}",
        f"1 + x^2 = {1 + X**2:g}",
        EQUAL,
        1 + X**2,
        reason="x' = sqrt(1 + x^2) xdot, since f = (1 + x^2)^(-1/2) (errata FBO 25)",
    )
    rows["P_x"] = statement(
        f"section 3, particle: P_x / x' at x = {X:g}",
        f"(1 + x^2)^(-1/2) = {(1 + X**2) ** -0.5:g}",
        EQUAL,
        (1 + X**2) ** -0.5,
        reason="P_x = x' / (1 + x^2), from (30) (errata FBO 25)",
    )
    rows["P_y"] = statement(f"section 3, particle: P_y / y' at x = {X:g}", "1", EQUAL, 1.0)
    for name, (_, _, note) in OTHERS.items():
        rows[f"{name} measure"] = check(
            f"{name}: divergence of the measure f^(m - 1) dr dp", "0", ZERO, note=note, spread=None
        )
    rows |= {
        "not every": statement("zdot + (x + y) ydot = 0: |d(d ln f)| at x = 0.5, y = 0.4", NOT_EVERY, BROKEN),
        "formula": check("the same less (1 - u^2) / (1 + u^2)^2, u = x + y", "0", ZERO, spread=None),
        "refused": check(f"refused, out of: {'; '.join(REFUSED)}", "3", EQUAL, 3.0),
        "RDLA": statement(f"table 2, RDLA, sinusoidal particle: {DEFECT}", "not variational", BROKEN),
    }
    for name in EXAMPLES:
        for method in ("HDEL", "PTHDEL"):
            rows[f"{method} {name}"] = statement(
                f"table 2, {method}, {name}: {DEFECT}", "variational", ZERO, spread=None
            )
    return rows


ROWS = _rows()
x, y, z, phi = dynamicsymbols("x y z phi")
alpha = sp.Symbol("alpha")
VALUES = {x: X, y: -0.3, phi: 0.6, x.diff(): 0.7, y.diff(): -0.4, phi.diff(): 0.5, alpha: 0.3}


def run(full: bool, track: Track) -> Study:
    ours: dict[str, float] = {}
    curves: list[Curve] = []
    for name, (module, coordinate, _) in track(list(EXAMPLES.items()), "the systems of the paper"):
        along, f, given = _found_along(module, coordinate)
        ours[f"{name} f"] = largest(f - given)
        ours[f"{name} measure"] = _divergence_of_the_measure(module, "translations")
        curves += [
            Curve(f"{name}, found", along, f),
            Curve(f"{name}, printed", along[::10], given[::10], "points"),
        ]
    ours |= _in_symbols()
    for name, (module, group, _) in track(list(OTHERS.items()), "other systems"):
        ours[f"{name} measure"] = _divergence_of_the_measure(module, group)
    ours |= _refusals() | _table_2(track)
    slopes = np.linspace(0.0, 1.0, 41)
    return Study(
        {"step": STEP, "states": "typical states of the catalogue", "x in section 3": X},
        judge(ROWS, ours),
        (
            Panel("Chaplygin's multiplier, 1 at the start", "x or phi", "f", tuple(curves)),
            Panel(
                "zdot + (x + k y) ydot = 0 is Hamiltonizable for k = 0 only",
                "k",
                "|d(d ln f)|",
                tuple(
                    Curve(f"at x = {a:g}, y = {b:g}", slopes, _defects(slopes, (a, b)))
                    for a, b in ((0.5, 0.4), (-0.3, 0.2), (0.1, -0.7))
                ),
            ),
        ),
    )


def without_multiplier(module: ModuleType) -> System:
    """The catalogue's system, so that f has to be found."""
    return dataclasses.replace(module.system(), multiplier=None)


# ---- in numbers -------------------------------------------------------------------------------------
def _found_along(module: ModuleType, coordinate: str) -> tuple[np.ndarray, ...]:
    """f as found along a path from 0, and the catalogue's, which is the printed one."""
    system = without_multiplier(module)
    along = np.linspace(0.0, END, 141)
    path = np.full((len(along), system.n), 0.1)
    path[:, system.index(coordinate)] = along
    f = multiplier_along(system, make_group(system, "translations"), path)
    given = np.asarray(jax.vmap(lambda q: module.multiplier(q, system.parameters))(path))
    return along, f, given


def _divergence_of_the_measure(module: ModuleType, group: str) -> float:
    """Of the reduced motion in (r, p), against the density f^(m - 1), f found."""
    reduced = hamiltonize(without_multiplier(module), group).reduced
    base = reduced.base_index
    r, w = (np.asarray(x)[None, base] for x in module.typical_state())
    (found,) = evaluate_anyhow(_measure_defect, reduced.group, reduced.system, r, w)
    return abs(float(found))


def _measure_defect(group: Group, system: System, r: Array, w: Array) -> Array:
    """dr dp shrinks by the reaction alone, at the rate of the trace of dF/dp; f^(m - 1) makes up for it."""
    reduced = Reduction(system, group)
    by_velocity = jax.jacfwd(reduced.reaction, 1)(r, w)
    divergence = jnp.trace(spd_solve(reduced.metric(r), by_velocity.T))
    return divergence + (len(r) - 1) * jnp.dot(Hamiltonization(reduced).omega(r), w)


def _table_2(track: Track) -> dict[str, float]:
    """RDLA on one system, which is enough to refute; the variational methods on all."""

    def defect(module: ModuleType, integrator: Integrator) -> float:
        return symplecticity_defect(module.system(), integrator, *module.typical_state(), step_size=STEP)

    ours = {"RDLA": defect(sinusoidal_particle, FROM_LEGENDRE["RDLA"])}
    for name, (module, _, _) in track(list(EXAMPLES.items()), "symplectic forms"):
        for method in ("HDEL", "PTHDEL"):
            ours[f"{method} {name}"] = defect(module, FROM_LEGENDRE[method])
    return ours


# ---- in symbols -------------------------------------------------------------------------------------
def _particle(coefficient: sp.Expr) -> SymbolicSystem:
    """A free particle with zdot + coefficient ydot = 0."""
    kinetic = sum(c.diff() ** 2 for c in (x, y, z)) / 2
    return symbolic.system(kinetic, (x, y, z), (z.diff() + coefficient * y.diff(),), {}, fibre=(z,))


def _knife_edge() -> SymbolicSystem:
    """(64)."""
    lagrangian = sum(c.diff() ** 2 for c in (x, y, phi)) / 2 + x * sp.sin(alpha)
    constraint = y.diff() - x.diff() * sp.tan(phi)
    return symbolic.system(lagrangian, (x, y, phi), (constraint,), {alpha: VALUES[alpha]}, fibre=(y,))


def _made(system: SymbolicSystem) -> SymbolicHamiltonization:
    return system.chaplygin().hamiltonization()


def _in_symbols() -> dict[str, float]:
    """f of all three; (30), (31), (51), (68) and what is printed wrongly."""
    particle, sine, knife = (_made(s) for s in (_particle(x), _particle(sp.sin(x)), _knife_edge()))
    (dx, dy), (Px, Py), E = particle.slopes, particle.momenta, particle.energy
    s, c = sp.sqrt(1 + x**2), sp.cos(phi)
    kx, kphi = knife.slopes
    poincare = (x.diff() ** 2 / s + s * y.diff() ** 2) / 2 + E / s
    slope = x * sp.sin(alpha)
    pairs = (
        (particle.multiplier, 1 / s),
        (sine.multiplier, 1 / sp.sqrt(1 + sp.sin(x) ** 2)),
        (knife.multiplier, c),
        (particle.lagrangian, (dx**2 / (1 + x**2) + dy**2) / 2),
        (particle.hamiltonian, ((1 + x**2) * Px**2 + Py**2) / 2),
        (particle.poincare_lagrangian, poincare),
        (knife.lagrangian, (kx**2 + c**2 * kphi**2) / 2 + slope),
        (
            knife.poincare_lagrangian.subs(knife.energy, 1),
            (x.diff() ** 2 / c + c * phi.diff() ** 2) / 2 + c * (slope + 1),
        ),
    )
    ours = {what: _difference(*pair) for what, pair in zip(IN_SYMBOLS, pairs, strict=True)}
    P_x, P_y = particle.momentum
    return ours | {
        "(51)": _difference(particle.poincare_lagrangian, poincare - s * (y.diff() ** 2 - y**2) / 2),
        "x'": float((1 / particle.multiplier).subs(x, X)),
        "P_x": float((P_x / dx).subs(x, X)),
        "P_y": float(P_y / dy),
    }


def _difference(found: sp.Expr, printed: sp.Expr) -> float:
    """0 if SymPy can show it, else its size at a point."""
    difference = sp.simplify(found - printed)
    others = dict.fromkeys(difference.free_symbols - {dynamicsymbols._t, alpha}, 0.9)
    rates = {c: value for c, value in VALUES.items() if c.is_Derivative}
    return abs(float(difference.subs(rates).subs(VALUES).subs(others)))


# ---- systems without a multiplier -------------------------------------------------------------------
TILTED = System(
    lambda q, v, p: 0.5 * jnp.dot(v, v),
    one_forms=lambda q, p: jnp.array([[0.0, q[0] + p["k"] * q[1], 1.0]]),
    coordinates=("x", "y", "z"),
    parameters={"k": 1.0},
    fibre=("z",),
)
"""zdot + (x + k y) ydot = 0."""


def _defects(k: np.ndarray, point: tuple[float, float]) -> np.ndarray:
    """|d(d ln f)| at the point, for each k."""
    group = make_group(TILTED, "translations")
    return np.asarray(evaluate_anyhow(_defect, group, TILTED, np.tile(point, (len(k), 1)), k))


def _defect(group: Group, system: System, r: Array, k: Array) -> Array:
    return Hamiltonization(Reduction(system.with_parameters({"k": k}), group)).integrability_defect(r)


def _refusals() -> dict[str, float]:
    (defect,) = _defects(np.ones(1), (0.5, 0.4))
    exact = (1 - 0.9**2) / (1 + 0.9**2) ** 2  # with u = x + y = 0.9
    attempts: tuple[Callable[[], object], ...] = (
        lambda: hamiltonize(TILTED),
        lambda: _made(_particle(x + y)),
        lambda: hamiltonize(chaplygin_sleigh.system()),
    )
    refused = [_is_refused(attempt) for attempt in attempts]
    return {"not every": float(defect), "formula": abs(float(defect - exact)), "refused": float(sum(refused))}


def _is_refused(attempt: Callable[[], object]) -> bool:
    try:
        attempt()
    except NotHamiltonizable:
        return True
    return False
