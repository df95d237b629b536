"""The generated functions are JAX functions like any other, and a system compiles once."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import sympy as sp
from sympy.physics.mechanics import dynamicsymbols

from noslip import simulate, symbolic
from noslip.integrators.runge_kutta4 import RungeKutta4
from noslip.symbolic._generate import generate
from noslip.symbolic._symbols import Symbols

t = dynamicsymbols._t
x, y, z = dynamicsymbols("x y z")
vx, vy, vz = (u.diff(t) for u in (x, y, z))
k, c = sp.symbols("k c")


def particle(stiffness: Any = 1.0) -> symbolic.SymbolicSystem:
    return symbolic.system((vx**2 + vy**2 + vz**2) / 2 - k * x**2, [x, y, z], [vz - y * vx], {k: stiffness})


def function(expression: sp.Expr) -> Any:
    """q -> value, of an expression in x(t), y(t) and the constants k = 2, c = -3."""
    symbols = Symbols((x, y), (k, c), t)
    made = generate("test", [symbols.read("test", expression)], (), "q", symbols)
    return lambda q: made(q, {"k": 2.0, "c": -3.0})


@pytest.mark.parametrize(
    "expression",
    [
        x**-2 + y**3 + (x + y) ** -1,
        x ** sp.Rational(3, 2) + y ** sp.Rational(-5, 2) + 1 / sp.sqrt(x) + x ** sp.Rational(1, 3),
        sp.Abs(x - 3) + sp.sign(y) + sp.Max(x, y) + sp.Min(x, y, k),
        sp.Piecewise((x**2, (x > y) & (x < 5)), (x * y, (x < -1) | (y > 1)), (y**2, True)),
        sp.exp(x * k) + sp.log(y) + sp.atan2(x, y) + sp.tanh(c * x) + sp.asin(x / 9) + sp.pi * sp.E,
        10**30 * x + 1e-7 * y + sp.Rational(1, 3) * k * c**2 + 6.02e23,
        0.1 * x + 0.2 * x - 0.3 * x + y,
        sp.Integer(3),
        sp.erf(x) + sp.gamma(y) + sp.Heaviside(x - 1),
    ],
)
def test_value_and_gradient_of_a_generated_function(expression: sp.Expr) -> None:
    f = function(expression)
    q = np.array([0.7, 1.3])
    at = {x: sp.Float(q[0], 30), y: sp.Float(q[1], 30), k: 2, c: -3}
    value, gradient = jax.jit(jax.value_and_grad(f))(q)
    assert value.dtype == gradient.dtype == jnp.float64
    np.testing.assert_allclose(value, float(expression.subs(at)), rtol=1e-14)
    a, b = sp.symbols("a b", real=True)
    plain = expression.xreplace({x: a, y: b})
    expected = [float(plain.diff(u).subs({a: at[x], b: at[y], k: 2, c: -3})) for u in (a, b)]
    np.testing.assert_allclose(gradient, expected, rtol=1e-13, atol=1e-15)
    np.testing.assert_array_equal(jax.jit(jax.vmap(f))(np.stack([q, q])), [value, value])


def test_integer_powers_are_products_and_not_calls_of_pow() -> None:
    text = str(jax.make_jaxpr(function(x**-2 + y**4 + x ** sp.Rational(3, 2)))(jnp.ones(2)))
    assert "integer_pow" in text
    assert " pow " not in text


@pytest.mark.slow
def test_gradient_of_a_run_by_a_parameter_agrees_with_differences() -> None:
    system = particle()

    @jax.jit
    def last(stiffness: Any) -> Any:
        changed = system.with_parameters({"k": stiffness})
        q0, v0 = [0.2, 0.5, -0.1], [0.8, 0.6, 0.4]
        return simulate(changed, RungeKutta4(), q0, v0, step_size=0.1, steps=3).q[-1, 0]

    difference = (last(1.0 + 1e-5) - last(1.0 - 1e-5)) / 2e-5
    np.testing.assert_allclose(jax.grad(last)(1.0), difference, rtol=1e-7)


def test_vmap_over_parameters() -> None:
    q, v = jnp.array([0.2, 0.5, -0.1]), jnp.array([0.8, 0.6, 0.4])
    energies = jax.vmap(lambda k: particle().with_parameters({"k": k}).energy(q, v))(jnp.array([1.0, 2.0]))
    np.testing.assert_allclose(energies, [particle(s).energy(q, v) for s in (1.0, 2.0)], rtol=1e-15)


def test_a_system_compiles_once_and_so_does_an_equal_one() -> None:
    q, v = jnp.array([0.2, 0.5, -0.1]), jnp.array([0.8, 0.6, 0.4])
    traces = []

    @jax.jit
    def energy(system: symbolic.SymbolicSystem) -> Any:
        traces.append(system)
        return system.energy(q, v)

    system = particle()
    for other in (system, system, system.with_parameters({"k": 3.0}), particle(), particle(7.0)):
        energy(other)
    assert len(traces) == 1
    assert isinstance(traces[0], symbolic.SymbolicSystem)


def test_a_system_is_a_pytree_of_its_parameters() -> None:
    leaves, structure = jax.tree.flatten(particle(4.0))
    assert leaves == [4.0]
    rebuilt = jax.tree.unflatten(structure, [5.0])
    assert isinstance(rebuilt, symbolic.SymbolicSystem)
    assert rebuilt.parameters == {"k": 5.0}
    assert rebuilt.integrability().kind == "nonholonomic"


def test_the_generated_code_can_be_read() -> None:
    assert "def " in particle().lagrangian.source


def test_any_function_of_any_time_is_a_coordinate() -> None:
    s = sp.Symbol("s", positive=True)
    u, w, r = (sp.Function(name)(s) for name in ("u", "lambda", "sin"))
    kinetic = sum(f.diff(s) ** 2 for f in (u, w, r)) / 2
    system = symbolic.system(kinetic, [u, w, r], [u.diff(s) - w * r.diff(s)], {sp.Symbol("pi"): 3.0})
    assert system.coordinates == ("u", "lambda", "sin")
    np.testing.assert_allclose(system.mu([1.0, 2.0, 3.0], [0.0, 0.0, 0.0]), [[1.0, 0.0, -2.0]])
    assert r"\ddot{u} &= \Lambda" in system.equations_latex()


def test_a_multiplier_of_chaplygin_is_passed_on() -> None:
    system = symbolic.system(
        (vx**2 + vy**2 + vz**2) / 2,
        [x, y, z],
        [vz + x * vy],
        {},
        fibre=["z"],
        multiplier=1 / sp.sqrt(1 + x**2),
    )
    assert system.fibre == ("z",)
    np.testing.assert_allclose(system.multiplier(np.array([2.0, 0.0, 0.0]), {}), 5**-0.5)
