"""Random states: on the constraint, on the shell, of the stated measure, and the same for any division."""

import functools
import threading

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.stats

from noslip import System, rotations
from noslip.sampling import BLOCK, Ball, Box, on_constraint, on_energy_shell
from noslip.systems import (
    appell_hamel,
    nonholonomic_particle,
    quartic,
    rolling_coin,
    spherical_pendulum,
    turntable_ball,
)

SIZE = 20000
DEVIATIONS = 4.0  # of the mean of SIZE draws; the seeds are fixed, so this is decided once


def curved_lagrangian(q, v, p):
    """A mass that depends on the place, so that the volume of the kinetic metric is not Lebesgue's."""
    return 0.5 * ((1 + p["c"] * q[0] ** 2) * v[0] ** 2 + p["m"] * v[1] ** 2 + v[2] ** 2)


CURVED = System(
    curved_lagrangian,
    one_forms=lambda q, p: jnp.array([[-q[1], 0.5, 1.0]]),
    coordinates=("x", "y", "z"),
    parameters={"c": 3.0, "m": 2.0},
)


def each(function, *arrays):
    """Of every row: an array, or several of a function that returns several."""
    return jax.tree.map(np.asarray, jax.jit(jax.vmap(function))(*arrays))


def assert_mean(values, expected):
    error = np.std(values) / np.sqrt(len(values))
    assert abs(np.mean(values) - expected) < DEVIATIONS * error


def test_velocities_on_the_constraint_are_normal_in_the_kinetic_metric():
    region = Box([-1.0, -2.0, 0.0], [2.0, 2.0, 1.0])
    q, v = on_constraint(CURVED, SIZE, region=region, seed=3, temperature=0.7)
    phi, kinetic, covariance = each(
        lambda q, v: (
            CURVED.phi(q, v),
            CURVED.energy(q, v),
            CURVED.projectors(q)[0] @ jnp.linalg.inv(CURVED.mass_matrix(q)),
        ),
        q,
        v,
    )
    assert np.max(np.abs(phi)) < 1e-14
    for i in range(3):
        low, high = region.low[i], region.high[i]
        assert scipy.stats.kstest(q[:, i], scipy.stats.uniform(low, high - low).cdf).pvalue > 1e-3
    # there is no potential; 2 T / temperature is chi squared with k = 2
    assert scipy.stats.kstest(2 * kinetic / 0.7, scipy.stats.chi2(2).cdf).pvalue > 1e-3
    excess = v[:, :, None] * v[:, None, :] - 0.7 * covariance
    for i in range(3):
        for j in range(i + 1):
            assert_mean(excess[:, i, j], 0.0)


def test_affine_constraints_are_sampled_about_the_shortest_velocity():
    system = turntable_ball.system()
    zero = np.zeros(system.n)
    q, v = on_constraint(system, 2000, region=Box(zero - 1, zero + 1), seed=1, temperature=0.3)

    def of_one(q, v):
        u = v - system.project_velocity(q, jnp.zeros(system.n))  # from the shortest one
        return system.phi(q, v), 0.5 * u @ system.mass_matrix(q) @ u

    phi, relative = each(of_one, q, v)
    assert np.max(np.abs(phi)) < 1e-14
    free = system.n - system.m
    assert scipy.stats.kstest(2 * relative / 0.3, scipy.stats.chi2(free).cdf).pvalue > 1e-3


def test_the_shell_of_an_oscillator_is_a_sphere():
    """V = s |q|^2 / 2: (sqrt(s) q, v) is uniform on a sphere, so V / E has a beta distribution."""
    energy, s = 1.7, 2.0
    system = quartic.system(n=2, stiffness=s, coupling=0.0)
    n, free = 5, 4
    q, v = on_energy_shell(system, energy, SIZE, region=Ball(np.zeros(n), np.sqrt(2 * energy / s)), seed=8)
    found, phi, projected = each(
        lambda q, v: (system.energy(q, v), system.phi(q, v), system.projectors(q)[0] @ v), q, v
    )
    assert np.max(np.abs(found - energy)) < 1e-14
    assert np.max(np.abs(phi)) < 1e-14
    share = 0.5 * s * np.sum(q**2, axis=1) / energy
    assert scipy.stats.kstest(share, scipy.stats.beta(n / 2, free / 2).cdf).pvalue > 1e-3
    assert_mean(q[:, 0] ** 2, 2 * energy / s / (n + free))
    for i in range(n):
        assert_mean(q[:, i] * v[:, (i + 1) % n], 0.0)
    assert np.max(np.abs(v - projected)) < 1e-14  # v lies in D_q, in every direction
    assert_mean(np.sum(v**2, axis=1), 2 * energy * free / (n + free))


