"""Runs of the reference flow that are made again and again: by machine code alone, with the same bits, and
with all that a careful run refuses still refused."""

import jax.numpy as jnp
import numpy as np
import pytest
from numpy.testing import assert_allclose

from noslip import Event, SolveFailed, System, prepare, resume, simulate
from noslip.integrators import ReferenceFlow
from noslip.results import Unread
from noslip.run import quick_flow
from noslip.run.one_reference import ReferenceTrajectory
from noslip.systems import gearbox, rolling_disk

pytest.importorskip("heyoka")
FLOW = ReferenceFlow()


def metric(q, p):
    return jnp.diag(p["m"] * jnp.array([1 + 0.3 * q[1] ** 2, 2 + jnp.cos(q[0]), 1.0, 1.5]))


def gyroscope(q, v, p):
    a = jnp.array([0.2 * q[1], -0.1 * q[2], 0.3 * q[0], 0.0])
    return 0.5 * v @ metric(q, p) @ v + a @ v - 0.5 * p["k"] * jnp.sum(q**2) - 0.1 * q[0] ** 4


@pytest.fixture(scope="module")
def rich():
    """Masses that vary, a gyroscopic term, two constraints, no frame."""
    system = System(
        gyroscope,
        one_forms=lambda q, p: jnp.array([[1.0, q[2], 0.2 * q[0], 0.0], [jnp.sin(q[1]), 0.0, 1.0, p["c"]]]),
        coordinates=("w", "x", "y", "z"),
        parameters={"m": 1.3, "k": 0.7, "c": 0.5},
    )
    q = np.array([0.3, -0.4, 0.5, 0.1])
    return system, (q, np.asarray(system.project_velocity(q, np.array([0.4, 0.3, -0.2, 0.6]))))


def of(module):
    return module.system(), tuple(np.asarray(x, float) for x in module.typical_state())


@pytest.fixture
def watched(monkeypatch):
    """How many runs were made with all care; a run is short however busy the machine is."""
    monkeypatch.setattr(quick_flow, "AT_ONCE", 60.0)
    made, usual = [], ReferenceTrajectory.to

    def to(self, *how):
        made.append(how)
        return usual(self, *how)

    monkeypatch.setattr(ReferenceTrajectory, "to", to)
    return made


@pytest.mark.parametrize(("steps", "every"), [(1, 1), (40, 7), (1100, 3), (1100, 700)])
@pytest.mark.parametrize("module", [gearbox, rolling_disk], ids=lambda m: m.__name__.rpartition(".")[2])
def test_a_prepared_flow_has_the_bits_of_simulate_also_beyond_a_block(module, steps, every, watched):
    system, state = of(module)
    how = {"step_size": 0.1, "steps": steps, "save_every": every}
    prepared = prepare(system, FLOW, **how)
    careful = simulate(system, FLOW, *state, **how)
    assert prepared(*state) == careful
    before = len(watched)
    again = prepared(*state)
    assert len(watched) == before
    assert_allclose(again.v, careful.v, rtol=0, atol=0)  # by itself, before all is read
    assert again == careful


def test_a_prepared_flow_takes_other_parameters_and_states(rich):
    system, (q, v) = rich
    how = {"step_size": 0.05, "steps": 30}
    prepared = prepare(system, FLOW, **how)
    prepared(q, v)
    other = {"m": 2.0, "c": 0.4}
    w = np.asarray(system.project_velocity(1.1 * q, v, parameters=other))
    assert prepared(1.1 * q, w, parameters=other) == simulate(
        system, FLOW, 1.1 * q, w, parameters=other, **how
    )
    run = prepared(q, v)
    assert run == simulate(system, FLOW, q, v, **how)
    assert resume(run, steps=5) == simulate(system, FLOW, q, v, step_size=0.05, steps=35)
    with pytest.raises(ValueError, match="parameter"):
        prepared(q, v, parameters={"mass": 2.0})


def test_the_same_call_of_simulate_takes_the_short_way_after_a_while_and_gives_the_same(rich, watched):
    system, (q, v) = rich
    runs = [simulate(system, FLOW, q, v, step_size=0.1, steps=20) for _ in range(12)]
    assert 0 < len(watched) < 12
    assert isinstance(runs[-1], Unread)
    assert all(run == runs[0] for run in runs[1:])
    before = len(watched)
    fast = simulate(system, FLOW, q, 30 * v, step_size=0.1, steps=20)  # to where nobody has looked: with care
    assert len(watched) == before + 1
    assert fast == prepare(system, FLOW, step_size=0.1, steps=20)(q, 30 * v)
    elsewhere = 40 * q, np.asarray(system.project_velocity(40 * q, v))
    before = len(watched)
    far = simulate(system, FLOW, *elsewhere, step_size=0.1, steps=20)  # from there
    assert len(watched) == before + 1
    assert far == prepare(system, FLOW, step_size=0.1, steps=20)(*elsewhere)


def test_what_a_careful_run_refuses_is_refused_after_many(rich):
    system, (q, v) = rich
    calls = [prepare(system, FLOW, step_size=0.1, steps=10)]
    calls.append(lambda *state: simulate(system, FLOW, *state, step_size=0.1, steps=10))
    for call in calls:
        for _ in range(12):
            call(q, v)
        with pytest.raises(ValueError, match="`v0` must satisfy the constraint"):
            call(q, v + 0.1)
        with pytest.raises(ValueError, match="`q0` must be finite"):
            call(q * np.nan, v)
        with pytest.raises(ValueError, match="must have shape"):
            call(q[:3], v)


