"""The errata of PP as numbers: each printed formula fails, its correction holds, the table is reproduced."""

from functools import cache, partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.integrate import solve_ivp

from noslip import System, simulate
from noslip.geometry.discrete_chaplygin import DiscreteChaplygin, discretize
from noslip.geometry.splitting import splitting
from noslip.integrators.lagrange_dalembert_chaplygin import LagrangeDAlembertChaplygin
from noslip.systems import appell_hamel_spring, nonholonomic_particle

# PP's example is the catalogue's particle: x = x^1bar, y = x^2bar, z = x^1, f = -(x^2 + y^2)
PARTICLE = nonholonomic_particle.system(k=1.0)
Q, V = np.zeros(3), np.array([1.0, 1.0, 0.0])
SPLIT = splitting(PARTICLE, Q, V)
TABLE_H = 0.01
# row, then the columns as printed: fibre, x^1bar, x^2bar by the method, and the same of the "exact" motion
TABLE = np.array(
    [
        [1, 0.000050, 0.010000, 0.010000, 0.000050, 0.010000, 0.010000],
        [2, 0.000150, 0.019998, 0.019997, 0.000200, 0.019999, 0.019997],
        [3, 0.000350, 0.029992, 0.029991, 0.000450, 0.029996, 0.029991],
        [4, 0.000649, 0.039983, 0.039979, 0.000799, 0.039989, 0.039979],
        [5, 0.001049, 0.049969, 0.049958, 0.001249, 0.049979, 0.049958],
        [46, 0.093560, 0.440241, 0.428234, 0.095813, 0.441111, 0.428234],
        [47, 0.097235, 0.448823, 0.436148, 0.099535, 0.449723, 0.436149],
        [48, 0.100945, 0.457330, 0.443976, 0.103292, 0.458261, 0.443976],
        [49, 0.104688, 0.465760, 0.451714, 0.107081, 0.466721, 0.451715],
        [50, 0.108460, 0.474110, 0.459362, 0.110898, 0.475100, 0.459363],
        [51, 0.112257, 0.482376, 0.466918, 0.114740, 0.483396, 0.466919],
    ]
)
ROWS, PRINTED, PRINTED_EXACT = TABLE[:, 0].astype(int), TABLE[:, 1:4], TABLE[:, 4:]
COLUMNS = [2, 0, 1]


@jax.jit
def acceleration(q, v, sign):
    return SPLIT.acceleration(q, v, sign=sign)


def motion(sign, times):
    """Solution of (2.2) with that sign, from (Q, V): positions and velocities."""

    def field(t, z):
        return np.concatenate([z[3:], acceleration(z[:3], z[3:], sign)])

    start = np.concatenate([Q, V])
    out = solve_ivp(field, (0, times[-1]), start, t_eval=times, rtol=1e-11, atol=1e-13)
    return out.y.T[:, :3], out.y.T[:, 3:]


@partial(jax.jit, static_argnames=("steps", "pair"))
def sequence(sign, first, h, steps, pair="previous"):
    return discretize(SPLIT, h).sequence(Q, first, steps, pair=pair, sign=sign)


@pytest.fixture(scope="module")
def wrong_motion():
    return motion(-1.0, TABLE_H * ROWS)[0]


# ---- 30: the sign ---------------------------------------------------------------------------------
def test_30_energy_is_conserved_with_plus_only():
    """Rate of the energy, v . (d/dt dL/dv - dL/dq), on linear and nonlinear homogeneous constraints."""
    for system, (q, v) in (
        (PARTICLE, nonholonomic_particle.typical_state()),
        (appell_hamel_spring.system(), appell_hamel_spring.typical_state()),
    ):
        split = splitting(system, q, v)

        @jax.jit
        def rate(sign, system=system, split=split, q=q, v=v):
            a = split.acceleration(q, v, sign=sign)
            return jax.jvp(system.energy, (q, v), (v, a))[1]

        assert abs(float(rate(1.0))) < 1e-14
        assert abs(float(rate(-1.0))) > 0.05


def test_30_along_the_printed_equations_the_energy_of_the_example_grows():
    times = TABLE_H * ROWS
    energy = jax.jit(jax.vmap(PARTICLE.energy))
    assert_allclose(energy(*motion(1.0, times)), 1.0, rtol=0, atol=1e-9)
    assert_allclose(np.asarray(energy(*motion(-1.0, times)))[-1], 1.1485, rtol=0, atol=1e-4)