def test_positions_on_the_shell_follow_the_volume_of_the_kinetic_metric():
    """k = 2 and no potential: the density of x is sqrt(1 + c x^2), that of y and z constant."""
    q, v = on_energy_shell(CURVED, 0.9, SIZE, region=Box([-1.0] * 3, [2.0, 1.0, 1.0]), seed=2)

    def primitive(x):
        u = np.sqrt(3.0) * x
        return (u * np.sqrt(1 + u**2) + np.arcsinh(u)) / (2 * np.sqrt(3.0))

    def cdf(x):
        return (primitive(x) - primitive(-1.0)) / (primitive(2.0) - primitive(-1.0))

    assert scipy.stats.kstest(q[:, 0], cdf).pvalue > 1e-3
    assert scipy.stats.kstest(q[:, 0], scipy.stats.uniform(-1, 3).cdf).pvalue < 1e-9  # the test can tell
    np.testing.assert_allclose(each(CURVED.energy, q, v), 0.9, rtol=1e-14)


@pytest.mark.parametrize("draw", ["constraint", "shell"])
def test_a_member_depends_on_the_seed_and_its_number_alone(draw):
    region = Box([-1.0] * 3, [1.0, 1.0, 2.0])

    def sample(members, seed=11):
        if draw == "constraint":
            return on_constraint(CURVED, members, region=region, seed=seed)
        return on_energy_shell(CURVED, 0.8, members, region=region, seed=seed)

    whole = sample(9000)  # more than one block
    for part in (range(17), range(17, 40), range(8100, 9000)):
        for all_of_them, some in zip(whole, sample(part), strict=True):
            np.testing.assert_array_equal(all_of_them[part.start : part.stop], some)
    assert not np.array_equal(whole[0][:17], sample(17, seed=12)[0])


def test_draws_from_a_ball_are_uniform_on_the_sphere_that_they_are_moved_to():
    """Radially, so that z is uniform by Archimedes; what is fixed keeps the law of the draws."""
    system = spherical_pendulum.system(length=1.3, mass=0.7)
    q, v = on_constraint(system, SIZE, region=Ball(np.zeros(3), 1.5), seed=2, temperature=0.4)
    np.testing.assert_allclose(np.linalg.norm(q, axis=1), 1.3, rtol=1e-15)
    np.testing.assert_allclose(np.sum(q * v, axis=1), 0.0, atol=1e-14)
    uniform = scipy.stats.uniform
    assert scipy.stats.kstest(q[:, 2], uniform(-1.3, 2.6).cdf).pvalue > 1e-3
    assert_mean(0.35 * np.sum(v**2, axis=1), 0.4)  # two free velocities
    below = Box([-0.4, -0.3, -1.4], [0.5, 0.6, -1.0])
    q, _ = on_constraint(system, SIZE, region=below, seed=2, fixed=("x", "y"))
    assert scipy.stats.kstest(q[:, 0], uniform(-0.4, 0.9).cdf).pvalue > 1e-3
    np.testing.assert_allclose(q[:, 2], -np.sqrt(1.69 - q[:, 0] ** 2 - q[:, 1] ** 2), rtol=1e-14)


def test_the_shell_of_a_pendulum_has_uniform_heights_up_to_where_it_ends():
    """Two free velocities: the density of the draws is left as it is where the energy suffices."""
    system = spherical_pendulum.system(length=1.3, mass=0.7)
    q, v = on_energy_shell(system, 0.35, 4000, region=Ball(np.zeros(3), 1.5), seed=5)
    assert scipy.stats.kstest(q[:, 2], scipy.stats.uniform(-1.3, 1.3 + 0.5).cdf).pvalue > 1e-3
    np.testing.assert_allclose(0.35 * np.sum(v**2, axis=1) + 0.7 * q[:, 2], 0.35, rtol=1e-13)
    np.testing.assert_allclose(np.sum(q * v, axis=1), 0.0, atol=1e-14)


