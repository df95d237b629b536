"""States where they are wanted: between the rows (`run.at`), and rows at given times (`save_at`)."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from models import OF_EVERY_KIND, kepler, two_forms
from noslip import SolveFailed, System, load, rerun, simulate
from noslip.integrators import (
    Composition,
    DiscreteGradient,
    DiscreteLagrangeDAlembert,
    EnergyCollocation,
    GeometricNonholonomic,
    HamiltonizedDEL,
    LobattoSpark,
    ReducedDLA,
    ReferenceFlow,
    RungeKutta4,
    SemiImplicitDLA,
    VelocityNonholonomic,
)
from noslip.integrators.solve import Status
from noslip.systems import chaplygin_sleigh, fbo_particle

TIMES = np.array([0.0, 0.0123, 0.4, 0.987, 1.25])
METHODS = (
    VelocityNonholonomic(),
    SemiImplicitDLA(),
    DiscreteGradient(),
    EnergyCollocation(2),
    LobattoSpark(3),
    RungeKutta4(),
    GeometricNonholonomic(),
    Composition(SemiImplicitDLA()),
)


# a small one, where XLA must compile the run and its derivative
SLIDE = System(
    lambda q, v, p: 0.5 * jnp.dot(v, v) - q[0] ** 2 * q[1],
    one_forms=lambda q, p: jnp.array([[-q[0], 1.0]]),
    coordinates=("x", "y"),
)


def truth(case, times):
    system, q, v = case
    return simulate(system, ReferenceFlow(), q, v, step_size=0.05, save_at=times)


def slopes(errors):
    return np.log2(np.asarray(errors)[:-1] / np.asarray(errors)[1:])


@pytest.mark.thorough
@pytest.mark.parametrize("name", ["sleigh", "disk", "turntable", "spring"])
def test_between_exact_rows_positions_have_order_6_and_velocities_order_5_on_the_constraint(name):
    system, q, v = OF_EVERY_KIND[name]()
    times = np.linspace(0.03, 0.77, 23)
    exact = truth((system, q, v), times)
    errors = []
    for every in (8, 4, 2):
        run = simulate(system, ReferenceFlow(), q, v, step_size=0.025, steps=32, save_every=every)
        seen = run.at(times)
        errors.append([np.max(np.abs(seen.q - exact.q)), np.max(np.abs(seen.v - exact.v))])
        residual = [np.abs(system.phi(*state)) for state in zip(seen.q, seen.v, strict=True)]
        assert np.max(residual) < 1e-14 * max(1.0, np.max(np.abs(seen.v)) ** 2)
        assert np.array_equal(seen.t, times)
    assert np.all(np.mean(slopes(errors), axis=0) > [5.5, 4.5]), slopes(errors)
    lam = np.stack([system.multipliers(*state) for state in zip(seen.q, seen.v, seen.t, strict=True)])
    assert np.max(np.abs(lam - seen.multipliers)) < 1e-13 * np.max(np.abs(lam))


@pytest.mark.parametrize("method", METHODS, ids=str)
def test_between_the_rows_a_method_has_its_own_order(method):
    system, q, v = case = two_forms()
    times = np.linspace(0.01, 1.19, 17)
    exact, errors = truth(case, times), []
    for steps in (12, 24, 48):
        seen = simulate(system, method, q, v, step_size=1.2 / steps, steps=steps).at(times)
        errors.append([np.max(np.abs(seen.q - exact.q)), np.max(np.abs(seen.v - exact.v))])
    assert np.all(np.mean(slopes(errors), axis=0) > method.order - 0.2), slopes(errors)


def test_at_a_row_its_position_is_that_of_the_row_and_angles_are_unwrapped():
    system, q, v = kepler()
    run = simulate(system, SemiImplicitDLA(), q, v, step_size=0.1, steps=200)
    seen = run.at(run.t)
    assert np.max(np.abs(seen.q - run.q)) < 1e-14 * np.max(np.abs(run.q))
    assert np.max(np.abs(seen.v - run.v)) < 1e-12
    assert run.at(run.t[3]).q.shape == (1, 2)


def test_a_method_that_makes_its_own_time_is_seen_at_physical_times():
    system, (q, v) = fbo_particle.system(), fbo_particle.typical_state()
    exact, errors = truth((system, q, v), TIMES), []
    for h in (0.05, 0.025):
        run = simulate(system, HamiltonizedDEL(), q, v, step_size=h, t_end=1.3)
        errors.append(np.max(np.abs(run.at(TIMES).q - exact.q)))
    assert abs(slopes(errors)[0] - 2) < 0.2
    with pytest.raises(ValueError, match=r"makes its own; use run\.at"):
        simulate(system, HamiltonizedDEL(), q, v, step_size=0.05, save_at=TIMES)


@pytest.mark.parametrize("times", [[-0.1, 0.2], [0.2, 1.01], [np.nan], [[0.1, 0.2]]])
def test_times_outside_the_run_are_refused(times):
    system, q, v = two_forms()
    run = simulate(system, SemiImplicitDLA(), q, v, step_size=0.1, steps=10)
    with pytest.raises(ValueError, match="`times` must be"):
        run.at(times)


def test_a_loaded_run_wants_its_system_for_states_between_its_rows(tmp_path):
    system, (q, v) = chaplygin_sleigh.system(), chaplygin_sleigh.typical_state()
    run = simulate(system, LobattoSpark(3), q, v, step_size=0.1, save_at=TIMES)
    run.save(tmp_path / "run.nc")
    loaded = load(tmp_path / "run.nc")
    assert loaded == run
    with pytest.raises(ValueError, match="system="):
        loaded.at([0.5])
    assert np.array_equal(loaded.at([0.5], system=system).q, run.at([0.5]).q)
    assert rerun(tmp_path / "run.nc").identical


@pytest.mark.parametrize("method", [*METHODS, DiscreteLagrangeDAlembert()], ids=str)
def test_rows_at_given_times_have_the_order_and_the_promises_of_the_method(method):
    system, q, v = case = two_forms()
    exact, errors = truth(case, TIMES), []
    for h in (0.1, 0.05):
        run = simulate(system, method, q, v, step_size=h, save_at=TIMES)
        assert np.array_equal(run.t, TIMES)
        errors.append([np.max(np.abs(run.q - exact.q)), np.max(np.abs(run.v - exact.v))])
        if "constraint" in method.preserves:
            assert np.max(np.abs(run.constraint_residual)) < 1e-14
        if "energy" in method.preserves:
            assert np.max(np.abs(run.energy - run.energy[0])) < 1e-14
    assert np.all(slopes(errors) > method.order - 0.3), slopes(errors)
    lam = np.stack([system.multipliers(*state) for state in zip(run.q, run.v, run.t, strict=True)])
    assert np.max(np.abs(lam - run.multipliers)) < 1e-13 * np.max(np.abs(lam))
    assert np.array_equal(run.multiplier_t, run.t)
    assert run.info.multiplier_source == "node"


@pytest.mark.thorough
@pytest.mark.parametrize("backend", ["native", "xla"])
@pytest.mark.parametrize(
    "method", [SemiImplicitDLA(), DiscreteGradient(), DiscreteLagrangeDAlembert()], ids=str
)
def test_looks_aside_do_not_change_the_run(method, backend):
    system, q, v = OF_EVERY_KIND["particle"]()
    plain = simulate(system, method, q, v, step_size=0.1, steps=13, backend=backend)
    run = simulate(system, method, q, v, step_size=0.1, save_at=[0.05, 0.7, 0.97, 1.3], backend=backend)
    assert run.backend == backend
    assert np.array_equal(run.q[[1, 3]], plain.q[[7, 13]])
    assert np.array_equal(run.v[[1, 3]], plain.v[[7, 13]])
    assert np.array_equal(run.energy[[1, 3]], plain.energy[[7, 13]])


def test_the_motion_is_seen_at_given_times_far_from_the_start_of_its_blocks():
    system, q, v = two_forms()
    run = simulate(system, ReferenceFlow(), q, v, step_size=0.01, save_at=[0.005, 2.559, 2.56, 3.14])
    fine = simulate(system, ReferenceFlow(), q, v, step_size=0.0005, steps=6280)
    assert np.max(np.abs(run.q - fine.q[[10, 5118, 5120, 6280]])) < 1e-13


@pytest.mark.thorough
@pytest.mark.parametrize("method", [SemiImplicitDLA(), ReducedDLA(), GeometricNonholonomic()], ids=str)
def test_native_and_xla_agree_between_the_steps(method):
    system, q, v = OF_EVERY_KIND["particle"]()
    runs = [
        simulate(system, method, q, v, step_size=0.1, save_at=TIMES, backend=b) for b in ("native", "xla")
    ]
    assert np.max(np.abs(runs[0].q - runs[1].q)) < 1e-14
    assert np.max(np.abs(runs[0].v - runs[1].v)) < 1e-14


@pytest.mark.parametrize("how", [{"save_at": TIMES}, {"steps": 13}], ids=["save_at", "at"])
@pytest.mark.parametrize(
    "method", [RungeKutta4(), pytest.param(LobattoSpark(3), marks=pytest.mark.slow)], ids=str
)
def test_states_at_given_times_are_differentiable(method, how):
    q, v, e = np.array([0.3, 0.1]), np.array([1.0, 0.3]), np.array([0.0, 1.0])

    def loss(s, xp):
        run = simulate(SLIDE, method, q + s * e, v, step_size=0.1, **how)
        seen = run if "save_at" in how else run.at(TIMES)
        return xp.sum(seen.q**2) + xp.sum(seen.v[-1])

    gradient = float(jax.jit(jax.grad(lambda s: loss(s, jnp)))(0.0))
    difference = (loss(1e-6, np) - loss(-1e-6, np)) / 2e-6
    assert abs(gradient - difference) < 1e-7 * abs(difference)


def test_a_run_that_fails_keeps_the_rows_before():
    system = System(lambda q, v, p: 0.5 * v[0] ** 2 - jnp.sqrt(1 - q[0]), coordinates=("x",))
    times = [0.05, 0.3, 0.9, 5.0]
    run = simulate(system, RungeKutta4(), [0.0], [1.0], step_size=0.1, save_at=times, throw=False)
    assert run.report.worst is Status.NOT_FINITE
    assert np.array_equal(run.t, times[: len(run.t)])
    assert len(run.t) in (2, 3)
    with pytest.raises(SolveFailed, match="NaN or infinity"):
        simulate(system, RungeKutta4(), [0.0], [1.0], step_size=0.1, save_at=times)


@pytest.mark.parametrize(
    ("how", "words"),
    [
        ({"save_at": []}, "`save_at` must be a list"),
        ({"save_at": 0.5}, "`save_at` must be a list"),
        ({"save_at": [0.3, 0.2]}, "increasing"),
        ({"save_at": [0.1, np.inf]}, "finite"),
        ({"save_at": [-0.1]}, "before t0"),
        ({"save_at": [0.1, 2.0], "steps": 10}, "must end with the run"),
        ({"save_at": [0.1], "save_every": 2}, "cannot both be given"),
        ({"save_at": ["a"]}, "real numbers"),
    ],
)
def test_bad_times_are_refused_in_one_sentence(how, words):
    system, q, v = two_forms()
    with pytest.raises(ValueError, match=words):
        simulate(system, SemiImplicitDLA(), q, v, step_size=0.1, **how)
