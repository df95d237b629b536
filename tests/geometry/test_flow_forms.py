"""What the flow does to the canonical forms, LMS (10) and (11), with two constraints; and JS remark 5.4."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from numpy.testing import assert_allclose

from models import double_pendulum, two_forms
from noslip.geometry import exact_generating_function as generating
from noslip.geometry.finite_difference_map import RhoBeta
from noslip.geometry.flow_forms import flow_forms

H = 0.1


@pytest.mark.parametrize("make", [double_pendulum, pytest.param(two_forms, marks=pytest.mark.slow)])
def test_10_and_11(make):
    system, q, v = make()
    found = flow_forms(system, q, v, H)
    assert_allclose(found.theta_change, found.action_differential + found.work, rtol=0, atol=1e-12)
    assert_allclose(found.omega_change, -found.work_differential, rtol=0, atol=1e-12)
    assert_allclose(found.omega_change, -found.omega_change.T, rtol=0, atol=1e-14)
    sizes = [float(np.max(np.abs(x))) for x in (found.work, found.omega_change)]
    if system.m:
        assert min(sizes) > 1e-2  # the nonholonomic flow is not canonical
    else:
        assert max(sizes) < 1e-12


# ---- D_d^E, JS remark 5.4 -------------------------------------------------------------------------------
@pytest.fixture(scope="module")
def joined():
    system, q, v = two_forms()
    made = generating.arc(system, q, v, H)
    constraint = jax.jit(lambda a, b: generating.exact_discrete_constraint(system, a, b, H))
    return system, q, v, made, constraint


@pytest.mark.slow
def test_pairs_of_the_motion_are_the_zeros(joined):
    """And the velocities at both ends are in D, as the remark says."""
    system, q, _, made, constraint = joined
    assert_allclose(constraint(q, made.q1), 0, rtol=0, atol=1e-12)
    assert_allclose(system.phi(made.q1, made.v1), 0, rtol=0, atol=1e-12)
    off = constraint(q, made.q1 + 1e-3 * jnp.ones(4))
    assert np.min(np.abs(off)) > 1e-4


@pytest.mark.slow
def test_the_zeros_are_a_manifold_of_dimension_2n_minus_m(joined):
    """The derivatives have rank m, and the pairs reached from D with all variations fill the kernel."""
    system, q, v, made, constraint = joined
    slopes = np.hstack(jax.jit(jax.jacfwd(constraint, (0, 1)))(q, made.q1))
    assert np.linalg.svd(slopes, compute_uv=False)[-1] > 1.0
    d, moves = 1e-5, []
    for k, e in enumerate(np.eye(8)):
        ends = []
        for s in (d, -d):
            a = q + s * e[:4]
            w = system.project_velocity(a, v + s * e[4:])
            ends.append(jnp.concatenate([a, generating.arc(system, a, w, H).q1]))
        moves.append(np.asarray(ends[0] - ends[1]) / (2 * d))
        assert_allclose(slopes @ moves[k], 0, rtol=0, atol=1e-7)
    assert np.linalg.matrix_rank(np.array(moves), tol=1e-6) == 6  # 2n - m


def test_the_discrete_constraint_of_the_midpoint_rule_is_near_it():
    """phi o rho on D_d^E is O(h^2) for beta 1/2 and O(h) for beta 0."""
    system, q, v = two_forms()
    for beta, order in ((0.5, 2), (0.0, 1)):
        errors = []
        for h in (0.1, 0.05, 0.025):
            q1 = generating.arc(system, q, v, h).q1
            errors.append(np.max(np.abs(RhoBeta(beta).discrete_constraint(system, q, q1, h))))
        assert np.log2(errors[1] / errors[2]) == pytest.approx(order, abs=0.1)
