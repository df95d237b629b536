"""Holonomic constraints: how a system declares them, what a run shows and saves, what is refused."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import noslip
from noslip import System, simulate
from noslip.engine.backends.numpy_rows import evaluate
from noslip.integrators import DiscreteGradient, ReferenceFlow, SemiImplicitDLA
from noslip.report import page
from noslip.testing import holonomic


@functools.cache
def circle(**more):
    return System(
        lambda q, v, p: 0.5 * jnp.dot(v, v) - p["gravity"] * q[1],
        coordinates=("x", "y"),
        parameters={"gravity": 2.0, "radius": 1.5},
        holonomic=lambda q, p: (jnp.dot(q, q) - p["radius"] ** 2)[None],
        **more,
    )


def test_a_system_counts_both_kinds_of_constraints():
    system, q, v = holonomic.everything()
    assert (system.m, system.k, system.rows) == (1, 2, 3)

    @jax.jit
    def all_of(q, v):
        return system.mu(q, v), system.phi(q, v), jax.jacfwd(system.g)(q), system.G(q)

    mu, phi, slope, G = map(np.asarray, all_of(q, v))
    assert mu.shape == (3, 6)
    np.testing.assert_allclose(mu[1:], slope, atol=1e-15)
    np.testing.assert_allclose(phi[1:], G @ v, atol=1e-15)
    assert "2, holonomic" in system.constraints


def with_time_and_a_rotation():
    def g(q, t, p):
        length = jnp.dot(q[:2], q[:2]) * (1 + 0.1 * jnp.sin(p["rate"] * t))
        return jnp.stack([length - p["radius"] ** 2, q[2] * q[3] - q[4] ** 2 + jnp.exp(q[0])])

    return System(
        lambda q, v, p: 0.5 * jnp.dot(v, v) + 0.1 * q[0] * v[1] ** 2,
        coordinates=("x", "y", "u0", "u1", "u2", "u3"),
        rotations=("u",),
        parameters={"rate": 1.3, "radius": 1.5},
        holonomic=g,
    )


def test_g_and_its_derivatives_are_those_of_jax_in_a_scalar_program():
    def values(_, system, q, v, t):
        here = system.at(t)
        along = jax.jvp(here.G, (q,), (v,))[1]
        return here.g(q), here.G(q), here.mu(q, v), here.phi(q, v), along, jax.jacfwd(here.G)(q)

    system, rng = with_time_and_a_rotation(), np.random.default_rng(3)
    q, v, t = rng.normal(size=(4, 6)), rng.normal(size=(4, 6)), rng.normal(size=4)
    found = evaluate(values, None, system, q, v, t)
    expected = jax.jit(jax.vmap(functools.partial(values, None, system)))(q, v, t)
    for x, y in zip(found, expected, strict=True):
        np.testing.assert_allclose(x, y, rtol=1e-12, atol=1e-13)


def test_the_tension_of_a_pendulum_is_that_of_newton():
    """d/dt dL/dv - dL/dq = G^T lam with G = 2 q^T: along q, lam 2 r^2 = -v^2 + g y."""
    system = circle()
    q, v = np.array([0.9, -1.2]), np.array([1.2, 0.9]) * 0.7
    expected = (-(v @ v) + 2.0 * q[1]) / (2 * 1.5**2)
    np.testing.assert_allclose(system.multipliers(q, v), [expected], rtol=1e-14)
    run = simulate(system, ReferenceFlow(), q, v, step_size=0.1, steps=3)
    np.testing.assert_allclose(run.holonomic_multipliers[0], [expected], rtol=1e-14)
    assert run.multipliers.shape == (4, 0)


def test_a_pendulum_moves_as_its_angle_does():
    """Written without derived quantities: the angle's own equation, by SciPy."""
    from scipy.integrate import solve_ivp

    system = circle()
    angle, rate = 0.4, 1.1

    def state(a, w):
        return 1.5 * np.array([np.sin(a), -np.cos(a)]), 1.5 * w * np.array([np.cos(a), np.sin(a)])

    found = solve_ivp(
        lambda t, y: [y[1], -2.0 / 1.5 * np.sin(y[0])], (0, 3), [angle, rate], rtol=1e-12, atol=1e-12
    )
    q, v = state(*found.y[:, -1])
    for method, tolerance in (
        (ReferenceFlow(), 1e-10),
        (SemiImplicitDLA(), 2e-4),
        (DiscreteGradient(), 2e-4),
    ):
        run = simulate(system, method, *state(angle, rate), step_size=0.01, steps=300, save_every=300)
        np.testing.assert_allclose(run.q[-1], q, atol=tolerance)
        np.testing.assert_allclose(run.v[-1], v, atol=tolerance)


