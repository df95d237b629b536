"""The time loop: what is saved, wrapped, resumed, differentiated, and how often it compiles."""

import os
import signal
import subprocess
import sys
import threading
import time

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import noslip
from noslip import System, simulate
from noslip.integrators.discrete_lagrange_dalembert import DiscreteLagrangeDAlembert
from noslip.integrators.reference_flow import ReferenceFlow
from noslip.integrators.runge_kutta4 import RungeKutta4
from noslip.integrators.semi_implicit_dla import SemiImplicitDLA
from noslip.integrators.solve import Status
from noslip.integrators.velocity_nonholonomic import VelocityNonholonomic
from noslip.run import drive
from noslip.systems import chaplygin_sleigh, quartic

METHODS = [
    VelocityNonholonomic(),
    pytest.param(DiscreteLagrangeDAlembert(), marks=pytest.mark.slow),
    pytest.param(SemiImplicitDLA(), marks=pytest.mark.slow),
    RungeKutta4(),
]


@pytest.mark.parametrize("method", [*METHODS, ReferenceFlow()], ids=lambda m: type(m).__name__)
def test_saving_fewer_states_changes_nothing_but_their_number(particle, particle_state, method):
    every = simulate(particle, method, *particle_state, step_size=0.1, steps=23)
    some = simulate(particle, method, *particle_state, step_size=0.1, steps=23, save_every=5)
    kept = [0, 5, 10, 15, 20, 23]
    assert_array_equal(some.t, every.t[kept])
    if not method.exact:
        assert_array_equal(some.q, every.q[kept])
        assert_array_equal(some.energy, every.energy[kept])
    assert_array_equal(some.report.steps, [0, 5, 5, 5, 5, 3])
    assert every.q.shape == (24, 3)
    assert every.multipliers.shape == (24, 1)


def test_the_report_holds_the_worst_of_each_interval(particle, particle_state):
    every = simulate(particle, VelocityNonholonomic(), *particle_state, step_size=0.1, steps=20)
    some = simulate(particle, VelocityNonholonomic(), *particle_state, step_size=0.1, steps=20, save_every=10)
    assert some.report.iterations[1] == every.report.iterations[1:11].max()
    assert some.report.increment[2] == every.report.increment[11:].max()


def test_times_are_not_accumulated(particle, particle_state):
    run = simulate(particle, RungeKutta4(), *particle_state, step_size=0.1, steps=3000, t0=2.0)
    assert_array_equal(run.t, 2.0 + 0.1 * np.arange(3001))


def test_a_run_has_no_seams_however_the_host_cuts_it(particle, particle_state, monkeypatch):
    arguments = (particle, VelocityNonholonomic(), *particle_state)
    run = simulate(*arguments, step_size=0.05, steps=3000, save_every=2)  # more rows than one call holds
    monkeypatch.setattr(drive, "SECONDS_PER_CALL", 0.0)  # one step per call
    assert simulate(*arguments, step_size=0.05, steps=3000, save_every=2) == run
    assert run.report.steps.sum() == 3000


def test_zero_steps_give_the_initial_state(particle, particle_state):
    run = simulate(particle, VelocityNonholonomic(), *particle_state, step_size=0.1, t_end=0.0)
    assert_array_equal(run.q, [particle_state[0]])
    assert_allclose(run.multipliers[0], particle.multipliers(*particle_state))


def test_a_second_run_compiles_nothing(particle, particle_state, compilations):
    simulate(particle, VelocityNonholonomic(0.4), *particle_state, step_size=0.1, steps=10)
    with compilations() as count:
        simulate(particle, VelocityNonholonomic(0.4), [0.1, 0.2, 0.0], [1.0, 1.0, 0.2], step_size=0.05,
                 t_end=100.0, save_every=3, parameters={"k": 2.0}, t0=1.0)  # fmt: skip
    assert count() == 0