@pytest.mark.slow
def test_30_the_discrete_equations_converge_to_the_motion_with_plus_only():
    end = 0.5
    target = motion(1.0, np.array([end]))[0][0]
    errors = {}
    for sign in (1.0, -1.0):
        for steps in (25, 50, 100):
            h = end / steps
            errors[sign, steps] = np.max(np.abs(np.asarray(sequence(sign, Q + h * V, h, steps))[-1] - target))
    assert_allclose(
        [errors[1.0, 25] / errors[1.0, 50], errors[1.0, 50] / errors[1.0, 100]], 2.0, rtol=0, atol=0.1
    )
    assert errors[1.0, 100] < 1e-3
    assert min(errors[-1.0, steps] for steps in (25, 50, 100)) > 0.02  # however small the step


# ---- 30a: theorem 3.2 -------------------------------------------------------------------------------
@cache
def random_discrete():
    rng = np.random.default_rng(11)
    A, c = rng.standard_normal((4, 4)), rng.standard_normal((2, 4))
    fibre, base = np.array([0, 2]), np.array([1, 3])

    def L_d(z0, z1):
        return jnp.dot(z1 - z0, z1 - z0) + jnp.sum(jnp.sin(A @ z0) * jnp.cos(A @ z1))

    def C(z0, base1):
        return z0[fibre] + jnp.tanh(c @ z0 + c[:, :2] @ base1**2)

    discrete = DiscreteChaplygin(L_d, C, fibre, base)
    before, point = rng.standard_normal(4), jax.jit(discrete.point)
    x = point(before, rng.standard_normal(2))
    return discrete, (before, x, point(x, rng.standard_normal(2)))


@pytest.mark.parametrize("pair", ["previous", "next"])
def test_30a_theorem_3_2_as_printed_lacks_a_term(pair):
    """With the printed sign -c the term + c d_1u L_d(i - 1) is missing; the rest is right for the next pair,
    and for the previous one if the slope inside the bracket is taken there too."""
    discrete, z = random_discrete()
    u, base = discrete.fibre_index, discrete.base_index

    @jax.jit
    def sides(*z):
        before, x, after = z
        c, at_next = discrete.slope(*z, pair), discrete.slope(*z, "next")
        dC = jax.jacfwd(discrete.C, 0)(x, after[base])
        here, earlier = jax.grad(discrete.L_d, 1)(x, after)[u], jax.grad(discrete.L_d, 1)(before, x)[u]
        own = discrete.equations(*z, pair, -1.0)

        def right(bracket_slope):
            return own + (dC[:, base] - dC[:, u] @ bracket_slope).T @ here + discrete.slope(*z).T @ earlier

        corrected = discrete.equations(*z, pair) + discrete.induced_correction(*z, pair)
        return (
            (discrete.induced_form(*z, pair, -1.0), right(at_next), right(c) + c.T @ earlier),
            (discrete.induced_form(*z, pair), corrected),
        )

    (left, printed, completed), (true, corrected) = jax.tree.map(np.asarray, sides(*z))
    assert np.max(np.abs(left - printed)) > 0.1
    assert_allclose(left, completed, rtol=0, atol=1e-13)  # still with the wrong sign
    assert_allclose(true, corrected, rtol=0, atol=1e-13)


# ---- 30d: after theorem 3.2 --------------------------------------------------------------------------
def test_30d_the_affine_part_of_a_constraint_needs_h():
    """(3.1) with y^u = C y^ubar + b: the fibre moves by h b + C (z1 - z0); with b alone it runs away, the
    faster the smaller the step."""
    system = System(
        lambda q, v, p: 0.5 * jnp.dot(v, v),
        one_forms=lambda q, p: jnp.array([[-jnp.sin(q[1]), -0.3 * q[0], 1.0]]),
        drift=lambda q, p: jnp.array([-0.5 - 0.2 * q[0]]),
        coordinates=("x", "y", "z"),
    )
    q = np.array([0.4, 0.7, 0.1])
    split = splitting(system, q, np.array([0.6, -0.3, 0.2]))
    slope, b = np.array([np.sin(0.7), 0.12]), 0.58
    C = jax.jit(lambda h, base1: discretize(split, h).C(jnp.asarray(q), base1)[0])
    for h in (0.1, 0.05):
        base1 = q[:2] + h * np.array([0.6, -0.3])
        found = float(C(h, base1))
        along = float(slope @ (base1 - q[:2]))
        assert_allclose(found, 0.1 + h * b + along, rtol=0, atol=1e-15)
        assert abs(found - (0.1 + b + along)) > 0.9 * b * (1 - h)  # as printed


# ---- 30b: proposition 3.1 ---------------------------------------------------------------------------
def test_30b_with_the_printed_sign_the_example_is_singular_at_one():
    """h times the matrix is -diag(1 + s y_{i-1} y_i, 1): positive definite up to sign only for s = +1."""
    before, x = np.array([0.1, 0.8, 0.0]), np.array([0.2, 1.25, 0.08])
    regularity_matrix = jax.jit(discretize(SPLIT, 0.1).regularity_matrix)
    for sign, corner in ((1.0, 2.0), (-1.0, 0.0)):
        matrix = np.asarray(regularity_matrix(before, x, np.array([0.3, 1.4]), sign))
        assert_allclose(0.1 * matrix, -np.diag([corner, 1.0]), rtol=0, atol=1e-12)


