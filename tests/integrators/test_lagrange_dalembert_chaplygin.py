"""LagrangeDAlembertChaplygin against PP (3.2) written with base and fibre, and against the motion."""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from numpy.testing import assert_allclose

from models import OF_EVERY_KIND, five
from noslip import System, simulate
from noslip.analysis import measured_order
from noslip.geometry.discrete_chaplygin import discretize
from noslip.geometry.splitting import splitting
from noslip.integrators.lagrange_dalembert_chaplygin import LagrangeDAlembertChaplygin
from noslip.integrators.velocity_nonholonomic import VelocityNonholonomic
from noslip.systems import (
    nonholonomic_particle,
)

pytestmark = pytest.mark.thorough

H, STEPS = 0.1, 20
SLOPES = ("previous", "next")
both_slopes = pytest.mark.parametrize("slope", SLOPES)


CASES = OF_EVERY_KIND | {"five": five}


@pytest.fixture(scope="module", params=[(name, slope) for name in CASES for slope in SLOPES], ids="-".join)
def case(request):
    name, slope = request.param
    system, q, v = CASES[name]()
    run = simulate(system, LagrangeDAlembertChaplygin(slope), q, v, step_size=H, steps=STEPS)
    return system, q, v, slope, run


def test_a_row_is_a_node_with_the_velocity_that_leaves_it(case):
    _, q, v, _, run = case
    assert_allclose(run.q[0], q, rtol=0, atol=0)
    assert_allclose(run.v[0], v, rtol=0, atol=0)
    assert_allclose((run.q[1:] - run.q[:-1]) / H, run.v[:-1], rtol=0, atol=1e-12)
    assert_allclose(run.multiplier_t, run.t, rtol=0, atol=1e-12)
    assert run.info.multiplier_source == "method"


def test_the_constraint_holds_at_every_row(case):
    run = case[-1]
    assert np.max(np.abs(run.constraint_residual)) < 1e-14 * (1 + np.max(np.abs(run.v)) ** 2)


def test_two_point_form(case):
    """D1 L_d(x_i, x_{i+1}) + D2 L_d(x_{i-1}, x_i) + h mu^T lam = 0 and phi_d(x_i, x_{i+1}) = 0."""
    system, _, _, slope, run = case

    def Ld(z0, z1):
        return H * system.lagrangian(z0, (z1 - z0) / H, system.parameters)

    @jax.jit
    @jax.vmap
    def balance(before, x, after, lam):
        pair = (before, x) if slope == "previous" else (x, after)
        mu = system.mu(pair[0], (pair[1] - pair[0]) / H)
        return jax.grad(Ld, 0)(x, after) + jax.grad(Ld, 1)(before, x) + H * mu.T @ lam

    rows = balance(run.q[:-2], run.q[1:-1], run.q[2:], run.multipliers[1:-1])
    assert_allclose(rows, 0, rtol=0, atol=1e-12)


def test_the_equations_in_base_and_fibre_hold_for_every_fibre(case):
    """PP (3.2) with the fibre of the system or by pivoting, and with another that can be solved for."""
    system, q, v, slope, run = case
    x = run.q[:6]  # later some fibres are no longer determined
    mu = np.asarray(jax.jit(jax.vmap(system.mu))(x, run.v[:6]))
    choices = [list(at) for at in itertools.combinations(range(system.n), system.m)]
    worst = [np.min(np.linalg.svd(mu[:, :, at], compute_uv=False)) for at in choices]
    fibres = [tuple(system.coordinates[i] for i in choices[k]) for k in np.argsort(worst)[:-3:-1]]
    assert np.sort(worst)[-2] > 0.05
    for names in {splitting(system, q, v).fibre, *fibres}:
        split = splitting(system, q, v, fibre=names)
        discrete = discretize(split, H)
        z = x[:-2], x[1:-1], x[2:]

        @jax.jit
        @jax.vmap
        def found(before, x, after, d=discrete):
            return d.equations(before, x, after, slope), d.point(x, after[d.base_index])

        equations, after = found(*z)
        assert_allclose(equations, 0, rtol=0, atol=2e-12)
        assert_allclose(after, z[2], rtol=0, atol=1e-12)


@pytest.mark.parametrize("name", ["particle", "spring"])
@both_slopes
def test_the_sequence_solved_in_base_coordinates_is_the_same(name, slope):
    system, q, v = CASES[name]()
    run = simulate(system, LagrangeDAlembertChaplygin(slope), q, v, step_size=H, steps=STEPS)
    discrete = discretize(splitting(system, q, v), H)
    sequence = jax.jit(lambda q, v: discrete.sequence(q, q + H * v, STEPS, pair=slope))(q, v)
    assert_allclose(sequence, run.q, rtol=0, atol=1e-12)


