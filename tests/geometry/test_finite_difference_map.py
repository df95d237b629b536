"""Finite-difference maps as objects: their conditions, and the methods made from any of them."""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from numpy.testing import assert_allclose

from noslip import System, simulate
from noslip import analysis as diagnostics
from noslip.analysis.reversibility import travelled
from noslip.engine.translate import depends_on
from noslip.geometry.finite_difference_map import RhoBeta, RhoFunctions
from noslip.integrators.discrete_lagrange_dalembert import DiscreteLagrangeDAlembert
from noslip.integrators.velocity_nonholonomic import VelocityNonholonomic
from noslip.systems import chaplygin_sleigh, rolling_disk_on_incline
from noslip.testing.integrators import perturbed_case

pytestmark = pytest.mark.thorough

H = 0.05


def quotient(q, qbar, h):
    return (qbar - q) / h


def third(q, qbar):
    return 0.7 * q + 0.3 * qbar


def curved(q, qbar):
    """Symmetric in its arguments: the midpoint, bent."""
    d = qbar - q
    return (q + qbar) / 2 + 0.3 * d * jnp.roll(d, 1) * jnp.cos(q + qbar)


def curved_third(q, qbar):
    d = qbar - q
    return q + 0.3 * d + 0.3 * d * jnp.roll(d, 1) * jnp.cos(q)


def stretched(q, qbar, h):
    d = qbar - q
    return d / h * (1 + 0.4 * jnp.sum(d**2))


SYMMETRIC, ONE_SIDED = RhoFunctions(curved, stretched), RhoFunctions(curved_third, stretched)


def forced():
    """A varying mass matrix, a gyroscopic term, and a force that depends on everything."""
    return System(
        lambda q, v, p: 0.5 * ((2 + jnp.sin(q[1])) * v[0] ** 2 + v[1] ** 2 + v[2] ** 2) + 0.3 * q[0] * v[1],
        one_forms=lambda q, p: jnp.array([[-jnp.sin(q[1]), 0.2, 1.0]]),
        force=lambda q, v, t, p: jnp.array([jnp.cos(t) - 0.1 * v[0], -q[1], 0.2 * t]),
        coordinates=("x", "y", "z"),
    )


@pytest.fixture(scope="module")
def sleigh():
    return perturbed_case(chaplygin_sleigh)


@pytest.mark.parametrize("method", [VelocityNonholonomic, DiscreteLagrangeDAlembert])
def test_a_map_of_functions_equal_to_rho_beta_is_the_method_of_beta(method):
    system, q0 = forced(), [0.3, 0.5, -0.2]
    v0 = system.project_velocity(q0, [0.5, -0.4, 0.3])
    named = simulate(system, method(0.3), q0, v0, step_size=H, steps=40)
    given = simulate(system, method(rho=RhoFunctions(third, quotient)), q0, v0, step_size=H, steps=40)
    for name in ("q", "v", "multipliers", "multiplier_t"):
        assert_allclose(getattr(given, name), getattr(named, name), rtol=0, atol=1e-12, err_msg=name)


def test_rho_beta_given_as_a_map_is_beta():
    assert VelocityNonholonomic(rho=RhoBeta(0.3)) == VelocityNonholonomic(0.3)
    assert DiscreteLagrangeDAlembert(0.3, True) == DiscreteLagrangeDAlembert(
        symmetrized=True, rho=RhoBeta(0.3)
    )
    assert VelocityNonholonomic(0.3).options() == {"beta": 0.3}
    assert RhoBeta(0.2).adjoint() == RhoBeta(0.8)


@pytest.mark.parametrize(("rho", "order"), [(SYMMETRIC, 2), (ONE_SIDED, 1)], ids=["symmetric", "one-sided"])
def test_other_maps_keep_the_constraint_and_have_the_order_of_their_symmetry(sleigh, rho, order):
    method = VelocityNonholonomic(rho=rho)
    assert method.order == order
    assert ("reversible" in method.preserves) == (order == 2)
    case = sleigh
    found = diagnostics.measured_order(case.system, method, case.q0, case.v0, t_end=2.0, steps=(80, 160, 320))
    errors = np.max(found.global_errors[:, :2], axis=1)
    slope = np.polyfit(np.log(found.step_sizes), np.log(errors), 1)[0]
    assert abs(slope - order) < 0.15
    run = simulate(case.system, method, case.q0, case.v0, step_size=H, steps=1000)
    assert np.max(np.abs(run.constraint_residual)) < 1e-14
    assert run.report.increment.max() < 1e-14
    back = diagnostics.reversibility_defect(case.system, method, case.q0, case.v0, step_size=H, steps=50)
    assert back < 1e-13 if order == 2 else back > 1e-6


