"""Every mistake is answered by one sentence that names what was expected and what came."""

from __future__ import annotations

from typing import Any

import pytest
import sympy as sp
from sympy.physics.mechanics import dynamicsymbols

from noslip import simulate, symbolic
from noslip.integrators.runge_kutta4 import RungeKutta4

t = dynamicsymbols._t
x, y, z, other = dynamicsymbols("x y z other")
vx, vy, vz = (u.diff(t) for u in (x, y, z))
k, mass = sp.symbols("k mass")
L = (vx**2 + vy**2 + vz**2) / 2
CONTACT = vz - y * vx


def build(**changes: Any) -> symbolic.SymbolicSystem:
    arguments: dict[str, Any] = {
        "lagrangian": L - k * x**2,
        "coordinates": [x, y, z],
        "nonholonomic_constraints": [CONTACT],
        "constants": {k: 1.0, mass: 2.0},
    }
    return symbolic.system(**{**arguments, **changes})


MISTAKES: list[tuple[dict[str, Any], str]] = [
    ({"lagrangian": L - sp.Symbol("mas") * x}, "unknown symbol 'mas'; did you mean 'mass'?"),
    ({"lagrangian": L - sp.Symbol("x")}, "plain symbol 'x', but the coordinate is the function x(t)"),
    ({"lagrangian": L - sp.Symbol("k", positive=True)}, "'k' has other assumptions than the constant 'k'"),
    ({"lagrangian": L + other}, "unknown function 'other'; known: k, mass, x, y, z."),
    ({"lagrangian": L + other.diff(t)}, "the derivative Derivative(other(t), t) is none of these"),
    ({"lagrangian": L + x.diff(t, 2)}, "must not contain accelerations, but Derivative(x(t), (t, 2))"),
    ({"lagrangian": L + x.diff(t, 3)}, "the derivative Derivative(x(t), (t, 3)) is none of these"),
    ({"lagrangian": L + vx**3}, "must be quadratic in the velocities"),
    ({"lagrangian": L + sp.sqrt(1 + vx**2)}, "must be quadratic in the velocities"),
    ({"multiplier": t * x}, "`multiplier` must not depend explicitly on the time t"),
    ({"lagrangian": L - vz**2 / 2}, "mass matrix d2L/dv2 of rank 3, but its rank is 2"),
    ({"lagrangian": L + sp.I * x}, "must be real and finite, but I was found"),
    ({"lagrangian": L + sp.besselj(1, x)}, "functions that JAX has, but one of besselj is not"),
    ({"lagrangian": "x**2"}, "`lagrangian` must be a SymPy expression, but 'x**2' (str) was provided"),
    ({"lagrangian": sp.Matrix([L])}, "`lagrangian` must be a SymPy expression, but Matrix"),
    (
        {"nonholonomic_constraints": [x**2 + y**2 - 1]},
        "it is holonomic and belongs into `holonomic_constraints`",
    ),
    ({"nonholonomic_constraints": [sp.true]}, "a constraint must relate velocities, but True was provided"),
    (
        {"nonholonomic_constraints": [CONTACT, x * CONTACT]},
        "must be independent, but the 2 given have rank 1",
    ),
    (
        {"nonholonomic_constraints": [vx, vy, vz]},
        "`nonholonomic_constraints` must be from 0 to 2, but 3 were given",
    ),
    ({"nonholonomic_constraints": [vz - sp.Symbol("kk")]}, "unknown symbol 'kk'; did you mean 'k'?"),
    ({"nonholonomic_constraints": CONTACT}, "`nonholonomic_constraints` must be a list, but"),
    ({"coordinates": sp.symbols("x y z")}, "made by sympy.physics.mechanics.dynamicsymbols, but x (Symbol)"),
    ({"coordinates": ["x", "y", "z"]}, "dynamicsymbols, but 'x' (str) was provided"),
    ({"coordinates": x}, "`coordinates` must be a list, but x(t) (x) was provided"),
    ({"coordinates": []}, "`coordinates` must be at least one, but none was provided"),
    ({"coordinates": [x, y, y, z]}, "must have different names, but 'y' is repeated"),
    ({"coordinates": [x, y, sp.Function("z")(k)]}, "functions of one time, but 'k', 't' were found"),
    ({"constants": [k]}, "`constants` must be a dict of symbols and numbers, but [k] was provided"),
    ({"constants": {"k": 1.0}}, "`constants` must have SymPy symbols as keys, but 'k' (str)"),
    ({"constants": {k: sp.pi * mass}}, "constant 'k' must be a number, but pi*mass was provided"),
    ({"constants": {k: "one"}}, "parameter 'k' must be a number, but 'one' was provided"),
    ({"constants": {k: 1.0, t: 2.0}}, "must have different names, but 't' is repeated"),
    ({"constants": {k: 1.0, sp.Symbol("x"): 2.0}}, "must have different names, but 'x' is repeated"),
    ({"force": [0, vx]}, "`force` must have 3 entries, but 2 were provided"),
    ({"force": [0, 0, sp.Symbol("t", real=True)]}, "'t' has other assumptions than the time 't'"),
    ({"force": [0, 0, x.diff(t, 2)]}, "`force` must not contain accelerations"),
    ({"frame": [[1, 0, 0]]}, "`frame` must be a SymPy Matrix, but [[1, 0, 0]] (list) was provided"),
    ({"frame": sp.eye(3)}, "`frame` must have shape (3, 2), but (3, 3) was provided"),
    (
        {"frame": sp.Matrix([[vx, 0], [0, 1], [y, 0]])},
        "coordinates and constants only, but Derivative(x(t), t)",
    ),
    ({"multiplier": vx}, "`multiplier` must depend on coordinates and constants only"),
    ({"first_integrals": [x]}, "`first_integrals` must be a dict of names and expressions, but [x(t)]"),
    ({"first_integrals": {"turn": sp.Symbol("J")}}, "`first_integrals['turn']` must be made of coordinates"),
    ({"angles": "xy"}, "`angles` must be a list, but 'xy' (str) was provided"),
    ({"angles": ["X"]}, "unknown coordinate in `angles` 'X'"),
    ({"fibre": [other]}, "unknown coordinate in `fibre` 'other'"),
    ({"fibre": [x, y]}, "`fibre` must name 1 coordinates, one per constraint"),
]


