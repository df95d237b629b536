"""Systems on Lie algebras against the same ones in coordinates, and against CFHM's reduced equations."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from numpy.testing import assert_allclose

from noslip import simulate
from noslip.geometry.bracket import Bracket, structure_functions
from noslip.geometry.frames import Frame
from noslip.geometry.lie_algebra import SE2, SO3, body_velocity, left_invariant_system
from noslip.integrators.discrete_gradient import DiscreteGradient
from noslip.systems import chaplygin_sleigh, suslov

I11, I22, I33, I13, I23 = 1.2, 1.6, 2.0, 0.3, -0.2
INERTIA = np.array([[I11, 0, I13], [0, I22, I23], [I13, I23, I33]])
H, STEPS = 0.1, 40


def rates(algebra, run):
    return np.asarray(jax.vmap(lambda q, v: body_velocity(algebra, q, v))(run.q, run.v))


def test_the_reduced_equations():
    """rho_a' = -C_ab^c rho_c y_b and q' = T^-1 omega, away from the identity."""
    system = left_invariant_system(SO3, INERTIA, [[0, 0, 1]])
    bracket = Bracket(Frame(system))
    q, rho = jnp.array([0.4, -0.7, 0.9]), jnp.array([0.5, -0.8])
    field = jax.jit(bracket.field)(jnp.concatenate([q, rho]))
    E = np.asarray(body_velocity(SO3, q, system.frame(q, {})))  # the basis of D on the algebra
    y = np.linalg.solve(E.T @ INERTIA @ E, rho)
    omega = E @ y
    assert_allclose(omega[2], 0, atol=1e-15)
    assert_allclose(body_velocity(SO3, q, field[:3]), omega, atol=1e-14)
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


def test_the_structure_functions_do_not_depend_on_the_point():
    system = left_invariant_system(SO3, INERTIA, [[0.2, -0.3, 1.0]])
    there = structure_functions(Frame(system), np.array([0.4, -0.7, 0.9]))
    assert_allclose(there, structure_functions(Frame(system), np.zeros(3)), atol=1e-13)


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