@pytest.mark.slow
def test_the_method_of_the_adjoint_map_is_the_adjoint_method(sleigh):
    there = travelled(sleigh.system, VelocityNonholonomic(rho=ONE_SIDED), sleigh.q0, sleigh.v0, 0.0, H, 1)
    adjoint = ONE_SIDED.adjoint()
    back = travelled(sleigh.system, VelocityNonholonomic(rho=adjoint), *there, H, -H, 1)
    assert_allclose(back[0], sleigh.q0, rtol=0, atol=1e-14)
    assert_allclose(back[1], sleigh.v0, rtol=0, atol=1e-14)
    assert adjoint.adjoint() == ONE_SIDED
    q, qbar = jnp.array([0.1, 0.2, 0.3]), jnp.array([0.15, 0.1, 0.35])
    for a, b in zip(adjoint(q, qbar, H), ONE_SIDED(qbar, q, -H), strict=True):
        assert_allclose(a, b, rtol=0, atol=1e-15)
    assert_allclose(adjoint.fraction(q), 0.7, rtol=0, atol=1e-15)


@pytest.mark.slow
@pytest.mark.parametrize("symmetrized", [False, True])
def test_two_point_equations_of_any_map(symmetrized):
    """JS (59) with D1, D2 by autodiff of L_d = h L o rho, and phi_d = 0 on every pair."""
    case = perturbed_case(rolling_disk_on_incline)
    method = DiscreteLagrangeDAlembert(symmetrized=symmetrized, rho=ONE_SIDED)
    run = simulate(case.system, method, case.q0, case.v0, step_size=H, steps=10)
    maps = [ONE_SIDED, ONE_SIDED.adjoint()] if symmetrized else [ONE_SIDED]

    def Ld(a, b):
        return sum(rho.discrete_lagrangian(case.system, a, b, H) for rho in maps) / len(maps)

    D1, D2 = jax.jit(jax.grad(Ld, 0)), jax.jit(jax.grad(Ld, 1))
    for k in range(1, 10):
        a, b, c = run.q[k - 1 : k + 2]
        reaction = case.system.mu(b, jnp.zeros(case.system.n)).T @ run.multipliers[k + 1]
        assert_allclose(D1(b, c) + D2(a, b) + H * reaction, 0, rtol=0, atol=1e-12)
        phi = sum(rho.discrete_constraint(case.system, b, c, H) for rho in maps)
        assert_allclose(phi, 0, rtol=0, atol=1e-12)
    assert diagnostics.deformed_constraint_error(case.system, method, run) < 1e-12


@pytest.mark.slow
def test_velocity_form_is_the_two_point_form_seen_through_rho(sleigh):
    """JS (63): rho^-1, two-point steps, rho."""
    run = simulate(
        sleigh.system, VelocityNonholonomic(rho=ONE_SIDED), sleigh.q0, sleigh.v0, step_size=H, steps=6
    )
    nodes = []
    for q, v in zip(run.q, run.v, strict=True):
        ahead, w = ONE_SIDED.inverse(jnp.asarray(q), jnp.asarray(v), H)
        assert_allclose(ONE_SIDED(q + ahead - H * w, q + ahead, H), (q, v), rtol=0, atol=1e-13)
        nodes.append((q + ahead - H * w, q + ahead))
    for (_, end), (start, _) in itertools.pairwise(nodes):
        assert_allclose(end, start, rtol=0, atol=1e-13)


@pytest.mark.slow
def test_declared_angles_may_turn_under_any_map():
    """Wrapped inside the run and counted: the same states as with the angle left alone."""
    sleigh, q0 = chaplygin_sleigh.system(), [0.1, 0.0, 3.0]
    v0 = sleigh.project_velocity(q0, [0.5, 0.2, 3.0])
    plain = System(
        sleigh.lagrangian,
        one_forms=sleigh.one_forms,
        coordinates=sleigh.coordinates,
        parameters=sleigh.parameters,
    )
    for method in (VelocityNonholonomic(rho=ONE_SIDED), DiscreteLagrangeDAlembert(rho=ONE_SIDED)):
        turned, left = (simulate(s, method, q0, v0, step_size=H, steps=60) for s in (sleigh, plain))
        assert turned.q[-1, 2] > 3 * np.pi / 2
        assert_allclose(turned.q, left.q, rtol=0, atol=1e-12)
        assert_allclose(turned.v, left.v, rtol=0, atol=1e-12)


