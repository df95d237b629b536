"""Steps that follow the motion: fewer of them, and nothing lost that the base keeps."""

import jax.numpy as jnp
import numpy as np
import pytest

from benchmarks import encounters
from benchmarks.encounters import BASES
from models import two_forms
from noslip import System, simulate
from noslip.analysis import reversibility_defect
from noslip.integrators import (
    DiscreteGradient,
    DiscreteLagrangeDAlembert,
    GeometricNonholonomic,
    HamiltonizedDEL,
    ReferenceFlow,
    RungeKutta4,
    SemiImplicitDLA,
    VariableStep,
)


def centre(q, v, p):
    return 0.5 * p["m"] * jnp.dot(v, v) + 1 / jnp.sqrt(q[0] ** 2 + q[1] ** 2)


ECCENTRIC = encounters.SYSTEM  # the same, held by a skewed nonholonomic constraint
QUICK = ("SemiImplicitDLA", "EnergyCollocation(2)")
KEPLER = System(centre, coordinates=("x", "y"), parameters={"m": 1.0})
PENDULUM = System(lambda q, v, p: 0.5 * v[0] ** 2 + jnp.cos(q[0]), coordinates=("a",), angles=("a",))


def orbit(e):
    """From the nearest point of an ellipse of eccentricity e."""
    return np.array([1 - e, 0.0]), np.array([0.0, np.sqrt((1 + e) / (1 - e))])


def nonholonomic_orbit(e=0.95):
    q, v = orbit(e)
    q = np.append(q, 0.1)
    return q, np.asarray(ECCENTRIC.project_velocity(q, np.append(v, 0.0)))


def evaluations(run):
    """Of the equations of the step; a row for every step."""
    return int(np.sum(np.maximum(run.report.iterations, 1)))


def error_at_end(system, q, v, run):
    exact = simulate(system, ReferenceFlow(), q, v, step_size=1.0, save_at=[float(run.t[-1])])
    return float(np.max(np.abs(run.q[-1] - exact.q[-1])))


FEWER = {0.6: 1.5, 0.8: 2.7, 0.95: 10.0}  # times, from the far point


@pytest.mark.parametrize("e", [0.95, *(pytest.param(e, marks=pytest.mark.slow) for e in (0.6, 0.8))])
@pytest.mark.parametrize(
    "base", [name if name in QUICK else pytest.param(name, marks=pytest.mark.slow) for name in BASES]
)
def test_close_encounters_take_fewer_evaluations_at_equal_error(base, e):
    assert encounters.fewer(BASES[base], e)["fewer"] > FEWER[e]


def test_a_start_near_the_centre_is_for_bases_that_keep_the_energy():
    """The others go all their way with the energy that their first steps have made there."""
    assert encounters.fewer(DiscreteGradient(), 0.8, far=False)["fewer"] > 2.5
    (q, v), h = encounters.start(0.8, far=False), 2e-3
    for method, least, most in ((SemiImplicitDLA(), 0, 5e-5), (VariableStep(), 3e-4, 1e-3)):
        run = simulate(encounters.SYSTEM, method, q, v, step_size=h, t_end=3.0)
        away = np.argmax(np.hypot(run.q[:, 0], run.q[:, 1]))
        assert least <= abs(run.energy[away] - run.energy[0]) < most


@pytest.mark.parametrize("case", ["kepler", "nonholonomic"])
def test_an_eccentric_orbit_takes_three_times_fewer_evaluations_at_equal_error(case):
    system = KEPLER if case == "kepler" else ECCENTRIC
    (q, v), h = (orbit(0.99), 2e-5) if case == "kepler" else (nonholonomic_orbit(0.97), 5e-5)
    method = DiscreteGradient()
    variable = simulate(system, VariableStep(method), q, v, step_size=h, t_end=4 * np.pi)
    steps = int(1.6 * evaluations(variable))
    fixed = simulate(system, method, q, v, step_size=float(variable.t[-1]) / steps, steps=steps)
    assert evaluations(fixed) >= 3 * evaluations(variable)
    assert error_at_end(system, q, v, variable) < error_at_end(system, q, v, fixed)
    assert np.max(np.diff(variable.t)) > 50 * np.min(np.diff(variable.t))


