"""Velocities with chosen speeds that satisfy the constraints, of least kinetic energy."""

import jax.numpy as jnp
import numpy as np
import pytest
from scipy.optimize import minimize

import moving
from noslip import System
from noslip.systems import appell_hamel, rolling_disk, turntable_ball, two_wheeled_robot


def kinetic(system, q, t=0.0):
    M = np.asarray(system.mass_matrix(q, t))
    return lambda v: v @ M @ v / 2


def test_chosen_speeds_are_kept_and_the_rest_is_solved():
    system, (q, _) = two_wheeled_robot.system(m=1.7), two_wheeled_robot.typical_state()
    v = system.consistent_velocity(q, {"psi_left": 2.0, "theta": -0.5})
    assert abs(v[3] - 2.0) < 1e-14
    assert abs(v[2] + 0.5) < 1e-14
    assert system.is_admissible(q, v)


def test_the_rest_has_the_least_kinetic_energy():
    system, q, t = moving.AFFINE.with_parameters(moving.PARAMETERS), moving.Q0, 0.9
    v = system.consistent_velocity(q, {"x": 0.7}, t)
    equalities = [
        {"type": "eq", "fun": lambda v: np.asarray(system.phi(q, v, t))},
        {"type": "eq", "fun": lambda v: v[0] - 0.7},
    ]
    found = minimize(kinetic(system, q, t), np.ones(4), constraints=equalities, tol=1e-14)
    np.testing.assert_allclose(v, found.x, atol=1e-6)
    assert kinetic(system, q, t)(v) <= found.fun + 1e-12
    assert system.is_admissible(q, v, t)


def test_functions_of_the_velocity_may_be_chosen():
    system, (q, _) = two_wheeled_robot.system(), two_wheeled_robot.typical_state()

    def ahead(q, v, p):
        return v[0] * jnp.cos(q[2]) + v[1] * jnp.sin(q[2])

    v = system.consistent_velocity(q, {"ahead": (ahead, 1.5)})
    np.testing.assert_allclose(ahead(q, v, {}), 1.5, rtol=1e-14)
    assert abs(v[2]) < 1e-14  # to turn as well would take energy
    squared = system.consistent_velocity(q, {"speed": (lambda q, v, p: v[0] ** 2 + v[1] ** 2, 4.0)})
    np.testing.assert_allclose(np.hypot(*squared[:2]), 2.0, rtol=1e-12)
    assert system.is_admissible(q, squared)


def test_nonlinear_constraints_are_solved_too():
    system, (q, _) = appell_hamel.system(), appell_hamel.typical_state()
    v = system.consistent_velocity(q, {"z": -1.3})
    assert abs(v[2] + 1.3) < 1e-12
    assert system.is_admissible(q, v)
    with pytest.raises(ValueError, match=r"'z' = 1\.3 cannot be"):  # it can only fall
        system.consistent_velocity(q, {"z": 1.3})


def test_speeds_without_names_are_refused():
    system, (q, _) = rolling_disk.system(), rolling_disk.typical_state()
    with pytest.raises(TypeError, match="`fixed` must map names of coordinates to speeds"):
        system.consistent_velocity(q, [1.0])


def test_nothing_chosen_gives_rest_where_the_constraints_allow_it():
    system, (q, _) = rolling_disk.system(), rolling_disk.typical_state()
    np.testing.assert_array_equal(system.consistent_velocity(q, {}), np.zeros(system.n))
    ball, (q, _) = turntable_ball.system(), turntable_ball.typical_state()
    v = ball.consistent_velocity(q, {})
    np.testing.assert_allclose(v, ball.project_velocity(q, np.zeros(ball.n)), atol=1e-13)
    assert np.max(np.abs(v)) > 1e-3


SKATE = System(
    lambda q, v, p: 0.5 * jnp.dot(v, v),
    one_forms=lambda q, p: jnp.array([[-jnp.sin(q[2]), jnp.cos(q[2]), 0.0]]),
    coordinates=("x", "y", "theta"),
)


def test_what_cannot_be_is_said():
    at = [0.0, 0.0, 0.0]
    with pytest.raises(
        ValueError, match=r"'y' = 1\.0 cannot be together with the constraints and 'x' = 2\.0"
    ):
        SKATE.consistent_velocity(at, {"x": 2.0, "y": 1.0})
    np.testing.assert_allclose(SKATE.consistent_velocity(at, {"x": 2.0, "y": 0.0}), [2.0, 0.0, 0.0])
    with pytest.raises(ValueError, match="'z'"):
        SKATE.consistent_velocity(at, {"z": 2.0})
    with pytest.raises(ValueError, match="must be a speed, or a pair"):
        SKATE.consistent_velocity(at, {"x": [1.0, 2.0]})
    with pytest.raises(ValueError, match=r"'square' = -1\.0 cannot be"):
        SKATE.consistent_velocity(at, {"square": (lambda q, v, p: v[0] ** 2, -1.0)})
