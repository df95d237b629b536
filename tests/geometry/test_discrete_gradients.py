"""Discrete gradients: the two properties of CFHM definition 3.1, their symmetry, and the printed formulas."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from numpy.testing import assert_allclose

from noslip.numerics.discrete_gradients import GRADIENTS, Function, Step, discrete_gradient, noise, soft


def H(x):
    return jnp.sin(x[0] * x[1]) + x[2] ** 4 / (1 + x[0] ** 2) + jnp.exp(x[1] - x[2]) + x[3] ** 2 * x[0]


def mixed(x):
    """Quadratic with mixed terms, for which all but (13) are the gradient at the middle."""
    return x[0] * x[1] + 2 * x[2] ** 2 - 0.5 * x[3] * x[0]


X0 = jnp.array([0.3, -0.6, 0.8, 0.5])
D = jnp.array([0.2, 0.15, -0.3, 0.1])


def gradient(name, f, x, d, nodes=4):
    step = Step(x, d, f(x), jax.grad(f)(x), jnp.array(0.0))
    return discrete_gradient(name, Function(f), step, nodes=nodes)


@pytest.mark.parametrize("name", GRADIENTS)
def test_the_two_properties(name):
    for scale in (1.0, 1e-2, 1e-4):
        d = scale * D
        assert_allclose(gradient(name, H, X0, d) @ d, H(X0 + d) - H(X0), atol=2e-16)  # (10a)
    assert_allclose(gradient(name, H, X0, jnp.zeros(4)), jax.grad(H)(X0), rtol=1e-15)  # (10b)
    assert_allclose(gradient(name, H, X0, 1e-7 * D), jax.grad(H)(X0), atol=1e-6)  # continuous there


@pytest.mark.thorough
@pytest.mark.parametrize("name", GRADIENTS)
def test_the_two_properties_at_random(name):
    """(10a) and (10b) at 500 points, with increments of all sizes from 1 to 1e-6."""
    rng = np.random.default_rng(7)
    x, d = rng.normal(size=(2, 500, 4))
    d = d * 10.0 ** -rng.uniform(0, 6, size=(500, 1))
    g = jax.jit(jax.vmap(lambda x, d: gradient(name, H, x, d)))(x, d)
    before, after, slope = jax.vmap(H)(x), jax.vmap(H)(x + d), jax.vmap(jax.grad(H))(x)
    size = np.abs(before) + np.abs(after) + np.sum(np.abs(g * d), axis=1)
    assert np.max(np.abs(np.sum(g * d, axis=1) - (after - before)) / size) < 4 * np.finfo(float).eps
    at_rest = jax.jit(jax.vmap(lambda x: gradient(name, H, x, jnp.zeros(4))))(x)
    assert_allclose(at_rest, slope, rtol=1e-14, atol=1e-14)
    bend = np.max(np.abs(jax.vmap(jax.hessian(H))(x)), axis=(1, 2))
    near = np.max(np.abs(d), axis=1) < 1e-3
    off = np.max(np.abs(g - slope), axis=1) / (bend * np.max(np.abs(d), axis=1))
    assert np.max(off[near]) < 4  # gbar - grad is of first order in d


@pytest.mark.parametrize("name", GRADIENTS)
def test_symmetry_in_its_arguments(name):
    there, back = gradient(name, H, X0, D), gradient(name, H, X0 + D, -D)
    difference = float(jnp.max(jnp.abs(there - back)))
    assert (difference < 1e-14) == (name != "coordinate_increment")


def test_the_printed_formulas():
    """(11), (12) and (13) as they stand, where nothing cancels."""
    x1, gm = X0 + D, jax.grad(H)(X0 + D / 2)
    printed = gm + (H(x1) - H(X0) - gm @ D) / (D @ D) * D
    assert_allclose(gradient("gonzalez", H, X0, D), printed, rtol=1e-14)

    nodes, weights = np.polynomial.legendre.leggauss(20)
    mean = sum(w / 2 * jax.grad(H)(X0 + (1 + c) / 2 * D) for c, w in zip(nodes, weights, strict=True))
    assert_allclose(gradient("mean_value", H, X0, D, nodes=12), mean, rtol=1e-14)

    steps = [jnp.where(jnp.arange(4) < i, x1, X0) for i in range(5)]
    quotients = [(H(steps[i + 1]) - H(steps[i])) / D[i] for i in range(4)]
    assert_allclose(gradient("coordinate_increment", H, X0, D), quotients, rtol=1e-13)
    steps = [jnp.where(jnp.arange(4) < i, X0, x1) for i in range(5)]
    other = [(H(steps[i]) - H(steps[i + 1])) / D[i] for i in range(4)]
    assert_allclose(
        gradient("symmetrized_coordinate_increment", H, X0, D),
        (np.array(quotients) + np.array(other)) / 2,
        rtol=1e-13,
    )


def test_a_coordinate_that_does_not_move_needs_no_case_of_its_own():
    d = D.at[1].set(0.0)
    nearly = gradient("coordinate_increment", H, X0, D.at[1].set(1e-9))
    assert_allclose(gradient("coordinate_increment", H, X0, d), nearly, atol=1e-8)


def test_coordinate_increments_are_those_of_the_paper_however_steep_the_energy_is():
    """(13) is made of energies alone: a well narrower than the step changes nothing."""

    def well(x):
        return 1 / (1 + (x[0] / 0.05) ** 2) + x[1] ** 2 / 2

    x, d = jnp.array([-0.1, 0.3]), jnp.array([0.25, 0.1])
    middle = jnp.array([x[0] + d[0], x[1]])
    there = np.array([(well(middle) - well(x)) / d[0], (well(x + d) - well(middle)) / d[1]])
    assert_allclose(there, [-0.4, 0.35], rtol=1e-12)
    assert_allclose(gradient("coordinate_increment", well, x, d), there, rtol=1e-13)
    other = jnp.array([x[0], x[1] + d[1]])
    back = np.array([(well(x + d) - well(other)) / d[0], (well(other) - well(x)) / d[1]])
    assert_allclose(gradient("symmetrized_coordinate_increment", well, x, d), (there + back) / 2, rtol=1e-13)


@pytest.mark.parametrize("name", [name for name in GRADIENTS if "increment" in name])
def test_a_coordinate_that_nearly_rests_has_no_noise(name):
    """The quotient of (13) would be wrong by eps / d_i, at 1e-13 by a tenth of a percent."""
    at_rest = gradient(name, H, X0, D.at[2].set(0.0))
    for small in (1e-7, 1e-10, 1e-13, -1e-16):
        assert_allclose(gradient(name, H, X0, D.at[2].set(small)), at_rest, atol=4 * abs(small) + 2e-14)


@pytest.mark.parametrize("name", GRADIENTS)
def test_quadratic_functions(name):
    """Remark 3.2: the gradient at the middle; for (13) without symmetrization only without mixed terms."""
    middle = jax.grad(mixed)(X0 + D / 2)
    if name == "coordinate_increment":
        squares = lambda x: jnp.sum(jnp.arange(1.0, 5.0) * x**2)  # noqa: E731
        assert_allclose(gradient(name, squares, X0, D), jax.grad(squares)(X0 + D / 2), rtol=1e-14)
        assert np.max(np.abs(gradient(name, mixed, X0, D) - middle)) > 1e-2
    else:
        assert_allclose(gradient(name, mixed, X0, D), middle, atol=1e-14)


def test_the_anchor_replaces_the_energy_and_absorbs_the_quadrature():
    """With one node the mean value is far off, yet gbar . d is H(x') - E for any E."""
    for name in GRADIENTS:
        step = Step(X0, D, H(X0) - 1e-3, jax.grad(H)(X0), jnp.array(0.0))
        g = discrete_gradient(name, Function(H), step, nodes=1)
        assert_allclose(g @ D, H(X0 + D) - H(X0) + 1e-3, atol=2e-16)


def test_the_threshold_acts_where_the_motion_is_small_and_its_derivative_is_one():
    assert float(soft(jnp.array(3.0), jnp.array(1.0))) == 2.0
    assert float(soft(jnp.array(-0.5), jnp.array(1.0))) == 0.0
    assert float(jax.grad(soft)(jnp.array(0.5), jnp.array(1.0))) == 1.0
    one, zero = jnp.array(1.0), jnp.array(0.0)
    assert_allclose(noise(one, jnp.array(16e-16)), 4 * np.finfo(float).eps, rtol=1e-6)
    assert float(noise(one, jnp.array(0.16))) < 1e-20
    assert float(noise(zero, zero)) == 0
