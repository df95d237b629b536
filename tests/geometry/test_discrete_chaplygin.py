"""PP section 3 in base and fibre coordinates: (3.2), proposition 3.1, the induced Lagrangian, theorem 3.2."""

import functools

import jax
import jax.flatten_util
import jax.numpy as jnp
import numpy as np
import pytest
from numpy.testing import assert_allclose

from models import OF_EVERY_KIND, five, two_forms
from noslip import System, simulate
from noslip.geometry.discrete_chaplygin import DiscreteChaplygin, discretize
from noslip.geometry.finite_difference_map import RhoBeta
from noslip.geometry.splitting import splitting, system_from_splitting
from noslip.integrators.lagrange_dalembert_chaplygin import LagrangeDAlembertChaplygin
from noslip.integrators.reference_flow import ReferenceFlow
from noslip.systems import (
    nonholonomic_particle,
)

pytestmark = pytest.mark.thorough

H = 0.1
ON_PAIRS = [("previous", 1.0), ("next", 1.0), ("previous", -1.0), ("next", -1.0)]


def of_fibre_and_base():
    """Two quadratic constraints that depend on fibre and base coordinates."""
    return five(lambda q: 0.2 * q[0] * q[3], fibre=("e", "d"))


CASES = OF_EVERY_KIND | {"five": of_fibre_and_base}


@pytest.fixture(scope="module", params=CASES)
def case(request):
    """The discrete equations, and three points that satisfy the constraint but not the equations."""
    system, *state = CASES[request.param]()
    q, v = map(np.asarray, state)
    split = splitting(system, q, v)
    discrete = discretize(split, H)
    rng = np.random.default_rng(3)
    base, point = split.base_index, jax.jit(discrete.point)
    x = np.asarray(point(q, q[base] + H * v[base]))
    after = np.asarray(point(x, x[base] + H * (v[base] + 0.1 * rng.standard_normal(base.size))))
    return system, split, discrete, (q, x, after)


def foreign(system, split):
    """Other L_d and C than those of (3.1): theorem 3.2 does not care where they come from."""
    rng = np.random.default_rng(5)
    A, B = rng.standard_normal((2, system.n, system.n))
    c, k = rng.standard_normal((system.m, system.n)), system.n - system.m

    def L_d(z0, z1):
        return jnp.sum(jnp.sin(A @ z0 + 0.3) * jnp.cos(B @ z1)) + jnp.dot(z1, A @ z1)

    def C(z0, base1):
        return z0[split.fibre_index] + jnp.tanh(c @ z0 + c[:, :k] @ base1**2)

    return DiscreteChaplygin(L_d, C, split.fibre_index, split.base_index)


def test_the_discrete_constraint_is_that_of_the_system(case):
    system, _, discrete, (q, x, after) = case
    point = jax.jit(discrete.point)
    for z0, z1 in ((q, x), (x, after)):
        assert_allclose(system.phi(z0, (z1 - z0) / H), 0, rtol=0, atol=1e-13)
        assert_allclose(point(z0, z1[discrete.base_index]), z1, rtol=0, atol=1e-15)


def test_the_slope_is_the_kernel_of_the_constraint_forces(case):
    _, split, discrete, (q, x, after) = case

    @jax.jit
    def slopes(q, x, after):
        previous = discrete.slope(q, x, after), split.slope(q, (x - q) / H)
        return previous, (discrete.slope(q, x, after, "next"), split.slope(x, (after - x) / H))

    for found, wanted in slopes(q, x, after):
        assert_allclose(found, wanted, rtol=0, atol=1e-12)


@pytest.mark.parametrize("pair", ["previous", "next"])
def test_theorem_3_2_corrected(case, pair):
    """The left side from the induced Lagrangian, the right side from L_d and C."""
    system, _, discrete, points = case

    @jax.jit
    def sides(*z):
        return (
            discrete.induced_form(*z, pair),
            discrete.equations(*z, pair),
            discrete.induced_correction(*z, pair),
        )

    left, equations, correction = sides(*points)
    assert_allclose(left, equations + correction, rtol=0, atol=1e-12)
    if system.kind == "nonlinear":
        assert np.max(np.abs(correction)) > 1e-3  # it says something


