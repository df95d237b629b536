"""Rotations: the functions of `noslip.rotations`, and systems with quaternions among their coordinates."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.integrate import solve_ivp
from scipy.spatial.transform import Rotation

import noslip
from noslip import System, rotations, simulate
from noslip.integrators import DiscreteGradient, ReferenceFlow, RungeKutta4, SemiImplicitDLA

INERTIA = np.array([0.5, 0.8, 1.1])
U0 = np.array([0.5, 0.1, -0.7, 0.3]) / np.sqrt(0.84)
RATES = np.array([0.7, -0.4, 1.1])


def scipys(u):
    return Rotation.from_quat(np.roll(u, -1))


@functools.cache
def top():
    """A rigid body about a fixed point, with its weight off the point."""

    def lagrangian(q, v, p):
        w = rotations.body_rates(q, v)
        return 0.5 * jnp.dot(p["inertia"] * w, w) - p["weight"] * rotations.matrix(q)[2, 0]

    parameters = {"inertia": INERTIA, "weight": 0.6}
    return System(lagrangian, coordinates=rotations.names("u"), rotations=("u",), parameters=parameters)


def start():
    return U0, np.asarray(rotations.from_rates(U0, RATES))


def test_matrices_products_and_rates_are_those_of_scipy():
    u, other = 1.7 * U0, rotations.from_euler("zyx", [0.3, -0.5, 1.2])
    np.testing.assert_allclose(rotations.matrix(u), scipys(u).as_matrix(), atol=1e-15)
    np.testing.assert_allclose(
        other, np.roll(Rotation.from_euler("ZYX", [0.3, -0.5, 1.2]).as_quat(), 1), atol=1e-15
    )
    both = rotations.compose(u, other)
    np.testing.assert_allclose(
        rotations.matrix(both), np.asarray(rotations.matrix(u)) @ rotations.matrix(other), atol=1e-15
    )
    axis = rotations.from_axis([1.0, 2.0, -2.0], 0.9)
    turned = Rotation.from_rotvec(0.3 * np.array([1.0, 2.0, -2.0])).as_matrix()
    np.testing.assert_allclose(rotations.matrix(axis), turned, atol=1e-15)
    for q in (U0, np.array([0.0, 1.0, 0.0, 0.0]), np.array([0.1, 0.0, 0.9, -0.4])):
        again = rotations.from_matrix(rotations.matrix(q))
        assert abs(abs(np.asarray(again) @ q) / np.linalg.norm(q) - 1) < 1e-15
    du = rotations.from_rates(u, RATES)
    np.testing.assert_allclose(rotations.body_rates(u, du), RATES, atol=1e-15)
    np.testing.assert_allclose(
        rotations.space_rates(u, du), np.asarray(rotations.matrix(u)) @ RATES, atol=1e-15
    )
    spin = jax.jit(lambda u, du: jax.jvp(rotations.matrix, (u,), (du,))[1])(u, du)
    w = np.asarray(rotations.space_rates(u, du))
    np.testing.assert_allclose(spin, np.cross(np.eye(3), w).T @ rotations.matrix(u) * -1, atol=1e-14)
    np.testing.assert_allclose(np.asarray(rotations.frame("space")(u)) @ w, du, atol=1e-15)


def test_what_jax_traces_is_what_is_computed_of_numbers():
    def all_of(u, w, angles):
        turn = rotations.from_euler("zyx", angles)
        du = rotations.from_rates(u, w)
        rates = rotations.body_rates(u, du), rotations.space_rates(u, du)
        back = rotations.from_matrix(rotations.matrix(u))
        return turn, rotations.compose(turn, u, turn), back, rotations.from_axis(w, angles[0]), du, rates

    given = 1.7 * U0, RATES, np.array([0.3, -0.5, 1.2])
    found, traced = jax.tree.leaves(all_of(*given)), jax.tree.leaves(jax.jit(all_of)(*given))
    assert all(isinstance(x, jax.Array) for x in found)
    for a, b in zip(found, traced, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-15, atol=1e-15)
    assert np.all(np.isnan(rotations.matrix(np.zeros(4))))  # as JAX has it, without a warning


def test_bad_words_are_refused():
    with pytest.raises(ValueError, match="'body' or 'space'"):
        rotations.frame("world")
    with pytest.raises(ValueError, match="letters x, y, z"):
        rotations.from_euler("zq", [0.1, 0.2])
    with pytest.raises(ValueError, match=r"\(3, 3\)"):
        rotations.from_matrix(np.eye(4))


def test_the_vertical_row_of_rolling_is_the_derivative_of_the_height():
    def contact(gamma):
        squares = jnp.array([0.4, 0.9, 0.25])
        return jnp.array([0.0, 0.1, 0.05]) - squares * gamma / jnp.sqrt(jnp.dot(squares, gamma**2))

    slope, moved = jax.jit(lambda u: (jax.grad(rotations.height(contact))(u), rotations.rolling(contact)(u)))(
        U0
    )
    np.testing.assert_allclose(np.asarray(moved)[2], -np.asarray(slope), atol=1e-15)


def test_a_heavy_top_moves_by_eulers_equations():
    """Without derived quantities: J dw/dt = J w x w + gamma x ..., d gamma/dt = gamma x w."""

    def rhs(t, y):
        gamma, w = y[:3], y[3:]
        torque = np.cross(np.array([-0.6, 0.0, 0.0]), gamma)  # the weight acts along -e_z, at e_1 of the body
        return np.concatenate([np.cross(gamma, w), (torque - np.cross(w, INERTIA * w)) / INERTIA])

    q0, v0 = start()
    first = np.concatenate([scipys(U0).as_matrix()[2], RATES])
    found = solve_ivp(rhs, (0, 3), first, rtol=1e-12, atol=1e-12).y[:, -1]

    def shown(run):
        A = np.asarray(rotations.matrix(run.q[-1]))
        return np.concatenate([A[2], rotations.body_rates(run.q[-1], run.v[-1])])

    exact = simulate(top(), ReferenceFlow(), q0, v0, step_size=3.0, steps=1)
    np.testing.assert_allclose(shown(exact), found, atol=2e-11)
    for method in (SemiImplicitDLA(), DiscreteGradient(), RungeKutta4()):
        errors = []
        for steps in (100, 200):
            run = simulate(top(), method, q0, v0, step_size=3 / steps, steps=steps, save_every=steps)
            errors.append(np.max(np.abs(shown(run) - found)))
        assert abs(np.log2(errors[0] / errors[1]) - method.order) < 0.1


def test_what_is_saved_has_length_1_and_a_factor_of_the_start_does_not_matter():
    system, (q0, v0) = top(), start()
    one = simulate(system, SemiImplicitDLA(), q0, v0, step_size=0.05, steps=100)
    other = simulate(system, SemiImplicitDLA(), -3 * q0, -3 * v0, step_size=0.05, steps=100)
    assert np.max(np.abs(np.linalg.norm(one.q, axis=1) - 1)) < 1e-15
    assert np.max(np.abs(np.sum(one.q * one.v, axis=1))) < 1e-15
    np.testing.assert_allclose(-other.q, one.q, atol=1e-13)
    np.testing.assert_allclose(other.energy, one.energy, atol=1e-14)
    assert one.multipliers.shape == (101, 0)
    between = one.at([0.02, 1.33])
    assert np.max(np.abs(np.linalg.norm(between.q, axis=1) - 1)) < 1e-15


def test_what_is_shown_of_a_velocity_is_tangent_to_the_unit_sphere():
    u, du = np.array([0.9, -0.4, 1.2, 0.3]), np.array([0.2, 0.7, -0.5, 1.1])
    length = np.linalg.norm(u)
    shown = top().shown(u, du)
    expected = (du - u * (u @ du) / length**2) / length
    np.testing.assert_allclose(shown[0], u / length, rtol=1e-15)
    np.testing.assert_allclose(shown[1], expected, rtol=0, atol=1e-15)


def test_renormalising_in_mid_run_changes_nothing():
    system, (q0, v0) = top(), start()
    whole = simulate(system, SemiImplicitDLA(), q0, v0, step_size=0.05, steps=100)
    half = simulate(system, SemiImplicitDLA(), q0, v0, step_size=0.05, steps=50)
    rest = simulate(system, SemiImplicitDLA(), half.q[-1], half.v[-1], step_size=0.05, steps=50)
    np.testing.assert_allclose(rest.q[-1], whole.q[-1], atol=1e-13)
    back = simulate(system, SemiImplicitDLA(), whole.q[-1], -whole.v[-1], step_size=0.05, steps=100)
    np.testing.assert_allclose(back.q[-1], q0, atol=1e-12)


@pytest.mark.slow
def test_the_energy_of_a_top_stays_over_1e5_steps():
    run = simulate(top(), DiscreteGradient(), *start(), step_size=0.05, steps=100_000, save_every=50)
    assert np.max(np.abs(run.energy - run.energy[0])) < 1e-13
    bounded = simulate(top(), SemiImplicitDLA(), *start(), step_size=0.05, steps=100_000, save_every=20)
    change = np.abs(bounded.energy - bounded.energy[0])
    assert change[2500:].max() < 1.02 * change[:2500].max()


def test_ensembles_files_and_events_have_unit_quaternions(tmp_path):
    system, (q0, v0) = top(), start()
    many = noslip.ensemble(system, SemiImplicitDLA(), [q0, 2 * q0], [v0, 2 * v0], step_size=0.05, steps=10)
    np.testing.assert_allclose(np.linalg.norm(many.q, axis=-1), 1, atol=1e-15)
    watch = noslip.Event(lambda q, v, p: rotations.matrix(q)[2, 0])
    run = simulate(
        system, SemiImplicitDLA(), 2 * q0, 2 * v0, step_size=0.05, steps=60, events={"level": watch}
    )
    np.testing.assert_allclose(np.linalg.norm(run.events["level"].q, axis=1), 1, atol=1e-12)
    run.save(tmp_path / "top.nc")
    assert noslip.load(tmp_path / "top.nc") == run


def test_what_does_not_go_with_rotations_is_refused():
    with pytest.raises(ValueError, match="coordinate of a rotation"):
        System(lambda q, v, p: v @ v, coordinates=("u0", "u1", "u2"), rotations=("u",))
    with pytest.raises(ValueError, match="both an angle and of a rotation"):
        System(lambda q, v, p: v @ v, coordinates=rotations.names("u"), rotations=("u",), angles=("u1",))
    with pytest.raises(TypeError, match="`rotations` must be a tuple of names"):
        System(lambda q, v, p: v @ v, coordinates=rotations.names("u"), rotations="u")
    system, (q0, v0) = top(), start()
    with pytest.raises(ValueError, match="project_velocity"):
        simulate(system, SemiImplicitDLA(), q0, v0 + 0.1 * q0, step_size=0.1, steps=1)
