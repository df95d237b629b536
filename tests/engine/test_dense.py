"""Small linear solves: native routines with pivoting against LAPACK, and the operation as JAX sees it."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from native_rows import compiled

from noslip.engine.backends import native
from noslip.numerics import linear


@pytest.mark.parametrize("n", [1, 2, 5, 8, 14])
def test_inverse_and_solve_are_right_where_pivoting_is_needed_and_lanes_agree(n):
    rng = np.random.default_rng(n)
    a = rng.normal(size=(19, n, n))
    if n > 1:
        a[::3, 0, 0] = 0.0  # no elimination without exchanges
    a[1::3, np.arange(n), np.arange(n)] *= 1e-14
    b = rng.normal(size=(19, n, 2))
    packed = np.concatenate([a, b], axis=2).reshape(19, -1)

    def both(x):
        table = x.reshape(n, n + 2)
        return jnp.concatenate(
            [linear.inverse(table[:, :n]), linear.solve(table[:, :n], table[:, n:])], axis=1
        )

    scalar, lanes = (compiled(both, packed, width) for width in (1, native.lanes()))
    np.testing.assert_array_equal(scalar, lanes)
    condition = np.linalg.cond(a)[:, None, None]
    expected = np.concatenate([np.linalg.inv(a), np.linalg.solve(a, b)], axis=2)
    size = np.max(np.abs(expected), axis=(1, 2), keepdims=True)
    assert np.max(np.abs(scalar - expected) / size / condition) < 1e-14


@pytest.mark.parametrize("n", [3, 12, 16])
def test_symmetric_solves_written_out_and_in_rolled_loops(n):
    a = np.random.default_rng(n).normal(size=(5, n, n))
    a, b = a @ a.transpose(0, 2, 1) + n * np.eye(n), np.arange(1.0, n + 1)
    found = compiled(lambda x: linear.spd_solve(x.reshape(n, n), b), a.reshape(5, -1), 1)
    expected = np.stack([np.linalg.solve(each, b) for each in a])
    np.testing.assert_allclose(found, expected, rtol=1e-12)


def test_a_singular_matrix_gives_numbers_that_are_not_finite():
    found = compiled(
        lambda x: linear.solve(x.reshape(2, 2), jnp.ones(2)), np.array([[1.0, 2.0, 2.0, 4.0]]), 1
    )
    assert not np.all(np.isfinite(found))


@pytest.mark.slow
@pytest.mark.thorough
@pytest.mark.parametrize("spd", [True, False])
def test_derivatives_of_a_solve(spd):
    solve = linear.spd_solve if spd else linear.solve
    rng = np.random.default_rng(7)
    a = rng.normal(size=(4, 4))
    a, b = jnp.asarray(a @ a.T + np.eye(4) if spd else a), jnp.asarray(rng.normal(size=4))
    for wrt in (0, 1):
        ours = jax.jacrev(jax.jacfwd(lambda a, b: solve(a, b), wrt), 1 - wrt)(a, b)
        theirs = jax.jacrev(jax.jacfwd(jnp.linalg.solve, wrt), 1 - wrt)(a, b)
        np.testing.assert_allclose(ours, theirs, rtol=1e-9, atol=1e-11)
    many = jax.vmap(solve, (0, None))(jnp.stack([a, 2 * a]), b)
    np.testing.assert_allclose(many[1], many[0] / 2, rtol=1e-12)
