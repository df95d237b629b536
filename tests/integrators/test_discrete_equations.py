"""Each Lagrange-d'Alembert method against a second formulation: the two-point equations by autodiff of L_d,
and the closed formulas that the papers print for the particle."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from numpy.testing import assert_allclose

from noslip import System, simulate
from noslip.integrators.discrete_lagrange_dalembert import DiscreteLagrangeDAlembert
from noslip.integrators.semi_implicit_dla import SemiImplicitDLA
from noslip.integrators.velocity_nonholonomic import VelocityNonholonomic
from noslip.systems import chaplygin_sleigh, nonholonomic_particle, rolling_disk_on_incline
from noslip.testing.integrators import perturbed_case

pytestmark = pytest.mark.thorough

H = 0.1
MODULES = [chaplygin_sleigh, rolling_disk_on_incline]


def discrete_lagrangian(system, betas):
    """h L o rho^beta, averaged over the betas."""

    def Ld(q0, q1):
        v = (q1 - q0) / H
        values = [system.lagrangian((1 - b) * q0 + b * q1, v, system.parameters) for b in betas]
        return H * sum(values) / len(values)

    return Ld


def residual_of_two_point_equations(system, Ld, nodes, multipliers):
    """The largest |D1 Ld(q_k, q_{k+1}) + D2 Ld(q_{k-1}, q_k) + h mu(q_k)^T lam_k|, JS (59a)."""
    D1, D2 = jax.grad(Ld, 0), jax.grad(Ld, 1)

    @jax.jit
    @jax.vmap
    def balance(q0, q1, q2, lam):
        return D1(q1, q2) + D2(q0, q1) + H * system.mu(q1, jnp.zeros(system.n)).T @ lam

    inner = multipliers[1 : len(nodes) - 1]
    return float(np.max(np.abs(balance(nodes[:-2], nodes[1:-1], nodes[2:], inner))))


@pytest.mark.parametrize("module", MODULES, ids=lambda m: m.__name__.rpartition(".")[2])
@pytest.mark.parametrize("beta", [0.5, 0.0, 0.3])
def test_velocity_form_equals_two_point_form(module, beta):
    case = perturbed_case(module)
    run = simulate(case.system, VelocityNonholonomic(beta), case.q0, case.v0, step_size=H, steps=20)
    nodes = run.q + (1 - beta) * H * run.v  # q_k from (q~_k, v_k)
    assert_allclose((nodes[1:] - nodes[:-1]) / H, run.v[1:], rtol=0, atol=1e-12)
    Ld = discrete_lagrangian(case.system, [beta])
    lam = np.vstack([run.multipliers[1:], run.multipliers[-1:]])  # lam of the step that starts at q_k
    assert residual_of_two_point_equations(case.system, Ld, nodes, lam) < 1e-12
    assert np.max(np.abs(run.multiplier_t[1:] - (run.t[1:] - beta * H))) < 1e-12


@pytest.mark.parametrize("module", MODULES, ids=lambda m: m.__name__.rpartition(".")[2])
@pytest.mark.parametrize(
    "method", [DiscreteLagrangeDAlembert(0.5), DiscreteLagrangeDAlembert(0.3, symmetrized=True)], ids=str
)
def test_original_nodes_satisfy_the_two_point_form(module, method):
    case = perturbed_case(module)
    run = simulate(case.system, method, case.q0, case.v0, step_size=H, steps=20)
    betas = [method.beta, 1 - method.beta] if method.symmetrized else [method.beta]
    Ld = discrete_lagrangian(case.system, betas)
    lam = np.vstack([run.multipliers[1:], run.multipliers[-1:]])
    assert residual_of_two_point_equations(case.system, Ld, run.q, lam) < 1e-12
    # the start is the discrete Legendre transform with the motion's reaction of half a step
    p0 = np.asarray(case.system.momentum(case.q0, case.v0))
    mu = np.asarray(case.system.mu(case.q0, case.v0))
    before, during = mu.T @ run.multipliers[0], mu.T @ run.multipliers[1]
    p = p0 - H / 2 * before
    D1 = np.asarray(jax.jit(jax.grad(Ld))(run.q[0], run.q[1]))
    assert_allclose(p + D1 + H * during, 0, rtol=0, atol=1e-12)


@pytest.mark.parametrize("module", MODULES, ids=lambda m: m.__name__.rpartition(".")[2])
def test_si_dla_satisfies_its_two_point_form(module):
    case = perturbed_case(module)
    run = simulate(case.system, SemiImplicitDLA(), case.q0, case.v0, step_size=H, steps=20)
    nodes = run.q + H / 2 * run.v
    lam = np.vstack([run.multipliers[1:], run.multipliers[-1:]])
    Ld = discrete_lagrangian(case.system, [0.0, 1.0])  # (h/2) (L(q0, w) + L(q1, w))
    assert residual_of_two_point_equations(case.system, Ld, nodes, lam) < 1e-12


@pytest.mark.parametrize("beta", [0.0, 0.25, 0.5])
def test_beta_is_adjoint_to_one_minus_beta(beta):
    case = perturbed_case(chaplygin_sleigh)
    from noslip.analysis.reversibility import travelled

    there = travelled(case.system, VelocityNonholonomic(beta), case.q0, case.v0, 0.0, H, 1)
    back = travelled(case.system, VelocityNonholonomic(1 - beta), *there, H, -H, 1)
    assert_allclose(back[0], case.q0, rtol=0, atol=1e-14)
    assert_allclose(back[1], case.v0, rtol=0, atol=1e-14)


def test_printed_formulas_for_the_free_particle(particle):
    """JS (86) with the node rule of (76b), and JS (82) with its printed multiplier."""
    q, v = np.array([0.3, 0.7, 0.1]), np.array([0.5, -0.4, 0.35])
    (_, y, _), (vx, vy, _) = q, v
    free = {"k": 0.0}
    half = simulate(particle, VelocityNonholonomic(0.5), q, v, step_size=H, steps=1, parameters=free)
    lam = vx * vy / (1 + (y + H * vy) * (y + H / 2 * vy))
    new = v + H * lam * np.array([-(y + H / 2 * vy), 0.0, 1.0])
    assert_allclose(half.multipliers[1], lam, rtol=1e-13)
    assert_allclose(half.v[1], new, rtol=1e-13)
    assert_allclose(half.q[1], q + H / 2 * (v + new), rtol=1e-13)
    end = simulate(particle, VelocityNonholonomic(1.0), q, v, step_size=H, steps=1, parameters=free)
    lam = vx * vy / (1 + y * (y + H * vy))
    new = v + H * lam * np.array([-y, 0.0, 1.0])
    assert_allclose(end.multipliers[1], lam, rtol=1e-13)
    assert_allclose(end.v[1], new, rtol=1e-13)
    assert_allclose(end.q[1], q + H * new, rtol=1e-13)


def test_the_factor_h_that_js_76c_lacks(particle, particle_state):
    """I-DLA written out for constant mass: v' = v + (h/2)(F(q) + F(q')) + h mu(qm)^T lam."""
    run = simulate(particle, VelocityNonholonomic(), *particle_state, step_size=H, steps=1)
    (q, q1), (v, v1), lam = run.q, run.v, run.multipliers[1]
    force = lambda q: np.array([-2 * q[0], -2 * q[1], 0.0])  # noqa: E731
    mu = np.array([[-(q + H / 2 * v)[1], 0.0, 1.0]])
    assert_allclose(v1, v + H / 2 * (force(q) + force(q1)) + H * mu.T @ lam, rtol=0, atol=1e-14)


def test_data_on_the_deformed_constraint_is_kept_there(particle):
    """JS (87)-(89): from the first step on, (q, v) of the original nodes satisfies (88), not phi."""
    run = simulate(particle, DiscreteLagrangeDAlembert(), [0.3, 0.7, 0.1], [0.5, -0.4, 0.35], step_size=H,
                   steps=100, parameters={"k": 0.0})  # fmt: skip
    (_, y, _), (vx, vy, vz) = run.q[1:].T, run.v[1:].T
    assert np.max(np.abs(vz - y * vx + H / 2 * vx * vy)) < 1e-15
    lam = vx[:-1] * vy[:-1] / (1 + y[:-1] * (y[:-1] + H / 2 * vy[:-1]))
    assert_allclose(run.multipliers[2:, 0], lam, rtol=1e-11)


@pytest.mark.parametrize("symmetrized", [False, True])
def test_positions_of_dla_are_of_second_order_for_a_symmetric_map(symmetrized):
    from noslip.analysis import measured_order

    for module in MODULES:
        case = perturbed_case(module)
        method = DiscreteLagrangeDAlembert(0.2 if symmetrized else 0.5, symmetrized=symmetrized)
        found = measured_order(case.system, method, case.q0, case.v0, t_end=2.0, steps=(40, 80, 160))
        assert abs(found.global_[0] - 2) < 0.1
        assert abs(found.global_[1] - 1) < 0.15


class Iterated(VelocityNonholonomic):
    """The same equations, never taken as explicit."""

    def is_explicit(self, system):
        return False


def affine_and_forced():
    """Constant mass matrix, drift, and a force of position and time."""
    return System(
        lambda q, v, p: (
            0.5 * (2 * v[0] ** 2 + v[1] ** 2 + v[0] * v[2] + v[2] ** 2) - jnp.cos(q[0]) + 0.3 * v[1]
        ),
        one_forms=lambda q, p: jnp.array([[-jnp.sin(q[1]), 0.2, 1.0]]),
        drift=lambda q, p: jnp.array([0.1 * q[0]]),
        force=lambda q, v, t, p: jnp.array([jnp.cos(t), -q[1], 0.2]),
        coordinates=("x", "y", "z"),
    )


@pytest.mark.parametrize(
    "system", [nonholonomic_particle.system(), affine_and_forced()], ids=["particle", "affine"]
)
def test_js_71_72_is_explicit_for_a_constant_mass_matrix(system):
    q0 = [0.2, 0.5, -0.1]
    v0 = system.project_velocity(q0, [0.8, 0.6, 0.4])
    run = simulate(system, VelocityNonholonomic(0.0), q0, v0, step_size=0.02, steps=50)
    same = simulate(system, Iterated(0.0), q0, v0, step_size=0.02, steps=50)
    assert np.all(run.report.iterations == 0)
    assert np.max(same.report.iterations) > 0
    for name in ("q", "v", "constraint_residual", "multiplier_t"):
        assert_allclose(getattr(run, name), getattr(same, name), rtol=0, atol=1e-14, err_msg=name)
    assert_allclose(run.multipliers, same.multipliers, rtol=0, atol=1e-13)  # a quotient by h
    (q, q1), (v, v1) = run.q[:2], run.v[:2]
    assert_allclose(q1, q + 0.02 * v, rtol=0, atol=1e-15)  # (71a)
    M, mu = np.asarray(system.mass_matrix(q1)), np.asarray(system.mu(q1, v))
    f = np.asarray(system.dL_dq(q1, v1)) + np.asarray(system.applied_force(q1, v1, 0.02))
    assert_allclose(M @ (v1 - v), 0.02 * (f + mu.T @ run.multipliers[1]), rtol=0, atol=1e-15)  # (71b)


def test_what_hides_a_velocity_in_its_forces_is_not_taken_as_explicit(particle):
    drag = System(
        particle.lagrangian,
        one_forms=particle.one_forms,
        coordinates=particle.coordinates,
        parameters={"k": 1.0},
        force=lambda q, v, t, p: -0.1 * v,
    )
    assert VelocityNonholonomic(0.0).is_explicit(particle)
    assert not VelocityNonholonomic(0.3).is_explicit(particle)
    assert not VelocityNonholonomic(0.0).is_explicit(drag)
    assert not VelocityNonholonomic(0.0).is_explicit(chaplygin_sleigh.system())
