"""Deformed constraints, JS remark 6.1, and the manifold (88) on which the two-point method lives."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from numpy.testing import assert_allclose

from noslip import simulate
from noslip.analysis.deformed import deformed_system, kept_system
from noslip.analysis.embedding import Embedding
from noslip.geometry.connection import adapted_coordinates
from noslip.integrators.discrete_lagrange_dalembert import DiscreteLagrangeDAlembert
from noslip.integrators.reference_flow import ReferenceFlow
from noslip.integrators.runge_kutta4 import RungeKutta4
from noslip.integrators.velocity_nonholonomic import VelocityNonholonomic
from noslip.systems import chaplygin_sleigh, nonholonomic_particle, turntable_ball


def quadratic(q, v, p):
    return jnp.array([0.3 * v[0] * v[1] + q[0] * v[2] ** 2])


def product(q, v, p):
    return v[0] * v[1]


def test_multipliers_and_motion_are_js_93_to_95():
    system, (q, v) = chaplygin_sleigh.system(), chaplygin_sleigh.typical_state()
    deformed = deformed_system(system, quadratic, 0.1)
    v = deformed.project_velocity(q, v)

    @jax.jit
    def parts(q, v):
        def by_hand(q, v):
            return system.momentum(q, v), system.phi(q, v) + 0.1 * quadratic(q, v, {})

        (_, phi), (dp, dphi) = jax.jvp(lambda x: by_hand(x, v), (q,), (v,))
        mu = jax.jacfwd(lambda w: by_hand(q, w)[1])(v)
        return deformed.phi(q, v), phi, mu, system.mass_matrix(q), system.dL_dq(q, v) - dp, dphi

    of_deformed, phi, mu, M, force, dphi = map(np.asarray, parts(q, v))
    assert_allclose(of_deformed, phi, rtol=0, atol=1e-15)
    fv = np.linalg.solve(M, force)  # the v part of (18)
    C = mu @ np.linalg.inv(M) @ mu.T  # (93)
    lam = -np.linalg.solve(C, dphi + mu @ fv)  # (95)
    assert_allclose(deformed.multipliers(q, v), lam, rtol=1e-12)
    assert_allclose(deformed.acceleration(q, v), fv + np.linalg.solve(M, mu.T @ lam), rtol=1e-12)  # (94)


@pytest.mark.slow
def test_the_flow_stays_on_the_deformed_manifold_in_full_and_in_its_coordinates():
    deformed = deformed_system(nonholonomic_particle.system(), quadratic, 0.2)
    q0 = jnp.array([0.2, 0.5, -0.1])
    v0 = deformed.project_velocity(q0, [0.8, 0.6, 0.4])
    run = simulate(deformed, ReferenceFlow(), q0, v0, step_size=0.1, steps=20)
    assert np.max(np.abs(run.constraint_residual)) < 1e-13
    kept = simulate(deformed, VelocityNonholonomic(), q0, v0, step_size=0.1, steps=20)
    assert np.max(np.abs(kept.constraint_residual)) < 1e-14
    adapted = adapted_coordinates(deformed, q0, v0)  # (96)
    base = adapted.base_velocity(v0)
    pushed = adapted.psi_derivative(q0, base, near=v0) @ jnp.concatenate(
        adapted.vector_field(q0, base, near=v0)
    )
    assert_allclose(pushed, jnp.concatenate([v0, deformed.acceleration(q0, v0)]), rtol=0, atol=1e-12)


def test_regular_for_small_delta_and_the_old_motion_in_the_limit():
    system, (q, v) = chaplygin_sleigh.system(), chaplygin_sleigh.typical_state()
    deformed = deformed_system(system, quadratic, 0.0)
    for name in ("multipliers", "acceleration"):
        old = np.asarray(getattr(system, name)(q, v))
        assert_allclose(getattr(deformed, name)(q, v), old, rtol=0, atol=1e-13)
        found = (getattr(deformed, name)(q, v, parameters={"delta": d}) for d in (1e-3, 1e-4))
        sizes = [np.max(np.abs(np.asarray(x) - old)) for x in found]
        assert 8 < sizes[0] / sizes[1] < 12  # linear in delta
    for d in (0.1, 0.01):
        mu = np.asarray(deformed.mu(q, v, parameters={"delta": d}))
        assert np.linalg.svd(mu, compute_uv=False)[-1] > 0.5


def test_affine_constraints_and_nonlinear_ones_can_be_deformed():
    system, (q, v) = turntable_ball.system(), turntable_ball.typical_state()
    twice = deformed_system(system, lambda q, v, p: jnp.zeros(system.m), 0.3)
    assert_allclose(twice.acceleration(q, v), system.acceleration(q, v), rtol=0, atol=1e-12)
    with pytest.raises(ValueError, match="the system has a parameter 'delta' already"):
        deformed_system(twice, lambda q, v, p: jnp.zeros(system.m), 0.3)
    with pytest.raises(ValueError, match=f"must have {system.m} values, one per constraint, but it has 1"):
        deformed_system(system, product, 0.3)


def test_equal_deformations_share_compiled_code(compilations):
    system, (q, v) = nonholonomic_particle.system(), nonholonomic_particle.typical_state()
    deformed_system(system, product, 0.1).acceleration(q, v)
    other = deformed_system(system, product, 0.2)
    with compilations() as count:
        other.acceleration(q, v)
    assert count() == 0


def two_point_and_deformed_flow(steps, t_end=1.0):
    """Errors after one step and at t_end of the two-point data against the flow of the deformed system."""
    h = t_end / steps
    free = nonholonomic_particle.system(k=0.0)
    deformed = deformed_system(free, product, h / 2)
    # the first step of the method is a start; from its end on the data are in D_eps and follow (89)
    run = simulate(
        free, DiscreteLagrangeDAlembert(), [0.3, 0.7, 0.1], [0.5, -0.4, 0.35], step_size=h, steps=steps + 1
    )
    on = max(float(np.max(np.abs(deformed.phi(q, v)))) for q, v in zip(run.q[1:], run.v[1:], strict=True))
    flow = simulate(deformed, ReferenceFlow(), run.q[1], run.v[1], step_size=h, steps=steps)
    errors = [
        np.max(np.abs(np.hstack([run.q[1 + k] - flow.q[k], run.v[1 + k] - flow.v[k]]))) for k in (1, steps)
    ]
    return on, [*errors, abs(run.multipliers[2, 0] - flow.multipliers[1, 0])]


def test_the_two_point_method_lives_on_js_88_and_follows_its_flow_to_first_order():
    """Data satisfy (88) to round-off; against the flow (94) of that manifold they are of order (1, 0)."""
    found = [two_point_and_deformed_flow(n) for n in (20, 40, 80)]
    assert max(on for on, _ in found) < 1e-15
    errors = np.array([e for _, e in found])
    local, end, multiplier = np.log2(errors[:-1] / errors[1:]).T
    assert_allclose(local, 2, rtol=0, atol=0.1)
    assert_allclose(end, 1, rtol=0, atol=0.05)
    assert_allclose(multiplier, 1, rtol=0, atol=0.1)


def test_the_constraint_that_a_method_keeps_is_js_88():
    free, (q, v) = nonholonomic_particle.system(k=0.0), nonholonomic_particle.typical_state()
    kept, hand = (
        kept_system(free, DiscreteLagrangeDAlembert(), 0.1),
        deformed_system(free, product, 0.05),
    )
    for name in ("phi", "mu", "multipliers", "acceleration"):
        assert_allclose(getattr(kept, name)(q, v), getattr(hand, name)(q, v), rtol=0, atol=1e-15)
    with pytest.raises(ValueError, match="RungeKutta4 does not promise to keep a deformed constraint"):
        kept_system(free, RungeKutta4(), 0.1)


@pytest.mark.slow
def test_the_two_point_method_is_embedded_on_the_deformed_manifold():
    """The last sentence of JS remark 6.1: corollary 4.1 holds on D_eps as it does on D."""
    free, sizes = nonholonomic_particle.system(k=0.0), []
    q = jnp.array([0.3, 0.7, 0.1])
    for eps in (0.1, 0.05, 0.025):
        deformed = deformed_system(free, product, eps / 2)
        v = adapted_coordinates(deformed, q).psi(q, jnp.array([0.5, -0.4]))
        e = Embedding(free, DiscreteLagrangeDAlembert(), step_size=eps, near=(q, v))
        z = e.coordinates(q, v)
        assert_allclose(e.state(z)[1], v, rtol=0, atol=1e-15)
        after, w = e.state(e.discrete_flow(z))
        lam = v[0] * v[1] / (1 + q[1] * (q[1] + eps / 2 * v[1]))  # (89)
        assert_allclose(w, v + eps * lam * jnp.array([-q[1], 0.0, 1.0]), rtol=0, atol=1e-14)
        assert_allclose(after, q + eps * w, rtol=0, atol=1e-14)
        assert_allclose(e.unperturbed(z)[3:], deformed.acceleration(q, v)[:2], rtol=0, atol=1e-14)  # (94)
        sizes.append([float(np.max(np.abs(e.g(tau, z)))) for tau in (0.3, 0.5, 0.8)])
        _, rate = jax.jvp(lambda tau, e=e, z=z: e.G(tau, z), (0.6,), (1.0,))
        assert_allclose(e.vector_field(0.6 * eps, e.G(0.6, z)), rate / eps, rtol=0, atol=1e-12)
    assert np.max(np.abs(np.array(sizes[1:]) / sizes[:-1] - 1)) < 0.05