@pytest.mark.parametrize(("changes", "sentence"), MISTAKES, ids=[sentence for _, sentence in MISTAKES])
def test_a_mistake_is_named(changes: dict[str, Any], sentence: str) -> None:
    with pytest.raises((ValueError, TypeError)) as caught:
        build(**changes)
    assert sentence in str(caught.value)


WHERE_IT_RUNS = [
    ({"frame": sp.Matrix([[1, 0], [0, 1], [0, 0]])}, "`frame` must satisfy one_forms(q) @ frame(q) = 0"),
    ({"angles": [x]}, "`x` was declared an angle, but the lagrangian is not 2 pi-periodic in it"),
]


@pytest.mark.parametrize(
    ("changes", "sentence"), WHERE_IT_RUNS, ids=[sentence for _, sentence in WHERE_IT_RUNS]
)
def test_a_mistake_in_values_is_named_where_it_runs(changes: dict[str, Any], sentence: str) -> None:
    with pytest.raises(ValueError, match=r"at q = \[") as caught:
        simulate(build(**changes), RungeKutta4(), [0.2, 0.5, -0.1], [0.8, 0.6, 0.4], step_size=0.1, steps=1)
    assert sentence in str(caught.value)


def test_an_equation_is_left_side_minus_right_side() -> None:
    equation = build(nonholonomic_constraints=[sp.Eq(vz, y * vx)])
    assert equation.one_forms == build().one_forms