def test_a_constraint_that_moves_with_time_is_kept():
    """A bead on a hoop whose radius changes: r(t) given, so the angle obeys d/dt (r^2 w) = -g r sin a."""
    from scipy.integrate import solve_ivp

    def radius(t, xp=np):
        return 1.5 + 0.2 * xp.sin(t)

    system = System(
        lambda q, v, p: 0.5 * jnp.dot(v, v) - 2.0 * q[1],
        coordinates=("x", "y"),
        holonomic=lambda q, t, p: (jnp.dot(q, q) - radius(t, jnp) ** 2)[None],
    )

    def rhs(t, y):
        return [y[1] / radius(t) ** 2, -2.0 * radius(t) * np.sin(y[0])]

    found = solve_ivp(rhs, (0, 2), [0.4, 1.0], rtol=1e-11, atol=1e-11).y[:, -1]
    end = float(radius(2.0)) * np.array([np.sin(found[0]), -np.cos(found[0])])
    q0 = 1.5 * np.array([np.sin(0.4), -np.cos(0.4)])
    v0 = np.array([np.cos(0.4), np.sin(0.4)]) / 1.5 + 0.2 * q0 / 1.5
    errors = []
    for steps in (40, 80):
        run = simulate(system, SemiImplicitDLA(), q0, v0, step_size=2 / steps, steps=steps)
        errors.append(np.max(np.abs(run.q[-1] - end)))
        assert np.max(np.abs(run.holonomic_residual)) < 1e-14
        assert np.max(np.abs(run.holonomic_rate)) < 1e-13
    assert 3.5 < errors[0] / errors[1] < 4.5
    exact = simulate(system, ReferenceFlow(), q0, v0, step_size=0.5, steps=4)
    np.testing.assert_allclose(exact.q[-1], end, atol=1e-9)


def test_a_position_off_the_constraint_is_refused_with_its_size_and_can_be_put_there():
    system = circle()
    with pytest.raises(ValueError, match=r"g\(q0\) = \[0.06\d*\].*project_position"):
        simulate(system, SemiImplicitDLA(), [0.92, -1.2133], [0.0, 0.0], step_size=0.1, steps=1)
    q = system.project_position([0.92, -1.3], fixed=("x",))
    assert q[0] == 0.92
    assert abs(system.g(q)[0]) < 1e-15
    with pytest.raises(ValueError, match=r"no position with g.* was found near .* with x fixed"):
        system.project_position([1.7, -1.3], fixed=("x",))
    with pytest.raises(ValueError, match="coordinate"):
        system.project_position([1.7, -1.3], fixed=("z",))
    simulate(system, SemiImplicitDLA(), q, system.project_velocity(q, [1.0, 0.0]), step_size=0.1, steps=1)


def test_a_row_that_repeats_another_is_refused_by_name():
    system = System(
        lambda q, v, p: 0.5 * jnp.dot(v, v),
        coordinates=("x", "y", "z", "w"),
        one_forms=lambda q, p: jnp.array([[0.0, 0.0, 1.0, 0.0], [2 * q[0], 2 * q[1], 0.0, 0.0]]),
        holonomic=lambda q, p: jnp.array([q[0] ** 2 + q[1] ** 2 - 1.0]),
    )
    q, v = [1.0, 0.0, 0.3, 0.0], [0.0, 1.0, 0.0, 0.0]
    with pytest.raises(ValueError, match=r"full rank.*holonomic\[0\] repeats one_forms\[1\]"):
        simulate(system, SemiImplicitDLA(), q, v, step_size=0.1, steps=1)
    with pytest.raises(ValueError, match=r"holonomic\[0\] repeats one_forms\[1\]"):
        system.project_velocity(q, v)


def test_what_does_not_go_with_holonomic_constraints_is_refused():
    with pytest.raises(ValueError, match=r"`frame` must be left out where `holonomic` is given"):
        circle(frame=lambda q, p: jnp.array([[-q[1]], [q[0]]]))
    with pytest.raises(ValueError, match="must not contain `inputs`"):
        System(
            lambda q, v, p: 0.5 * jnp.dot(v, v),
            coordinates=("x", "y"),
            inputs={"r": 1.0},
            holonomic=lambda q, p: (jnp.dot(q, q) - p["r"])[None],
        )
    with pytest.raises(ValueError, match=r"`holonomic\(q, p\)` must have shape \(k,\)"):
        System(lambda q, v, p: v @ v, coordinates=("x", "y"), holonomic=lambda q, p: q[0])


def test_velocities_are_consistent_with_both_kinds_of_constraints():
    system, q, _ = holonomic.everything()
    v = system.consistent_velocity(q, {"x": 0.7})
    assert v[0] == pytest.approx(0.7, abs=1e-14)
    assert np.max(np.abs(system.phi(q, v))) < 1e-13


