"""Jimenez and Scheurle's printed formulas against what they must be: one check per entry of the errata page.

Each test shows that the corrected form holds and, where a number can tell, that the printed one does not.
"""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from numpy.testing import assert_allclose

from noslip import System, simulate
from noslip import analysis as diagnostics
from noslip.geometry.connection import adapted_coordinates
from noslip.geometry.finite_difference_map import RhoBeta
from noslip.geometry.interpolation import curve_in_d
from noslip.integrators.reference_flow import ReferenceFlow
from noslip.integrators.velocity_nonholonomic import VelocityNonholonomic
from noslip.systems import nonholonomic_particle, rolling_disk_on_incline

MASS = np.array([[2.0, 0.3, 0.1], [0.3, 1.0, 0.2], [0.1, 0.2, 1.5]])
Q, BASE = np.array([0.4, 0.7, -0.3]), np.array([0.6, -0.5])
STEPS = np.array([0.04, 0.02, 0.01, 0.005])


BENT = System(
    lambda q, v, p: 0.5 * v @ MASS @ v - p["k"] * (jnp.cos(q[0]) + q[1] ** 2 + q[0] * q[2]),
    one_forms=lambda q, p: jnp.array([[jnp.sin(q[1]) + 0.3 * q[2] ** 2, 0.2 * q[0] ** 2, 1.0]]),
    coordinates=("x", "y", "z"),
    parameters={"k": 0.0},
    fibre=("z",),
)


def bent(potential=0.0):
    """Constant mass matrix; the connection A = (sin y + 0.3 z^2, 0.2 x^2) depends on the fibre z."""
    return BENT.with_parameters({"k": potential})


@jax.jit
def turned(system, q, v, w):
    """v . grad mu . w: the derivative of mu in the direction v, applied to w; and the second one."""

    def first(x):
        return jax.jvp(lambda y: system.mu(y, w) @ w, (x,), (v,))[1]

    return jax.jvp(first, (q,), (v,))


def start(system):
    return Q, np.asarray(adapted_coordinates(system, Q).psi(Q, BASE))


def one_step(system, beta, h):
    """(q, v), (q1, v1), lam of one step, and the original node between."""
    run = simulate(system, VelocityNonholonomic(beta), *start(system), step_size=h, steps=1)
    middle = run.q[0] + (1 - beta) * h * run.v[0]
    return (run.q[0], run.v[0]), (run.q[1], run.v[1]), run.multipliers[1], middle


def along(system, q, v, w):
    """v . grad mu . w."""
    return np.asarray(turned(system, q, v, w)[0])


def along_twice(system, q, v):
    """The second derivative of mu in the direction v, applied to v."""
    return np.asarray(turned(system, q, v, v)[1])


def inverse_c(system, q):
    mu = np.asarray(system.mu(q, np.zeros(3)))
    return np.linalg.inv(mu @ np.linalg.solve(MASS, mu.T))


def exponent(errors, steps=STEPS):
    return float(np.polyfit(np.log(steps), np.log(errors), 1)[0])


def test_1_the_multiplier_of_76c_needs_the_factor_eps():
    system = nonholonomic_particle.system()
    sizes = []
    for h in STEPS:
        run = simulate(
            system, VelocityNonholonomic(), *nonholonomic_particle.typical_state(), step_size=h, steps=1
        )
        (q, q1), (v, v1) = run.q, run.v
        force, force1 = (np.asarray(system.potential_force(x)) for x in (q, q1))
        impulse = v1 - v - h / 2 * (force + force1)
        mu = np.asarray(system.mu(q + h / 2 * v, v))
        assert_allclose(impulse, h * mu.T @ run.multipliers[1], rtol=0, atol=1e-15)
        sizes.append(float(mu[0] @ impulse / (mu[0] @ mu[0])))  # the multiplier that (76c) as printed has
    limit = np.asarray(system.multipliers(*nonholonomic_particle.typical_state()))[0]
    assert abs(sizes[-1]) < 0.01 * abs(limit)
    assert abs(exponent(np.abs(sizes)) - 1) < 0.1  # it tends to zero, not to (23)