@pytest.mark.parametrize("name", ["particle", "sleigh", "turntable"])
def test_with_the_next_slope_and_linear_constraints_it_is_js_with_beta_zero(name):
    system, q, v = CASES[name]()
    run, js = (
        simulate(system, method, q, v, step_size=H, steps=STEPS)
        for method in (LagrangeDAlembertChaplygin("next"), VelocityNonholonomic(0.0))
    )
    assert_allclose(run.q, js.q, rtol=0, atol=1e-13)
    assert_allclose(run.multipliers, js.multipliers, rtol=0, atol=1e-12)


def test_the_slopes_differ():
    system, q, v = CASES["spring"]()
    runs = [simulate(system, LagrangeDAlembertChaplygin(s), q, v, step_size=H, steps=STEPS) for s in SLOPES]
    assert np.max(np.abs(runs[0].q - runs[1].q)) > 1e-4


@pytest.mark.parametrize("name", ["turntable", "spring", "five"])
@both_slopes
def test_order_one_on_affine_and_nonlinear_constraints(name, slope):
    system, q, v = CASES[name]()
    found = measured_order(system, LagrangeDAlembertChaplygin(slope), q, v, t_end=1.0, steps=(80, 160, 320))
    assert_allclose(found.global_[:2], 1, rtol=0, atol=0.15)
    assert found.global_errors[-1, 0] < 0.02
    assert abs(found.global_[2] - 1) < 0.25  # the multipliers, dated at the row


@both_slopes
def test_external_forces_take_the_place_of_dl_dq(slope):
    """A potential moved from L to `force` gives the same run."""
    system, q, v = CASES["particle"]()
    moved = System(
        lambda q, v, p: 0.5 * jnp.dot(v, v),
        one_forms=nonholonomic_particle.one_forms,
        force=lambda q, v, t, p: -2 * p["k"] * q * jnp.array([1.0, 1.0, 0.0]),
        coordinates=("x", "y", "z"),
        parameters=system.parameters,
    )
    method = LagrangeDAlembertChaplygin(slope)
    run, other = (simulate(s, method, q, v, step_size=H, steps=STEPS) for s in (system, moved))
    assert_allclose(run.q, other.q, rtol=0, atol=1e-14)
    assert_allclose(run.multipliers, other.multipliers, rtol=0, atol=1e-13)


@both_slopes
def test_a_force_in_time_acts_at_the_node(slope):
    system = System(
        lambda q, v, p: 0.5 * jnp.dot(v, v),
        one_forms=lambda q, p: jnp.array([[0.0, 1.0]]),
        force=lambda q, v, t, p: jnp.array([t**2, 0.0]),
        coordinates=("x", "y"),
    )
    run = simulate(system, LagrangeDAlembertChaplygin(slope), [0.0, 0.0], [1.0, 0.0], step_size=H, steps=5)
    assert_allclose(run.v[:, 0], 1 + H * np.cumsum(np.r_[0.0, run.t[1:] ** 2]), rtol=1e-14)


def test_an_irregular_first_step_is_refused():
    """Proposition 3.1: the matrix of the free particle is 1 + y_{i-1} y_i; a long step can make it zero."""
    free = nonholonomic_particle.system(k=0.0)
    with pytest.raises(ValueError, match="has no unique step from this state"):
        simulate(
            free,
            LagrangeDAlembertChaplygin("previous"),
            [0.0, 1.0, 0.0],
            [1.0, -2.0, 1.0],
            step_size=1.0,
            steps=3,
        )
    run = simulate(
        free, LagrangeDAlembertChaplygin("next"), [0.0, 1.0, 0.0], [1.0, -2.0, 1.0], step_size=1.0, steps=3
    )
    assert run.success


def test_an_unknown_slope_is_refused():
    with pytest.raises(ValueError, match="`slope` must be 'previous' or 'next', but 'middle' was provided"):
        LagrangeDAlembertChaplygin("middle")


@pytest.mark.slow
def test_runs_differentiate_through_the_initial_state():
    system, q, v = CASES["spring"]()
    split = splitting(system, q, v)
    base = v[split.base_index]

    def end(w):
        velocity = split.velocity(q, w)
        run = simulate(system, LagrangeDAlembertChaplygin(), q, velocity, step_size=H, steps=5)
        return run.q[-1]

    slope = jax.jacfwd(end)(base)
    for k in range(2):
        step = jnp.zeros(2).at[k].set(1e-5)
        assert_allclose(slope[:, k], (end(base + step) - end(base - step)) / 2e-5, rtol=1e-7, atol=1e-9)