def test_a_run_is_saved_and_loaded_with_what_is_holonomic(tmp_path):
    system, q, v = holonomic.bead()
    run = simulate(system, SemiImplicitDLA(), q, v, step_size=0.05, steps=20)
    assert run.holonomic_residual.shape == run.holonomic_multipliers.shape == (21, 1)
    run.save(tmp_path / "run.nc")
    again = noslip.load(tmp_path / "run.nc")
    assert again == run
    data = again.to_xarray()
    assert data["holonomic_residual"].dims == ("time", "holonomic")
    assert float(abs(data["holonomic_residual"]).max()) < 1e-15
    assert "holonomic constraint" in page(run, system, SemiImplicitDLA())
    figure = run.plot()
    assert any("g(q)" in ax.get_ylabel() for ax in figure.axes)


def test_resumed_prepared_and_stepped_runs_have_the_same_bits():
    system, q, v = holonomic.bead()
    method = SemiImplicitDLA()
    whole = simulate(system, method, q, v, step_size=0.05, steps=20)
    half = simulate(system, method, q, v, step_size=0.05, steps=10)
    assert noslip.resume(half, steps=10) == whole
    prepared = noslip.prepare(system, method, step_size=0.05, steps=20)
    for _ in range(2):
        found = prepared(q, v)
        assert np.array_equal(found.q, whole.q)
        assert np.array_equal(found.holonomic_multipliers, whole.holonomic_multipliers)
    with pytest.raises(ValueError, match=r"g\(q0\)"):
        prepared(np.asarray(q) + 0.01, v)
    stepper = prepared.start(q, v)
    assert np.array_equal(stepper.step().q, whole.q[1])


def test_states_between_rows_are_on_the_constraint():
    system, q, v = holonomic.bead()
    off = jax.jit(jax.vmap(lambda q, v: (system.g(q), system.phi(q, v))))
    exact = simulate(system, ReferenceFlow(), q, v, step_size=0.01, steps=40)
    errors = []
    for every in (8, 4):
        rows = simulate(system, ReferenceFlow(), q, v, step_size=0.01 * every, steps=10)
        seen = rows.at(exact.t)
        errors.append(np.max(np.abs(seen.q - exact.q)))
        g, phi = off(seen.q, seen.v)
        assert np.max(np.abs(g)) < 1e-15
        assert np.max(np.abs(phi)) < 1e-14
        assert seen.holonomic_multipliers.shape == (41, 1)
    assert errors[0] / errors[1] > 2**5
    aside = simulate(system, SemiImplicitDLA(), q, v, step_size=0.05, save_at=[0.0, 0.12, 0.333])
    assert np.max(np.abs(aside.holonomic_residual)) < 1e-15


def test_members_of_an_ensemble_are_their_single_runs():
    system, q, v = holonomic.bead()
    speeds = np.array([v, 0.5 * v, -v])
    many = noslip.ensemble(system, DiscreteGradient(), q, speeds, step_size=0.05, steps=10, save_every=1)
    one = simulate(system, DiscreteGradient(), q, speeds[1], step_size=0.05, steps=10)
    assert np.array_equal(many.q[1], one.q)
    assert np.array_equal(many.holonomic_multipliers[1], one.holonomic_multipliers)
    assert np.max(np.abs(many.holonomic_residual)) < 1e-14
    assert many.to_xarray()["holonomic_residual"].dims == ("member", "time", "holonomic")
    with pytest.raises(ValueError, match=r"`q0s` must satisfy the holonomic constraints.*first member 1"):
        noslip.ensemble(system, DiscreteGradient(), [q, q + 0.1], v, step_size=0.05, steps=10)


def test_a_pendulum_is_linearized_on_its_sphere():
    """About the lowest point: two oscillations with the frequency sqrt(g / r); about the highest: growth."""
    system, _, _ = holonomic.pendulum()
    p = system.parameters
    lowest, highest = np.array([0.0, 0.0, -p["length"]]), np.array([0.0, 0.0, p["length"]])
    w = np.sqrt(p["gravity"] / p["length"])
    found = noslip.linearize(system, lowest, np.zeros(3))
    assert found.matrix.shape == (4, 4)
    np.testing.assert_allclose(np.sort(found.eigenvalues.imag), [-w, -w, w, w], atol=1e-12)
    np.testing.assert_allclose(found.eigenvalues.real, 0.0, atol=1e-12)
    assert noslip.linearize(system, highest, np.zeros(3)).growth == pytest.approx(w, abs=1e-12)


@pytest.mark.slow
def test_gradients_go_through_a_run():
    system, q, v = holonomic.pendulum()

    def height(gravity):
        run = simulate(
            system, SemiImplicitDLA(), q, v, step_size=0.05, steps=10, parameters={"gravity": gravity}
        )
        return run.q[-1, 2]

    slope = jax.jit(jax.grad(height))(0.9)
    step = 1e-5
    assert slope == pytest.approx((height(0.9 + step) - height(0.9 - step)) / (2 * step), rel=1e-6)
