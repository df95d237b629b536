"""Discrete gradients: the two properties of CFHM definition 3.1, their symmetry, and the printed formulas."""

import functools

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


X0 = np.array([0.3, -0.6, 0.8, 0.5])
D = np.array([0.2, 0.15, -0.3, 0.1])


@functools.partial(jax.jit, static_argnums=(0, 1), static_argnames="nodes")
def traced_gradient(name, f, x, d, lowered, nodes):
    step = Step(x, d, f(x) - lowered, jax.grad(f)(x), jnp.array(0.0))
    return discrete_gradient(name, Function(f), step, nodes=nodes)


def gradient(name, f, x, d, lowered=0.0, nodes=4):
    return np.asarray(traced_gradient(name, f, x, d, lowered, nodes=nodes))


@functools.cache
def compiled(f):
    return jax.jit(f)


def value(f, x):
    return float(compiled(f)(x))


@functools.cache
def differentiated(f):
    return jax.jit(jax.grad(f))


def slope(f, x):
    return np.asarray(differentiated(f)(x))


def replaced(x, i, number):
    return np.where(np.arange(len(x)) == i, number, x)


@pytest.mark.parametrize("name", GRADIENTS)
def test_the_two_properties(name):
    for scale in (1.0, 1e-2, 1e-4):
        d = scale * D
        assert_allclose(gradient(name, H, X0, d) @ d, value(H, X0 + d) - value(H, X0), atol=2e-16)  # (10a)
    assert_allclose(gradient(name, H, X0, np.zeros(4)), slope(H, X0), rtol=1e-15)  # (10b)
    assert_allclose(gradient(name, H, X0, 1e-7 * D), slope(H, X0), atol=1e-6)  # continuous there


@pytest.mark.thorough
@pytest.mark.parametrize("name", GRADIENTS)
def test_the_two_properties_at_random(name):
    """(10a) and (10b) at 500 points, with increments of all sizes from 1 to 1e-6."""
    rng = np.random.default_rng(7)
    x, d = rng.normal(size=(2, 500, 4))
    d = d * 10.0 ** -rng.uniform(0, 6, size=(500, 1))

    @jax.jit
    @jax.vmap
    def all_of(x, d):
        by_steps = (traced_gradient(name, H, x, d, 0.0, nodes=4) for d in (d, jnp.zeros(4)))
        return *by_steps, H(x), H(x + d), jax.grad(H)(x), jnp.max(jnp.abs(jax.hessian(H)(x)))

    g, at_rest, before, after, slope, bend = map(np.asarray, all_of(x, d))
    size = np.abs(before) + np.abs(after) + np.sum(np.abs(g * d), axis=1)
    assert np.max(np.abs(np.sum(g * d, axis=1) - (after - before)) / size) < 4 * np.finfo(float).eps
    assert_allclose(at_rest, slope, rtol=1e-14, atol=1e-14)
    near = np.max(np.abs(d), axis=1) < 1e-3
    off = np.max(np.abs(g - slope), axis=1) / (bend * np.max(np.abs(d), axis=1))
    assert np.max(off[near]) < 4  # gbar - grad is of first order in d


@pytest.mark.parametrize("name", GRADIENTS)
def test_symmetry_in_its_arguments(name):
    there, back = gradient(name, H, X0, D), gradient(name, H, X0 + D, -D)
    difference = np.max(np.abs(there - back))
    assert (difference < 1e-14) == (name != "coordinate_increment")


def test_the_printed_formulas():
    """(11), (12) and (13) as they stand, where nothing cancels."""
    x1, gm = X0 + D, slope(H, X0 + D / 2)
    printed = gm + (value(H, x1) - value(H, X0) - gm @ D) / (D @ D) * D
    assert_allclose(gradient("gonzalez", H, X0, D), printed, rtol=1e-14)

    nodes, weights = np.polynomial.legendre.leggauss(20)
    mean = sum(w / 2 * slope(H, X0 + (1 + c) / 2 * D) for c, w in zip(nodes, weights, strict=True))
    assert_allclose(gradient("mean_value", H, X0, D, nodes=12), mean, rtol=1e-14)

    levels = [value(H, np.where(np.arange(4) < i, x1, X0)) for i in range(5)]
    quotients = np.diff(levels) / D
    assert_allclose(gradient("coordinate_increment", H, X0, D), quotients, rtol=1e-13)
    levels = [value(H, np.where(np.arange(4) < i, X0, x1)) for i in range(5)]
    other = -np.diff(levels) / D
    found = gradient("symmetrized_coordinate_increment", H, X0, D)
    assert_allclose(found, (quotients + other) / 2, rtol=1e-13)


