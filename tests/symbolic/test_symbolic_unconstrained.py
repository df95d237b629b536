"""SymPy's front end without constraints: the motion of L alone, a sentence where they are needed."""

import jax.numpy as jnp
import numpy as np
import pytest
import sympy as sp
from numpy.testing import assert_allclose
from scipy.integrate import solve_ivp
from sympy.physics.mechanics import dynamicsymbols

from noslip import simulate, symbolic
from noslip.analysis import energy_error
from noslip.integrators.discrete_gradient import DiscreteGradient
from noslip.integrators.reference_flow import ReferenceFlow

x, y = dynamicsymbols("x y")
vx, vy = dynamicsymbols("x y", 1)
m, k = sp.symbols("m k", positive=True)


def gyroscopic():
    """A mass matrix that varies and a term linear in v."""
    lagrangian = m * (vx**2 + (1 + x**2) * vy**2) / 2 + sp.sin(y) * vx - k * x**2 * sp.cos(y)
    return symbolic.system(lagrangian, [x, y], [], {m: 1.3, k: 0.7})


def by_hand(t, z):
    """The same equations solved for the accelerations on paper."""
    (a, b, u, w), M, K = z, 1.3, 0.7
    du = (M * a * w**2 - np.cos(b) * w - 2 * K * a * np.cos(b)) / M
    dw = (np.cos(b) * u + K * a**2 * np.sin(b) - 2 * M * a * u * w) / (M * (1 + a**2))
    return [u, w, du, dw]


def test_the_motion_is_that_of_the_lagrangian():
    system, q, v = gyroscopic(), [1.2, 0.4], [0.3, -0.8]
    assert (system.m, system.kind) == (0, "linear")
    run = simulate(system, ReferenceFlow(), q, v, step_size=0.5, steps=4)
    end = solve_ivp(by_hand, (0, 2.0), [*q, *v], rtol=1e-12, atol=1e-13).y[:, -1]
    assert_allclose(np.concatenate([run.q[-1], run.v[-1]]), end, atol=1e-9)
    at = {vx: 0.3, vy: -0.8, x: 1.2, y: 0.4, m: 1.3, k: 0.7}
    found = np.array(system.acceleration_expr.subs(at), dtype=float).ravel()
    assert_allclose(found, by_hand(0, [*q, *v])[2:], rtol=1e-14)
    assert_allclose(system.acceleration(jnp.array(q), jnp.array(v)), found, rtol=1e-13)
    run = simulate(system, DiscreteGradient(), q, v, step_size=0.1, steps=200)
    assert np.max(np.abs(energy_error(run))) < 1e-14


def test_a_single_coordinate():
    system = symbolic.system(m * vx**2 / 2 + k * sp.cos(x), [x], [], {m: 1.0, k: 2.0})
    assert sp.simplify(system.acceleration_expr[0] + k * sp.sin(x) / m) == 0
    assert simulate(system, DiscreteGradient(), [0.5], [0.1], step_size=0.1, steps=5).success


def test_expressions_have_no_rows_and_equations_no_reaction():
    system = gyroscopic()
    assert system.one_forms_expr.shape == (0, 2)
    for empty in (system.multipliers_expr, system.drift_expr, system.constraints_expr):
        assert empty.shape == (0, 1)
    assert "lambda" not in system.equations_latex()
    assert system.equations_latex().count("&=") == system.accelerations_latex().count("&=") == 2


@pytest.mark.parametrize("name", ["integrability", "chaplygin", "multipliers_latex", "one_forms_latex"])
def test_what_is_about_constraints_says_that_there_are_none(name):
    with pytest.raises(ValueError, match=rf"^{name}\(\) is about constraints, but this system has none$"):
        getattr(gyroscopic(), name)()