@pytest.mark.parametrize("case", ["kepler", "nonholonomic"])
def test_the_energy_of_an_orbit_does_not_drift_in_a_million_steps(case):
    if case == "kepler":  # the base keeps it only in the mean, since it is reversible
        system, base, (q, v) = KEPLER, SemiImplicitDLA(), orbit(0.8)
    else:
        system, base, (q, v) = ECCENTRIC, DiscreteGradient(), nonholonomic_orbit(0.5)
    run = simulate(system, VariableStep(base), q, v, step_size=2e-3, steps=1_000_000, save_every=500)
    error = (run.energy - run.energy[0]) / np.max(run.energy_scale)
    half = len(error) // 2
    if "energy" in base.preserves:
        assert np.max(np.abs(error)) < 1e-13
    else:
        assert np.max(np.abs(error[half:])) < 1.1 * np.max(np.abs(error[:half]))
        assert np.max(np.abs(error)) < 1e-3
    assert np.max(np.abs(run.constraint_residual), initial=0.0) < 1e-13


@pytest.mark.parametrize("steps", [20_000, pytest.param(1_000_000, marks=pytest.mark.slow)])
@pytest.mark.parametrize("base", ["SemiImplicitDLA", "DiscreteGradient", "EnergyCollocation(2)"])
def test_the_energy_does_not_drift_between_close_encounters(base, steps):
    """Away from the centre, to which this motion comes as near as 1e-8 in a million steps."""
    q, v = encounters.start(0.95)
    method = VariableStep(BASES[base])
    run = simulate(encounters.SYSTEM, method, q, v, step_size=0.02, steps=steps, save_every=7)
    error, away = np.abs(run.energy - run.energy[0]), np.hypot(run.q[:, 0], run.q[:, 1]) > 1
    fifths = [np.max(part) for part in np.array_split(error[away], 5)]
    if "energy" in method.preserves:
        assert max(fifths) < 2e-15
    else:  # kept only in the mean, since the method is reversible
        assert max(fifths) < 2e-5
        assert max(fifths) < 1.1 * fifths[0]
    assert np.max(np.abs(run.constraint_residual[away])) < 1e-14


@pytest.mark.parametrize("base", [SemiImplicitDLA(), DiscreteGradient()], ids=str)
def test_a_way_back_ends_where_it_began(base):
    q, v = encounters.start(0.95)
    there = simulate(encounters.SYSTEM, VariableStep(base), q, v, step_size=0.02, steps=2000)
    assert np.min(np.hypot(there.q[:, 0], there.q[:, 1])) < 0.04
    defect = reversibility_defect(encounters.SYSTEM, VariableStep(base), q, v, step_size=0.02, steps=2000)
    assert defect < 1e-11
    system, q, v = two_forms()
    assert reversibility_defect(system, VariableStep(base), q, v, step_size=0.05, steps=200) < 1e-11


@pytest.mark.parametrize(("order", "tolerances"), [(2, (1e-3, 1e-4, 1e-5))])
def test_a_tolerance_decides_the_steps(order, tolerances):
    system, q, v = two_forms()
    errors = []
    for tolerance in tolerances:
        run = simulate(system, VariableStep(SemiImplicitDLA(), tolerance), q, v, step_size=1.0, t_end=2.0)
        errors.append(error_at_end(system, q, v, run))
    assert np.allclose(np.log10(np.array(errors[:-1]) / errors[1:]), 1.0, atol=0.3)
    assert errors[0] < 0.1