def test_2_the_node_rule_of_85_and_86():
    q0, v0 = np.array([0.3, 0.7, 0.1]), np.array([0.5, -0.4, 0.35])
    (exact,), *_ = nonholonomic_particle.exact(np.array([1.0]), q0, v0)
    errors = {"printed": [], "corrected": []}
    for name, steps in itertools.product(errors, (20, 40, 80)):
        h, q, v = 1 / steps, q0, v0
        for _ in range(steps):
            y, lam = q[1], v[0] * v[1] / (1 + (q[1] + h * v[1]) * (q[1] + h / 2 * v[1]))
            new = v + h * lam * np.array([-(y + h / 2 * v[1]), 0.0, 1.0])
            q, v = q + (h * new if name == "printed" else h / 2 * (v + new)), new
        errors[name].append(np.max(np.abs(q - exact)))
    steps = 1 / np.array([20, 40, 80])
    assert abs(exponent(errors["printed"], steps) - 1) < 0.05
    assert abs(exponent(errors["corrected"], steps) - 2) < 0.05


def test_3_lemma_4_4_fails_for_fewer_constraints_than_coordinates():
    """The matrix has rank m, and M^-1 times it projects: so (54) stands and (55) falls (test_embedding)."""
    system, (q, v) = rolling_disk_on_incline.system(), rolling_disk_on_incline.typical_state()
    mu, M = np.asarray(system.mu(q, v)), np.asarray(system.mass_matrix(q))
    product = mu.T @ np.linalg.solve(mu @ np.linalg.solve(M, mu.T), mu)
    assert np.linalg.matrix_rank(product) == system.m < system.n == np.linalg.matrix_rank(M)
    projector = np.linalg.solve(M, product)
    assert_allclose(projector @ projector, projector, rtol=0, atol=1e-14)
    assert_allclose(projector, system.projectors(q)[1], rtol=0, atol=1e-14)


def test_4_the_sign_in_77():
    system, errors = bent(), {1: [], -1: []}
    for h, sign in itertools.product(STEPS, (1, -1)):
        (q, v), (_, v1), lam, qm = one_step(system, 0.5, h)
        C, mu = inverse_c(system, qm), np.asarray(system.mu(qm, v))
        R = -0.5 * C @ along(system, qm, v1, np.linalg.solve(MASS, mu[0]))[:, None] @ C
        second = along_twice(system, q, v)
        reaction = np.linalg.solve(MASS, mu.T @ lam)
        bracket = along(system, q, v, v) + h / 2 * second + sign * h / 2 * along(system, qm, reaction, v)
        errors[sign].append(float(np.max(np.abs(lam + (C + h * R) @ bracket))))
    assert abs(exponent(errors[1]) - 2) < 0.1
    assert abs(exponent(errors[-1]) - 1) < 0.1


def test_4_the_velocity_derivative_of_lambda_in_74():
    system = bent(0.8)
    q, v = start(system)
    dv = np.asarray(system.acceleration(q, v))
    rate = jax.jit(lambda v, dv: jax.jvp(lambda w: system.multipliers(q, w), (v,), (dv,))[1])(v, dv)
    C = inverse_c(system, q)
    assert_allclose(rate, -C @ (along(system, q, dv, v) + along(system, q, v, dv)), rtol=1e-12)
    for one in (
        along(system, q, dv, v),
        along(system, q, v, dv),
    ):  # either reading of the printed 2 (grad mu v) v'
        assert abs(float((rate + C @ (2 * one))[0])) > 0.05 * abs(float(rate[0]))


def test_4_the_error_of_the_multiplier_that_follows_from_74():
    """The last formula in the proof of proposition 6.1, with the same correction."""
    system, rest = bent(0.8), []
    q, v = start(system)
    dv, C = np.asarray(system.acceleration(q, v)), inverse_c(system, q)
    leading = -C @ (along_twice(system, q, v) / 2 + along(system, q, dv, v) + along(system, q, v, dv))
    for h in STEPS:
        exact = simulate(system, ReferenceFlow(), q, v, step_size=h, steps=1)
        rest.append(float(np.max(np.abs(exact.multipliers[1] - one_step(system, 0.0, h)[2] - h * leading))))
    assert abs(exponent(rest) - 2) < 0.1


