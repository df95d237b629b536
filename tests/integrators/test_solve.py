"""The implicit solve: with the derivatives of the implicit function theorem, or without."""

import jax
import jax.numpy as jnp
import pytest

from noslip import SolveFailed, System, simulate
from noslip.integrators.lobatto_spark import LobattoSpark
from noslip.integrators.semi_implicit_dla import SemiImplicitDLA
from noslip.integrators.solve import Status, solve, without_derivatives
from noslip.integrators.velocity_nonholonomic import VelocityNonholonomic


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


@pytest.mark.parametrize("n", [1, 14])
def test_a_jacobian_that_is_not_finite_solves_nothing(n):
    """A residual divided by infinity is an increment of 0, as if all were done."""
    size = jnp.ones(n)
    _, record = solve(lambda x: jnp.cbrt(x) - 0.5, 0 * size, size)
    assert record.status == Status.NOT_FINITE
    x, record = solve(lambda x: jnp.cbrt(x) - 0.5, 0.1 * size, size)
    assert record.status == Status.SOLVED
    assert jnp.max(jnp.abs(x - 0.125)) < 1e-15


def test_a_force_of_infinite_slope_where_a_body_rests_fails_and_says_so():
    """By scalar programs, in which the unknown of the float is an equation of its own."""

    def force(q, v, t, p):
        drag = jax.lax.cond(t > 0.1, lambda x: 1 - 0.5 * jnp.cbrt(x), lambda x: 0 * x, v[3])
        return jnp.array([0.0, 0.0, 0.0, drag])

    system = System(
        lambda q, v, p: v @ v / 2,
        one_forms=lambda q, p: jnp.array([[jnp.sin(q[2]), -jnp.cos(q[2]), 0.0, 0.0]]),
        coordinates=("x", "y", "a", "w"),
        force=force,
    )
    given = {"step_size": 0.04, "steps": 25, "backend": "native"}
    for method in (VelocityNonholonomic(), LobattoSpark()):
        with pytest.raises(SolveFailed, match="NaN or infinity"):
            simulate(system, method, [0.0] * 4, [1.0, 0, 0.3, 0], **given)
    run = simulate(system, SemiImplicitDLA(), [0.0] * 4, [1.0, 0, 0.3, 0], **given)  # it looks ahead
    assert abs(run.q[-1, 3] - 0.282) < 0.005
