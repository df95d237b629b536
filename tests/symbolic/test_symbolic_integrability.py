"""Constraints that are holonomic in disguise are told from nonholonomic ones."""

from __future__ import annotations

import warnings
from typing import Any

import pytest
import sympy as sp
from sympy.physics.mechanics import dynamicsymbols

from noslip import symbolic

t = dynamicsymbols._t
x, y, z, w, u = dynamicsymbols("x y z w u")
R, k = sp.symbols("R k", positive=True)


def d(f: sp.Expr) -> sp.Expr:
    return f.diff(t)


def build(coordinates: Any, constraints: Any) -> tuple[symbolic.SymbolicSystem, list[str]]:
    kinetic = sum(d(f) ** 2 for f in coordinates) / 2
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        system = symbolic.system(kinetic, list(coordinates), constraints, {R: 2.0, k: 0.5})
    assert all(w.category is UserWarning for w in caught)
    return system, [str(w.message) for w in caught]


@pytest.mark.parametrize(
    ("coordinates", "constraints"),
    [
        ((x, y, z), [d(z) - y * d(x)]),  # contact
        ((x, y, z), [d(z) - y**2 * d(x)]),  # Martinet: brackets of two levels where y = 0, of one elsewhere
        ((x, y, z), [sp.sin(z) * d(x) - sp.cos(z) * d(y)]),  # knife edge
        ((x, y, z, w), [d(z) - y * d(x), d(w) - z * d(x)]),  # Engel: needs a bracket of a bracket
        ((x, y, z, w), [d(x) - R * sp.cos(w) * d(z), d(y) - R * sp.sin(w) * d(z)]),  # rolling disk
        ((x, y, z), [d(z) - k * x]),  # affine: in space alone z would be constant
    ],
)
def test_nonholonomic(coordinates: Any, constraints: Any) -> None:
    system, messages = build(coordinates, constraints)
    found = system.integrability()
    assert messages == []
    assert found.kind == "nonholonomic"
    assert found.rank == found.dimension == len(coordinates) + (system.kind == "affine")
    assert "nonholonomic" in str(found)


@pytest.mark.parametrize(
    ("coordinates", "constraints", "functions"),
    [
        ((x, y, z), [x * d(y) + y * d(x)], [x * y]),  # exact
        ((x, y, z), [d(x * sp.sin(y) * sp.exp(z))], [x * sp.exp(z) * sp.sin(y)]),
        ((x, y, z), [d(x) - R * d(y)], [x - R * y]),
        ((x, y, z), [x * d(y) - y * d(x)], [y / x]),  # integrating factor 1/x^2
        ((x, y, z), [d(z) - z * d(x)], [sp.log(z) - x]),
        ((x, y, z), [sp.exp(x * y) * (d(z) + z * d(x * y))], [z * sp.exp(x * y)]),
        ((x, y, z, w), [d(z) - x * d(x) + d(w), d(w) - y * d(y)], [z + w - x**2 / 2, w - y**2 / 2]),
        ((x, y, z), [d(z) - k], [z - k * t]),  # affine
    ],
)
def test_holonomic_in_disguise(coordinates: Any, constraints: Any, functions: Any) -> None:
    system, messages = build(coordinates, constraints)
    found = system.integrability()
    assert found.kind == "holonomic"
    assert found.proved
    assert found.rank == found.dimension - len(constraints)
    assert len(messages) == 1
    assert "these constraints are holonomic in disguise" in messages[0]
    assert f"{found.functions[0]} = constant" in messages[0]
    assert same_level_sets(found.functions, functions)


def same_level_sets(found: Any, expected: Any) -> bool:
    """Whether two lists of functions have differentials that span the same space."""
    symbols = dict(zip((x, y, z, w), sp.symbols("x y z w"), strict=True))
    rows = [f.xreplace(symbols) for f in (*found, *expected)]
    gradients = sp.Matrix(rows).jacobian([*symbols.values(), t])
    return len(found) == len(expected) and gradients.applyfunc(sp.simplify).rank() == len(expected)


@pytest.mark.parametrize(
    ("coordinates", "constraints", "function"),
    [
        ((x, y, z, w), [d(z) - y * d(x), d(w) - x * d(x)], w - x**2 / 2),
        ((x, y, z, w), [d(z) - y * d(x) + d(w) - x * d(x), x * d(x) - d(w) + 0 * d(y)], w - x**2 / 2),
        ((x, y, z, w), [d(z) - y * d(x) + z * (d(w) - x * d(x)), d(z) - y * d(x)], w - x**2 / 2),
    ],
)
def test_one_hidden_among_two(coordinates: Any, constraints: Any, function: Any) -> None:
    system, messages = build(coordinates, constraints)
    found = system.integrability()
    assert (found.kind, found.rank, found.dimension) == ("partly holonomic", 3, 4)
    assert same_level_sets(found.functions, [function])
    assert (
        "partly holonomic in disguise: 1 of their independent combinations can be integrated" in messages[0]
    )


def test_a_holonomic_system_without_a_simple_function_says_so_without_a_hint() -> None:
    """Two constraints in three dimensions always leave curves; these are not elementary."""
    system, messages = build((x, y, z), [d(y) - (x**2 + y**2) * d(z), d(x) - d(z)])
    assert system.integrability().kind == "holonomic"
    assert system.integrability().functions == ()
    assert messages[0].endswith("all of them can be integrated")


def test_trigonometric_identities_do_not_hide_integrability() -> None:
    same = sp.cos(2 * x) - 2 * sp.cos(x) ** 2 + 1  # zero
    system, messages = build((x, y, z), [d(z) + y * same * d(x) - sp.sin(y) * d(y)])
    assert system.integrability().kind == "holonomic"
    assert same_level_sets(system.integrability().functions, [z + sp.cos(y)])
    assert len(messages) == 1


def test_undecided_integrability_is_an_answer_and_not_an_obstacle() -> None:
    system, messages = build((x, y, z), [d(z) - sp.floor(x + y) * d(x)])
    assert messages == []
    with pytest.raises(
        ValueError, match="ranks must be found at sample points, but the functions had no value"
    ):
        system.integrability()


def test_nonlinear_constraints_have_no_answer() -> None:
    system, _ = build((x, y, z), [d(x) ** 2 + d(y) ** 2 - d(z) ** 2])
    with pytest.raises(ValueError, match="needs linear or affine constraints, but these are nonlinear"):
        system.integrability()
