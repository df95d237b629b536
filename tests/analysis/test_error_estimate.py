"""The estimated error of a run against its true one."""

import jax.numpy as jnp
import numpy as np
import pytest

from models import OF_EVERY_KIND, kepler, two_forms
from noslip import Event, System, error_estimate, load, simulate
from noslip.integrators import (
    DiscreteGradient,
    DiscreteLagrangeDAlembert,
    EnergyCollocation,
    HamiltonizedDEL,
    LobattoSpark,
    ReferenceFlow,
    RungeKutta4,
    SemiImplicitDLA,
    VariableStep,
    VelocityNonholonomic,
)
from noslip.systems import chaplygin_sleigh, fbo_particle

CASES = {
    "two_forms": two_forms,
    "kepler": kepler,
    "sleigh": OF_EVERY_KIND["sleigh"],
    "spring": OF_EVERY_KIND["spring"],
}
METHODS = [
    SemiImplicitDLA(),
    VelocityNonholonomic(0.3),
    DiscreteLagrangeDAlembert(),
    DiscreteGradient(),
    EnergyCollocation(2),
    LobattoSpark(3),
    RungeKutta4(),
]


def within(run, estimate, exact, factor=3.0):
    true = np.max(np.abs(run.q - exact.q), axis=1)
    seen = true > 1e-3 * np.max(true)  # not where the error passes through zero
    assert np.max(true) > 1e-11
    ratio = estimate[seen] / true[seen]
    assert np.mean((ratio < factor) & (ratio > 1 / factor)) > 0.9, ratio
    assert 1 / factor < np.max(estimate) / np.max(true) < factor


@pytest.mark.parametrize(
    "name", [c if c == "two_forms" else pytest.param(c, marks=pytest.mark.slow) for c in CASES]
)
@pytest.mark.parametrize("method", METHODS, ids=str)
def test_the_estimate_is_within_a_factor_of_three(method, name):
    system, q, v = CASES[name]()
    if method.applies_to(system):
        pytest.skip("does not apply")
    run = simulate(system, method, q, v, step_size=0.05, steps=60, save_every=4)
    exact = simulate(system, ReferenceFlow(), q, v, step_size=0.05, steps=60, save_every=4)
    within(run, error_estimate(run), exact)


@pytest.mark.parametrize("method", [HamiltonizedDEL(), VariableStep(SemiImplicitDLA())], ids=str)
def test_methods_that_make_their_own_time_are_compared_at_the_same_times(method):
    system, (q, v) = fbo_particle.system(), fbo_particle.typical_state()
    run = simulate(system, method, q, v, step_size=0.05, steps=60)
    exact = simulate(system, ReferenceFlow(), q, v, step_size=0.05, save_at=run.t)
    estimate = error_estimate(run)
    good = np.isfinite(estimate)
    assert np.mean(good) > 0.95
    true = np.max(np.abs(run.q - exact.q), axis=1)
    assert 1 / 3 < np.nanmax(estimate) / np.max(true[good]) < 3


@pytest.mark.parametrize("base", [SemiImplicitDLA(), LobattoSpark(3)], ids=str)
@pytest.mark.parametrize("until", [{"steps": 40}, {"t_end": 3.0}], ids=str)
def test_variable_steps_are_estimated_up_to_the_last_row(base, until):
    def lagrangian(q, v, p):
        return 0.5 * jnp.dot(v, v) + 3 / jnp.sqrt(q[0] ** 2 + q[1] ** 2)

    def one_forms(q, p):
        return jnp.array([[-0.2 * q[1], 0.2 * q[0], 1.0]])

    system, q = System(lagrangian, one_forms=one_forms, coordinates=("x", "y", "z")), [1.0, 0.0, 0.0]
    v = system.project_velocity(q, [0.0, 1.2, 0.0])
    run = simulate(system, VariableStep(base), q, v, step_size=0.05, **until)
    estimate = error_estimate(run)
    exact = simulate(system, ReferenceFlow(), q, v, step_size=0.05, save_at=run.t)
    assert 1 / 3 < estimate[-1] / np.max(np.abs(run.q[-1] - exact.q[-1])) < 3


def test_rows_at_given_times_and_events_are_estimated_too():
    system, q, v = two_forms()
    times = np.array([0.13, 0.5, 1.77])
    run = simulate(system, SemiImplicitDLA(), q, v, step_size=0.05, save_at=times)
    within(run, error_estimate(run), simulate(system, ReferenceFlow(), q, v, step_size=0.05, save_at=times))
    events = {"stop": Event(lambda q, v, p: q[2] - 3.9, terminal=True)}
    if len(simulate(system, ReferenceFlow(), q, v, step_size=0.05, steps=60, events=events).events["stop"]):
        run = simulate(system, SemiImplicitDLA(), q, v, step_size=0.05, max_steps=60, events=events)
        exact = simulate(system, ReferenceFlow(), q, v, step_size=0.05, max_steps=60, events=events)
        within(run, error_estimate(run), exact)


def test_a_loaded_run_is_estimated_by_its_names(tmp_path):
    system, (q, v) = chaplygin_sleigh.system(), chaplygin_sleigh.typical_state()
    run = simulate(system, SemiImplicitDLA(), q, v, step_size=0.1, steps=20)
    run.save(tmp_path / "run.nc")
    assert np.array_equal(error_estimate(load(tmp_path / "run.nc")), error_estimate(run))


def test_a_loaded_run_of_a_nameless_system_asks_for_it(tmp_path):
    system, q, v = two_forms()
    run = simulate(system, SemiImplicitDLA(), q, v, step_size=0.1, steps=20)
    run.save(tmp_path / "run.nc")
    with pytest.raises(ValueError, match="does not know its system; give it"):
        error_estimate(load(tmp_path / "run.nc"))
    assert np.array_equal(error_estimate(load(tmp_path / "run.nc"), system=system), error_estimate(run))
