"""A step of an integrator as the time-eps map of a periodically forced motion: JS section 4."""

from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.integrate import solve_ivp

from models import double_pendulum, two_forms
from noslip import System, simulate
from noslip.analysis.embedding import Embedding, perturbed_dae
from noslip.integrators.discrete_lagrange_dalembert import DiscreteLagrangeDAlembert
from noslip.integrators.families.states import Unknown
from noslip.integrators.generating_function import GeneratingFunction
from noslip.integrators.geometric_nonholonomic import GeometricNonholonomic
from noslip.integrators.reference_flow import ReferenceFlow
from noslip.integrators.runge_kutta4 import RungeKutta4
from noslip.integrators.semi_implicit_dla import SemiImplicitDLA
from noslip.integrators.velocity_nonholonomic import VelocityNonholonomic
from noslip.systems import appell_hamel, chaplygin_sleigh, nonholonomic_particle

pytestmark = pytest.mark.thorough

EPS = 0.1
CASES = [
    pytest.param(module, VelocityNonholonomic(beta), id=f"{name}-order-{order}")
    for name, module in (("particle", nonholonomic_particle), ("sleigh", chaplygin_sleigh))
    for beta, order in ((0.0, 1), (0.5, 2))
]


def embedding(module, method, eps=EPS):
    system, (q0, v0) = module.system(), module.typical_state()
    made = Embedding(system, method, step_size=eps, near=(q0, v0))
    return made, made.coordinates(q0, v0)


@pytest.mark.slow
@pytest.mark.parametrize(("module", "method"), CASES)
def test_the_perturbed_motion_reproduces_the_integrator(module, method):
    """Over each of three periods, and over all of them."""
    e, z = embedding(module, method)
    run = simulate(module.system(), method, *module.typical_state(), step_size=EPS, steps=3)
    x = np.asarray(z)
    for k in (1, 2, 3):
        span = (EPS * (k - 1), EPS * k)
        found = solve_ivp(
            lambda t, z: np.asarray(e.vector_field(t, z)), span, x, method="DOP853", rtol=1e-13, atol=1e-14
        )
        x = found.y[:, -1]
        assert_allclose(x, e.coordinates(run.q[k], run.v[k]), rtol=0, atol=1e-11)
    assert np.max(np.abs(e.exact_flow(EPS, z) - e.discrete_flow(z))) > 1e-6  # the unperturbed motion does not


@pytest.mark.slow
@pytest.mark.parametrize(("module", "method"), CASES)
def test_g_stays_bounded_as_eps_goes_to_zero(module, method):
    """If p were too large by one, g would double with each halving; here it settles on a limit."""
    sizes = []
    for eps in (0.1, 0.05, 0.025, 0.0125):
        e, z = embedding(module, method, eps)
        sizes.append([float(np.max(np.abs(e.g(tau, z)))) for tau in (0.1, 0.3, 0.5, 0.8)])
    sizes = np.array(sizes)
    assert np.all(sizes > 0)
    assert np.max(np.abs(sizes[1:] / sizes[:-1] - 1)) < 0.06
    assert np.max(np.abs(sizes[3] / sizes[2] - 1)) < 0.015


@pytest.mark.parametrize(("module", "method"), CASES[1:3])
@pytest.mark.slow
def test_g_has_period_one(module, method):
    """Not by its definition here, but by JS (43)-(44): y one period later, and the derivative of G there."""
    e, z = embedding(module, method)
    tau = 0.37
    y = e.initial_value(tau, z)
    assert_allclose(e.G(tau, y), z, rtol=0, atol=1e-14)
    earlier = y
    for _ in range(5):  # Newton's method for Phi(earlier) = y
        slope = jax.jacfwd(e.discrete_flow)(earlier)
        earlier = earlier - np.linalg.solve(slope, e.discrete_flow(earlier) - y)
    assert_allclose(e.G(tau + 1, earlier), z, rtol=0, atol=1e-14)  # so earlier = y(tau + 1, z): (44)
    _, rate = jax.jvp(lambda tau: e.G(tau, earlier), (tau + 1,), (1.0,))
    g = (rate / EPS - e.unperturbed(z)) / EPS**e.order  # (42) at tau + 1
    assert_allclose(g, e.g(tau, z), rtol=0, atol=1e-9)
    assert_allclose(e.g(tau + 3, z), e.g(tau, z), rtol=0, atol=1e-9)


