"""Systems on Lie algebras against the same ones in coordinates, and against CFHM's reduced equations."""

import jax
import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.integrate import solve_ivp
from scipy.linalg import expm, null_space

from noslip import simulate
from noslip.errors import SolveFailed
from noslip.geometry.bracket import Bracket, structure_functions
from noslip.geometry.frames import Frame
from noslip.geometry.lie_algebra import SE2, SO3, body_velocity, left_invariant_system, recentred
from noslip.integrators.discrete_gradient import DiscreteGradient
from noslip.integrators.runge_kutta4 import RungeKutta4
from noslip.systems import chaplygin_sleigh, suslov

I11, I22, I33, I13, I23 = 1.2, 1.6, 2.0, 0.3, -0.2
INERTIA = np.array([[I11, 0, I13], [0, I22, I23], [I13, I23, I33]])
H, STEPS = 0.1, 40


turning = jax.jit(body_velocity)


def rates(algebra, run):
    return np.asarray(jax.vmap(lambda q, v: body_velocity(algebra, q, v))(run.q, run.v))


def test_the_reduced_equations():
    """rho_a' = -C_ab^c rho_c y_b and q' = T^-1 omega, away from the identity."""
    system = left_invariant_system(SO3, INERTIA, [[0, 0, 1]])
    bracket = Bracket(Frame(system))
    q, rho = np.array([0.4, -0.7, 0.9]), np.array([0.5, -0.8])

    @jax.jit
    def all_of(z):
        field, q = bracket.field(z), z[:3]
        basis = body_velocity(SO3, q, system.frame(q, {}))  # of D on the algebra
        return field, basis, body_velocity(SO3, q, field[:3])

    field, E, turn = map(np.asarray, all_of(np.concatenate([q, rho])))
    y = np.linalg.solve(E.T @ INERTIA @ E, rho)
    omega = E @ y
    assert_allclose(omega[2], 0, atol=1e-15)
    assert_allclose(turn, omega, atol=1e-14)
    assert_allclose(field[3:], E.T @ np.cross(INERTIA @ omega, omega), atol=1e-14)


@pytest.mark.slow
def test_suslov_on_so3():
    """CFHM's integrator at the end of section 4.3, and the catalogue's system in Euler angles."""
    system = left_invariant_system(SO3, INERTIA, [[0, 0, 1]])
    omega = np.array([0.45, 0.5, 0.0])
    run = simulate(system, DiscreteGradient(), np.zeros(3), omega, step_size=H, steps=STEPS, backend="xla")
    found = rates(SO3, run)
    rho = found[:, :2] * [I11, I22]
    mean, change = (rho[1:] + rho[:-1]) / 2, np.diff(rho, axis=0) / H
    k = I13 / I11 * mean[:, 0] + I23 / I22 * mean[:, 1]
    assert_allclose(change[:, 0], -k * mean[:, 1] / I22, atol=1e-13)
    assert_allclose(change[:, 1], k * mean[:, 0] / I11, atol=1e-13)
    assert_allclose(found[:, 2], 0, atol=1e-14)

    q, theta, psi = suslov.typical_state()[0], 1.3, -0.6
    v = np.linalg.solve(
        np.array(
            [
                [np.sin(theta) * np.sin(psi), np.cos(psi), 0],
                [np.sin(theta) * np.cos(psi), -np.sin(psi), 0],
                [np.cos(theta), 0, 1],
            ]
        ),
        omega,
    )
    angles = simulate(suslov.system(), DiscreteGradient(), q, v, step_size=H, steps=STEPS)
    assert_allclose(found, jax.vmap(suslov.body_rates)(angles.q, angles.v), atol=1e-12)


@pytest.mark.slow
def test_the_sleigh_on_se2():
    """The Chaplygin sleigh: e1 along the blade, e2 across it, e3 the rotation."""
    m, J, a = 1.0, 8.0, 1.0
    inertia = np.array([[m, 0, 0], [0, m, m * a], [0, m * a, J + m * a**2]])
    system = left_invariant_system(SE2, inertia, [[0, 1, 0]], ("x", "y", "theta"))
    speed, turn = -0.6, 0.4
    run = simulate(
        system, DiscreteGradient(), np.zeros(3), [speed, 0, turn], step_size=H, steps=STEPS, backend="xla"
    )
    catalogue = simulate(
        chaplygin_sleigh.system(m, J, a),
        DiscreteGradient(),
        np.zeros(3),
        [speed, 0, turn],
        step_size=H,
        steps=STEPS,
    )
    theta = catalogue.q[:, 2]
    along = catalogue.v[:, 0] * np.cos(theta) + catalogue.v[:, 1] * np.sin(theta)
    found = rates(SE2, run)
    assert_allclose(found[:, 0], along, atol=1e-12)
    assert_allclose(found[:, 2], catalogue.v[:, 2], atol=1e-12)
    assert_allclose(found[:, 1], 0, atol=1e-14)


