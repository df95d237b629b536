"""A rattleback in quaternions, its height kept by a holonomic constraint, beside Newton's and Euler's
equations that are written here without anything that noslip derives."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.integrate import solve_ivp

from noslip import System, rotations, simulate
from noslip.integrators import DiscreteGradient, ReferenceFlow, SemiImplicitDLA

SQUARES = np.array([0.2, 0.03, 0.02]) ** 2
INERTIA = np.array([[2e-4, -2e-5, 0.0], [-2e-5, 1.6e-3, 0.0], [0.0, 0.0, 1.7e-3]])
GRAVITY, OFFSET = 9.81, np.array([0.0, 0.0, 0.01])


def contact(gamma):
    return OFFSET - SQUARES * gamma / jnp.sqrt(jnp.dot(SQUARES, gamma**2))


def lagrangian(q, v, p):
    w = rotations.body_rates(q[3:], v[3:])
    return 0.5 * jnp.dot(v[:3], v[:3]) + 0.5 * jnp.dot(w, INERTIA @ w) - GRAVITY * q[2]


@functools.cache
def rattleback():
    """Spun the wrong way, tilted by half a degree."""
    system = System(
        lagrangian,
        one_forms=lambda q, p: jnp.concatenate([jnp.eye(3), rotations.rolling(contact)(q[3:])], axis=1)[:2],
        holonomic=lambda q, p: (q[2] - rotations.height(contact)(q[3:]))[None],
        coordinates=("x", "y", "z", *rotations.names("u")),
        rotations=("u",),
    )
    u = rotations.from_axis([1.0, 0.3, 0.2], np.radians(0.5))
    q = np.concatenate([[0.0, 0.0, rotations.height(contact)(u)], u])
    du = rotations.from_rates(u, [0.02, -0.01, -5.0])
    return system, q, np.concatenate([-rotations.rolling(contact)(u) @ du, du])


def of_newton_and_euler(t, y):
    """v = a x w, force R = dv/dt + w x v + g gamma, J dw/dt + w x J w = a x R, dgamma/dt = gamma x w."""
    gamma, w = y[:3], y[3:]
    size = np.sqrt(SQUARES @ gamma**2)
    a, turn = OFFSET - SQUARES * gamma / size, np.cross(gamma, w)
    da = -SQUARES * turn / size + SQUARES * gamma * (SQUARES @ (gamma * turn)) / size**3
    known = np.cross(da, w) + np.cross(w, np.cross(a, w)) + GRAVITY * gamma
    cross = np.cross(np.eye(3), a).T * -1.0  # cross @ x = a x x
    return np.concatenate(
        [turn, np.linalg.solve(INERTIA - cross @ cross, np.cross(a, known) - np.cross(w, INERTIA @ w))]
    )


def seen(run):
    gamma = jax.vmap(lambda u: rotations.matrix(u)[2])(run.q[:, 3:])
    return np.concatenate([gamma, jax.vmap(rotations.body_rates)(run.q[:, 3:], run.v[:, 3:])], axis=1)


@pytest.mark.slow
def test_a_rattleback_moves_by_newtons_and_eulers_equations():
    system, q, v = rattleback()
    run = simulate(system, ReferenceFlow(), q, v, step_size=0.5, steps=4)
    found = solve_ivp(
        of_newton_and_euler, (0, 2), seen(run)[0], t_eval=run.t, method="DOP853", rtol=1e-12, atol=1e-13
    )
    np.testing.assert_allclose(seen(run), found.y.T, atol=1e-8)


@pytest.mark.slow
def test_a_rattleback_turns_round_with_exact_energy_and_contact():
    system, q, v = rattleback()
    run = simulate(system, DiscreteGradient(), q, v, step_size=5e-4, steps=20_000, save_every=100)
    spin = np.asarray(jax.vmap(rotations.space_rates)(run.q[:, 3:], run.v[:, 3:]))[:, 2]
    assert spin[0] < -4.9
    assert spin.max() > 4.5
    assert np.max(np.abs(run.energy - run.energy[0])) < 1e-15
    assert np.max(np.abs(run.holonomic_residual)) < 1e-15
    assert np.max(np.abs(run.constraint_residual)) < 1e-14
    assert run.holonomic_multipliers.min() > 0  # it does not lift off


@pytest.mark.slow
def test_a_rattleback_goes_back_from_what_is_shown():
    system, q, v = rattleback()
    for method in (SemiImplicitDLA(), DiscreteGradient()):
        there = simulate(system, method, q, v, step_size=1e-3, steps=200, save_every=200)
        back = simulate(system, method, there.q[-1], -there.v[-1], step_size=1e-3, steps=200, save_every=200)
        np.testing.assert_allclose(back.q[-1], q, atol=1e-12)
