"""Whipple's bicycle by `bodies`, with the parameters of Meijaard, Papadopoulos, Ruina, Schwab 2007."""

import functools

import bodies_bicycle as bicycle
import numpy as np
import pytest

from noslip import linearize, simulate
from noslip.engine.backends.numpy_rows import evaluate
from noslip.integrators import DiscreteGradient

M = np.array([[80.81722, 2.31941332208709], [2.31941332208709, 0.29784188199686]])
C1 = np.array([[0.0, 33.86641391492494], [-0.85035641456978, 1.68540397397560]])
K0 = np.array([[-80.95, -2.59951685249872], [-2.59951685249872, -0.80329488458618]])
K2 = np.array([[0.0, 76.59734589573222], [0.0, 2.65431523794604]])
UPRIGHT = dict.fromkeys(("x", "y", "yaw", "roll", "rear", "steer", "front"), 0.0)


@functools.cache
def made():
    model = bicycle.model()
    return model, model.system()


def motion(_, system, q, v):
    return system.acceleration(q, v), system.multipliers(q, v)


def test_its_accelerations_and_contact_forces_are_those_of_newton_and_euler():
    model, system = made()
    rng = np.random.default_rng(3)
    for _ in range(3):
        held = dict(zip(UPRIGHT, rng.uniform(-0.6, 0.6, 7), strict=True))
        rates = dict(zip(("x", "roll", "steer"), rng.uniform(-3, 3, 3), strict=True))
        q, v = model.start(held, rates)
        seen = bicycle.Seen(q, v)
        lowest = [seen.place[wheel] + bicycle.rim(seen, wheel)[0] for wheel in bicycle.RADII]
        np.testing.assert_allclose([point[2] for point in lowest], 0.0, atol=1e-14)
        accelerations, forces = bicycle.newton_euler(q, v)
        found, multipliers = (x[0] for x in evaluate(motion, None, system, q[None], v[None]))
        np.testing.assert_allclose(found, accelerations, rtol=1e-10, atol=1e-10)
        np.testing.assert_allclose(multipliers[4:], -forces[:, 2], rtol=1e-10)  # z points down
        sizes = np.linalg.norm(multipliers[:4].reshape(2, 2), axis=1)
        np.testing.assert_allclose(sizes, np.linalg.norm(forces[:, :2], axis=1), rtol=1e-10)


def test_it_stands_on_its_wheels_with_the_published_forces():
    model, system = made()
    q, v = model.start(UPRIGHT)
    multipliers = evaluate(motion, None, system, q[None], v[None])[1][0]
    np.testing.assert_allclose(multipliers[4:], [612.836470588236, 309.303529411765], rtol=0, atol=1e-9)


@pytest.mark.slow
def test_its_eigenvalues_are_the_published_ones():
    model, system = made()
    for speed in range(11):
        q, v = model.start(UPRIGHT, {"x": speed, "roll": 0.0, "steer": 0.0})
        found = linearize(system, q, v, cyclic=("x", "y", "yaw", "rear", "front")).eigenvalues
        stiffness = bicycle.GRAVITY * K0 + speed**2 * K2
        A = np.block(
            [[np.zeros((2, 2)), np.eye(2)], [-np.linalg.solve(M, np.hstack([stiffness, speed * C1]))]]
        )
        for value in np.linalg.eigvals(A):
            assert np.min(np.abs(found - value)) < 1e-8, (speed, value)


@pytest.mark.slow
def test_its_manoeuvre_keeps_energy_contact_and_rolling():
    """Twenty seconds at 4.6 m/s from a roll rate of 0.5, where it steers itself upright."""
    model, system = made()
    q, v = model.start(UPRIGHT, {"x": 4.6, "roll": 0.5, "steer": 0.0})
    run = simulate(system, DiscreteGradient(), q, v, step_size=0.01, t_end=20.0)
    assert np.max(np.abs(run.energy - run.energy[0])) < 1e-12 * abs(run.energy[0])
    assert np.max(np.abs(run.holonomic_residual)) < 1e-13
    assert np.max(np.abs(run.constraint_residual)) < 1e-13
    assert np.max(np.abs(run.q[-1, [4, 7]])) < 1e-4 < 0.1 < np.max(np.abs(run.q[:, 7]))
    forces = model.reactions(run)
    assert min(np.min(forces[wheel].normal) for wheel in ("rear", "front")) > 250
    weight = bicycle.GRAVITY * sum(bicycle.MASSES.values())
    np.testing.assert_allclose(forces["rear"].normal[-1] + forces["front"].normal[-1], weight, rtol=1e-3)
