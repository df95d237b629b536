"""One-forms that are nearly parallel cost no more digits than they must."""

import jax.numpy as jnp
import mpmath
import numpy as np
import pytest

from noslip import System, ensemble, simulate
from noslip.integrators.runge_kutta4 import RungeKutta4


def lagrangian(q, v, p):
    weights = jnp.array([1.0, 1.7 + 0.3 * jnp.sin(q[0]), 0.6, 2.2])
    return 0.5 * jnp.dot(v, weights * v) + 0.2 * v[0] * v[3] - 0.4 * jnp.cos(q[1]) - 0.1 * q[3] ** 2


def forms(q, p):
    first = jnp.array([-q[1], 0.3 * jnp.sin(q[3]), 1.0, 0.2])
    other = jnp.array([0.4, 1.0, jnp.cos(q[0]), -0.3])
    return jnp.stack([first, first + p["eps"] * other])


def apart(q, p):  # the same constraints, far from parallel
    return jnp.stack([forms(q, p)[0], jnp.array([0.4, 1.0, jnp.cos(q[0]), -0.3])])


def made(one_forms, eps):
    return System(lagrangian, one_forms=one_forms, coordinates=tuple("xyzw"), parameters={"eps": eps})


Q, V = np.array([2.3, 0.7, -0.4, 1.9]), np.array([0.8, -0.6, 0.3, 0.5])


def end(one_forms, eps, **more):
    v = made(apart, eps).project_velocity(Q, V)
    return simulate(made(one_forms, eps), RungeKutta4(), Q, v, step_size=0.05, steps=100, **more)


@pytest.mark.parametrize(("eps", "every"), [(1e-4, 1), (1e-6, 1), (1e-7, 1), (1e-6, 100)])
def test_forms_that_differ_little_lose_no_more_than_their_own_condition(eps, every):
    """Of few rows each is asked by itself, of many some are."""
    good, near = end(apart, eps, save_every=every), end(forms, eps, save_every=every)
    error = np.max(np.abs(good.q - near.q)) + np.max(np.abs(good.v - near.v))
    assert error < 200 * 2.2e-16 / eps  # it was 2.2e-16 / eps^2
    lam, wanted = near.multipliers[-1], good.multipliers[-1]
    assert np.abs(lam[1] * eps - wanted[1]) < 1e-13 / eps
    many = ensemble(made(forms, eps), RungeKutta4(), Q, near.v[0], step_size=0.05, steps=100)
    np.testing.assert_array_equal(many.q[0, -1], near.q[-1])


def test_multipliers_and_projection_agree_with_a_multiprecision_solve():
    eps, system = 1e-7, made(forms, 1e-7)
    v = system.project_velocity(Q, V)
    assert np.max(np.abs(system.phi(Q, v))) < 1e-15
    with mpmath.workdps(50):
        M, mu = (mpmath.matrix(np.asarray(x).tolist()) for x in (system.mass_matrix(Q), system.mu(Q, V)))
        free = mpmath.matrix(V.tolist())
        lift = mpmath.inverse(M) * mu.T
        exact = free - lift * mpmath.lu_solve(mu * lift, mu * free)
    np.testing.assert_allclose(v, [float(x) for x in exact], rtol=0, atol=1e-15 / eps)


@pytest.mark.parametrize("every", [1, 8])
def test_forms_that_become_parallel_on_the_way_are_seen(every):
    def turning(q, p):
        return jnp.array([[0.0, jnp.cos(q[0]), jnp.sin(q[0]), 0.0], [0.0, 1.0, 1e-6, 0.0]])

    system = System(lambda q, v, p: 0.5 * jnp.dot(v, v), one_forms=turning, coordinates=tuple("xyzw"))
    run = simulate(system, RungeKutta4(), [1.0, 0, 0, 0], [-1.0, 0, 0, 0.5], step_size=0.125, steps=8,
                   save_every=every)  # fmt: skip
    assert run.success
    np.testing.assert_allclose(run.q[-1], [0.0, 0.0, 0.0, 0.5], atol=1e-12)
