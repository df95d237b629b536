"""The motion by covariant derivatives, LMS (26)-(28), with two constraints and a non-constant metric."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from numpy.testing import assert_allclose

from models import double_pendulum, kepler, two_forms
from noslip import System
from noslip.geometry import levi_civita
from noslip.systems import appell_hamel, turntable_ball


@pytest.fixture(scope="module")
def case():
    return two_forms()


def field(k):
    return lambda q: jnp.sin(q + k) * jnp.roll(q, k)


def in_d(system, k):
    return lambda q: system.projectors(q)[0] @ field(k)(q)


def test_the_connection_is_metric_and_has_no_torsion(case):
    system, q, _ = case
    Y, Z = field(2), field(3)

    @jax.jit
    def sides(q):
        x = field(1)(q)
        slope = jax.jvp(lambda a: Y(a) @ system.mass_matrix(a) @ Z(a), (q,), (x,))[1]
        M = system.mass_matrix(q)
        dY, dZ = (levi_civita.covariant_derivative(system, q, x, f) for f in (Y, Z))
        back = levi_civita.covariant_derivative(system, q, Y(q), field(1))
        bracket = jax.jvp(Y, (q,), (x,))[1] - jax.jvp(field(1), (q,), (Y(q),))[1]
        return slope, dY @ M @ Z(q) + Y(q) @ M @ dZ, dY - back, bracket

    slope, by_parts, torsion, bracket = sides(q)
    assert_allclose(slope, by_parts, rtol=1e-12)
    assert_allclose(torsion, bracket, rtol=0, atol=1e-12)


def test_26_and_27_with_its_sign(case):
    """lambda is the reaction M^-1 mu^T lam, and nabla_v v + grad V is just that."""
    system, q, v = case
    found, a = np.asarray(levi_civita.reaction(system, q, v)), np.asarray(system.acceleration(q, v))
    pull = np.asarray(system.mu(q, v)).T @ np.asarray(system.multipliers(q, v))
    assert_allclose(found, np.linalg.solve(system.mass_matrix(q), pull), rtol=1e-12)
    turn = np.einsum("ijk,j,k", levi_civita.christoffel(system, q), v, v)
    assert_allclose(a + turn + np.asarray(levi_civita.gradient_of_potential(system, q)), found, rtol=1e-11)
    assert_allclose(np.asarray(system.projectors(q)[0]) @ found, 0, rtol=0, atol=1e-13)
    assert np.max(np.abs(found)) > 0.1


def test_28_and_the_connection_that_stays_in_d(case):
    system, q, v = case
    P, Q = map(np.asarray, system.projectors(q))
    turn = np.einsum("ijk,j,k", levi_civita.christoffel(system, q), v, v)
    grad = np.asarray(levi_civita.gradient_of_potential(system, q))
    assert_allclose(P @ (np.asarray(system.acceleration(q, v)) + turn), -P @ grad, rtol=0, atol=1e-12)
    assert_allclose(levi_civita.acceleration(system, q, v), system.acceleration(q, v), rtol=1e-11)
    derivatives, Y = (levi_civita.constrained_derivative, levi_civita.covariant_derivative), in_d(system, 2)
    both = jax.jit(lambda q: [f(system, q, field(1)(q), Y) for f in derivatives])
    kept, free = map(np.asarray, both(q))
    assert_allclose(Q @ kept, 0, rtol=0, atol=1e-12)
    assert_allclose(kept, P @ free, rtol=0, atol=1e-12)
    assert np.max(np.abs(Q @ free)) > 0.1


def test_without_constraints_the_motion_of_a_free_body_is_a_geodesic():
    system, q, v = double_pendulum()
    assert_allclose(levi_civita.acceleration(system, q, v), system.acceleration(q, v), rtol=1e-12)
    polar, q, v = kepler()
    wanted = np.zeros((2, 2, 2))
    wanted[0, 1, 1], wanted[1, 0, 1], wanted[1, 1, 0] = -q[0], 1 / q[0], 1 / q[0]
    assert_allclose(levi_civita.christoffel(polar, q), wanted, rtol=0, atol=1e-14)


def test_what_section_5_is_not_about_is_refused():
    for module in (appell_hamel, turntable_ball):  # nonlinear and affine ones
        with pytest.raises(ValueError, match="needs linear constraints"):
            levi_civita.acceleration(module.system(), *module.typical_state())
    gyroscopic = System(lambda q, v, p: 0.5 * v @ v + q[0] * v[1], coordinates=("x", "y"))
    with pytest.raises(ValueError, match="dL/dv at rest is"):
        levi_civita.gradient_of_potential(gyroscopic, [1.0, 0.0])