def test_angles_are_wrapped_inside_and_unwrapped_outside():
    system = chaplygin_sleigh.system(a=0.5)
    q0, v0 = chaplygin_sleigh.typical_state()
    far = np.asarray(q0) + np.array([0, 0, 2 * np.pi * 1000])
    near, away = (simulate(system, SemiImplicitDLA(), q, v0, step_size=0.1, steps=2000) for q in (q0, far))
    assert np.ptp(near.q[:, 2]) > 2 * np.pi / 2
    assert_allclose(away.q[:, 2] - near.q[:, 2], 2000 * np.pi, rtol=1e-11)
    assert_allclose(away.energy, near.energy, rtol=1e-10)
    assert np.max(np.abs(away.constraint_residual[1:])) < 1e-15  # row 0 is the state as given
    plain = System(
        chaplygin_sleigh.lagrangian,
        one_forms=chaplygin_sleigh.one_forms,
        coordinates=("x", "y", "theta"),
        parameters=system.parameters,
    )
    unwrapped = simulate(plain, SemiImplicitDLA(), q0, v0, step_size=0.1, steps=2000)
    assert_allclose(near.q, unwrapped.q, rtol=0, atol=1e-11)


def test_a_turning_angle_counts_its_turns():
    system = System(
        lambda q, v, p: 0.5 * jnp.dot(v, v),
        one_forms=lambda q, p: jnp.array([[-jnp.sin(q[2]), jnp.cos(q[2]), 0.0]]),
        coordinates=("x", "y", "theta"),
        angles=("theta",),
    )
    run = simulate(system, VelocityNonholonomic(), [0, 0, 0.0], [1.0, 0, 3.0], step_size=0.1, steps=1000)
    assert_allclose(run.q[:, 2], 3.0 * run.t, rtol=1e-13)


def test_progress_is_told_to_a_function(particle, particle_state):
    calls = []
    simulate(particle, RungeKutta4(), *particle_state, step_size=0.1, steps=5000,
             progress=lambda done, total: calls.append((done, total)))  # fmt: skip
    assert calls[-1] == (5000, 5000)
    assert [done for done, _ in calls] == sorted({done for done, _ in calls})


def test_memory_does_not_grow_with_unsaved_steps(particle, particle_state):
    run = simulate(
        particle, RungeKutta4(), *particle_state, step_size=1e-3, steps=200_000, save_every=100_000
    )
    assert len(run.t) == 3