# ---- 30c: the variation -----------------------------------------------------------------------------
def test_30c_the_sum_of_2_5_starts_at_one():
    rng = np.random.default_rng(2)
    x, dx = rng.standard_normal((2, 6, 3))
    discrete = discretize(SPLIT, 0.3)

    def action(x):
        return sum(discrete.L_d(x[i], x[i + 1]) for i in range(5))

    @jax.jit
    def sides(x, dx):
        D1, D2 = (jax.grad(discrete.L_d, k) for k in (0, 1))
        ends = D1(x[0], x[1]) @ dx[0] + D2(x[4], x[5]) @ dx[5]
        inner = [discrete.euler_lagrange(*x[i - 1 : i + 2]) @ dx[i] for i in range(1, 5)]
        return jax.jvp(action, (x,), (dx,))[1], ends + sum(inner)

    assert_allclose(*sides(x, dx), rtol=1e-12)


# ---- 31: the example and its table ------------------------------------------------------------------
def test_31_the_table_in_the_reading_that_reproduces_it(wrong_motion):
    """h = 0.01, base velocities (1, 1), minus sign, slope at the previous pair, first point from the
    printed equation: all 33 entries of the method to the six printed decimals."""
    first = wrong_motion[0]
    found = np.asarray(sequence(-1.0, first, TABLE_H, 51))[ROWS][:, COLUMNS]
    assert np.array_equal(np.round(found, 6), PRINTED)
    for other in (
        sequence(-1.0, first, TABLE_H, 51, "next"),
        sequence(1.0, first, TABLE_H, 51),
        sequence(-1.0, Q + TABLE_H * V, TABLE_H, 51),
    ):
        assert np.max(np.abs(np.asarray(other)[ROWS][:, COLUMNS] - PRINTED)) > 9e-6


def test_31_the_exact_columns_solve_the_equation_with_the_wrong_sign(wrong_motion):
    assert np.max(np.abs(wrong_motion[:, COLUMNS] - PRINTED_EXACT)) < 6e-7
    true = motion(1.0, TABLE_H * ROWS)[0][:, COLUMNS]
    distance = np.max(np.abs(true - PRINTED_EXACT), axis=0)
    assert_allclose(distance, [0.010428, 0.030246, 0.0], rtol=0, atol=1e-6)
    assert_allclose(true[-1, :2], [0.104312, 0.453150], rtol=0, atol=1e-6)


def test_31_the_integrator_goes_to_the_true_motion_instead():
    true = motion(1.0, np.array([51 * TABLE_H]))[0][0]
    errors = []
    for slope in ("previous", "next"):
        run = simulate(PARTICLE, LagrangeDAlembertChaplygin(slope), Q, V, step_size=TABLE_H, steps=51)
        errors.append(np.max(np.abs(run.q[-1] - true)))
    assert max(errors) < 2.2e-3
    table = np.max(np.abs(PRINTED[-1] - true[COLUMNS]))
    assert table > 0.028


def test_31_with_the_printed_initial_data_nothing_moves():
    rest = np.zeros(3)
    assert_allclose(acceleration(rest, rest, -1.0), 0, rtol=0, atol=0)
    assert_allclose(PARTICLE.acceleration(rest, rest), 0, rtol=0, atol=0)


def test_31a_the_fibre_equation_of_the_example_has_the_fibre_derivative_of_f():
    """Printed is df/dx^1bar inside E_1, where df/dx^1 = 0 belongs; the table was made with the latter."""

    def field(t, z, extra):
        x, y, _, u, w = z
        du = -(2 * x - y * (u * w + extra * 2 * x)) / (1 - y * y)
        return [u, w, y * u, du, -2 * y]

    def distance(extra):
        start, times = [0.0, 0.0, 0.0, 1.0, 1.0], TABLE_H * ROWS
        out = solve_ivp(field, (0, times[-1]), start, args=(extra,), t_eval=times, rtol=1e-11, atol=1e-13)
        return np.max(np.abs(out.y.T[:, COLUMNS] - PRINTED_EXACT))

    assert distance(0.0) < 6e-7
    assert distance(1.0) > 0.01
    q, v = np.array([0.3, 0.5, 0.1]), np.array([0.7, 0.4, 0.35])
    a = np.asarray(acceleration(q, v, -1.0))
    assert_allclose(a, [*field(0, [*q, *v[:2]], 0.0)[3:], a[2]], rtol=0, atol=1e-14)
