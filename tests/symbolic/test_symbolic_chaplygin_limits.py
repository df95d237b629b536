"""What is no Chaplygin system or not Hamiltonizable, how f is searched for, and what people are shown."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import pytest
import sympy as sp
from chaplygin_systems import (
    ROBOT,
    c,
    d,
    g,
    hamiltonization,
    k,
    reduction,
    same,
    sleigh,
    squares,
    t,
    theta,
    two_wheeled_robot,
    x,
    y,
    z,
)
from sympy.physics.mechanics import dynamicsymbols

from noslip import symbolic
from noslip.symbolic._exact import is_zero
from noslip.symbolic._hamiltonization import find_multiplier


# ---- what is refused ----------------------------------------------------------------------------------
def test_the_defect_of_a_system_that_is_not_hamiltonizable() -> None:
    u = x + y
    with pytest.raises(ValueError, match=r"^not Hamiltonizable: the integrability defect is ") as caught:
        reduction("not_hamiltonizable").hamiltonization()
    text = str(caught.value).removeprefix("not Hamiltonizable: the integrability defect is ")
    names = {"x": sp.Function("x"), "y": sp.Function("y"), "t": t}
    defect = sp.sympify(text.partition(" (d_x omega_y - d_y omega_x")[0], names)
    assert same(defect, (1 - u**2) / (1 + u**2) ** 2)
    first, second = reduction("not_hamiltonizable").omega  # given all the same
    assert same(first, -u / (1 + u**2))
    assert second == 0


def test_a_free_companion_fails_the_algebraic_condition() -> None:
    """The only candidate is -x dx / (2 (1 + x^2)), closed; but no f(r) gives a reaction with w left alone."""
    reduced = reduction("free_companion")
    assert same(reduced.omega[1], -x / (2 * (1 + x**2)))
    with pytest.raises(
        ValueError, match=r"not Hamiltonizable: the algebraic defect is .* in the equation of w"
    ):
        reduced.hamiltonization()


FREE, SLIDING = squares(x, y, z), d(z) + x * d(y)


def build(lagrangian: sp.Expr = FREE, constraint: Any = SLIDING, **options: Any) -> Any:
    return symbolic.system(lagrangian, [x, y, z], [constraint], {k: 1.0, c: 0.5}, **options)


NO_CHAPLYGIN: list[tuple[Callable[[], Any], str, str]] = [
    (sleigh, "planar", "but SE(2) has 3 directions and the system 1 constraint"),
    (sleigh, "translations", "under translations of (theta): T_qQ must be the sum of the fibre directions"),
    (sleigh, "SO(3)", "unknown group 'SO(3)'; known: planar, translations."),
    (
        lambda: build(FREE - k * (x**2 + z**2) / 2),
        "translations",
        "under translations of (z): the Lagrangian must be invariant, but its term -k*z(t)**2/2 depends on z",
    ),
    (
        lambda: build(FREE + z**2 * d(x) ** 2 / 2 + d(x) ** 2 * sp.sin(z) ** 2),
        "translations",
        "but its term (z(t)**2/2 + sin(z(t))**2)*Derivative(x(t), t)**2 depends on z",
    ),
    (
        lambda: build(constraint=d(z) + x * d(y) + z * d(x)),
        "translations",
        "the constraints must be invariant, but solved for the fibre velocities their term "
        "-z(t)*Derivative(x(t), t) depends on z",
    ),
    (
        lambda: build(fibre=[x]),
        "translations",
        "but the constraints do not determine the velocities of (x): "
        "the determinant of their coefficients is 0",
    ),
    (
        lambda: build(constraint=d(z) + x * d(y) - c),
        "translations",
        "the constraints must be linear in the velocities, but they are affine",
    ),
    (
        lambda: build(constraint=d(z) ** 2 - d(y) ** 2 - d(x) ** 2),
        "translations",
        "the constraints must be linear in the velocities, but they are nonlinear",
    ),
    (
        lambda: build(force=[0, 0, -k * z + sp.cos(t)]),
        "translations",
        "the force must be invariant, but its part -k*z(t) depends on z",
    ),
]


@pytest.mark.parametrize(("make", "group", "sentence"), NO_CHAPLYGIN, ids=[case[2] for case in NO_CHAPLYGIN])
def test_no_chaplygin_system(make: Callable[[], Any], group: str, sentence: str) -> None:
    with pytest.raises(ValueError, match=r"^(this is no Chaplygin system under|unknown group)") as caught:
        make().chaplygin(group)
    assert sentence in str(caught.value)


@pytest.mark.slow
def test_a_robot_on_a_slope_is_not_invariant_under_planar_motions() -> None:
    flat = two_wheeled_robot()
    left, right = dynamicsymbols("psi_left psi_right")
    with warnings.catch_warnings(action="ignore"):
        tilted = symbolic.system(
            flat.lagrangian_expr - g * x,
            [x, y, theta, left, right],
            list(flat.constraints_expr),
            ROBOT | {g: 1.0},
            fibre=[x, y, theta],
        )
    with pytest.raises(ValueError, match=r"invariant, but its term -g\*x\(t\) depends on x"):
        tilted.chaplygin("planar")


def test_invariance_is_seen_through_identities() -> None:
    """z appears, but only in sin^2 + cos^2, and as a factor of the whole constraint."""
    hidden = squares(x, y) + d(z) ** 2 * (sp.sin(z) ** 2 + sp.cos(z) ** 2) / 2
    found = build(hidden, constraint=z * d(z) + z * x * d(y)).chaplygin()
    assert found.connection == sp.ImmutableMatrix([[0, x]])
    assert found.constrained_lagrangian == d(x) ** 2 / 2 + (1 + x**2) * d(y) ** 2 / 2
    assert found.determinant == z
    assert found.hamiltonization().multiplier == 1 / sp.sqrt(1 + x**2)


@pytest.mark.parametrize(
    ("term", "sentence"),
    [
        (c * x * d(y), "the terms of the Lagrangian linear in the velocities leave the defect c*x(t)**2"),
        (c * x * d(z), "the terms of the Lagrangian linear in the velocities leave the defect c*x(t)*"),
        (0, "an applied force has no Hamiltonian, but this system has a `force`"),
    ],
)
def test_what_has_no_hamiltonian_of_this_form(term: Any, sentence: str) -> None:
    options = {} if term != 0 else {"force": [0, -d(y), 0]}
    with pytest.raises(ValueError, match=r"^not Hamiltonizable: ") as caught:
        build(FREE + term, **options).chaplygin().hamiltonization()
    assert sentence in str(caught.value)


def test_a_gyroscopic_term_that_fits_is_taken_along() -> None:
    """F_i = (omega_i p_j - omega_j p_i) rdot^j holds for a = c x dx, since omega is along dx too."""
    found = build(FREE + c * x * d(x)).chaplygin().hamiltonization()
    dx, dy = found.slopes
    Px, Py = found.momenta
    root = sp.sqrt(1 + x**2)
    assert same(found.lagrangian, (dx**2 / root**2 + dy**2) / 2 + c * x * dx / root)
    assert same(found.hamiltonian, ((Px * root - c * x) ** 2 + Py**2) / 2)


# ---- the search for f ---------------------------------------------------------------------------------
q0, q1 = sp.symbols("q_0 q_1", real=True)
ROOT = sp.sqrt(1 + q0**2)


@pytest.mark.parametrize(
    "f",
    [
        sp.Integer(1),
        (1 + q0**2) ** (-k / 2),  # the exponent is a constant of the system
        sp.exp(-(q0**2) / 2 + q0 * q1),  # no product of powers
        sp.exp(k * q0) / (c + q1**2),
        sp.cos(q0) ** 2 * sp.sin(q1) / (1 + sp.sin(q0)),
        (2 - sp.cos(q0) ** 2) ** 3 * (1 + q1 * sp.cos(q0)),
        1 / (q0 + ROOT),
        sp.cosh(q0) ** sp.Rational(-1, 2) * sp.tan(q1),
        (c * sp.sin(2 * q0) + 3) / q1,
    ],
)
def test_a_multiplier_is_found_from_its_logarithmic_differential(f: sp.Expr) -> None:
    r = (q0, q1)
    omega = [sp.simplify(f.diff(x) / f) for x in r]
    factors = find_multiplier(omega, r)
    assert factors is not None
    found = sp.Mul(*(base**exponent for base, exponent in factors.items()))
    assert all(is_zero((sp.log(found) - sp.log(f)).diff(x)) for x in r)


def test_a_multiplier_that_sympy_cannot_find_is_told_with_its_differential() -> None:
    weight = sp.exp(x**2)
    reduced = build(squares(x, y) + weight * d(z) ** 2 / 2).chaplygin()
    with pytest.raises(
        ValueError, match=r"is Hamiltonizable, but SymPy found no closed form of f from d ln f = "
    ):
        reduced.hamiltonization()
    assert same(reduced.omega[0], -x * weight / (1 + x**2 * weight))


def test_one_base_coordinate_needs_no_multiplier() -> None:
    with warnings.catch_warnings(action="ignore"):  # two constraints on three coordinates are holonomic
        system = symbolic.system(FREE, [x, y, z], [d(y) - x * d(x), d(z) - x**2 * d(x)], {})
    found = system.chaplygin().hamiltonization()
    assert found.multiplier == found.measure == 1
    assert found.reduction.base == ("x",)


# ---- for people ---------------------------------------------------------------------------------------
def test_the_reduction_in_latex() -> None:
    text = reduction("fbo_particle").latex()
    assert text.splitlines() == [
        r"\begin{aligned}",
        r"l_c &= \frac{\dot{x}^{2}}{2} + \frac{\dot{y}^{2} \left(x^{2} + 1\right)}{2} \\",
        r"\mathcal{A} &= x \, dy \\",
        r"\mathcal{B} &= -dx \wedge dy \\",
        r"- x \dot{y}^{2} + \ddot{x} &= - x \dot{y}^{2} \\",
        r"2 x \dot{x} \dot{y} + \ddot{y} \left(x^{2} + 1\right) &= x \dot{x} \dot{y} \\",
        r"\dot{z} &= - x \dot{y}",
        r"\end{aligned}",
    ]
    assert reduction("fbo_particle")._repr_latex_() == f"$\\displaystyle {text}$"
    two = reduction("rolling_disk").latex()
    assert r"\mathcal{A}^{2} &= - R \sin{\left(\theta \right)} \, d\psi" in two
    assert r"\mathcal{B}^{1} &= " in two


def test_the_hamiltonization_in_latex() -> None:
    text = hamiltonization("knife_edge").latex()
    assert r"f &= \cos{\left(\phi \right)}" in text
    assert r"f^{d-1} &= " in text
    assert r"P_{\phi} &= J \phi' \cos^{2}{\left(\phi \right)}" in text
    assert r"\frac{P_{\phi}^{2}}{2 J \cos^{2}{\left(\phi \right)}}" in text
    assert r"\left(m g x \sin{\left(\alpha \right)} + E\right) \cos{\left(\phi \right)}" in text
    assert hamiltonization("knife_edge")._repr_latex_() == f"$\\displaystyle {text}$"
    assert r"\xi" not in text


def test_names_that_the_user_has_taken_are_left_alone() -> None:
    E, Px = sp.symbols("E P_x")
    lagrangian = FREE - E * x**2 - Px * y**2
    found = symbolic.system(lagrangian, [x, y, z], [d(z) + x * d(y)], {E: 1.0, Px: 2.0})
    found = found.chaplygin().hamiltonization()
    assert found.energy == sp.Symbol("E_")
    assert found.momenta[0] == sp.Symbol("P_x_")
    assert found.poincare_lagrangian.has(E, Px, found.energy)


def test_equations_and_names_of_a_reduction() -> None:
    reduced = reduction("damped_particle")
    assert reduced.base == ("x", "y")
    assert reduced.fibre == ("z",)
    assert repr(reduced) == "SymbolicReduction(base=('x', 'y'), fibre=('z',), group='translations')"
    assert reduced.potential == k * y**2 / 2
    assert reduced.lagrangian == reduced.system.lagrangian_expr
    assert reduced.group_velocity == sp.ImmutableMatrix([d(z)])
    along = -d(y) - x * (-x * -x * d(y) + sp.cos(t))  # force_y - A_y force_z with zdot = -x ydot
    assert same(reduced.force[1], along)
    first = reduced.equations[0]
    assert isinstance(first, sp.Eq)
    assert first.has(x.diff(t, 2))
    assert repr(hamiltonization("fbo_particle")) == "SymbolicHamiltonization(multiplier=1/sqrt(x(t)**2 + 1))"