@pytest.mark.slow
def test_a_coin_is_drawn_with_uniform_rotations_places_and_three_free_velocities():
    system = rolling_coin.system(h=0.1, A=0.3)
    region = Box([-1.0, -2.0, 0.2, 0, 0, 0, 0], [1.0, 2.0, 1.0, 1, 1, 1, 1])
    q, v = on_constraint(system, SIZE, region=region, seed=3, temperature=1.7)
    assert np.max(np.abs(each(system.g, q))) < 1e-14
    assert np.max(np.abs(each(system.phi, q, v))) < 1e-13
    for k, size in ((0, 1.0), (1, 2.0)):
        assert scipy.stats.kstest(q[:, k], scipy.stats.uniform(-size, 2 * size).cdf).pvalue > 1e-3
    axis = each(lambda q: rotations.matrix(q[3:])[2, 2], q)
    assert scipy.stats.kstest(axis, scipy.stats.uniform(-1, 2).cdf).pvalue > 1e-3
    assert np.min(q[:, 3]) >= 0
    np.testing.assert_allclose(np.linalg.norm(q[:, 3:], axis=1), 1.0, rtol=1e-15)
    assert_mean(each(lambda q, v: v @ system.mass_matrix(q) @ v, q, v), 3 * 1.7)
    q, v = on_energy_shell(system, 1.9, 500, region=region, seed=4)
    np.testing.assert_allclose(each(system.energy, q, v), 1.9, rtol=1e-13)


def test_no_threads_ask_xla_at_once(monkeypatch):
    """Blocks that several had asked for were seen to wait for ever."""

    def refused(*_):
        raise AssertionError("a thread was started")

    system = quartic.system()
    monkeypatch.setattr(threading.Thread, "start", refused)
    for draw in (on_constraint, functools.partial(on_energy_shell, energy=3.0)):
        q0s, v0s = draw(system, members=3 * BLOCK, region=Box([-1.0] * system.n, [1.0] * system.n), seed=2)
        assert q0s.shape == v0s.shape == (3 * BLOCK, system.n)


def test_draws_without_a_position_are_an_error_and_not_left_out():
    system = spherical_pendulum.system()
    far = Box([-2.0, -0.1, -1.0], [2.0, 0.1, 1.0])
    words = r"every draw must find a position with g\(q\) = 0 near it, but \d+ of 50 found none"
    with pytest.raises(ValueError, match=words):
        on_constraint(system, 50, region=far, seed=0, fixed=("x", "y"))
    with pytest.raises(ValueError, match="1 holonomic constraints must be met by as many coordinates, but"):
        on_constraint(system, 50, region=far, seed=0, fixed=("x", "y", "z"))
    with pytest.raises(TypeError, match="`fixed` must be a tuple of names, but the string 'x'"):
        on_constraint(system, 50, region=far, seed=0, fixed="x")


def test_what_cannot_be_sampled_is_refused():
    system, ball = nonholonomic_particle.system(), Ball(np.zeros(3), 1.0)
    with pytest.raises(ValueError, match=r"must hold states of energy -1, but none was found"):
        on_energy_shell(CURVED, -1.0, 5, region=Box([-1.0] * 3, [1.0] * 3), seed=0)
    with pytest.raises(ValueError, match="linear or affine constraints, but these are nonlinear"):
        on_constraint(appell_hamel.system(), 5, region=ball, seed=0)
    with pytest.raises(TypeError, match="`region` must be a Box or a Ball"):
        on_constraint(system, 5, region=1.0, seed=0)
    with pytest.raises(ValueError, match=r"`low` must be finite and below `high`"):
        on_constraint(system, 5, region=Box([1.0, 0, 0], [0.0, 1, 1]), seed=0)
    with pytest.raises(ValueError, match=r"`centre` must have shape \(3,\)"):
        on_constraint(system, 5, region=Ball([0.0, 0], 1.0), seed=0)
    with pytest.raises(ValueError, match="a range from a >= 0 up"):
        on_constraint(system, range(4, 2), region=ball, seed=0)
    with pytest.raises(ValueError, match="`seed` must be a whole number >= 0"):
        on_constraint(system, 5, region=ball, seed=-1)
    with pytest.raises(ValueError, match="`temperature` must be a number >= 0"):
        on_constraint(system, 5, region=ball, seed=0, temperature=-1.0)
    line = System(
        lambda q, v, p: 0.5 * jnp.dot(v, v),
        one_forms=lambda q, p: jnp.array([[-q[1], 1.0]]),
        coordinates=("x", "y"),
    )
    with pytest.raises(ValueError, match="two free velocities or more, but this system has 1"):
        on_energy_shell(line, 1.0, 5, region=Ball([0.0, 0], 1.0), seed=0)
