"""LMS section 5, P(D2 S + D1 S) = 0: both readings against S by autodiff, their momenta and their memory."""

import jax
import numpy as np
import pytest
from numpy.testing import assert_allclose

from noslip import simulate
from noslip.analysis import measured_order
from noslip.integrators.geometric_nonholonomic import GeometricNonholonomic
from noslip.systems import (
    appell_hamel_spring,
    chaplygin_sleigh,
    nonholonomic_particle,
    rolling_disk,
    rolling_disk_on_incline,
    turntable_ball,
    two_quadratic_constraints,
)
from noslip.testing import integrators as claims
from noslip.testing.integrators import perturbed_case

pytestmark = pytest.mark.thorough

H = 0.1
METHODS = [
    GeometricNonholonomic(),
    GeometricNonholonomic("projection"),
    GeometricNonholonomic("reflection", 0.3),
]
every_method = pytest.mark.parametrize("method", METHODS, ids=str)


def name_of(module):
    return module.__name__.rpartition(".")[2]


def momenta(system, alpha):
    """(-D1 S, D2 S) of LMS (25)."""

    def S(q0, q1):
        return H * system.lagrangian((1 - alpha) * q0 + alpha * q1, (q1 - q0) / H, system.parameters)

    gradient = jax.jit(jax.grad(S, (0, 1)))

    def pair(q0, q1):
        D1, D2 = (np.asarray(x) for x in gradient(q0, q1))
        return -D1, D2

    return pair


@pytest.mark.parametrize("module", [chaplygin_sleigh, rolling_disk_on_incline], ids=name_of)
@every_method
def test_the_nodes_satisfy_the_two_point_equations(module, method):
    case = perturbed_case(module)
    system = case.system
    run = simulate(system, method, case.q0, case.v0, step_size=H, steps=20)
    pair = momenta(system, method.alpha)
    for k in range(1, 20):
        before, after = pair(run.q[k - 1], run.q[k])[1], pair(run.q[k], run.q[k + 1])[0]
        P, Q = (np.asarray(x).T for x in system.projectors(run.q[k]))
        expected = P @ before - (Q @ before if method.reading == "reflection" else 0)
        assert_allclose(after, expected, rtol=0, atol=1e-12)
        assert_allclose(P @ (before - after), 0, rtol=0, atol=1e-12)  # as printed
        p = system.momentum(run.q[k], run.v[k])
        assert_allclose(p, P @ before, rtol=0, atol=1e-12)
        if method.reading == "reflection":
            assert_allclose(p, (before + after) / 2, rtol=0, atol=1e-12)
        mu = np.asarray(system.mu(run.q[k], run.v[k]))
        assert_allclose(after - before, H * mu.T @ run.multipliers[k], rtol=0, atol=1e-12)


@pytest.mark.parametrize("alpha", [0.2, 1.0])
@pytest.mark.slow
def test_the_reflection_is_of_first_order_unless_s_is_symmetric(alpha):
    for reading in ("reflection", "projection"):
        claims.check_order(GeometricNonholonomic(reading, alpha), perturbed_case(chaplygin_sleigh))
    # of second order where S does not depend on alpha: constant mass matrix, no potential
    case = perturbed_case(rolling_disk)
    method = GeometricNonholonomic("reflection", alpha)
    found = measured_order(case.system, method, case.q0, case.v0, t_end=2.0, steps=(40, 80, 160))
    assert abs(np.min(found.global_[:2]) - 2) < 0.1


@every_method
@pytest.mark.slow
def test_affine_constraints_are_kept(method):
    case = perturbed_case(turntable_ball)
    run = simulate(case.system, method, case.q0, case.v0, step_size=0.05, steps=500)
    assert np.max(np.abs(run.constraint_residual)) < 1e-15
    found = measured_order(case.system, method, case.q0, case.v0, t_end=2.0, steps=(80, 160, 320))
    assert abs(np.min(found.global_[:2]) - method.order) < 0.15


@pytest.mark.slow
def test_the_multipliers_converge_and_are_dated_at_the_node():
    """With the reaction of half a step before the first node, whatever alpha; that of (1 - alpha) h leaves an
    alternating error which does not go away with h."""
    case = perturbed_case(two_quadratic_constraints)

    class OtherStart(GeometricNonholonomic):
        def init(self, system, q, v, t, h):
            state = super().init(system, q, v, t, h)
            return type(state)(**{**vars(state), "lam": 2 * (1 - self.alpha) * state.lam})

    def order(method):
        return measured_order(case.system, method, case.q0, case.v0, t_end=2.0, steps=(80, 160, 320)).global_[
            2
        ]

    assert abs(order(GeometricNonholonomic()) - 2) < 0.15
    assert abs(order(GeometricNonholonomic("reflection", 0.2)) - 1) < 0.15
    assert abs(order(OtherStart("reflection", 0.2))) < 0.15
    run = simulate(case.system, METHODS[0], case.q0, case.v0, step_size=H, steps=3)
    assert_allclose(run.multiplier_t, run.t)


def alternating_part(multipliers):
    """Fourth differences over 16: keeps what alternates, removes what is smooth."""
    weights = np.array([1, -4, 6, -4, 1]) / 16
    return np.abs(np.convolve(multipliers[:, 0], weights, "valid"))


@pytest.mark.slow
def test_the_reflection_remembers_an_error_of_the_reaction_and_the_projection_does_not():
    """Bounded on the particle; growing, until it spoils the energy, on two quadratic constraints."""

    def run(module, method):
        case = perturbed_case(module)
        made = simulate(case.system, method, case.q0, case.v0, step_size=0.05, steps=10_000)
        return alternating_part(made.multipliers)

    particle = run(nonholonomic_particle, METHODS[0])
    assert particle[-500:].max() < 2 * particle[:500].max() < 1e-3
    quadratic = run(two_quadratic_constraints, METHODS[0])
    assert quadratic[:500].max() < 1e-2
    assert quadratic[-500:].max() > 1
    assert run(two_quadratic_constraints, METHODS[1])[-500:].max() < 1e-2


def test_the_projection_loses_energy():
    case = perturbed_case(two_quadratic_constraints)
    run = simulate(case.system, METHODS[1], case.q0, case.v0, step_size=0.05, steps=1000)
    assert run.energy[-1] < 0.9 * run.energy[0]


def test_bad_input_is_refused():
    with pytest.raises(ValueError, match="`reading` must be 'reflection' or 'projection', but 'both'"):
        GeometricNonholonomic("both")
    with pytest.raises(ValueError, match=r"`alpha` must be in \[0, 1\], but 2 was provided"):
        GeometricNonholonomic(alpha=2)
    case = perturbed_case(appell_hamel_spring)
    with pytest.raises(ValueError, match="needs linear or affine constraints, but these are nonlinear"):
        simulate(case.system, METHODS[0], case.q0, case.v0, step_size=H, steps=1)