@pytest.mark.parametrize("case", ["nonholonomic", pytest.param("kepler", marks=pytest.mark.slow)])
def test_steps_by_their_error_take_three_times_fewer_evaluations_at_equal_error(case):
    """Three steps of the base for one, and for the two halves that count."""
    system = KEPLER if case == "kepler" else ECCENTRIC
    q, v = orbit(0.9) if case == "kepler" else nonholonomic_orbit(0.97)
    method, errors = RungeKutta4(), []
    for tolerance in (1e-5, 1e-7, 1e-9):
        local = simulate(
            system, VariableStep(method, tolerance, "local"), q, v, step_size=1.0, t_end=4 * np.pi
        )
        errors.append(error_at_end(system, q, v, local))
        count = 3 * 3 * (len(local.t) - 1)
        fixed = simulate(
            system, method, q, v, step_size=float(local.t[-1]) / count, steps=count, save_every=count
        )
        assert errors[-1] < error_at_end(system, q, v, fixed)
    assert np.all(np.array(errors[:-1]) > 8 * np.array(errors[1:]))
    assert np.max(np.diff(local.t)) > 20 * np.min(np.diff(local.t))


def test_steps_by_their_error_keep_what_the_base_keeps_but_reversibility():
    method = VariableStep(DiscreteGradient(), 1e-4, "local")
    assert method.preserves == DiscreteGradient().preserves - {"reversible"}
    q, v = nonholonomic_orbit(0.9)
    run = simulate(ECCENTRIC, method, q, v, step_size=1.0, steps=500)
    assert np.max(np.abs(run.energy - run.energy[0])) < 1e-14 * np.max(run.energy_scale)
    assert np.max(np.abs(run.constraint_residual)) < 1e-13
    assert reversibility_defect(ECCENTRIC, method, q, v, step_size=1.0, steps=50) > 1e-8
    with pytest.raises(ValueError, match="needs a `tolerance`"):
        VariableStep(control="local")


def test_rest_and_free_flight_are_steps_by_their_error_too():
    for q, v in (([1.0], [0.0]), ([0.0], [0.0]), ([1e-6], [0.0]), ([3.0], [1e-3])):
        run = simulate(PENDULUM, VariableStep(RungeKutta4(), 1e-7, "local"), q, v, step_size=1.0, t_end=20.0)
        assert run.success
        assert np.max(np.abs(run.energy - run.energy[0])) < 1e-4


def test_rest_and_free_flight_are_steps_too():
    for q, v in (([1.0], [0.0]), ([0.0], [0.0]), ([1e-6], [0.0]), ([3.0], [1e-3])):
        run = simulate(PENDULUM, VariableStep(), q, v, step_size=0.05, t_end=20.0)
        assert run.success
        assert np.max(np.diff(run.t)) < 2.0
    free = System(
        lambda q, v, p: 0.5 * jnp.dot(v, v) - p["g"] * q[1], coordinates=("x", "y"), parameters={"g": 9.81}
    )
    for g in (0.0, 9.81):
        run = simulate(
            free, VariableStep(), [0.0, 0.0], [0.0, 0.0], step_size=0.1, steps=50, parameters={"g": g}
        )
        assert np.max(np.abs(run.q[:, 1] + g / 2 * run.t**2)) < 1e-10 * max(1.0, run.t[-1] ** 2)


def test_a_density_that_would_vanish_is_a_failed_step():
    q, v = orbit(0.97)
    run = simulate(KEPLER, VariableStep(), q, v, step_size=0.05, steps=200, throw=False)
    assert not run.success or np.all(np.diff(run.t) > 0)


@pytest.mark.parametrize(
    "base",
    [HamiltonizedDEL(), ReferenceFlow(), GeometricNonholonomic(), DiscreteLagrangeDAlembert()],
    ids=str,
)
def test_a_base_whose_state_depends_on_the_step_is_refused(base):
    with pytest.raises(ValueError, match="`base` must have steps in t"):
        VariableStep(base)


def test_a_tolerance_is_a_small_number():
    with pytest.raises(ValueError, match="`tolerance` must be between 0 and 1"):
        VariableStep(tolerance=2.0)