def test_a_motion_that_ends_is_a_failure_after_many_that_do_not(particle):
    def lagrangian(q, v, p):
        return 0.5 * jnp.dot(v, v) - jnp.sqrt(1.0 - q[0])

    system = System(lagrangian, one_forms=particle.one_forms, coordinates=("x", "y", "z"))
    good = np.array([-0.9, 0.5, 0.0]), np.array([-1.0, 0.0, -0.5])
    bad = np.array([0.9, 0.5, 0.0]), np.array([1.0, 0.0, 0.5])
    prepared = prepare(system, FLOW, step_size=0.01, steps=100)
    for call in (prepared, lambda *state: simulate(system, FLOW, *state, step_size=0.01, steps=100)):
        for _ in range(12):
            call(*good)
        with pytest.raises(SolveFailed, match=r"step \d+ of 100"):
            call(*bad)


def test_every_row_that_moves_has_the_energy_of_the_start_and_all_are_on_their_constraints(rich):
    system, state = rich
    run = simulate(system, FLOW, *state, step_size=0.1, steps=3000)
    off = np.abs(run.energy - run.energy[0]) / run.energy_scale
    masses = run.info.parameters["m"] * np.stack(
        [1 + 0.3 * run.q[:, 1] ** 2, 2 + np.cos(run.q[:, 0]), np.ones(3001), np.full(3001, 1.5)], axis=1
    )
    moving = np.sum(masses * run.v**2, axis=1) > 0.2 * run.energy_scale
    assert 300 < np.sum(moving) < 3000
    assert np.max(off[moving]) <= 2e-15 < np.max(off) <= 5e-14  # the rest is for the positions to make up
    assert np.max(np.abs(run.constraint_residual)) <= 5e-16


def test_a_loose_flow_is_on_its_constraints_too(rich):
    system, state = rich
    run = simulate(system, ReferenceFlow(tolerance=1e-6), *state, step_size=0.1, steps=300)
    assert np.max(np.abs(run.constraint_residual)) <= 5e-16


def test_little_motion_is_not_asked_to_make_up_for_the_energy():
    """A pendulum that stands still for a moment at its highest: the error is not in its velocity there."""
    system = System(lambda q, v, p: 0.5 * v[0] ** 2 + jnp.cos(q[0]), coordinates=("angle",))
    run = simulate(system, FLOW, [1.0], [0.0], step_size=0.01, steps=2000)
    w = np.sqrt(2 * np.maximum(np.cos(run.q[:, 0]) - np.cos(1.0), 0.0))
    assert_allclose(np.abs(run.v[:, 0]), w, rtol=0, atol=5e-8)  # half the digits, of a root
    loose = simulate(system, ReferenceFlow(tolerance=1e-9), [1.0], [0.0], step_size=0.01, steps=2000)
    assert_allclose(loose.v, run.v, rtol=0, atol=1e-6)


def test_a_reset_that_takes_a_little_of_the_velocity_takes_its_energy(rich):
    system, (q, v) = rich
    event = Event(lambda q, v, t, p: t - 0.55, reset=lambda q, v, p: (q, (1 - 1e-6) * v))
    run = simulate(system, FLOW, q, v, step_size=0.1, steps=20, events={"then": event})
    before, after = run.energy[run.t < 0.55], run.energy[run.t > 0.55]
    there = run.events["then"]
    kinetic = 0.5 * there.v[0] @ np.asarray(metric(there.q[0], {"m": 1.3})) @ there.v[0]
    assert_allclose(before, run.energy[0], rtol=2e-15)
    assert_allclose(after, run.energy[0] - (1 - (1 - 1e-6) ** 2) * kinetic, rtol=2e-15)


def test_a_looser_tolerance_is_less_exact_and_says_less_of_itself(rich):
    system, state = rich
    exact = simulate(system, FLOW, *state, step_size=1.0, steps=10)
    errors = []
    for tolerance in (1e-4, 1e-8, 1e-12):
        run = simulate(system, ReferenceFlow(tolerance=tolerance), *state, step_size=1.0, steps=10)
        assert run.info.options == {"tolerance": tolerance}
        errors.append(np.max(np.abs(run.q - exact.q)) / tolerance)
    assert all(1e-3 < error < 300 for error in errors)
    assert ReferenceFlow(tolerance=1e-8).preserves < FLOW.preserves
    for bad in (0.0, 1.0, np.nan):
        with pytest.raises(ValueError, match="`tolerance` must be between"):
            ReferenceFlow(tolerance=bad)


@pytest.mark.parametrize("case", ["moving", "inputs"])
def test_a_prepared_flow_of_a_system_with_time_or_inputs_has_the_bits_of_simulate(case, watched):
    system = System(
        lambda q, v, p: 0.5 * p["m"] * jnp.dot(v, v) - 0.5 * jnp.dot(q, q),
        one_forms=(lambda q, t, p: jnp.array([[jnp.sin(t), q[0], 1.0]]))
        if case == "moving"
        else (lambda q, p: jnp.array([[p["u"], q[0], 1.0]])),
        coordinates=("x", "y", "z"),
        parameters={"m": 1.5},
        inputs={"u": 0.4} if case == "inputs" else {},
    )
    q = np.array([0.3, 0.2, -0.5])
    v = np.asarray(system.project_velocity(q, np.array([0.5, -0.4, 0.1]), 0.7))
    how = {"step_size": 0.1, "steps": 300, "t0": 0.7}
    prepared, expected = prepare(system, FLOW, **how), simulate(system, FLOW, q, v, **how)
    assert prepared(q, v) == expected
    before = len(watched)
    assert prepared(q, v) == expected
    assert len(watched) == before
    assert all(simulate(system, FLOW, q, v, **how) == expected for _ in range(12))
