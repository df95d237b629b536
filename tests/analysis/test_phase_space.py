"""Methods whose steps are no maps of D, embedded where they are maps: JS section 4 on other phase spaces."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.integrate import solve_ivp

from noslip import simulate
from noslip.analysis.embedding import Embedding
from noslip.integrators import discover
from noslip.integrators.discrete_lagrange_dalembert import DiscreteLagrangeDAlembert
from noslip.integrators.generating_function import GeneratingFunction
from noslip.integrators.geometric_nonholonomic import GeometricNonholonomic
from noslip.integrators.poincare_hamiltonized_del import PoincareHamiltonizedDEL
from noslip.integrators.reference_flow import ReferenceFlow
from noslip.integrators.runge_kutta4 import RungeKutta4
from noslip.integrators.velocity_nonholonomic import VelocityNonholonomic
from noslip.systems import (
    appell_hamel,
    chaplygin_sleigh,
    nonholonomic_particle,
    turntable_ball,
    two_quadratic_constraints,
)

pytestmark = pytest.mark.thorough

EPS = 0.1
# the mass matrix of the sleigh depends on its heading
CASES = [
    pytest.param(nonholonomic_particle, GeometricNonholonomic(), id="reflection-particle"),
    pytest.param(
        chaplygin_sleigh, GeometricNonholonomic(), id="reflection-sleigh", marks=pytest.mark.all_pairs
    ),
    pytest.param(nonholonomic_particle, DiscreteLagrangeDAlembert(), id="two-point-particle"),
    pytest.param(
        chaplygin_sleigh, DiscreteLagrangeDAlembert(), id="two-point-sleigh", marks=pytest.mark.all_pairs
    ),
]
MORE = [
    pytest.param(
        two_quadratic_constraints,
        GeometricNonholonomic(),
        id="reflection-two-constraints",
        marks=pytest.mark.all_pairs,
    ),
    pytest.param(
        chaplygin_sleigh,
        GeometricNonholonomic(alpha=0.3),
        id="reflection-order-1",
        marks=pytest.mark.all_pairs,
    ),
    pytest.param(
        chaplygin_sleigh,
        DiscreteLagrangeDAlembert(0.3, symmetrized=True),
        id="symmetrized",
        marks=pytest.mark.all_pairs,
    ),
    pytest.param(
        appell_hamel, DiscreteLagrangeDAlembert(), id="two-point-nonlinear", marks=pytest.mark.all_pairs
    ),
    pytest.param(
        turntable_ball, GeometricNonholonomic(), id="reflection-affine", marks=pytest.mark.all_pairs
    ),
    pytest.param(nonholonomic_particle, RungeKutta4(), id="off-D-order-4", marks=pytest.mark.all_pairs),
    pytest.param(chaplygin_sleigh, GeneratingFunction(0.2), id="off-D-order-1", marks=pytest.mark.all_pairs),
]
VARIANTS = [method for cls in discover().values() for method in cls.variants()]


def embedding(module, method, eps=EPS):
    system, state = module.system(), module.typical_state()
    made = Embedding(system, method, step_size=eps, near=state)
    return made, made.start(*state)


@pytest.mark.slow
@pytest.mark.parametrize(("module", "method"), CASES + MORE)
def test_the_perturbed_motion_reproduces_the_run_from_its_first_state(module, method):
    """Positions and all velocities, over one period and over three."""
    e, z = embedding(module, method)
    run = simulate(module.system(), method, *module.typical_state(), step_size=EPS, steps=3)
    x = np.asarray(z)
    for k in (1, 2, 3):
        span = (EPS * (k - 1), EPS * k)
        found = solve_ivp(
            lambda t, z: np.asarray(e.vector_field(t, z)), span, x, method="DOP853", rtol=1e-12, atol=1e-13
        )
        x = found.y[:, -1]
        q, v = e.state(x)
        assert_allclose(q, run.q[k], rtol=0, atol=1e-11)
        assert_allclose(v, run.v[k], rtol=0, atol=1e-11)
    assert np.max(np.abs(e.exact_flow(EPS, z) - e.G(1.0, z))) > 1e-8  # the unperturbed motion does not


@pytest.mark.slow
@pytest.mark.parametrize(("module", "method"), CASES + MORE)
def test_g_stays_bounded_as_eps_goes_to_zero(module, method):
    """At the start of a run; for the reflection also at s = eps^p / 4, with ds/dt = eps^p g_s."""
    sizes = []
    for eps in (0.1, 0.05, 0.025, 0.0125):
        e, z = embedding(module, method, eps)
        if e.period == 2:
            z = z.at[-module.system().m :].set(0.25 * eps**e.order)
        sizes.append([float(np.max(np.abs(e.g(tau, z)))) for tau in (0.3, 0.5, 0.8)])
    sizes = np.array(sizes)
    assert np.all(sizes > 0)
    assert np.max(np.abs(sizes[1:] / sizes[:-1] - 1)) < 0.15
    assert np.max(np.abs(sizes[3] / sizes[2] - 1)) < 0.03


@pytest.mark.slow
@pytest.mark.parametrize(("module", "method"), CASES)
def test_g_has_period_one_or_one_with_the_reflection(module, method):
    """By JS (42)-(44) one period later, where g is J g(tau, J z)."""
    e, z = embedding(module, method)
    tau, J = 0.37, e.space.turn
    assert e.period == (2 if J[-1] < 0 else 1)
    if e.period == 2:
        z = z.at[-1].set(0.01)
    y = e.initial_value(tau, z)
    earlier = J * y
    for _ in range(6):  # Newton's method for J step(earlier) = J y, so that z is reached at tau + 1
        slope = jax.jacfwd(e.discrete_flow)(earlier)
        earlier = earlier - np.linalg.solve(slope, e.discrete_flow(earlier) - y)
    at, rate = jax.jvp(lambda tau: e.G(tau, earlier), (tau + 1,), (1.0,))
    assert_allclose(at, J * z, rtol=0, atol=1e-14)
    g = (rate / EPS - e.unperturbed(at)) / EPS**e.order  # (42) at tau + 1
    assert_allclose(g, J * e.g(tau, z), rtol=0, atol=1e-8)
    assert_allclose(e.g(tau + 1, J * z), g, rtol=0, atol=1e-8)
    assert_allclose(e.g(tau + 2, z), e.g(tau, z), rtol=0, atol=1e-8)
    on_d = z if e.period == 1 else z.at[-1].set(0.0)
    length = 2 * module.system().n - module.system().m
    assert_allclose(e.g(tau + 1, on_d)[:length], e.g(tau, on_d)[:length], rtol=0, atol=1e-8)


@pytest.mark.slow
@pytest.mark.parametrize(("module", "method"), CASES)
def test_g_is_a_solution_and_the_dae_has_the_form_of_js_54(module, method):
    """On D_eps with the deformed constraint in the place of phi, on D x R^m with phi itself."""
    e, y = embedding(module, method)
    tau = 0.6
    z, rate = jax.jvp(lambda tau: e.G(tau, y), (tau,), (1.0,))
    assert_allclose(e.vector_field(tau * EPS, z), rate / EPS, rtol=0, atol=1e-12)
    (q, v), (dq, dv) = jax.jvp(e.state, (z,), (rate / EPS,))
    memory = z[-1:] if e.period == 2 else None
    right = e.dae_right_hand_side(tau * EPS, q, v, memory)
    assert_allclose(right[0], dq, rtol=0, atol=1e-12)
    assert_allclose(right[1], dv, rtol=0, atol=1e-12)
    assert_allclose(right[2], e.motion.multipliers(q, v), rtol=0, atol=1e-12)  # g is tangent: (53) adds 0
    assert_allclose(e.motion.phi(q, v), 0, rtol=0, atol=1e-14)
    assert_allclose(jax.jvp(e.motion.phi, (q, v), (dq, dv))[1], 0, rtol=0, atol=1e-12)
    kept = (
        method.deformed_constraint(e.system, q, v, EPS)
        if "deformed_constraint" in method.preserves
        else e.system.phi(q, v)
    )
    assert_allclose(kept, 0, rtol=0, atol=1e-14)


@pytest.mark.slow
def test_off_d_the_perturbation_moves_phi_and_no_multiplier_answers():
    e, y = embedding(nonholonomic_particle, RungeKutta4())
    z, rate = jax.jvp(lambda tau: e.G(tau, y), (0.6,), (1.0,))
    (q, v), (dq, dv) = jax.jvp(e.state, (z,), (rate / EPS,))
    right = e.dae_right_hand_side(0.6 * EPS, q, v)
    assert_allclose(jnp.concatenate(right[:2]), jnp.concatenate([dq, dv]), rtol=0, atol=1e-12)
    assert_allclose(right[2], e.system.multipliers(q, v), rtol=0, atol=1e-14)
    assert np.abs(jax.jvp(e.system.phi, (q, v), (dq, dv))[1]) > 1e-6  # as the method does


@pytest.mark.slow
@pytest.mark.parametrize(
    "module",
    [
        nonholonomic_particle,
        chaplygin_sleigh,
        pytest.param(two_quadratic_constraints, marks=pytest.mark.all_pairs),
    ],
)
def test_the_reflection_itself_is_the_map_of_no_flow(module):
    """Its memory has multipliers near -1, so that the orientation is reversed for odd m; J takes that out."""
    system, distances = module.system(), []
    for eps in (0.1, 0.05, 0.025):
        e, z = embedding(module, GeometricNonholonomic(), eps)
        slope = np.asarray(jax.jacfwd(e.discrete_flow)(z))
        assert np.sign(np.linalg.det(slope)) == (-1) ** system.m
        assert np.sum(np.linalg.eigvals(slope).real < -0.8) == system.m
        near = np.asarray(jax.jacfwd(lambda z, e=e: e.G(1.0, z))(z))
        distances.append(np.max(np.abs(near - np.eye(len(z)))))
    assert np.all(np.array(distances[1:]) / distances[:-1] < 0.6)


@pytest.mark.slow
def test_the_memory_of_the_reflection_cannot_be_left_out():
    """Restarted at each state it is another method: its second step differs, by O(eps^4)."""
    system, (q, v) = chaplygin_sleigh.system(), chaplygin_sleigh.typical_state()
    differences = []
    for eps in (0.1, 0.05, 0.025):
        run = simulate(system, GeometricNonholonomic(), q, v, step_size=eps, steps=2)
        again = simulate(system, GeometricNonholonomic(), run.q[1], run.v[1], step_size=eps, steps=1)
        differences.append(np.max(np.abs(np.hstack([run.q[2] - again.q[1], run.v[2] - again.v[1]]))))
    assert differences[0] > 1e-7
    assert_allclose(np.log2(differences[:2]) - np.log2(differences[1:]), 4, rtol=0, atol=0.05)


@pytest.mark.slow
@pytest.mark.parametrize("beta", [0.5, pytest.param(0.2, marks=pytest.mark.all_pairs)])
def test_the_redefined_nodes_carry_the_two_point_method_to_d(beta):
    """JS (90): rho takes its steps on D_eps to those of the velocity method, which is embedded on D."""
    e, z = embedding(chaplygin_sleigh, DiscreteLagrangeDAlembert(beta))
    on_d, _ = embedding(chaplygin_sleigh, VelocityNonholonomic(beta))

    def carried(z):
        q, v = e.state(z)
        return on_d.coordinates(q - (1 - beta) * EPS * v, v)

    assert_allclose(carried(e.discrete_flow(z)), on_d.discrete_flow(carried(z)), rtol=0, atol=1e-14)


@pytest.mark.slow
def test_the_motion_itself_needs_no_perturbation():
    e, z = embedding(nonholonomic_particle, ReferenceFlow())
    run = simulate(nonholonomic_particle.system(), ReferenceFlow(), *e.state(z), step_size=EPS, steps=1)
    assert np.all(e.g(0.4, z) == 0)
    assert_allclose(e.vector_field(0.03, z), e.unperturbed(z), rtol=0, atol=0)
    assert_allclose(e.discrete_flow(z), e.coordinates(run.q[1], run.v[1]), rtol=0, atol=1e-14)
    assert_allclose(e.G(1.4, z), e.exact_flow(0.4 * EPS, e.exact_flow(EPS, z)), rtol=0, atol=1e-14)


@pytest.mark.all_pairs
@pytest.mark.parametrize("method", VARIANTS, ids=repr)
def test_every_method_of_the_package_is_a_map_where_it_is_embedded(method):
    """The second and third steps of a run are steps from what the first one reaches."""
    for module in (chaplygin_sleigh, nonholonomic_particle):
        if method.own_time or method.applies_to(module.system()):
            continue
        if isinstance(method, PoincareHamiltonizedDEL):  # its steps remember the energy of the start
            with pytest.raises(ValueError, match="depend on more than their 5 coordinates"):
                embedding(module, method)
            return
        e, z = embedding(module, method)  # which would refuse a method whose second step is another
        run = simulate(module.system(), method, *module.typical_state(), step_size=EPS, steps=3)
        for k in (1, 2, 3):
            z = e.discrete_flow(z)
            q, v = e.state(z)
            assert_allclose(jnp.concatenate([q, v]), np.hstack([run.q[k], run.v[k]]), rtol=0, atol=1e-13)
        return