def test_a_coordinate_that_does_not_move_needs_no_case_of_its_own():
    d = replaced(D, 1, 0.0)
    nearly = gradient("coordinate_increment", H, X0, replaced(D, 1, 1e-9))
    assert_allclose(gradient("coordinate_increment", H, X0, d), nearly, atol=1e-8)


def test_coordinate_increments_are_those_of_the_paper_however_steep_the_energy_is():
    """(13) is made of energies alone: a well narrower than the step changes nothing."""

    def well(x):
        return 1 / (1 + (x[0] / 0.05) ** 2) + x[1] ** 2 / 2

    x, d = np.array([-0.1, 0.3]), np.array([0.25, 0.1])
    middle = np.array([x[0] + d[0], x[1]])
    there = np.array([(well(middle) - well(x)) / d[0], (well(x + d) - well(middle)) / d[1]])
    assert_allclose(there, [-0.4, 0.35], rtol=1e-12)
    assert_allclose(gradient("coordinate_increment", well, x, d), there, rtol=1e-13)
    other = np.array([x[0], x[1] + d[1]])
    back = np.array([(well(x + d) - well(other)) / d[0], (well(other) - well(x)) / d[1]])
    assert_allclose(gradient("symmetrized_coordinate_increment", well, x, d), (there + back) / 2, rtol=1e-13)


@pytest.mark.parametrize("name", [name for name in GRADIENTS if "increment" in name])
def test_a_coordinate_that_nearly_rests_has_no_noise(name):
    """The quotient of (13) would be wrong by eps / d_i, at 1e-13 by a tenth of a percent."""
    at_rest = gradient(name, H, X0, replaced(D, 2, 0.0))
    for small in (1e-7, 1e-10, 1e-13, -1e-16):
        assert_allclose(gradient(name, H, X0, replaced(D, 2, small)), at_rest, atol=4 * abs(small) + 2e-14)


@pytest.mark.parametrize("name", GRADIENTS)
def test_quadratic_functions(name):
    """Remark 3.2: the gradient at the middle; for (13) without symmetrization only without mixed terms."""
    middle = slope(mixed, X0 + D / 2)
    if name == "coordinate_increment":
        squares = lambda x: jnp.sum(jnp.arange(1.0, 5.0) * x**2)  # noqa: E731
        assert_allclose(gradient(name, squares, X0, D), slope(squares, X0 + D / 2), rtol=1e-14)
        assert np.max(np.abs(gradient(name, mixed, X0, D) - middle)) > 1e-2
    else:
        assert_allclose(gradient(name, mixed, X0, D), middle, atol=1e-14)


def test_the_anchor_replaces_the_energy_and_absorbs_the_quadrature():
    """With one node the mean value is far off, yet gbar . d is H(x') - E for any E."""
    for name in GRADIENTS:
        g = gradient(name, H, X0, D, lowered=1e-3, nodes=1)
        assert_allclose(g @ D, value(H, X0 + D) - value(H, X0) + 1e-3, atol=2e-16)


def test_the_threshold_acts_where_the_motion_is_small_and_its_derivative_is_one():
    cut, small = jax.jit(soft), jax.jit(noise)
    assert float(cut(3.0, 1.0)) == 2.0
    assert float(cut(-0.5, 1.0)) == 0.0
    assert float(jax.jit(jax.grad(soft))(0.5, 1.0)) == 1.0
    assert_allclose(small(1.0, 16e-16), 4 * np.finfo(float).eps, rtol=1e-6)
    assert float(small(1.0, 0.16)) < 1e-20
    assert float(small(0.0, 0.0)) == 0
