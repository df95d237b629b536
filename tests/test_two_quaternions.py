"""u and -u are one rotation: whatever compares, interpolates or draws quaternions knows it."""

import dataclasses
import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import noslip
from noslip import System, rotations, simulate
from noslip.analysis.error_estimate import _largest_differences
from noslip.analysis.order import _errors
from noslip.analysis.work_precision import errors_at_end, reference_flow
from noslip.integrators import ReferenceFlow, SemiImplicitDLA
from noslip.run.interpolate import between
from noslip.sampling import Ball, Box, on_constraint, on_energy_shell
from noslip.testing.systems import check_exact, reference
from noslip.testing.verdict import CheckFailed

U0 = np.array([0.5, 0.1, -0.7, 0.3]) / np.sqrt(0.84)
WEIGHT = 0.6


@functools.cache
def top():
    """A body about a fixed point with its weight along its first axis, and a coordinate beside it."""

    def lagrangian(q, v, p):
        w = rotations.body_rates(q[1:], v[1:])
        turning = 0.5 * jnp.dot(jnp.array([0.5, 0.8, 1.1]) * w, w)
        return turning + 0.5 * v[0] ** 2 - WEIGHT * rotations.matrix(q[1:])[2, 0]

    return System(lagrangian, coordinates=("x", *rotations.names("u")), rotations=("u",))


@functools.cache
def run():
    q = np.array([0.3, *U0])
    v = np.array([0.2, *rotations.from_rates(U0, [0.7, -0.4, 1.1])])
    return simulate(top(), SemiImplicitDLA(), q, v, step_size=0.05, steps=20)


def flipped(x):
    return np.where(np.arange(5) > 0, -x, x)


def other(rows):
    """The same states with the other quaternions in every second row."""
    return np.where(np.arange(len(rows))[:, None] % 2 == 1, flipped(rows), rows)


def test_states_are_made_alike_and_nothing_else_is_changed():
    q, v = run().q, run().v
    again = top().alike(other(q), other(v), q)
    assert np.array_equal(again[0], q)
    assert np.array_equal(again[1], v)
    plain = System(lambda q, v, p: 0.5 * v @ v, coordinates=("x", "y"))
    assert plain.alike(q, v, -q) == (q, v)


def test_states_between_rows_of_opposite_sign_are_those_between_rows_of_one():
    times = np.array([0.02, 0.33, 0.71])
    one = between(top(), run().t, run().q, run().v, times)
    two = between(top(), run().t, other(run().q), other(run().v), times)
    q, v = top().alike(two[0], two[1], one[0])
    np.testing.assert_allclose(q, one[0], atol=1e-15)
    np.testing.assert_allclose(v, one[1], atol=1e-14)


def test_differences_do_not_see_the_sign():
    mirrored = dataclasses.replace(run(), q=other(run().q), v=other(run().v))
    assert np.max(_largest_differences(top(), run(), mirrored, False)) == 0
    assert max(_errors(top(), mirrored, 1, dataclasses.replace(run(), q=run().q[:2], v=run().v[:2]))[:2]) == 0
    start, truth = (run().q[0], run().v[0]), reference_flow(top(), run().q[0], run().v[0])
    errors = errors_at_end(top(), start, truth)
    assert errors(1.0, run().q[-1], run().v[-1]) == errors(1.0, flipped(run().q[-1]), flipped(run().v[-1]))


def test_an_error_is_estimated_and_an_order_measured_in_quaternions():
    true = simulate(top(), ReferenceFlow(), run().q[0], run().v[0], step_size=0.05, steps=20)
    error = np.max(np.abs(run().q - true.q), axis=1)[1:]
    ratio = noslip.error_estimate(run())[1:] / error
    assert np.all((ratio > 0.8) & (ratio < 1.25))


@pytest.mark.slow
def test_a_closed_form_may_have_either_sign():
    found = reference(top(), run().q[0], run().v[0], 1.0)
    check_exact(found, lambda t, q0, v0: (other(found.q), other(found.v)))
    with pytest.raises(CheckFailed, match="its v differ"):
        check_exact(found, lambda t, q0, v0: (other(found.q), found.v))


def test_rotations_are_sampled_uniformly_once():
    region = Box([0.0, *4 * [-1.0]], [1.0, *4 * [1.0]])
    q, v = on_constraint(top(), 4000, region=region, seed=3)
    assert np.all(q[:, 1] >= 0)
    np.testing.assert_allclose(np.linalg.norm(q[:, 1:], axis=1), 1, atol=1e-15)
    assert np.max(np.abs(np.sum(q[:, 1:] * v[:, 1:], axis=1))) < 1e-14
    both = jax.jit(jax.vmap(lambda u, du: (rotations.matrix(u), rotations.body_rates(u, du))))
    A, rates = (np.asarray(x) for x in both(q[:, 1:], v[:, 1:]))
    assert np.max(np.abs(A.mean(axis=0))) < 0.04  # three standard errors, sqrt(1 / 3 / 4000) each, and some
    assert np.max(np.abs((A**2).mean(axis=0) - 1 / 3)) < 0.025
    np.testing.assert_allclose((rates**2).mean(axis=0), [2, 1.25, 1 / 1.1], rtol=0.1)


@pytest.mark.slow
def test_a_shell_has_the_density_of_its_room():
    """Four speeds: the height of the weight, uniform by itself, gets the weight (energy - V)^(4/2 - 1)."""
    region, energy = Box([0.0, *4 * [-1.0]], [1.0, *4 * [1.0]]), 0.9
    q, v = on_energy_shell(top(), energy, 2000, region=region, seed=5)
    np.testing.assert_allclose(jax.vmap(top().energy)(q, v), energy, atol=1e-13)
    heights = np.asarray(jax.vmap(rotations.matrix)(q[:, 1:]))[:, 2, 0]
    x = np.linspace(-1, 1, 2001)
    density = energy - WEIGHT * x
    assert abs(heights.mean() - np.sum(x * density) / np.sum(density)) < 0.04


def test_what_cannot_be_sampled_is_said():
    with pytest.raises(ValueError, match="must be a Box"):
        on_constraint(top(), 3, region=Ball(np.zeros(5), 1.0), seed=0)