def test_5_the_ehresmann_form_of_76b_and_of_its_multiplier():
    system = bent()
    A = jax.jit(adapted_coordinates(system, Q).connection)
    wrong, multiplier = [], {"printed": [], "corrected": []}
    for h in STEPS:
        (q, v), (q1, v1), lam, qm = one_step(system, 0.5, h)
        at_middle, at_end = (np.asarray(A(x)) @ v1[:2] for x in (qm, q1))
        assert_allclose(q1[2], qm[2] - h / 2 * at_end[0], rtol=0, atol=1e-15)
        wrong.append(abs(q1[2] - qm[2] + h / 2 * at_middle[0]))
        third = along_twice(system, q, v)
        for name, at in (("printed", at_middle), ("corrected", at_end)):
            w = np.append(v1[:2], -at)  # v_{k+1} as the derivative's direction and as its argument
            derivative = along(system, qm, w, v1)
            bracket = along(system, q, v, v) / 2 + derivative / 2 + h / 4 * third
            multiplier[name].append(float(np.max(np.abs(lam + inverse_c(system, qm) @ bracket))))
    assert abs(exponent(wrong) - 2) < 0.1
    assert abs(exponent(multiplier["printed"]) - 1) < 0.1
    assert abs(exponent(multiplier["corrected"]) - 2) < 0.15


def test_5_the_sign_before_the_multiplier_after_proposition_6_1():
    system, errors = bent(0.8), {1: [], -1: []}
    for h, sign in itertools.product(STEPS / 10, (1, -1)):
        (q, v), (_, v1), lam, _ = one_step(system, 0.0, h)
        reaction = np.asarray(system.mu(q, v)).T @ lam
        force = np.linalg.solve(MASS, np.asarray(system.potential_force(q)) + sign * reaction)
        errors[sign].append(np.max(np.abs(v1 - v - h * force)[:2]))
    assert abs(exponent(errors[1]) - 2) < 0.1
    assert abs(exponent(errors[-1]) - 1) < 0.1


@jax.jit
def curvature_in_the_multiplier(system, q, v, h=0.1):
    """Second derivative by lam of the equation mu(q1) v1 = 0 that is left of (76) when V = 0."""
    qm = q + h / 2 * v
    M, mu = system.mass_matrix(q), system.mu(qm, v)

    def equation(lam):
        v1 = v + h * jnp.linalg.solve(M, mu.T @ lam)
        return system.phi(qm + h / 2 * v1, v1)[0]

    return jax.hessian(equation)(jnp.ones(1))[0, 0]


AFFINE = System(
    lambda q, v, p: 0.5 * v @ v,
    one_forms=lambda q, p: jnp.array([[-q[1], 0.0, 1.0 + p["c"] * q[2]]]),
    coordinates=("x", "y", "z"),
    parameters={"c": 0.0},
    fibre=("z",),
)


def test_6_without_a_potential_76_is_still_implicit():
    """Explicit only where the forms do not change along the reaction, which moves z; to be affine in q is not
    enough."""

    def curvature(system):
        return float(curvature_in_the_multiplier(system, *start(system)))

    assert curvature(AFFINE) == 0.0
    assert abs(curvature(AFFINE.with_parameters({"c": 0.3}))) > 1e-4
    assert abs(curvature(bent())) > 1e-4


def first_step_of_87(h, v):
    """The particle's two-point step from (q, v), v taken as (q_k - q_{k-1}) / h."""
    y = Q[1]
    ahead = y + h / 2 * v[1]  # the constraint of (87) is vz' = (y' - h/2 vy) vx' = (y + h/2 vy) vx'
    lam = -(v[2] - ahead * v[0]) / h / (1 + y * ahead)
    return v + h * lam * np.array([-y, 0.0, 1.0]), lam


@pytest.mark.parametrize(("deformed", "orders"), [(False, (1, 0)), (True, (2, 1))], ids=["in D", "in D_eps"])
def test_7_the_first_step_of_87(deformed, orders):
    """From D: v is wrong by ~ eps, lam is half of what it should be; from D_eps: by ~ eps^2 and ~ eps."""
    errors = []
    for h in STEPS:
        vx, vy = 0.5, -0.4
        v = np.array([vx, vy, Q[1] * vx])
        shifted = v - np.array([0.0, 0.0, h / 2 * vx * vy]) if deformed else v
        new, lam = first_step_of_87(h, shifted)
        _, (exact,), ((multiplier,),) = nonholonomic_particle.exact(np.array([h]), Q, v)
        base = (new - exact)[:2] if deformed else new - exact  # data in D_eps differ from D in vz by O(eps)
        errors.append([np.max(np.abs(base)), abs(lam - multiplier)])
    found = [exponent(e) for e in np.array(errors).T]
    assert_allclose(found, orders, rtol=0, atol=0.1)
    if not deformed:
        assert abs(lam / multiplier - 0.5) < 0.01


