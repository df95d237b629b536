"""Frames of D: they span it, their derivatives are exact, and their signs change only when they must."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from catalogue_by_size import LARGE, sampled
from noslip import systems
from noslip.geometry import frames
from noslip.geometry.frames import FRAMES, Frame
from noslip.systems import chaplygin_sleigh, rolling_disk

LINEAR = [name for name in sampled(systems.discover()) if systems.find(name).system().kind == "linear"]


def start(name):
    module = systems.find(name)
    return module.system(), module.typical_state()[0]


@pytest.mark.parametrize(
    "name",
    [pytest.param(x, marks=[pytest.mark.slow] if x in LARGE | {"car_with_trailers"} else []) for x in LINEAR],
)
def test_the_columns_span_the_admissible_velocities(name):
    system, q = start(name)

    @jax.jit
    def all_of(q):
        return system.mu(q, jnp.zeros_like(q)), system.mass_matrix(q), *(Frame(system, x)(q) for x in FRAMES)

    mu, M, *found = map(np.asarray, all_of(q))
    for kind, X in zip(FRAMES, found, strict=True):
        assert X.shape == (system.n, system.n - system.rows)
        assert np.linalg.matrix_rank(X) == system.n - system.rows
        assert_allclose(mu @ X, 0, atol=1e-14)
        if kind == "householder":
            assert_allclose(X.T @ X, np.eye(X.shape[1]), atol=1e-14)
        if kind == "orthonormal":
            assert_allclose(X.T @ M @ X, np.eye(X.shape[1]), atol=1e-14)


def differentiated_by_hand(A, dA, s):
    """CFHM Algorithm 1 with the corrections of the errata: Q and dQ of A = Q R for one partial derivative."""
    n, m = A.shape
    Q, R, dQ, dR = np.eye(n), A.copy(), np.zeros((n, n)), dA.copy()
    for k in range(m):
        r, dr = R[k:, k], dR[k:, k]
        length = np.linalg.norm(r)
        dlength = dr @ r / length
        w, dw = np.zeros(n), np.zeros(n)
        w[k:], dw[k:] = r, dr
        w[k] += s[k] * length
        dw[k] += s[k] * dlength
        size = np.linalg.norm(w)
        dsize = dw @ w / size
        w, dw = w / size, (dw * size - w * dsize) / size**2
        u, du = w @ R, dw @ R + w @ dR
        R, dR = R - 2 * np.outer(w, u), dR - 2 * (np.outer(dw, u) + np.outer(w, du))
        Q, dQ = (
            Q - 2 * Q @ np.outer(w, w),
            dQ - 2 * dQ @ np.outer(w, w) - 2 * Q @ (np.outer(dw, w) + np.outer(w, dw)),
        )
    return Q, dQ


def test_the_derivative_of_the_householder_frame_is_algorithm_1():
    system, q = rolling_disk.system(), rolling_disk.typical_state()[0]

    def A(x):
        return system.mu(x, jnp.zeros_like(x)).T

    @jax.jit
    def all_of(q):
        signs = frames.initial_signs(system, q)
        frame = Frame(system, "householder", signs)
        return signs, A(q), jax.jacfwd(A)(q), frame(q), jax.jacfwd(frame)(q)

    signs, here, slopes, X, derivative = map(np.asarray, all_of(q))
    for i in range(system.n):
        Q, dQ = differentiated_by_hand(here, slopes[..., i], signs)
        assert_allclose(X, Q[:, system.m :], atol=1e-15)
        assert_allclose(derivative[..., i], dQ[:, system.m :], atol=1e-14)


def test_central_differences_are_of_second_order_and_the_frame_itself_is_exact():
    system, q = chaplygin_sleigh.system(), chaplygin_sleigh.typical_state()[0]

    @jax.jit
    def all_of(q, h):
        exact = Frame(system, "householder")
        by_differences = Frame(system, "householder", difference=h).around(q)
        slopes = jax.jacfwd(by_differences)(q), jax.jacfwd(exact)(q)
        return by_differences(q), exact(q), jnp.max(jnp.abs(slopes[0] - slopes[1]))

    errors = []
    for h in (0.1, 0.05, 0.025):
        X, exact, error = map(np.asarray, all_of(q, h))
        assert_array_equal(X, exact)
        errors.append(error)
    assert_allclose(np.diff(np.log2(errors)), -2, atol=0.05)


def test_a_sign_is_kept_until_it_cancels():
    """mu = (-sin, cos, 0): r_0 = -sin(theta), so that s = -1 becomes bad when sin(theta) < -7/8."""
    system = chaplygin_sleigh.system()

    @jax.jit
    def renewed(angle, s):
        return frames.renewed_signs(system, jnp.array([0.0, 0.0, angle]), jnp.array([s]))[0]

    assert jax.jit(lambda q: frames.initial_signs(system, q))(np.array([0.0, 0.0, 1.0])) == -1
    assert renewed(1.0, -1.0) == -1
    assert renewed(-0.9, -1.0) == -1  # the other one would be better, but this one will do
    assert renewed(-np.arcsin(0.88), -1.0) == 1
    assert renewed(-np.arcsin(0.87), -1.0) == -1


def test_who_asks_for_the_frame_of_a_system_that_has_none_gets_the_householder_one(particle):
    both = jax.jit(lambda q: [Frame(particle, name)(q) for name in ("system", "householder")])
    assert_array_equal(*both(np.array([0.2, 0.5, -0.1])))