@pytest.mark.parametrize(("module", "method"), CASES[1:3])
def test_g_interpolates_between_the_identity_and_phi(module, method):
    e, z = embedding(module, method)
    Phi = e.discrete_flow
    assert_allclose(e.G(0.0, z), z, rtol=0, atol=1e-15)
    assert_allclose(e.G(1.0, z), Phi(z), rtol=0, atol=1e-15)
    assert_allclose(e.G(1 - 1e-12, z), Phi(z), rtol=0, atol=1e-11)  # from below, by F(0, Phi(z))
    assert_allclose(e.G(2.3, z), e.G(0.3, Phi(Phi(z))), rtol=0, atol=1e-14)  # (40)
    q, v = jax.jit(e.state)(e.G(0.6, z))
    assert np.max(np.abs(module.system().phi(q, v))) < 1e-15  # it stays in D


def test_the_perturbed_motion_follows_g_whose_derivative_it_is():
    """JS (42), (45) by differences of (41), with the sign and the size of its leading term."""
    e, z = embedding(nonholonomic_particle, VelocityNonholonomic(0.0))  # explicit, so quick
    tau, small = 0.4, 1e-4
    before, here, after = (np.asarray(e.G(tau + d, z)) for d in (-small, 0.0, small))
    found = np.asarray(e.vector_field(tau * EPS, here))
    assert_allclose(found, (after - before) / (2 * small * EPS), rtol=0, atol=1e-6)
    assert np.max(np.abs(found - np.asarray(e.unperturbed(here)))) > 1e-3


def test_the_exact_flow_is_that_of_the_reference():
    e, z = embedding(chaplygin_sleigh, VelocityNonholonomic())
    run = simulate(
        chaplygin_sleigh.system(), ReferenceFlow(), *chaplygin_sleigh.typical_state(), step_size=EPS, steps=1
    )
    there = e.exact_flow(EPS, z)
    assert_allclose(there, e.coordinates(run.q[1], run.v[1]), rtol=0, atol=1e-14)
    assert_allclose(e.exact_flow(-EPS, there), z, rtol=0, atol=1e-14)


@pytest.mark.slow
@pytest.mark.parametrize(("module", "method"), CASES)
def test_the_perturbed_dae_is_js_54_and_not_55(module, method):
    e, z = embedding(module, method)
    system, n, tau = module.system(), module.system().n, 0.4
    q, v = e.state(z)
    dq, dv, lam = e.dae_right_hand_side(tau * EPS, q, v)
    psi = e.adapted.psi_derivative(q, e.adapted.base_velocity(v), near=v)
    x50 = jnp.concatenate([v, system.acceleration(q, v)]) + EPS**e.order * psi @ e.g(tau, z)  # (50)
    assert_allclose(jnp.concatenate([dq, dv]), x50, rtol=0, atol=1e-14)
    assert_allclose(psi @ e.vector_field(tau * EPS, z), x50, rtol=0, atol=1e-14)  # (47)
    # (49) is tangent to D, so the multipliers are those of the state
    assert_allclose(lam, system.multipliers(q, v), rtol=0, atol=1e-14)
    # (55) drops the part of g_v that is M-orthogonal to the reactions
    g_q, g_v = (EPS**e.order * g for g in e.perturbation_of_states(tau, q, v))
    mu = system.mu(q, v)
    lift = np.linalg.solve(system.mass_matrix(q), mu.T)
    along = jax.jvp(lambda x: system.phi(x, v), (q,), (g_q,))[1]
    x55 = system.acceleration(q, v) - lift @ np.linalg.solve(mu @ lift, along)
    assert np.max(np.abs(x55 - x50[n:])) > 0.1 * np.max(np.abs(g_v))


def test_any_perturbation_of_the_dae_is_kept_tangent_by_js_53():
    system, (q, v) = chaplygin_sleigh.system(), chaplygin_sleigh.typical_state()
    r_q, r_v = np.array([0.1, -0.2, 0.3]), np.array([0.4, 0.1, -0.2])
    dq, dv, lam = perturbed_dae(system, q, v, r_q, r_v)
    leaving = jax.jit(lambda *at: jax.jvp(system.phi, at[:2], at[2:])[1])(q, v, dq, dv)
    assert_allclose(leaving, 0, rtol=0, atol=1e-15)
    M, mu, own, free = (
        np.asarray(x)
        for x in (system.mass_matrix(q), system.mu(q, v), system.multipliers(q, v), system.acceleration(q, v))
    )
    reaction = np.linalg.solve(M, mu.T @ (np.asarray(lam) - own))
    assert_allclose(dv, free + r_v + reaction, rtol=0, atol=1e-14)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("module", "method"),
    [(appell_hamel, SemiImplicitDLA()), (nonholonomic_particle, RungeKutta4())],
    ids=["nonlinear constraint", "method that leaves D"],
)
def test_other_methods_and_nonlinear_constraints(module, method):
    e, z = embedding(module, method)
    assert_allclose(e.G(1.0, z), e.discrete_flow(z), rtol=0, atol=1e-15)
    tau, y = 0.6, z
    _, rate = jax.jvp(lambda tau: e.G(tau, y), (tau,), (1.0,))
    at = e.G(tau, y)
    assert_allclose(e.vector_field(tau * EPS, at), rate / EPS, rtol=0, atol=1e-12)


