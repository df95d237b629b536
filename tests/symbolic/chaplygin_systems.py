"""Chaplygin systems in SymPy, and their reductions, for the tests of this folder."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import cache
from typing import Any

import pytest
import sympy as sp
from sympy.physics.mechanics import dynamicsymbols

from noslip import symbolic

t = dynamicsymbols._t
x, y, z, w, phi, theta, psi = dynamicsymbols("x y z w phi theta psi")
m, J, I, g, alpha, k, c, a, b, R = sp.symbols("m J I g alpha k c a b R", positive=True)
I1, I2, I3 = sp.symbols("I1:4", positive=True)
KNIFE = {m: 1.2, J: 0.7, g: 2.0, alpha: 0.3}
ROBOT = {m: 1.0, J: 0.6, a: 0.3, b: 0.5, R: 0.4, I: 0.1}


def d(f: sp.Expr) -> sp.Expr:
    return f.diff(t)


def squares(*coordinates: sp.Expr) -> sp.Expr:
    return sum(d(f) ** 2 for f in coordinates) / 2


# ---- the systems --------------------------------------------------------------------------------------
def fbo_particle() -> symbolic.SymbolicSystem:
    return symbolic.system(squares(x, y, z), [x, y, z], [d(z) + x * d(y)], {})


def sinusoidal_particle() -> symbolic.SymbolicSystem:
    return symbolic.system(squares(x, y, z), [x, y, z], [d(z) + sp.sin(x) * d(y)], {}, angles=[x])


def knife_edge() -> symbolic.SymbolicSystem:
    """FBO (64) with all constants, and the tangent as printed there."""
    lagrangian = (m * (d(x) ** 2 + d(y) ** 2) + J * d(phi) ** 2) / 2 + m * g * sp.sin(alpha) * x
    constraint = d(y) - d(x) * sp.tan(phi)
    return symbolic.system(lagrangian, [x, y, phi], [constraint], KNIFE, fibre=[y], angles=[phi])


def rolling_disk() -> symbolic.SymbolicSystem:
    lagrangian = (m * (d(x) ** 2 + d(y) ** 2) + J * d(theta) ** 2 + I * d(psi) ** 2) / 2
    rolling = [d(x) - R * d(psi) * sp.cos(theta), d(y) - R * d(psi) * sp.sin(theta)]
    values = {m: 1.1, J: 0.3, I: 0.6, R: 0.8}
    return symbolic.system(lagrangian, [x, y, theta, psi], rolling, values, fibre=[x, y], angles=[theta, psi])


def planimeter() -> symbolic.SymbolicSystem:
    r, s = sp.Matrix([x, y, z]), sp.Matrix(dynamicsymbols("s_1:4"))
    lagrangian = squares(*r, *s) - k * (x**2 + 2 * y**2 + 3 * z**2) / 2
    return symbolic.system(lagrangian, [*r, *s], list(d(s) - c * r.cross(d(r))), {k: 0.7, c: 1.3})


def veselova() -> symbolic.SymbolicSystem:
    """With a potential of its own; the multiplier does not depend on it."""
    aside = d(phi) * sp.sin(theta)
    rates = (
        aside * sp.sin(psi) + d(theta) * sp.cos(psi),
        aside * sp.cos(psi) - d(theta) * sp.sin(psi),
        d(phi) * sp.cos(theta) + d(psi),
    )
    kinetic = sum(moment * rate**2 for moment, rate in zip((I1, I2, I3), rates, strict=True)) / 2
    return symbolic.system(
        kinetic - k * sp.cos(theta),
        [phi, theta, psi],
        [d(phi) + sp.cos(theta) * d(psi)],
        {I1: 1.3, I2: 0.8, I3: 1.7, k: 0.6},
        fibre=[phi],
        angles=[phi, psi],
    )


def two_wheeled_robot(angles: Any = (theta, "psi_left", "psi_right")) -> symbolic.SymbolicSystem:
    left, right = dynamicsymbols("psi_left psi_right")
    ahead = d(x) * sp.cos(theta) + d(y) * sp.sin(theta)
    sideways = d(y) * sp.cos(theta) - d(x) * sp.sin(theta)
    sliding = m * (d(x) ** 2 + d(y) ** 2 + 2 * a * d(theta) * sideways)
    lagrangian = (sliding + (J + m * a**2) * d(theta) ** 2 + I * (d(left) ** 2 + d(right) ** 2)) / 2
    constraints = [sideways, ahead - b * d(theta) - R * d(left), ahead + b * d(theta) - R * d(right)]
    with warnings.catch_warnings(action="ignore"):  # the difference of the wheels is holonomic
        return symbolic.system(
            lagrangian,
            [x, y, theta, left, right],
            constraints,
            ROBOT,
            fibre=[x, y, theta],
            angles=angles,
        )


def not_hamiltonizable() -> symbolic.SymbolicSystem:
    return symbolic.system(squares(x, y, z), [x, y, z], [d(z) + (x + y) * d(y)], {})


def free_companion() -> symbolic.SymbolicSystem:
    """FBO's particle with one more coordinate, on which nothing acts."""
    return symbolic.system(squares(w, x, y, z), [w, x, y, z], [d(z) + x * d(y)], {})


def damped_particle() -> symbolic.SymbolicSystem:
    """With an invariant force on the fibre and a gyroscopic term."""
    lagrangian = squares(x, y, z) + c * x * d(z) - k * y**2 / 2
    return symbolic.system(
        lagrangian, [x, y, z], [d(z) + x * d(y)], {c: 0.4, k: 1.5}, force=[0, -d(y), -x * d(z) + sp.cos(t)]
    )


HAMILTONIZABLE: dict[str, Callable[[], symbolic.SymbolicSystem]] = {
    f.__name__: f
    for f in (
        fbo_particle,
        sinusoidal_particle,
        knife_edge,
        rolling_disk,
        planimeter,
        two_wheeled_robot,
        veselova,
    )
}
OTHERS = {f.__name__: f for f in (not_hamiltonizable, free_companion, damped_particle)}
HEAVY = ("two_wheeled_robot", "veselova")


@cache
def reduction(name: str) -> symbolic.SymbolicReduction:
    group = "planar" if name == "two_wheeled_robot" else "translations"
    return (HAMILTONIZABLE | OTHERS)[name]().chaplygin(group)


@cache
def hamiltonization(name: str) -> symbolic.SymbolicHamiltonization:
    return reduction(name).hamiltonization()


def over(names: Any, heavy: tuple[str, ...] = HEAVY) -> Any:
    """All of them; the heavy ones are slow."""
    marks = {True: [pytest.mark.slow], False: []}
    return pytest.mark.parametrize("name", [pytest.param(n, marks=marks[n in heavy]) for n in names])


def same(found: sp.Expr, expected: sp.Expr) -> bool:
    return sp.simplify(found - expected) == 0


@cache
def sleigh() -> symbolic.SymbolicSystem:
    sideways = d(y) * sp.cos(theta) - d(x) * sp.sin(theta)
    kinetic = m * (d(x) ** 2 + d(y) ** 2) + J * d(theta) ** 2
    return symbolic.system(kinetic / 2, [x, y, theta], [sideways], {m: 1.0, J: 2.0})