def test_ctrl_c_keeps_what_was_saved(particle, particle_state):
    simulate(particle, RungeKutta4(), *particle_state, step_size=1e-3, steps=100)
    threading.Timer(0.7, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
    began = time.perf_counter()
    with pytest.raises(noslip.Interrupted, match=r"interrupted after step \d+ of 1000000000") as caught:
        simulate(particle, RungeKutta4(), *particle_state, step_size=1e-6, steps=10**9, save_every=1000)
    assert time.perf_counter() - began < 10
    kept = caught.value.trajectory
    assert len(kept.t) > 2
    assert_allclose(np.diff(kept.t), 1e-3, rtol=1e-9)


def test_ctrl_c_in_the_last_call_of_a_run_is_not_lost(particle, particle_state):
    def ask(done, total):
        if done == total:
            signal.raise_signal(signal.SIGINT)

    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # a job in the background ignores it
    try:
        with pytest.raises(noslip.Interrupted, match="interrupted after step 50 of 50") as caught:
            simulate(particle, RungeKutta4(), *particle_state, step_size=1e-3, steps=50, progress=ask)
        assert caught.value.trajectory.success
        assert len(caught.value.trajectory.t) == 51
    finally:
        signal.signal(signal.SIGINT, before)


def final(method, system, xp):
    def value(q0, k, h):
        v0 = xp.array([0.8, 0.6, 0.8 * q0[1]])
        run = simulate(system, method, q0, v0, step_size=h, steps=20, parameters={"k": k}, save_every=7)
        return run.q[-1] @ np.array([1.0, -2.0, 0.5]) + run.energy[-1] + run.multipliers[-1, 0]

    return value


@pytest.mark.thorough
@pytest.mark.parametrize("method", METHODS, ids=lambda m: type(m).__name__)
def test_gradients_agree_with_differences(particle, method):
    value = final(method, particle, np)
    q0, k, h, e = np.array([0.2, 0.5, -0.1]), 1.0, 0.1, 1e-6
    by_q, by_k, by_h = jax.jit(jax.grad(final(method, particle, jnp), (0, 1, 2)))(q0, k, h)
    by_q = np.asarray(by_q)
    for i, d in enumerate(e * np.eye(3)):
        assert_allclose(by_q[i], (value(q0 + d, k, h) - value(q0 - d, k, h)) / (2 * e), rtol=1e-7)
    assert_allclose(by_k, (value(q0, k + e, h) - value(q0, k - e, h)) / (2 * e), rtol=1e-7)
    assert_allclose(by_h, (value(q0, k, h + e) - value(q0, k, h - e)) / (2 * e), rtol=1e-6)


def test_traced_runs_agree_with_plain_ones(particle, particle_state):
    def last(q0, v0):
        return simulate(particle, VelocityNonholonomic(), q0, v0, step_size=0.1, steps=50, save_every=20).q

    plain = last(*particle_state)
    assert plain.shape == (4, 3)
    assert_allclose(jax.jit(last)(*particle_state), plain, rtol=1e-12)
    many = jax.vmap(last, (0, 0))(*(np.stack([x, x]) for x in particle_state))
    assert_allclose(np.asarray(many)[1], plain, rtol=1e-12)


def test_a_traced_run_that_fails_says_so_in_its_report():
    """A cubic well, out of which a large step has nowhere to go: its quadratic equation has no real root."""
    well = System(lambda q, v, p: 0.5 * v[0] ** 2 - 0.5 * q[0] ** 2 + q[0] ** 3 / 3, coordinates=("x",))

    @jax.jit
    def status(h):
        run = simulate(well, VelocityNonholonomic(), [0.3], [0.5], step_size=h, steps=100)
        return run.report.status[-1]

    assert int(status(0.1)) == Status.SOLVED
    assert int(status(3.0)) == Status.NOT_CONVERGED


def test_the_reference_cannot_be_traced(particle, particle_state):
    def run(q0):
        return simulate(particle, ReferenceFlow(), q0, particle_state[1], step_size=0.1, steps=2).q

    with pytest.raises(ValueError, match="ReferenceFlow runs on the host"):
        jax.jit(run)(particle_state[0])


def test_first_integrals_keep_their_declared_order():
    from noslip.systems import turntable_ball

    run = simulate(
        turntable_ball.system(), RungeKutta4(), *turntable_ball.typical_state(), step_size=0.1, steps=1
    )
    assert list(run.first_integrals) == ["spin", "centre_x", "centre_y", "moving_energy"]


@pytest.mark.parametrize("factor", [1e3, pytest.param(1e-3, marks=pytest.mark.slow)])
@pytest.mark.parametrize("method", METHODS[:3], ids=lambda m: type(m).__name__)
def test_units_do_not_matter(particle, particle_state, method, factor):
    """L in other units of mass, then lengths and times in other units: the same motion, the same solves."""

    def heavy(q, v, p):
        return factor * particle.lagrangian(q, v, p)

    def long(q, v, p):  # lengths in units of 1 / factor; z is an area, as y xdot is
        return particle.lagrangian(q / size, v / size, p)

    size = np.array([factor, factor, factor**2])
    q0, v0 = map(np.asarray, particle_state)
    arguments = {"coordinates": ("x", "y", "z"), "parameters": {"k": 1.0}}
    run = simulate(particle, method, q0, v0, step_size=0.1, steps=300)
    heavier = System(heavy, one_forms=particle.one_forms, **arguments)
    other = simulate(heavier, method, q0, v0, step_size=0.1, steps=300)
    assert_allclose(other.q, run.q, rtol=0, atol=1e-10)
    assert_allclose(other.multipliers, factor * run.multipliers, rtol=0, atol=1e-10 * factor)
    longer = System(long, one_forms=particle.one_forms, **arguments)
    stretched = simulate(longer, method, q0 * size, v0 * size, step_size=0.1, steps=300)
    assert_allclose(stretched.q / size, run.q, rtol=0, atol=1e-10)
    slower = System(
        lambda q, v, p: particle.lagrangian(q, v * factor, p), one_forms=particle.one_forms, **arguments
    )
    slow = simulate(slower, method, q0, v0 / factor, step_size=0.1 * factor, steps=300)
    assert_allclose(slow.q, run.q, rtol=0, atol=1e-10)
    for scaled in (other, stretched, slow):
        assert scaled.report.iterations.max() <= run.report.iterations.max() + 2


def test_a_system_at_rest_stays_at_rest(particle):
    run = simulate(
        particle, VelocityNonholonomic(), [0.0, 0.0, 0.3], [0.0, 0.0, 0.0], step_size=0.1, steps=50
    )
    assert_array_equal(run.q[-1], [0.0, 0.0, 0.3])
    assert run.success


def test_importing_noslip_leaves_the_heavy_packages_alone():
    heavy = ["scipy.integrate", "sympy", "xarray", "matplotlib", "heyoka", "typer", "rich"]
    code = f"import sys, noslip; print([m for m in {heavy} if m in sys.modules])"
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert shown.stdout.strip() == "[]"


def test_large_steps_are_solved_where_newton_converges():
    """Full Newton may wander before it converges: quartic at h = 1 takes more than the chord's patience."""
    run = simulate(
        quartic.system(), VelocityNonholonomic(), *quartic.typical_state(), step_size=1.0, steps=300
    )
    assert np.max(np.abs(run.constraint_residual)) < 1e-13
    assert run.report.increment.max() < 1e-13


@pytest.mark.slow
@pytest.mark.thorough
@pytest.mark.parametrize("method", [DiscreteLagrangeDAlembert(), VelocityNonholonomic(0.3)], ids=str)
def test_gradients_with_angles_and_variable_mass(method):
    system = chaplygin_sleigh.system()

    def value(x):
        speed, turn, theta, a = x
        v0 = jnp.array([speed * jnp.cos(theta), speed * jnp.sin(theta), turn])
        q0 = jnp.array([0.1, -0.2, theta])
        run = simulate(system, method, q0, v0, step_size=0.1, steps=30, parameters={"a": a})
        return run.q[-1] @ jnp.array([1.0, -2.0, 0.5]) + run.first_integrals["final_cos"][-1]

    x, e = jnp.array([-0.6, 1.4, 3.0, 0.8]), 1e-6  # theta crosses pi on the way
    slopes = [(value(x + e * d) - value(x - e * d)) / (2 * e) for d in jnp.eye(4)]
    assert_allclose(jax.grad(value)(x), slopes, rtol=1e-6)


def test_constant_runs_inside_jit_are_part_of_the_trace(particle, particle_state):
    def scaled(x):
        return x * simulate(particle, RungeKutta4(), *particle_state, step_size=0.1, steps=5).q[-1]

    plain = simulate(particle, RungeKutta4(), *particle_state, step_size=0.1, steps=5).q[-1]
    assert_allclose(jax.jit(scaled)(2.0), 2 * plain, rtol=1e-13)
    q = jnp.array([0.1, 0.2, 0.3])
    energy = jax.jit(lambda q: chaplygin_sleigh.system().energy(q, q))(q)
    assert_allclose(energy, chaplygin_sleigh.system().energy(q, q), rtol=1e-14)


def test_round_off_claims_hold_with_the_optimisations_that_users_have():
    """The tests compile with little optimisation; this one runs as a user would."""
    code = (
        "import numpy as np; from noslip import simulate; from noslip.systems import chaplygin_sleigh as s;"
        "from noslip.integrators.velocity_nonholonomic import VelocityNonholonomic as V;"
        "r = simulate(s.system(a=0.1), V(), *s.typical_state(), step_size=0.01, steps=100_000, save_every=9);"
        "print(np.abs(r.constraint_residual).max(), r.report.increment.max(), np.ptp(r.q[:, 2]))"
    )
    environment = {k: v for k, v in os.environ.items() if k != "XLA_FLAGS"}
    command = [sys.executable, "-c", code]
    shown = subprocess.run(command, capture_output=True, text=True, check=True, env=environment)
    residual, increment, turned = map(float, shown.stdout.split())
    assert residual < 1e-14
    assert increment < 1e-14
    assert turned > 10


def test_a_run_of_several_calls_may_save_nothing_but_its_ends(particle, particle_state):
    run = simulate(
        particle, VelocityNonholonomic(), *particle_state, step_size=1e-3, steps=20_000, save_every=20_000
    )
    assert len(run.t) == 2
    assert run.report.steps[-1] == 20_000