@dataclass(frozen=True)
class Stale(VelocityNonholonomic):
    """A method with a memory that no phase space is made for: the multipliers of the step before."""

    def residual(self, system, state, x, h):
        balance = super().residual(system, state, x, h)
        old = h * system.mu(state.q.value, state.v.value).T @ state.lam
        return Unknown(balance.d + 0.01 * old, balance.lam)


@pytest.mark.slow
def test_what_cannot_be_embedded_is_refused(particle, particle_state):
    system, near = chaplygin_sleigh.system(), chaplygin_sleigh.typical_state()
    with pytest.raises(ValueError, match=r"Stale .* its steps depend on more than their 5 coordinates, by"):
        Embedding(system, Stale(), step_size=EPS, near=near)
    with pytest.raises(ValueError, match=r"`near` must be a state \(q, v\)"):
        Embedding(particle, VelocityNonholonomic(), step_size=EPS)
    with pytest.raises(ValueError, match="`step_size` must be positive, but 0"):
        Embedding(system, VelocityNonholonomic(), step_size=0, near=near)
    pushed = System(
        particle.lagrangian,
        one_forms=particle.one_forms,
        coordinates=particle.coordinates,
        parameters={"k": 1.0},
        force=lambda q, v, t, p: jnp.cos(t) * v,
    )
    with pytest.raises(ValueError, match="its force depends on time"):
        Embedding(pushed, VelocityNonholonomic(), step_size=EPS, near=particle_state)
    made = Embedding(system, VelocityNonholonomic(), step_size=EPS)
    with pytest.raises(ValueError, match="try a smaller step_size"):
        Embedding(system, VelocityNonholonomic(), step_size=80.0).g(0.5, made.coordinates(*near))


BACK = [
    pytest.param(double_pendulum, RungeKutta4(), id="no-constraints"),
    pytest.param(double_pendulum, GeneratingFunction(alpha=0.2), id="no-constraints-implicit"),
    pytest.param(two_forms, VelocityNonholonomic(), id="two-constraints"),
    pytest.param(two_forms, DiscreteLagrangeDAlembert(), id="two-points", marks=pytest.mark.all_pairs),
    pytest.param(two_forms, GeometricNonholonomic(), id="reflection", marks=pytest.mark.all_pairs),
]


@pytest.mark.slow
@pytest.mark.parametrize(("make", "method"), BACK)
def test_proposition_4_1_backwards_in_time(make, method):
    """tau < 0: G goes back through the method's own steps, (40) and (44) hold, and g is the slope of G."""
    system, q, v = make()
    e = Embedding(system, method, step_size=EPS, near=(q, v))
    z = e.discrete_flow(e.coordinates(q, v))
    before = e.G(-1.0, z)
    assert_allclose(e.discrete_flow(e.space.turn * before), z, rtol=0, atol=1e-12)  # J ends each period
    assert np.max(np.abs(before - e.exact_flow(-EPS, z))) > 1e-9
    tau = -1.3
    here = e.G(tau, z)
    assert_allclose(e.initial_value(tau, here), z, rtol=0, atol=1e-11)
    later = e.discrete_flow(e.initial_value(tau + 1, here))
    if e.period == 1:
        assert_allclose(later, e.initial_value(tau, here), rtol=0, atol=1e-11)  # (44)
    d = 1e-3
    one, two = (e.G(tau + k * d, z) - e.G(tau - k * d, z) for k in (1, 2))
    slope = (8 * one - two) / (12 * d * EPS)
    field = e.vector_field(EPS * tau, here)
    assert_allclose(field, slope, rtol=0, atol=1e-8)
    assert np.max(np.abs(field - e.unperturbed(here))) > 1e-6
