"""Discrete Lagrangians: JS (56)-(58), LMS theorem 1.1, proposition 1.2, (17)-(21) and (24), PP section 2."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from numpy.testing import assert_allclose

from models import double_pendulum, kepler, two_forms
from noslip import simulate
from noslip.geometry import exact_generating_function as generating
from noslip.geometry.discrete_lagrangian import DiscreteLagrangian
from noslip.geometry.finite_difference_map import RhoBeta
from noslip.integrators.discrete_lagrange_dalembert import DiscreteLagrangeDAlembert
from noslip.integrators.generating_function import GeneratingFunction

H = 0.1
CANONICAL = np.block([[np.zeros((2, 2)), np.eye(2)], [-np.eye(2), np.zeros((2, 2))]])


def of_rho(system, beta, h=H):
    rho = RhoBeta(beta)
    return DiscreteLagrangian(lambda q0, q1: rho.discrete_lagrangian(system, q0, q1, h))


@pytest.fixture(scope="module")
def pair():
    """L_d of a double pendulum, and a pair of points."""
    system, q, v = double_pendulum()
    return of_rho(system, 0.3), np.asarray(q), np.asarray(q) + H * np.asarray(v)


# ---- JS (56)-(58) -------------------------------------------------------------------------------------
def test_58_makes_the_action_57_stationary(pair):
    discrete, q0, q1 = pair
    following = jax.jit(discrete.next_point)
    q2 = following(q0, q1)
    q3 = following(q1, q2)
    slope = jax.jit(jax.grad(lambda x: discrete.action(jnp.stack([q0, *x, q3]))))
    assert_allclose(slope(np.stack([q1, q2])), 0, rtol=0, atol=1e-13)
    moved = slope(np.stack([q1 + 0.01, q2]))
    assert np.max(np.abs(moved)) > 1e-2


def test_a_method_from_js_59_without_constraints_is_58(pair):
    """The nodes of the two-point method are the points of the discrete flow."""
    system, q, v = double_pendulum()
    run = simulate(system, DiscreteLagrangeDAlembert(beta=0.3), q, v, step_size=H, steps=6)
    following, (q0, q1) = jax.jit(pair[0].next_point), (jnp.asarray(run.q[1]), jnp.asarray(run.q[2]))
    for k in (3, 4, 5, 6):
        q0, q1 = q1, following(q0, q1)
        assert_allclose(q1, run.q[k], rtol=0, atol=1e-12)


def test_both_legendre_transformations_pull_the_same_form_back(pair):
    discrete, q0, q1 = pair

    @jax.jit
    def all_of(q0, q1):
        forms = (discrete.symplectic_form(q0, q1, end) for end in ("plus", "minus"))
        return *forms, jax.jacfwd(jax.grad(discrete.L_d, 0), 1)(q0, q1)

    plus, minus, D = map(np.asarray, all_of(q0, q1))
    by_hand = np.block([[np.zeros((2, 2)), -D], [D.T, np.zeros((2, 2))]])  # -D1 D2 L_d dq0 ^ dq1
    assert_allclose(plus, by_hand, rtol=1e-12, atol=1e-11)
    assert_allclose(minus, by_hand, rtol=1e-12, atol=1e-11)
    with pytest.raises(ValueError, match="`end` must be 'plus' or 'minus', but 'left' was provided"):
        discrete.symplectic_form(q0, q1, "left")


def test_the_discrete_flow_keeps_the_poincare_cartan_form(pair):
    discrete, q0, q1 = pair

    def flow(z):
        return jnp.concatenate([z[2:], discrete.next_point(z[:2], z[2:])])

    form = jax.jit(discrete.symplectic_form)
    both = jax.jit(jax.jacfwd(lambda z: (flow(z),) * 2, has_aux=True))
    S, after = map(np.asarray, both(np.concatenate([q0, q1])))
    there, here = np.asarray(form(after[:2], after[2:])), np.asarray(form(q0, q1))
    assert_allclose(S.T @ there @ S, here, rtol=0, atol=1e-12 * np.max(np.abs(here)))
    assert np.max(np.abs(S.T @ here @ S - here)) > 1e-3  # the form at the old pair would not do


def test_the_discrete_momentum_map_is_kept_where_l_d_is_invariant():
    system, q, v = kepler()
    q0, q1, discrete = np.asarray(q), np.asarray(q) + H * np.asarray(v), of_rho(system, 0.3)

    def turn(q):
        return jnp.array([[0.0, 1.0], [1.0, 0.0]])  # of the angle, and of the radius, which is no symmetry

    @jax.jit
    def follow(q0, q1):
        defect, J = discrete.invariance_defect(q0, q1, turn), discrete.momentum_map(q0, q1, turn)
        return discrete.next_point(q0, q1), defect, J

    values = []
    for _ in range(20):
        after, defect, J = map(np.asarray, follow(q0, q1))
        assert abs(defect[0]) < 1e-14
        assert abs(defect[1]) > 1e-4
        values.append(J)
        q0, q1 = q1, after
    assert np.ptp(np.array(values)[:, 0]) < 1e-13
    assert np.ptp(np.array(values)[:, 1]) > 1e-2


# ---- LMS section 1.2: the exact S^h without constraints -------------------------------------------------
@pytest.mark.slow
def test_proposition_1_2_the_action_generates_the_canonical_flow():
    system, q, v = double_pendulum()
    end = generating.arc(system, q, v, H)
    S = generating.exact(system, H)
    assert S.alpha0 is None
    assert_allclose(S.departing(q, end.q1), system.momentum(q, v), rtol=1e-13)
    assert_allclose(S.arriving(q, end.q1), system.momentum(end.q1, end.v1), rtol=1e-13)


def test_56_the_midpoint_rule_approximates_the_action_to_third_order():
    system, q, v = double_pendulum()

    @jax.jit
    def error(q, q1, h):
        return abs(generating.exact(system, h).L_d(q, q1) - of_rho(system, 0.5, h).L_d(q, q1))

    errors = [float(error(q, generating.arc(system, q, v, h).q1, h)) for h in (0.1, 0.05, 0.025)]
    assert np.log2(errors[0] / errors[1]) == pytest.approx(3, abs=0.15)
    assert np.log2(errors[1] / errors[2]) == pytest.approx(3, abs=0.1)


@pytest.mark.slow
def test_theorem_1_1_stationary_sums_of_s_h_are_s_of_the_whole_time():
    system, q, v = double_pendulum()
    end = generating.arc(system, q, v, 3 * H)
    S, points = generating.exact(system, H), [(q, v)]
    for _ in range(3):
        there = generating.arc(system, *points[-1], H)
        points.append((there.q1, there.v1))
    x = jnp.stack([q for q, _ in points])
    assert_allclose(S.action(x), end.action, rtol=1e-13)
    for k in (1, 2):
        assert_allclose(S.euler_lagrange(*x[k - 1 : k + 2]), 0, rtol=0, atol=1e-12)  # (4)
    assert np.max(np.abs(S.euler_lagrange(x[0], x[1] + 1e-3, x[2]))) > 1e-3


# ---- LMS (17)-(21), (24): with reactions, two constraints ----------------------------------------------
@functools.cache
def with_reactions(alpha=0.3):
    system, q, v = two_forms()
    return system, q, v, generating.approximate(system, H, alpha)


def test_17_is_the_step_of_the_method():
    system, q, v, made = with_reactions()
    run = simulate(system, GeneratingFunction(alpha=0.3), q, v, step_size=H, steps=1)
    q1, p1 = jax.jit(made.step)(q, system.momentum(q, v), q + H * v)
    assert_allclose(q1, run.q[1], rtol=0, atol=1e-13)
    assert_allclose(p1, system.momentum(run.q[1], run.v[1]), rtol=0, atol=1e-12)


@pytest.mark.slow
@pytest.mark.parametrize("steps", [2, pytest.param(4, marks=pytest.mark.all_pairs)])
def test_20_several_steps_have_the_form_17_again(steps):
    system, q, v, made = with_reactions()
    x, p = [q], [system.momentum(q, v)]
    step = jax.jit(made.step)
    for _ in range(steps):
        q1, p1 = step(x[-1], p[-1], x[-1] + H * system.velocity(x[-1], p[-1]))
        x.append(q1)
        p.append(p1)
    assert_allclose(jax.jit(made.euler_lagrange)(x[0], x[1], x[2]), 0, rtol=0, atol=1e-12)  # (21)
    whole = made.composed(steps)
    p0, p1, D1 = jax.jit(
        lambda a, b: (whole.departing(a, b), whole.arriving(a, b), jax.grad(whole.L_d, 0)(a, b))
    )(x[0], x[-1])
    assert_allclose(p0, p[0], rtol=0, atol=1e-11)
    assert_allclose(p1, p[-1], rtol=0, atol=1e-11)
    assert np.max(np.abs(-D1 - p[0])) > 1e-3  # without the forces it is not


def test_20_with_friction():
    """The quick form: four steps of a damped pendulum are one of the composed function with its forces."""
    c, h = 0.3, 0.4

    def push(z0, z1):
        return -h * c * (z1 - z0) / h / 2  # half of the impulse of -c v

    made = DiscreteLagrangian(pendulum(h).L_d, lambda a, b: -push(a, b), lambda a, b: -push(a, b))
    step = jax.jit(made.step)
    q, p = [np.array([2.5])], [np.array([0.7])]
    for _ in range(4):
        q1, p1 = map(np.asarray, step(q[-1], p[-1], q[-1] + h * p[-1]))
        q.append(q1)
        p.append(p1)
    whole = made.composed(4)
    bare = DiscreteLagrangian(whole.L_d)
    together = jax.jit(lambda *pair: (whole.departing(*pair), whole.arriving(*pair), bare.departing(*pair)))
    departing, arriving, without = map(np.asarray, together(q[0], q[4]))
    assert_allclose(departing, p[0], rtol=1e-12)
    assert_allclose(arriving, p[4], rtol=1e-12)
    assert abs(without - p[0])[0] > 1e-2


def test_19_the_determinant_says_where_the_step_is_a_map():
    """It is the Jacobian of p0 by q1: near (-1)^n det M / h^n, and zero where two solutions meet."""
    system, q, v, made = with_reactions()
    q1, d = np.asarray(q) + H * np.asarray(v), 1e-6

    @jax.jit
    def all_of(q, q1, ends):
        mixed = jax.jacfwd(jax.grad(made.L_d, 0), 1)(q, q1)
        return made.regularity_matrix(q, q1), mixed, jax.vmap(lambda x: made.departing(q, x))(ends)

    ends = np.concatenate([q1 + d * np.eye(4), q1 - d * np.eye(4)])
    D, mixed, departing = map(np.asarray, all_of(q, q1, ends))
    columns = (departing[:4] - departing[4:]).T / (2 * d)
    assert_allclose(D, -columns, rtol=1e-7, atol=1e-7)
    assert np.linalg.det(H * D) == pytest.approx(float(np.linalg.det(system.mass_matrix(q))), rel=0.3)
    assert np.max(np.abs(D - mixed)) > 1e-2  # d alpha0/dq1 counts


# ---- PP section 2: regular, left and right regular, hyperregular ---------------------------------------
def pendulum(h):
    """The midpoint rule for a pendulum: -D1 L_d = (z1 - z0) / h - h sin((z0 + z1) / 2) / 2."""
    return DiscreteLagrangian(
        lambda z0, z1: jnp.sum((z1 - z0) ** 2 / (2 * h) - h * (1 - jnp.cos((z0 + z1) / 2)))
    )


def test_a_long_step_is_not_hyperregular_and_a_short_one_is():
    z0, p, starts = np.array([2.9]), np.array([0.1]), np.linspace(-60, 60, 61)[:, None]
    assert len(pendulum(0.5).second_points(z0, p, starts)) == 1
    assert len(pendulum(0.5).first_points(z0, p, starts)) == 1
    assert pendulum(0.5).monotonicity(z0, starts) > 0
    assert len(pendulum(5.0).second_points(z0, p, starts)) > 1
    assert pendulum(5.0).monotonicity(z0, starts) < 0


def test_regular_does_not_mean_right_regular():
    """PP say that it does; exp(z1 - z0) is regular everywhere and has no z1 for a negative p0."""
    made = DiscreteLagrangian(lambda z0, z1: jnp.sum(jnp.exp(z1 - z0)))
    z0, starts = np.array([0.4]), np.linspace(-3, 3, 7)[:, None]
    matrices = jax.jit(jax.vmap(lambda z: made.regularity_matrix(z0, z)))(starts)
    assert np.all(np.abs(matrices) > 0)
    assert_allclose(made.second_points(z0, np.array([1.0]), starts), [z0], rtol=1e-12)
    assert len(made.second_points(z0, np.array([-1.0]), starts)) == 0