def reduced_motion(algebra, inertia, constraints, omega, times):
    """omega(t) on the algebra alone: E^T I E y' = E^T ad*_omega (I omega), omega = E y, by DOP853."""
    E = null_space(np.atleast_2d(constraints))

    def slope(t, y):
        omega = E @ y
        turned = np.einsum("ijk,i,k->j", algebra, omega, inertia @ omega)
        return np.linalg.solve(E.T @ inertia @ E, E.T @ turned)

    y0 = E.T @ omega
    done = solve_ivp(slope, (0, times[-1]), y0, method="DOP853", t_eval=times, rtol=1e-13, atol=1e-13)
    return (E @ done.y).T


def in_pieces(system, algebra, omega, h, steps, piece):
    """Body rates at every step of a run recentred after each piece, and how often that moved q."""
    q, v, found, recentrings = np.zeros(3), np.asarray(omega), [], 0
    for _ in range(steps // piece):
        run = simulate(system, DiscreteGradient(), q, v, step_size=h, steps=piece)
        assert np.max(np.abs(run.energy / run.energy[0] - 1)) < 1e-14
        found.append((run.q[1:], run.v[1:]))
        q, v = recentred(algebra, run.q[-1], run.v[-1])
        recentrings += not np.array_equal(q, run.q[-1])
    q, v = (np.concatenate(x) for x in zip(*found, strict=True))
    return np.asarray(jax.vmap(lambda q, v: body_velocity(algebra, q, v))(q, v)), recentrings


SLEIGH = np.array([[1.0, 0, 0], [0, 1.0, 0.1], [0, 0.1, 1.01]])  # a sleigh that turns several times


@pytest.mark.slow
@pytest.mark.parametrize(
    ("algebra", "inertia", "constraints", "omega", "turns", "piece"),
    [(SO3, INERTIA, [0, 0, 1], [0.45, 0.5, 0.0], 5, 4.0), (SE2, SLEIGH, [0, 1, 0], [0.3, 0.0, 1.0], 1, 2.5)],
)
def test_long_runs_against_the_reduced_equations(algebra, inertia, constraints, omega, turns, piece):
    """To t = 100, through several charts: momenta of order 2, the energy at round-off."""
    system = left_invariant_system(algebra, inertia, [constraints])
    errors = []
    for h in (0.1, 0.05):
        steps = round(100 / h)
        found, recentrings = in_pieces(system, algebra, omega, h, steps, round(piece / h))
        assert recentrings >= turns
        exact = reduced_motion(algebra, inertia, constraints, omega, h * np.arange(1, steps + 1))
        errors.append(np.max(np.abs((found - exact) @ inertia)))
        assert_allclose(found @ np.asarray(constraints), 0, atol=1e-14)
    assert errors[0] < 1e-2
    assert_allclose(errors[0] / errors[1], 4, rtol=0.1)


def test_a_run_that_leaves_the_chart_ends_there_and_says_so():
    """A skate on a circle: the exponential coordinates of se(2) end after a whole turn."""
    system = left_invariant_system(SE2, np.eye(3), [[0, 1, 0]])
    with pytest.raises(SolveFailed, match="singular point of the coordinates") as failure:
        simulate(system, RungeKutta4(), np.zeros(3), [0.3, 0.0, 1.0], step_size=0.1, steps=100)
    assert_allclose(failure.value.trajectory.q[-1], [0.3 * 6.2, 0.0, 6.2], atol=1e-10)


def test_recentred_coordinates_are_those_of_the_same_point_and_velocity():
    def adjoint(algebra, q):
        return expm(np.einsum("i,ijk->kj", q, algebra))

    for algebra, q in ((SO3, [2.0, -3.0, 3.0]), (SE2, [1.5, -0.7, 5.0]), (SE2, [0.2, 0.4, -4.0])):
        q, v = np.array(q), np.array([0.3, -0.2, 0.7])
        new, velocity = recentred(algebra, q, v)
        angle = np.max(np.abs(np.linalg.eigvals(np.einsum("i,ijk->kj", new, algebra)).imag))
        assert angle < np.pi
        assert_allclose(adjoint(algebra, new), adjoint(algebra, q), atol=1e-13)
        assert_allclose(turning(algebra, new, velocity), turning(algebra, q, v), atol=1e-13)
    for given, same in zip(recentred(SO3, new, v), (new, v), strict=True):
        assert_allclose(given, same, rtol=0)


def plus_line(algebra):
    """The algebra with a direction that commutes with all others."""
    c = np.zeros((4, 4, 4))
    c[:3, :3, :3] = algebra
    return c


def element(algebra, q):
    """exp(q) in the group of rotations or planar motions, and the place on the line."""
    return expm(np.einsum("i,ijk->kj", q[:3], algebra)), q[3]


@pytest.mark.parametrize("algebra", [SO3, SE2], ids=["so3", "se2"])
def test_what_commutes_with_everything_stays_where_it_is(algebra):
    """so(3) + R and se(2) + R: a turn of the body moves nothing along the line; in a basis of mixed
    directions neither."""
    q, v = np.array([1.1, -2.0, 4.0, 0.7]), np.array([0.3, -0.2, 0.7, 0.4])
    new, velocity = recentred(plus_line(algebra), q, v)
    assert_allclose(element(algebra, new)[0], element(algebra, q)[0], atol=1e-13)
    assert_allclose(new[3], q[3], rtol=1e-15)
    assert np.max(np.abs(new[:3] - q[:3])) > 1
    c = plus_line(algebra)
    assert_allclose(turning(c, new, velocity), turning(c, q, v), atol=1e-13)
    if algebra is SO3:  # e'_a = B^i_a e_i: what is a turn does not depend on the basis
        B = np.eye(4) + 0.2 * np.random.default_rng(3).uniform(-1, 1, (4, 4))
        mixed = np.einsum("ia,jb,ijk,ck->abc", B, B, c, np.linalg.inv(B))
        there, _ = recentred(mixed, np.linalg.solve(B, q), np.linalg.solve(B, v))
        assert_allclose(B @ there, new, atol=1e-12)


def test_a_centre_that_brackets_reach_is_refused():
    """The oscillator algebra: a turn encloses an area, which is a step along the centre."""
    c = plus_line(SE2)
    c[0, 1, 3], c[1, 0, 3] = 1.0, -1.0
    with pytest.raises(ValueError, match="the centre of the algebra must not meet its brackets"):
        recentred(c, np.array([0.5, 0.2, 5.0, 0.1]), np.zeros(4))


def test_where_a_turn_is_not_the_identity_there_is_nothing_to_recentre():
    """A screw: translations e1 .. e3 and rotations e4 .. e6 of se(3), along and about one axis."""
    c = np.zeros((6, 6, 6))
    c[3:, 3:, 3:] = SO3
    c[3:, :3, :3] = SO3
    c[:3, 3:, :3] = -SO3.transpose(1, 0, 2)
    with pytest.raises(ValueError, match="a whole turn is the identity"):
        recentred(c, np.array([0, 0, 1.0, 0, 0, 5.0]), np.zeros(6))


def test_the_structure_functions_do_not_depend_on_the_point():
    system = left_invariant_system(SO3, INERTIA, [[0.2, -0.3, 1.0]])
    found = jax.jit(lambda q: structure_functions(Frame(system), q))
    assert_allclose(found(np.array([0.4, -0.7, 0.9])), found(np.zeros(3)), atol=1e-13)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((SO3[:2], np.eye(3), [[0, 0, 1]]), "`structure_constants` must have shape"),
        ((np.ones((3, 3, 3)), np.eye(3), [[0, 0, 1]]), "must be skew"),
        ((SO3, -np.eye(3), [[0, 0, 1]]), "positive definite"),
        ((SO3, np.eye(3), [0, 0, 1]), r"`constraints` must have shape \(m, 3\)"),
    ],
)
def test_bad_input_is_named(arguments, message):
    with pytest.raises(ValueError, match=message):
        left_invariant_system(*arguments)


def test_constants_that_are_no_lie_algebra_are_refused():
    c = SO3.copy()
    c[0, 1, 0], c[1, 0, 0] = 0.5, -0.5
    with pytest.raises(ValueError, match="Jacobi"):
        left_invariant_system(c, np.eye(3), [[0, 0, 1]])