def test_8_proposition_5_2_has_m_functions():
    system = rolling_disk_on_incline.system()
    q, _ = rolling_disk_on_incline.typical_state()
    assert RhoBeta(0.5).discrete_constraint(system, q, q + 0.1, 0.1).shape == (system.m,)


def test_8_the_condition_of_proposition_5_1_cannot_hold_for_all_v():
    """A linear function on D_q, of dimension n - m > 1, always vanishes somewhere."""
    system, (q, v) = rolling_disk_on_incline.system(), rolling_disk_on_incline.typical_state()
    X = np.linalg.svd(np.asarray(system.mu(q, v)))[2][system.m :].T  # a basis of D_q
    functional = X.T @ np.asarray(system.mass_matrix(q)) @ np.asarray(v)  # -h D2 D1 L_d v, restricted to D_q
    vanishing = X @ np.linalg.svd(functional[None])[2][-1]
    assert system.n - system.m > 1
    assert np.linalg.norm(vanishing) > 0.9
    assert abs(vanishing @ np.asarray(system.mass_matrix(q)) @ np.asarray(v)) < 1e-14


def rank_of_13(A, mu):
    """Of s -> (P A s, mu s), P the orthogonal projection onto the kernel of mu."""
    kernel = np.linalg.svd(mu)[2][len(mu) :]
    return np.linalg.matrix_rank(np.vstack([kernel @ A, mu]))


def test_8_condition_7i_needs_to_be_positive():
    """<Az, z> > 0 on the kernel of mu makes (13) regular, also where A is negative off it; with ">= 0" it may
    have a kernel, and so has the motion: its accelerations are not determined."""
    turn = np.linalg.qr(np.random.default_rng(3).normal(size=(4, 4)))[0]
    mu = np.array([[0.0, 0.0, 1.0, 0.3], [0.0, 0.0, -0.2, 1.0]]) @ turn.T
    for second, rank in ((1e-3, 4), (1e3, 4), (0.0, 3)):
        A = turn @ np.diag([1.0, second, -2.0, 5.0]) @ turn.T
        kernel = np.linalg.svd(mu)[2][2:]
        assert np.min(np.linalg.eigvalsh(kernel @ A @ kernel.T)) >= -1e-14
        assert rank_of_13(A, mu) == rank


def test_8_lemma_2_4_is_true_but_not_by_definition():
    """Pairings of mu and Z may vanish though C is regular, and none need vanish where such a matrix is
    singular; what makes C regular is that D and its complement meet in 0 only."""
    Z = np.linalg.solve(np.diag([2.0, 3.0, 1.0]), np.array([[1.0, 0.0, 0.4], [0.0, 1.0, 0.0]]).T)
    C = np.array([[1.0, 0.0, 0.4], [0.0, 1.0, 0.0]]) @ Z
    assert C[0, 1] == 0.0  # "different from zero by definition"
    assert np.linalg.matrix_rank(C) == 2
    assert np.linalg.matrix_rank(np.ones((2, 2))) == 1  # no entry vanishes, and still there is a kernel
    system, (q, v) = rolling_disk_on_incline.system(), rolling_disk_on_incline.typical_state()
    mu, M = np.asarray(system.mu(q, v)), np.asarray(system.mass_matrix(q))
    lift, D = np.linalg.solve(M, mu.T), np.linalg.svd(mu)[2][system.m :].T
    assert np.linalg.matrix_rank(np.hstack([D, lift])) == system.n
    omega = np.linalg.svd(mu @ lift)[2][-1]  # of all combinations of Z the nearest to D
    assert np.linalg.norm(mu @ lift @ omega) > 0.1 * np.linalg.norm(omega)


def test_8_the_connection_of_31_is_taken_at_each_point():
    system = bent()
    A = jax.jit(adapted_coordinates(system, Q).connection)
    other = Q + np.array([0.2, -0.1, 0.3])
    v, v2 = (np.append(BASE, -(np.asarray(A(x)) @ BASE)) for x in (Q, other))
    assert_allclose(system.phi(other, v2), 0, rtol=0, atol=1e-15)
    assert abs(np.asarray(system.phi(other, v))[0]) > 0.01


