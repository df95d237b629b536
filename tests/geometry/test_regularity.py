"""Where a step is determined: JS (61), proposition 5.1, and its counterpart for any method."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from numpy.testing import assert_allclose

from models import two_forms
from noslip import System, simulate
from noslip.geometry.finite_difference_map import RhoBeta
from noslip.geometry.regularity import (
    regularity_matrix,
    restricted_matrix,
    small_singular_values,
    step_matrix,
)
from noslip.integrators.discrete_lagrange_dalembert import DiscreteLagrangeDAlembert

H = 0.1


def _kernel(matrix):
    return np.linalg.svd(np.asarray(matrix))[2][2:].T


def pair_functions(system, beta):
    rho = RhoBeta(beta)
    return (
        lambda q0, q1: rho.discrete_lagrangian(system, q0, q1, H),
        lambda q0, q1: rho.discrete_constraint(system, q0, q1, H),
    )


def test_61_is_the_derivative_of_the_discrete_equations_59():
    system, *state = two_forms()
    q, v = map(np.asarray, state)
    L_d, phi_d = pair_functions(system, 0.3)
    mu, before, after, lam = np.asarray(system.mu(q, v)), q - H * v, q + H * v, np.array([0.3, -0.8])

    @jax.jit
    @jax.vmap
    def equations(x):
        momentum = jax.grad(L_d, 0)(q, x[:4]) + jax.grad(L_d, 1)(before, q) + mu.T @ x[4:]
        return jnp.concatenate([momentum, phi_d(q, x[:4])])

    x, d = np.concatenate([after, lam]), 1e-6 * np.eye(6)
    columns = (np.asarray(equations(x + d)) - np.asarray(equations(x - d))) / 2e-6
    made = np.asarray(jax.jit(lambda q0, q1: regularity_matrix(L_d, phi_d, mu, q0, q1))(q, after))
    assert made.shape == (6, 6)
    assert_allclose(made, columns.T, rtol=0, atol=1e-6)
    assert not len(small_singular_values(made))


def test_the_step_of_the_two_point_method_has_61_up_to_rows_and_columns():
    """Its unknowns are increments of the quotient and forces: columns differ by factors, rows by scaling."""
    system, q, v = two_forms()
    method = DiscreteLagrangeDAlembert(beta=0.3)
    L_d, phi_d = pair_functions(system, 0.3)

    @jax.jit
    def both(q, v, t, h):
        guess = method.guess(system, method.init(system, q, v, t, h), h)
        wanted = regularity_matrix(L_d, phi_d, system.mu(q, v), q, q + h * (v + guess.d))
        return wanted, step_matrix(system, method, q, v, t, h)

    wanted, found = map(np.asarray, both(q, v, np.zeros(()), np.array(H)))
    ratio = found / np.where(np.abs(wanted) > 1e-9, wanted, np.nan)
    factors = ratio / ratio[:, :1]  # of rank one: a factor of the row times one of the column
    known = np.isfinite(factors)
    assert known.sum() > 20
    for column, seen in zip(factors.T, known.T, strict=True):
        assert np.ptp(column[seen]) < 1e-9 * np.max(np.abs(column[seen]))


def test_proposition_5_1_and_61_are_singular_together():
    """L_d bent so that one direction of D is lost: both forms lose it, D1 D2 L_d itself does not."""
    system, *state = two_forms()
    q, v = map(np.asarray, state)
    L_d, phi_d = map(jax.jit, pair_functions(system, 0.3))
    mu, after = np.asarray(system.mu(q, v)), q + H * v
    u, s, w = np.linalg.svd(restricted_matrix(L_d, phi_d, mu, q, after))
    assert s[-1] > 1.0
    ends = jax.jit(jax.jacfwd(phi_d, 1))(q, after)
    shift = s[-1] * np.outer(_kernel(mu) @ u[:, -1], _kernel(ends) @ w[-1])

    def bent(q0, q1):
        return L_d(q0, q1) - q0 @ shift @ q1

    assert len(small_singular_values(restricted_matrix(bent, phi_d, mu, q, after)))
    made = np.asarray(jax.jit(lambda *pair: regularity_matrix(bent, phi_d, mu, *pair))(q, after))
    assert len(small_singular_values(made))
    assert not len(small_singular_values(made[:4, :4]))  # D1 D2 L_d


def test_a_run_without_a_unique_step_is_refused_before_it_starts():
    """h^2 V'' = -4 M at the midpoint: the momentum does not determine the next node."""
    system = System(lambda q, v, p: 0.5 * v[0] ** 2 + 0.5 * v[1] ** 2 + 2 * q[0] ** 2, coordinates=("x", "y"))
    with pytest.raises(ValueError, match=r"no unique step from this state: its regularity matrix, JS \(61\)"):
        simulate(system, DiscreteLagrangeDAlembert(), [1.0, 0.0], [0.0, 1.0], step_size=1.0, steps=2)
