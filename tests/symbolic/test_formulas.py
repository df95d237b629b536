"""Formulas read off the functions of a system: evaluated, they are the functions again."""

import jax.numpy as jnp
import numpy as np
import pytest
import sympy as sp
from numpy.testing import assert_allclose

from catalogue_by_size import by_size
from noslip import System, systems
from noslip.symbolic import formulas
from noslip.testing.systems import perturbed


def numbers(found, system, q, v):
    """Values for the symbols of `formulas`."""
    symbols, states = (*found.q, *found.v), np.concatenate([q, v])
    values = {symbol: float(x) for symbol, x in zip(symbols, states, strict=True)}
    return values | {sp.Symbol(name): float(x) for name, x in system.parameters.items()}


@pytest.mark.parametrize("name", by_size(systems.discover()))
def test_the_formulas_of_every_system_have_the_values_of_its_functions(name):
    default = systems.find(name).system()
    system = default.with_parameters(perturbed(default.parameters))
    q, v = (np.asarray(x) for x in systems.find(name).typical_state())
    v = v + 0.1  # off the constraint, where phi is not zero
    found = formulas(system)
    if system.rotations or name == "whipple_bicycle":  # too long: unit quaternions, or four bodies
        assert found is None
        return
    assert found is not None
    values = numbers(found, system, q, v)
    wanted = float(system.lagrangian(q, v, system.parameters))
    assert_allclose(float(found.lagrangian.subs(values)), wanted, rtol=1e-13, atol=1e-14)
    phi = [float(x.subs(values)) for x in found.constraints]
    wanted = np.concatenate([system.phi(q, v)[: system.m], system.g(q)])
    assert_allclose(phi, wanted, rtol=1e-12, atol=1e-14)
    assert len(found.latex()) == 1 + system.m + system.k + len(found.force)


def test_forces_words_and_fractions_are_shown():
    system = System(
        lambda q, v, p: 0.25 * jnp.dot(v, v) - p["stiffness"] * q[0] ** 2,
        one_forms=lambda q, p: jnp.array([[jnp.sin(q[1]), 1.0]]),
        coordinates=("x", "theta1"),
        parameters={"stiffness": 2.0, "c": 0.1},
        force=lambda q, v, t, p: jnp.array([-p["c"] * v[0] * jnp.cos(t), 0.0]),
    )
    lagrangian, constraint, force = formulas(system).latex()
    assert (
        lagrangian
        == r"L = - \mathrm{stiffness} x^{2} + \frac{\dot{x}^{2}}{4} + \frac{\dot{\theta}_{1}^{2}}{4}"
    )
    assert constraint == r"\dot{x} \sin{\left(\theta_{1} \right)} + \dot{\theta}_{1} = 0"
    assert force == r"F_{x} = - c \dot{x} \cos{\left(t \right)}"


def test_what_has_no_formula_is_none():
    system = System(
        lambda q, v, p: 0.5 * jnp.dot(v, v) - jnp.sum(jnp.sort(q)),
        one_forms=lambda q, p: jnp.array([[-q[1], 0.0, 1.0]]),
        coordinates=("x", "y", "z"),
    )
    assert formulas(system) is None


@pytest.mark.parametrize("name", ["gearbox", "turntable_ball", "snakeboard"])
def test_first_integrals_are_shown_with_their_values(name):
    default = systems.find(name).system()
    system = default.with_parameters(perturbed(default.parameters))
    q, v = (np.asarray(x) for x in systems.find(name).typical_state())
    found = formulas(system)
    assert list(found.first_integrals) == list(system.first_integrals)
    values = numbers(found, system, q, v)
    for integral, expression in found.first_integrals.items():
        wanted = float(system.first_integrals[integral](q, v, system.parameters))
        assert_allclose(float(expression.subs(values)), wanted, rtol=1e-12, atol=1e-14)
    assert r"\dot" in found.first_integrals_latex()[integral]
