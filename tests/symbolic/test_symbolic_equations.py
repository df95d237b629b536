"""Equations in LaTeX and in closed form, for people."""

from __future__ import annotations

import pytest
import sympy as sp
from sympy.physics.mechanics import dynamicsymbols

from noslip import symbolic

t = dynamicsymbols._t
m, J, a, R, w, I = sp.symbols("m J a R w I")


@pytest.fixture(scope="module")
def sleigh() -> symbolic.SymbolicSystem:
    x, y, theta = dynamicsymbols("x y theta")
    vx, vy, turn = (u.diff(t) for u in (x, y, theta))
    sideways = vy * sp.cos(theta) - vx * sp.sin(theta)
    kinetic = ((J + m * a**2) * turn**2 + m * (vx**2 + vy**2 + 2 * a * turn * sideways)) / 2
    return symbolic.system(kinetic, [x, y, theta], [sideways], {m: 1.0, J: 8.0, a: 1.0})


@pytest.fixture(scope="module")
def disk() -> symbolic.SymbolicSystem:
    q = dynamicsymbols("x y psi phi_1")
    vx, vy, spin, turn = (u.diff(t) for u in q)
    phi = q[3]
    kinetic = (m * (vx**2 + vy**2) + I * spin**2 + J * turn**2) / 2
    rolling = [vx - R * spin * sp.cos(phi), vy - R * spin * sp.sin(phi)]
    values = {m: 1.0, I: 0.5, J: 0.3, R: 1.0, w: 2.0}
    return symbolic.system(kinetic, q, rolling, values, force=[0, 0, w * t, 0])


def test_multiplier_and_acceleration_of_the_sleigh_in_closed_form(sleigh: symbolic.SymbolicSystem) -> None:
    x, y, theta = dynamicsymbols("x y theta")
    along = x.diff(t) * sp.cos(theta) + y.diff(t) * sp.sin(theta)
    turn = theta.diff(t)
    lam = m * J * turn * along / (J + m * a**2)
    assert sp.simplify(sleigh.multipliers_expr[0] - lam) == 0
    assert sp.simplify(sleigh.acceleration_expr[2] + m * a * turn * along / (J + m * a**2)) == 0
    assert sleigh.one_forms_expr == sp.ImmutableMatrix([[-sp.sin(theta), sp.cos(theta), 0]])
    assert sleigh.mass_matrix_expr[0, 2] == -m * a * sp.sin(theta)


def test_equations_of_the_sleigh(sleigh: symbolic.SymbolicSystem) -> None:
    text = sleigh.equations_latex()
    assert text.startswith(r"\begin{aligned}")
    assert text.endswith(r"\end{aligned}")
    assert text.count("&=") == 4
    assert r"&= - \lambda \sin{\left(\theta \right)}" in text
    assert r"&= \lambda \cos{\left(\theta \right)}" in text
    assert r"\ddot{\theta}" in text
    assert r"\dot{\theta}^{2}" in text
    assert r"- \dot{x} \sin{\left(\theta \right)} + \dot{y} \cos{\left(\theta \right)} &= 0" in text
    assert "q_" not in text
    assert "v_" not in text
    assert sleigh._repr_latex_() == f"$\\displaystyle {text}$"


def test_multiplier_accelerations_and_one_form_of_the_sleigh(sleigh: symbolic.SymbolicSystem) -> None:
    assert r"\lambda &= \frac{m J \dot{\theta}" in sleigh.multipliers_latex()
    assert r"{m a^{2} + J}" in sleigh.multipliers_latex()
    assert r"\ddot{\theta} &= - \frac{m a \dot{\theta}" in sleigh.accelerations_latex()
    assert (
        r"\mu &= - \sin{\left(\theta \right)} \, dx + \cos{\left(\theta \right)} \, dy"
        in sleigh.one_forms_latex()
    )


def test_two_constraints_are_numbered_and_forces_stand_on_the_right(disk: symbolic.SymbolicSystem) -> None:
    equations = disk.equations_latex()
    assert r"m \ddot{x} &= \lambda_{1}" in equations
    assert r"m \ddot{y} &= \lambda_{2}" in equations
    assert r"J \ddot{\phi}_{1} &= 0" in equations
    assert "w t" in equations.split(r"\\")[2].split("&=")[1]
    assert r"\mu^{1} &= dx - R \cos{\left(\phi_{1} \right)} \, d\psi" in disk.one_forms_latex()
    assert r"\mu^{2} &= dy - R \sin{\left(\phi_{1} \right)} \, d\psi" in disk.one_forms_latex()
    assert r"\lambda_{2} &=" in disk.multipliers_latex()
    assert r"\ddot{\psi} &= \frac{w t}{m R^{2} + I}" in disk.accelerations_latex()


def test_the_drift_of_affine_constraints_is_shown() -> None:
    x, y, z = q = dynamicsymbols("x y z")
    kinetic = sum(u.diff(t) ** 2 for u in q) / 2
    system = symbolic.system(kinetic, q, [z.diff(t) - (y + 1) * x.diff(t) - w * x], {w: 1.0})
    assert system.drift_expr == sp.ImmutableMatrix([-w * x])
    text = system.one_forms_latex()
    assert r"\left(- y - 1\right) \, dx + dz" in text
    assert r"b &= - w x" in text


def test_nonlinear_constraints_show_their_derivative_by_the_velocities() -> None:
    q = dynamicsymbols("x y z")
    vx, vy, vz = (u.diff(t) for u in q)
    system = symbolic.system((vx**2 + vy**2 + vz**2) / 2, q, [vx**2 + vy**2 - vz**2], {})
    assert r"2 \dot{x} \, dx + 2 \dot{y} \, dy - 2 \dot{z} \, dz" in system.one_forms_latex()
    assert r"\dot{x}^{2} + \dot{y}^{2} - \dot{z}^{2} &= 0" in system.equations_latex()
    assert system.multipliers_expr == sp.ImmutableMatrix([0])


def test_a_constraint_that_is_linear_only_after_cancelling_is_linear() -> None:
    q = dynamicsymbols("x y z")
    x, y = q[:2]
    vx, vy, vz = (u.diff(t) for u in q)
    kinetic = (vx**2 + vy**2 + vz**2) / 2
    hidden = (vz - y * vx) * (sp.sin(x) ** 2 + sp.cos(x) ** 2) + vx**2 - (vx - vy) * (vx + vy) - vy**2
    system = symbolic.system(kinetic, q, [hidden], {})
    assert system.kind == "linear"
    assert sp.simplify(system.one_forms_expr - sp.Matrix([[-y, 0, 1]])) == sp.zeros(1, 3)