@pytest.mark.parametrize(("pair", "sign"), ON_PAIRS)
@pytest.mark.parametrize("name", ["particle", "five"])
def test_theorem_3_2_for_any_discrete_lagrangian_and_constraint(name, pair, sign):
    system, q, v = CASES[name]()
    other = foreign(system, splitting(system, q, v))
    rng = np.random.default_rng(7)

    @jax.jit
    def defect(q, b1, b2):
        x = other.point(q, b1)
        z = q, x, other.point(x, b2)
        right = other.equations(*z, pair, sign) + other.induced_correction(*z, pair, sign)
        return other.induced_form(*z, pair, sign) - right, right

    for _ in range(5):
        q, b1, b2 = rng.standard_normal(system.n), *rng.standard_normal((2, system.n - system.m))
        difference, right = defect(q, b1, b2)
        assert np.max(np.abs(difference)) < 1e-12 * (1 + np.max(np.abs(right)))


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_proposition_3_1_is_the_derivative_of_the_equations(case, sign):
    _, _, discrete, (q, x, after) = case
    base = after[discrete.base_index]

    def equations(b):
        return discrete.equations(q, x, discrete.point(x, b), "previous", sign)

    both = jax.jit(lambda b: (discrete.regularity_matrix(q, x, b, sign), jax.jacfwd(equations)(b)))
    assert_allclose(*both(base), rtol=1e-12, atol=1e-11)


def test_the_step_of_the_integrator_is_regular_where_proposition_3_1_says_so(case):
    """|det J| = h^n |det mu_u(i-1)| |det mu_u(i)| |det of proposition 3.1|, J the Jacobian that
    `simulate` checks before a run."""
    system, split, discrete, (q, x, after) = case
    method, h = LagrangeDAlembertChaplygin("previous"), jnp.array(H)
    v, v1 = (x - q) / H, (after - x) / H

    @jax.jit
    def both(q, x, after):
        state = method.init(system, q, v, jnp.array(0.0), h)
        guess = method.guess(system, state, h)
        at, unravel = jax.flatten_util.ravel_pytree(type(guess)(v1 - v, guess.lam))

        def residual(y):
            return jax.flatten_util.ravel_pytree(method.residual(system, state, unravel(y), h))[0]

        matrix = discrete.regularity_matrix(q, x, after[discrete.base_index])
        return jax.jacfwd(residual)(at), matrix

    J, matrix = map(np.asarray, both(q, x, after))
    jacobian, u = np.linalg.det(J), split.fibre_index
    factors = [np.linalg.det(np.asarray(system.mu(z, w))[:, u]) for z, w in ((q, v), (x, v1))]
    expected = H**system.n * np.prod(factors) * np.linalg.det(matrix)
    assert_allclose(abs(jacobian), abs(expected), rtol=1e-10)
    assert abs(jacobian) > 1e-6


@pytest.mark.parametrize("name", ["turntable", "spring"])
@pytest.mark.slow
def test_the_next_point_solves_the_equations(name):
    system, q, v = CASES[name]()
    discrete = discretize(splitting(system, q, v), H)
    x = q + H * v
    for pair in ("previous", "next"):
        after = jax.jit(lambda a, b, pair=pair: discrete.next_point(a, b, pair))(q, x)
        assert_allclose(discrete.equations(q, x, after, pair), 0, rtol=0, atol=1e-12)
        assert_allclose(system.phi(x, (after - x) / H), 0, rtol=0, atol=1e-12)