def test_9_the_order_of_the_multiplier_depends_on_its_date():
    system, state = nonholonomic_particle.system(), nonholonomic_particle.typical_state()
    found = diagnostics.measured_order(system, VelocityNonholonomic(), *state, t_end=0.08, steps=(10, 20, 40))
    assert abs(found.p - 2) < 0.1
    assert abs(found.s) < 0.1  # at t + eps, as definition 4.2 has it
    assert abs(found.multiplier_dated - 1) < 0.1  # at t + eps/2, where it acts


def test_9_remark_4_3_holds():
    """lam(q_k, v_k) by (23) has the order of the state."""
    system, state = nonholonomic_particle.system(), nonholonomic_particle.typical_state()
    errors = []
    for h in STEPS:
        run = simulate(system, VelocityNonholonomic(), *state, step_size=h, steps=1)
        exact = simulate(system, ReferenceFlow(), *state, step_size=h, steps=1)
        of_the_state = np.asarray(system.multipliers(run.q[1], run.v[1]))
        errors.append(float(np.max(np.abs(of_the_state - exact.multipliers[1]))))
    assert abs(exponent(errors) - 3) < 0.1


def test_10_the_curve_of_33_is_in_d_but_no_motion():
    system = bent()
    run = simulate(system, VelocityNonholonomic(), *start(system), step_size=0.2, steps=1)
    curve = curve_in_d(system, (run.q[0], run.v[0]), (run.q[1], run.v[1]), duration=0.2)
    moving = jax.jit(lambda t: jax.jvp(curve, (t,), (1.0,)))
    for t in (0.05, 0.1, 0.15):
        (q, v), (dq, _) = jax.tree.map(np.asarray, moving(t))
        assert_allclose(system.phi(q, v), 0, rtol=0, atol=1e-15)
        assert np.max(np.abs(dq - v)) > 0.05


def test_11_the_limit_of_the_multiplier_has_a_minus():
    """In the proof of proposition 6.2: lam_{k+1} = -C (v grad mu v) + O(eps)."""
    system, right, wrong = bent(), [], []
    for h in STEPS:
        (q, v), _, lam, _ = one_step(system, 0.5, h)
        limit = inverse_c(system, q) @ along(system, q, v, v)
        right.append(float(np.max(np.abs(lam + limit))))
        wrong.append(float(np.max(np.abs(lam - limit))))
    assert abs(exponent(right) - 1) < 0.1
    assert abs(exponent(wrong)) < 0.1


def newton(value_and_slope, x, iterations=8):
    """The root near x, to round-off."""
    for _ in range(iterations):
        value, slope = value_and_slope(x)
        x = x - np.linalg.solve(slope, value)
    return x


def test_12_scaling_the_discrete_constraint_does_not_scale_the_multiplier():
    """Section 6.2: (59) solved with phi_d and with -eps phi_d has the same next node and the same multiplier;
    that it becomes -lam / eps is only a new name. A factor in mu would change it."""
    system = bent(0.8)
    h, beta = 0.05, RhoBeta(0.0)
    (q, v), (q1, v1), lam, _ = one_step(system, 0.0, h)
    before = q  # nodes q_{k-1}, q_k = q1, q_{k+1}
    D2 = jax.grad(lambda b: beta.discrete_lagrangian(system, before, b, h))
    D1 = jax.grad(lambda a, after: beta.discrete_lagrangian(system, a, after, h))
    mu = np.asarray(system.mu(q1, v))

    def equations(x, of_phi, of_mu):
        balance = D1(q1, x[:3]) + D2(q1) - of_mu * mu.T @ x[3:]
        return jnp.append(balance, of_phi * beta.discrete_constraint(system, q1, x[:3], h))

    both = jax.jit(lambda *x: (equations(*x), jax.jacfwd(equations)(*x)))

    def solved(of_phi, of_mu):
        return newton(lambda x: both(x, of_phi, of_mu), np.append(q1 + h * v, 0.0))

    plain, scaled, renamed = solved(1.0, 1.0), solved(-h, 1.0), solved(1.0, -h)
    assert_allclose(plain[:3], q1 + h * v1, rtol=0, atol=1e-12)
    assert_allclose(scaled, plain, rtol=0, atol=1e-10)
    assert_allclose(renamed[3], lam[0], rtol=1e-9)
    assert_allclose(renamed[3], -plain[3] / h, rtol=1e-9)
    assert abs(plain[3]) < 0.1 * abs(lam[0])
