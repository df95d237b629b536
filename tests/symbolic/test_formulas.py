"""Formulas read off the functions of a system: evaluated, they are the functions again."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import sympy as sp
from numpy.testing import assert_allclose

from catalogue_by_size import by_size
from noslip import System, rotations, systems
from noslip.symbolic import formulas
from noslip.testing.systems import perturbed

TOO_LONG = ("whipple_bicycle",)


def numbers(found, system, q, v):
    """Values for the symbols of `formulas`."""
    symbols, states = (*found.q, *found.v), np.concatenate([q, v])
    values = {symbol: float(x) for symbol, x in zip(symbols, states, strict=True)}
    if found.turning is not None:
        place = list(system.blocks[0])
        values |= found.turning.values(q[place], v[place])
    return values | {sp.Symbol(name): float(x) for name, x in system.parameters.items()}


def _of_the_functions(system, q, v):
    return system.lagrangian(q, v, system.parameters), system.phi(q, v)[: system.m], system.g(q)


def held_to_the_functions(name):
    """At other parameters, off the constraint, where phi is not zero."""
    default = systems.find(name).system()
    system = default.with_parameters(perturbed(default.parameters))
    q, v = (np.asarray(x) for x in systems.find(name).typical_state())
    q, v = (np.asarray(x) for x in system.shown(q, v + 0.1))
    found = formulas(system)
    values = numbers(found, system, q, v) | {sp.Symbol("t"): 0.7}
    system = system.at(0.7)
    lagrangian, velocities, positions = jax.jit(_of_the_functions)(system, q, v)
    assert_allclose(float(found.lagrangian.subs(values)), lagrangian, rtol=1e-13, atol=1e-14)
    phi = [float(x.subs(values)) for x in found.constraints]
    assert_allclose(phi, np.concatenate([velocities, positions]), rtol=1e-12, atol=1e-14)
    assert len(found.latex()) == 1 + system.m + system.k + len(found.force) + len(system.rotations)
    return found


@pytest.mark.parametrize("name", by_size(x for x in systems.discover() if x not in TOO_LONG))
def test_the_formulas_of_every_system_have_the_values_of_its_functions(name):
    held_to_the_functions(name)


@pytest.mark.slow
@pytest.mark.parametrize("name", TOO_LONG)
def test_four_bodies_are_too_long_to_read(name):
    assert formulas(systems.find(name).system()) is None


def test_a_rotation_is_shown_by_its_matrix_and_rates():
    found = held_to_the_functions("rolling_coin")
    lagrangian, along, _, gap, turning = found.latex()
    assert r"\omega_{1}^{2} + \omega_{2}^{2}" in lagrangian
    assert r"\Omega_{2}" in along
    assert r"\dot{x}" in along
    assert r"\mathsf{R}_{31}" in gap
    assert "u_" not in lagrangian + along + gap
    assert turning == r"\dot{\mathsf{R}} = \mathsf{R} [\omega]_{\times} = [\Omega]_{\times} \mathsf{R}"


def test_a_quaternion_that_is_more_than_its_rotation_has_no_formula():
    system = System(
        lambda q, v, p: jnp.dot(rotations.body_rates(q, v), rotations.body_rates(q, v)) - q[1] ** 2,
        coordinates=rotations.names("u"),
        rotations=("u",),
    )
    assert formulas(system) is None


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


@pytest.mark.parametrize("name", ["gearbox", "turntable_ball", "snakeboard", "chaplygin_sphere"])
def test_first_integrals_are_shown_with_their_values(name):
    default = systems.find(name).system()
    system = default.with_parameters(perturbed(default.parameters))
    q, v = (np.asarray(x) for x in systems.find(name).typical_state())
    found = formulas(system)
    assert list(found.first_integrals) == list(system.first_integrals)
    values = numbers(found, system, q, v)
    wanted = jax.jit(lambda q, v, p: {k: f(q, v, p) for k, f in system.first_integrals.items()})
    for integral, value in wanted(q, v, system.parameters).items():
        assert_allclose(float(found.first_integrals[integral].subs(values)), value, rtol=1e-12, atol=1e-14)
    assert all(r"\dot" in x or r"\omega" in x for x in found.first_integrals_latex().values())