def test_what_has_no_place_in_the_discrete_equations_is_refused():
    pushed = System(
        nonholonomic_particle.lagrangian,
        one_forms=nonholonomic_particle.one_forms,
        force=lambda q, v, t, p: -v,
        coordinates=("x", "y", "z"),
        parameters={"k": 1.0},
    )
    q, v = nonholonomic_particle.typical_state()
    with pytest.raises(ValueError, match="have no external force, but the system has one"):
        discretize(splitting(pushed, q, v), H)
    discrete = discretize(splitting(nonholonomic_particle.system(), q, v), H)
    with pytest.raises(ValueError, match="`pair` must be 'previous' or 'next', but 'both' was provided"):
        discrete.equations(q, q + H * v, q + 2 * H * v, "both")


# ---- any L_d, and back from discrete to differential constraints ----------------------------------------
@functools.cache
def of_the_midpoint():
    system, q, v = two_forms()
    split = splitting(system, q, v)
    return system, split, discretize(split, H, RhoBeta(0.5)), q, v


@pytest.mark.slow
def test_l_d_and_c_of_a_finite_difference_map():
    """phi o rho vanishes on the pairs, and with its multipliers (3.2) is the discrete principle JS (59)."""
    system, split, discrete, q, v = of_the_midpoint()
    x = jax.jit(discrete.point)(q, (q + H * v)[split.base_index])
    assert_allclose(RhoBeta(0.5).discrete_constraint(system, q, x, H), 0, rtol=0, atol=1e-13)
    assert np.max(np.abs(system.phi(q, (x - q) / H))) > 1e-4  # that of (3.1) does not
    after = jax.jit(discrete.next_point)(q, x)
    EL, c = jax.jit(lambda *z: (discrete.euler_lagrange(*z), discrete.slope(*z)))(q, x, after)
    assert_allclose(EL[split.base_index] + c.T @ EL[split.fibre_index], 0, rtol=0, atol=1e-11)
    assert np.max(np.abs(EL)) > 1e-4


@pytest.mark.slow
def test_with_the_midpoint_rule_the_points_are_of_first_order_still():
    """The slope at one of the pairs is not that at the node between them."""
    system, q, v = two_forms()
    split, errors = splitting(system, q, v), []
    for steps in (20, 40):
        h = 0.5 / steps
        discrete = discretize(split, h, RhoBeta(0.5))
        run = simulate(system, ReferenceFlow(), q, v, step_size=h, steps=steps)
        x1 = discrete.point(q, jnp.asarray(run.q[1])[split.base_index])
        errors.append(np.max(np.abs(discrete.sequence(q, x1, steps)[-1] - run.q[-1])))
    assert np.log2(errors[0] / errors[1]) == pytest.approx(1, abs=0.2)


def test_discrete_constraints_give_back_the_differential_ones(case):
    """PP before (3.1): (C - x^u) / h is the C~ of which (3.1) is made."""
    _, split, discrete, (q, x, _) = case
    back = discrete.differential_constraint(H)
    y = (x - q)[split.base_index] / H
    assert_allclose(*jax.jit(lambda q, y: (back(q, y), split.C(q, y)))(q, y), rtol=0, atol=1e-12)


def test_differential_constraints_of_another_map_make_a_system_of_their_own():
    """From the midpoint rule they differ from those of the system by O(h), and are nonlinear."""
    system, split, discrete, q, v = of_the_midpoint()
    back = discrete.differential_constraint(H)
    made = system_from_splitting(
        system.lagrangian,
        lambda q, y, p: back(q, y),
        coordinates=system.coordinates,
        fibre=split.fibre,
        parameters=system.parameters,
    )
    assert made.kind == "nonlinear"

    @jax.jit
    def all_of(q, y):
        own = back(q, y)
        return made.phi(q, split.join(own, y)), jnp.max(jnp.abs(own - split.C(q, y)))

    phi, difference = all_of(q, np.asarray(v)[split.base_index])
    assert_allclose(phi, 0, rtol=0, atol=1e-13)
    assert 1e-4 < float(difference) < H
