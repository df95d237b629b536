"""LMS section 4 and (33): two-point equations by autodiff of S, the printed examples, what is kept where."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from numpy.testing import assert_allclose

from noslip import System, simulate
from noslip.analysis import measured_order
from noslip.analysis.reversibility import travelled
from noslip.geometry import hamiltonian
from noslip.integrators.generating_function import GeneratingFunction
from noslip.integrators.geometric_nonholonomic import GeometricNonholonomic
from noslip.systems import (
    appell_hamel_spring,
    chaplygin_sleigh,
    nonholonomic_particle,
    rolling_disk_on_incline,
    turntable_ball,
    two_quadratic_constraints,
)
from noslip.testing.integrators import perturbed_case

pytestmark = pytest.mark.thorough

H = 0.1
PLAIN = [GeneratingFunction(0.5), GeneratingFunction(0.3), GeneratingFunction(0.2, symmetric=True)]
PROJECTED = [GeneratingFunction(m.alpha, m.symmetric, projected=True) for m in PLAIN]


def name_of(module):
    return module.__name__.rpartition(".")[2]


def two_point_terms(system, method, h=H):
    """D1 S, D2 S by autodiff of S (25) with remark 4.1, and the forces that go with q0 and q1."""
    alphas = [method.alpha, 1 - method.alpha] if getattr(method, "symmetric", False) else [method.alpha]

    def S(q0, q1):
        values = [system.lagrangian((1 - a) * q0 + a * q1, (q1 - q0) / h, system.parameters) for a in alphas]
        return h * sum(values) / len(values)

    def forces(q0, q1, t):
        at0, at1 = 0.0, 0.0
        for a in alphas:
            q, v = (1 - a) * q0 + a * q1, (q1 - q0) / h
            F = system.mu(q, v).T @ system.multipliers(q, v, t + a * h) + system.applied_force(
                q, v, t + a * h
            )
            at0, at1 = at0 + (1 - a) * h * F / len(alphas), at1 + a * h * F / len(alphas)
        return at0, at1

    @jax.jit
    def terms(q0, q1, t):
        return *jax.grad(S, (0, 1))(q0, q1), *forces(q0, q1, t)

    return lambda *pair: [np.asarray(x) for x in terms(*pair)]


def largest_defect(system, method, run):
    """Of the two-point equations (21) or (33), and of the start (17)."""
    terms = two_point_terms(system, method)
    D1, _, F0, _ = terms(run.q[0], run.q[1], run.t[0])
    worst = np.max(np.abs(np.asarray(system.momentum(run.q[0], run.v[0])) + D1 + F0))
    for k in range(1, len(run.t) - 1):
        _, D2, _, F1 = terms(run.q[k - 1], run.q[k], run.t[k - 1])
        D1, _, F0, _ = terms(run.q[k], run.q[k + 1], run.t[k])
        P = np.asarray(system.projectors(run.q[k])[0]) if method.projected else np.eye(system.n)
        worst = max(worst, np.max(np.abs(P.T @ (D2 + F1) + D1 + F0)))
    return worst


@pytest.mark.parametrize("module", [chaplygin_sleigh, rolling_disk_on_incline], ids=name_of)
@pytest.mark.parametrize("method", PLAIN + PROJECTED, ids=str)
def test_the_nodes_satisfy_the_two_point_equations(module, method):
    case = perturbed_case(module)
    run = simulate(case.system, method, case.q0, case.v0, step_size=H, steps=20)
    assert largest_defect(case.system, method, run) < 1e-12
    if not method.symmetric:
        assert_allclose(run.multiplier_t[1:], run.t[1:] - (1 - method.alpha) * H, rtol=0, atol=1e-13)


def g(q0, q1):
    """(2 x y - xdot ydot) / (1 + y^2) at the midpoint, as LMS example 4.2 writes it."""
    (x0, y0, _), (x1, y1, _) = q0, q1
    top = (x1 + x0) * (y1 + y0) / 2 - (x1 - x0) * (y1 - y0) / H**2
    return top / (1 + ((y1 + y0) / 2) ** 2), (y1 + y0) / 2


def example_4_2(q0, q1, q2):
    """Left minus right side of the three printed difference equations."""
    (x0, y0, z0), (x1, y1, z1), (x2, y2, z2) = q0, q1, q2
    (g0, m0), (g1, m1) = g(q0, q1), g(q1, q2)
    free = lambda a, b, c: (b - a) / H - H * (b + a) / 2 - (c - b) / H - H * (c + b) / 2  # noqa: E731
    return np.array(
        [
            free(x0, x1, x2) + H / 2 * (g0 * m0 + g1 * m1),
            free(y0, y1, y2),
            (z1 - z0) / H - (z2 - z1) / H - H / 2 * (g0 + g1),
        ]
    )


def example_5_1(q0, q1, q2):
    """The same for example 5.1, with 1 / (1 + y1^2) before the whole fraction g0."""
    (x0, y0, z0), (x1, y1, z1), (x2, y2, z2) = q0, q1, q2
    (g0, m0), (g1, m1) = g(q0, q1), g(q1, q2)
    C, px = 1 + y1**2, (x1 - x0) / H - H * (x1 + x0) / 2
    return np.array(
        [
            px / C - (x2 - x1) / H - H * (x2 + x1) / 2 + y1 / C * (z1 - z0) / H
            + H / 2 * (g0 * m0 / C + g1 * m1 - y1 / C * g0),
            (y1 - y0) / H - H * (y1 + y0) / 2 - (y2 - y1) / H - H * (y2 + y1) / 2,
            y1**2 / C * (z1 - z0) / H - (z2 - z1) / H + y1 / C * px
            - H / 2 * (y1**2 / C * g0 + g1 - y1 / C * g0 * m0),
        ]
    )  # fmt: skip


@pytest.mark.parametrize("projected", [False, True])
def test_printed_difference_equations_of_the_particle(particle, particle_state, projected):
    run = simulate(particle, GeneratingFunction(projected=projected), *particle_state, step_size=H, steps=50)
    printed = example_5_1 if projected else example_4_2
    defects = [printed(*run.q[k - 1 : k + 2]) for k in range(1, 50)]
    assert np.max(np.abs(defects)) < 1e-13
    # and the printed initial condition phi~ = 0
    (x0, y0, z0), (x1, _, z1) = run.q[:2]
    g0, m0 = g(*run.q[:2])
    start = -(z1 - z0) / H - H / 2 * g0 + y0 * ((x1 - x0) / H + H * (x1 + x0) / 2 - H / 2 * g0 * m0)
    assert abs(start) < 1e-13


def test_one_half_is_the_implicit_midpoint_rule_on_the_cotangent_bundle():
    case = perturbed_case(chaplygin_sleigh)
    run = simulate(case.system, GeneratingFunction(), case.q0, case.v0, step_size=H, steps=5)
    p = np.asarray(jax.jit(jax.vmap(case.system.momentum))(run.q, run.v))
    field = jax.jit(jax.vmap(lambda q, p: hamiltonian.vector_field(case.system, q, p)))
    dq, dp = field((run.q[1:] + run.q[:-1]) / 2, (p[1:] + p[:-1]) / 2)
    assert_allclose(np.diff(run.q, axis=0) / H, dq, rtol=0, atol=1e-13)
    assert_allclose(np.diff(p, axis=0) / H, dp, rtol=0, atol=1e-13)


@pytest.mark.parametrize("alpha", [0.0, 0.3])
def test_alpha_is_adjoint_to_one_minus_alpha(alpha):
    case = perturbed_case(chaplygin_sleigh)
    there = travelled(case.system, GeneratingFunction(alpha), case.q0, case.v0, 0.0, H, 1)
    back = travelled(case.system, GeneratingFunction(1 - alpha), *there, H, -H, 1)
    assert_allclose(back[0], case.q0, rtol=0, atol=1e-13)
    assert_allclose(back[1], case.v0, rtol=0, atol=1e-13)


def constraint_defect(module, method):
    case = perturbed_case(module)
    run = simulate(case.system, method, case.q0, case.v0, step_size=0.05, steps=1000)
    return np.max(np.abs(run.constraint_residual))


@pytest.mark.parametrize("method", PLAIN, ids=str)
def test_constant_mass_and_affine_one_forms_need_no_projection(method):
    assert constraint_defect(nonholonomic_particle, method) < 1e-14


@pytest.mark.parametrize("module", [rolling_disk_on_incline, two_quadratic_constraints], ids=name_of)
def test_which_constraint_is_kept_by_which_method(module):
    """Section 4 keeps phi only to its order; (33) and both readings of section 5 to round-off."""
    for method in PLAIN:
        assert constraint_defect(module, method) > 1e-4
    for method in [*PROJECTED, GeometricNonholonomic(), GeometricNonholonomic("projection")]:
        assert constraint_defect(module, method) < 1e-15


@pytest.mark.slow
def test_the_constraint_error_of_section_4_is_of_the_order_of_the_method():
    for module in (rolling_disk_on_incline, two_quadratic_constraints):
        case = perturbed_case(module)
        for method, order in ((GeneratingFunction(0.5), 2), (GeneratingFunction(0.0), 1)):
            errors = []
            for steps in (40, 80, 160):
                run = simulate(case.system, method, case.q0, case.v0, step_size=2 / steps, steps=steps)
                errors.append(np.max(np.abs(run.constraint_residual)))
            assert abs(np.log2(errors[0] / errors[2]) / 2 - order) < 0.15


def gyroscopic(q, v, p):
    kinetic = 0.5 * ((1 + 0.3 * q[1] ** 2) * v[0] ** 2 + v[1] ** 2 + 2 * v[2] ** 2 + 0.4 * v[0] * v[2])
    return kinetic + q[0] ** 2 * v[1] - 0.5 * q[0] * q[2] * v[2] - jnp.dot(q, q)


# a gyroscopic term, a force that depends on time, an affine constraint, a mass that varies
DRIVEN = System(
    gyroscopic,
    one_forms=lambda q, p: jnp.array([[-jnp.sin(q[1]), 0.2 * q[2], 1.0]]),
    drift=lambda q, p: jnp.array([0.3 * jnp.cos(q[0])]),
    force=lambda q, v, t, p: -0.2 * v + jnp.array([jnp.cos(3 * t), 0.0, 0.1 * q[0]]),
    coordinates=("x", "y", "z"),
)


BOTH = [*PLAIN[:1], *PROJECTED[:2], PLAIN[2], GeometricNonholonomic(), GeometricNonholonomic("projection")]


@pytest.mark.parametrize("method", BOTH, ids=str)
def test_forces_gyroscopic_terms_and_affine_constraints(method):
    q0 = np.array([0.4, -0.7, 0.3])
    v0 = DRIVEN.project_velocity(q0, [0.5, 0.8, -0.2])
    found = measured_order(DRIVEN, method, q0, v0, t_end=2.0, steps=(40, 80, 160), t0=0.3)
    assert np.max(np.abs(found.global_[:2] - method.order)) < 0.15
    run = simulate(DRIVEN, method, q0, v0, step_size=H, steps=100)
    assert (np.max(np.abs(run.constraint_residual)) < 1e-15) == ("constraint" in method.preserves)


@pytest.mark.slow
def test_affine_constraints_of_the_turntable_are_kept_by_the_projection():
    assert constraint_defect(turntable_ball, GeneratingFunction(projected=True)) < 1e-15


@pytest.mark.parametrize("method", [PLAIN[0], PLAIN[2], GeneratingFunction(1.0)], ids=str)
def test_nonlinear_constraints_by_chetaevs_rule(method):
    case = perturbed_case(appell_hamel_spring)
    found = measured_order(case.system, method, case.q0, case.v0, t_end=2.0, steps=(80, 160, 320))
    assert np.max(np.abs(found.global_[:2] - method.order)) < 0.15


def test_the_symmetric_average_projected_is_of_second_order():
    case = perturbed_case(rolling_disk_on_incline)
    found = measured_order(case.system, PROJECTED[2], case.q0, case.v0, t_end=2.0, steps=(40, 80, 160))
    assert np.max(np.abs(found.global_[:2] - 2)) < 0.1


def test_the_projection_refuses_nonlinear_constraints():
    case = perturbed_case(appell_hamel_spring)
    with pytest.raises(ValueError, match="needs linear or affine constraints, but these are nonlinear"):
        simulate(case.system, GeneratingFunction(projected=True), case.q0, case.v0, step_size=H, steps=1)


@pytest.mark.parametrize("alpha", [-0.1, 1.5, float("nan")])
def test_alpha_out_of_range_is_refused(alpha):
    with pytest.raises(ValueError, match=r"`alpha` must be in \[0, 1\], but .* was provided"):
        GeneratingFunction(alpha)