def test_zero_is_a_regular_value_of_phi_d(sleigh):
    """JS proposition 5.2: phi_d has m components and is a submersion near the diagonal."""
    q = np.asarray(sleigh.q0)
    slopes = jax.jit(jax.jacfwd(lambda a, b: ONE_SIDED.discrete_constraint(sleigh.system, a, b, H), (0, 1)))
    for qbar in (q, q + 0.02):
        both = np.hstack(slopes(q, qbar))
        assert both.shape == (sleigh.system.m, 2 * sleigh.system.n)
        assert np.linalg.matrix_rank(both) == sleigh.system.m


BAD = {
    r"g\(q, q\) = q": (lambda q, qbar: q + qbar, quotient),
    r"f\(q, q, h\) = 0": (third, lambda q, qbar, h: (qbar - q) / h + 1),
    "local diffeomorphism": (third, lambda q, qbar, h: (qbar - q) ** 2 / h),
    "local diffeomorphism near": (
        third,
        lambda q, qbar, h: jnp.array([[1.0], [0.0], [0.0]]) @ (qbar - q)[:1] / h,
    ),
    r"f\(q, q \+ h v, h\) -> v": (third, lambda q, qbar, h: 2 * (qbar - q) / h),
    "-> v as h -> 0": (third, lambda q, qbar, h: qbar - q),
    r"`g\(q, qbar\)` must have shape \(3,\)": (lambda q, qbar: q[:2], quotient),
    r"`f\(q, qbar, h\)` must have shape \(3,\)": (third, lambda q, qbar, h: jnp.sum(qbar - q) / h),
}


@pytest.mark.parametrize("condition", BAD)
def test_what_is_no_finite_difference_map_is_refused_by_name(condition):
    with pytest.raises(ValueError, match=condition):
        RhoFunctions(*BAD[condition])


def test_maps_that_do_not_fit_the_system_say_why(sleigh, particle, particle_state):
    planar = RhoFunctions(third, quotient, near=(0.0, 1.0))
    with pytest.raises(ValueError, match="its map rho is for 2 coordinates, and the system has 3"):
        simulate(particle, VelocityNonholonomic(rho=planar), *particle_state, step_size=H, steps=1)
    absolute = RhoFunctions(lambda q, qbar: (q + qbar) / 2 + (qbar - q) ** 2 * q, quotient)
    assert DiscreteLagrangeDAlembert(rho=absolute).applies_to(particle) is None
    refusal = DiscreteLagrangeDAlembert(rho=absolute).applies_to(sleigh.system)
    assert refusal == "its map rho changes when both nodes turn by 2 pi in the angle 'theta'"
    assert SYMMETRIC.adjoint().refusal(sleigh.system) is None
    with pytest.raises(ValueError, match=r"`beta` must be left out where `rho` is given, but 0\.3"):
        VelocityNonholonomic(0.3, rho=SYMMETRIC)
    with pytest.raises(TypeError, match="`rho` must be a map"):
        VelocityNonholonomic(rho=0.3)
    for make in (VelocityNonholonomic, DiscreteLagrangeDAlembert, RhoBeta):
        with pytest.raises(ValueError, match=r"`beta` must be in \[0, 1\], but 1.5"):
            make(1.5)


def test_maps_are_equal_by_value_and_compile_once(particle, particle_state, compilations):
    first, second = RhoFunctions(curved, stretched), RhoFunctions(curved, stretched)
    assert first == second
    assert hash(VelocityNonholonomic(rho=first)) == hash(VelocityNonholonomic(rho=second))
    assert repr(first) == "RhoFunctions(curved, stretched)"
    simulate(particle, VelocityNonholonomic(rho=first), *particle_state, step_size=H, steps=3)
    method = VelocityNonholonomic(rho=second)
    with compilations() as count:
        simulate(particle, method, *particle_state, step_size=H, steps=3)
    assert count() == 0


def test_dependence_is_read_off_the_program():
    x = jnp.ones(3)
    assert depends_on(lambda a, b: jnp.where(a > 0, a * b, 0.0), 1, x, x)
    assert not depends_on(lambda a, b: jnp.linalg.norm(a) + 0 * a, 1, x, x)
    assert not depends_on(lambda a, b: jax.jit(lambda u, w: (u, w))(a, b)[0], 1, x, x)
    assert depends_on(lambda a, b: a, 0, {"k": 1.0, "l": x}, x)
