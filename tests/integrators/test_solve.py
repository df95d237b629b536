"""The implicit solve: with the derivatives of the implicit function theorem, or without."""

import jax
import jax.numpy as jnp
import pytest

from noslip.integrators.solve import solve, without_derivatives


def root(c):
    """x > 0 with x^3 + x = c; dx/dc = 1 / (3 x^2 + 1)."""
    x, record = solve(lambda x: x**3 + x - c, jnp.array([1.0]), jnp.array([1.0]))
    return x[0], record.iterations


def plain(c):
    with without_derivatives():
        return root(c)


def equations(function, *arguments):
    return [str(e.primitive) for e in jax.make_jaxpr(function)(*arguments).jaxpr.eqns]


def test_a_loop_that_is_not_differentiated_traces_no_derivative():
    assert "custom_jvp_call" in equations(root, 2.5)
    assert "custom_jvp_call" not in equations(plain, 2.5)
    assert jax.jit(root)(2.5) == jax.jit(plain)(2.5)


@pytest.mark.parametrize("differentiate", [jax.grad, jax.jacfwd])
def test_a_derivative_taken_inside_is_that_of_the_theorem(differentiate):
    def slope(c):
        with without_derivatives():
            return differentiate(lambda c: root(c)[0])(c), root(c)[0]

    found, x = jax.jit(slope)(2.5)
    assert abs(found - 1 / (3 * x**2 + 1)) < 1e-15
