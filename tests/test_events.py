"""Events: found by sign changes, located by shortened steps, in single runs, ensembles and gradients."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.optimize import brentq

from models import OF_EVERY_KIND, kepler, two_forms
from noslip import Event, SolveFailed, System, ensemble, load, resume, simulate
from noslip.integrators import (
    Composition,
    DiscreteGradient,
    DiscreteLagrangeDAlembert,
    EnergyCollocation,
    HamiltonizedDEL,
    LobattoSpark,
    ReferenceFlow,
    RungeKutta4,
    SemiImplicitDLA,
    VelocityNonholonomic,
)
from noslip.systems import chaplygin_sleigh, fbo_particle, knife_edge

G = 9.81


def ball_lagrangian(q, v, p):
    return 0.5 * p["m"] * (v[0] ** 2 + v[1] ** 2) - p["m"] * G * q[1]


BALL = System(ball_lagrangian, coordinates=("x", "y"), parameters={"m": 1.3})


def height(q, v, p):
    return q[1]


def rising(q, v, p):
    return v[1]


def bounce(q, v, p):
    return q, v * np.array([1.0, -1.0])


FLOOR = Event(height, direction=-1, terminal=True)
BOUNCE = Event(height, direction=-1, reset=bounce)
TOP = Event(rising, direction=-1)


def curved(q, v, p, xp=jnp):
    return xp.sin(3 * q[2]) * v[1] + 0.2 * xp.cos(2 * q[0])


METHODS = [
    SemiImplicitDLA(),
    VelocityNonholonomic(0.3),
    DiscreteGradient(),
    EnergyCollocation(2),
    LobattoSpark(3),
    Composition(SemiImplicitDLA()),
    DiscreteLagrangeDAlembert(),
    RungeKutta4(),
    ReferenceFlow(),
]


@pytest.mark.thorough
@pytest.mark.parametrize("method", METHODS, ids=str)
def test_an_event_is_located_and_its_state_has_what_the_method_keeps(method):
    system, q, v = two_forms()
    event = Event(curved)
    run = simulate(system, method, q, v, step_size=0.1, steps=40, events={"curved": event})
    there = run.events["curved"]
    assert len(there) >= 2
    for q1, v1, t1 in zip(there.q, there.v, there.t, strict=True):
        assert abs(curved(q1, v1, system.parameters, np)) <= 1e-12
        assert 0 < t1 < 4
        if "constraint" in method.preserves:
            assert np.max(np.abs(system.phi(q1, v1))) < 2e-14
        if "energy" in method.preserves:
            assert abs(system.energy(q1, v1) - run.energy[0]) < 1e-13
    assert np.all(np.diff(there.t) > 0)
    plain = simulate(system, method, q, v, step_size=0.1, steps=40)
    if method.exact:
        assert np.max(np.abs(run.q - plain.q)) < 1e-13
    else:  # the run does not notice that it is looked at
        assert np.array_equal(run.q, plain.q)
        assert np.array_equal(run.v, plain.v)
        assert np.array_equal(run.multipliers, plain.multipliers)


@pytest.mark.thorough
@pytest.mark.parametrize(
    "method", [ReferenceFlow(), EnergyCollocation(6), Composition(SemiImplicitDLA(), "kahan_li8")], ids=str
)
def test_the_times_of_events_are_those_of_the_closed_form(method):
    system, (q, v) = knife_edge.system(), knife_edge.typical_state()
    wall = 0.5 * (float(knife_edge.exact(np.array([1.0]), q, v)[0][0, 0]) + float(q[0]))
    run = simulate(
        system, method, q, v, step_size=0.05, steps=25,
        events={"wall": Event(lambda q, v, p: q[0] - wall)},
    )  # fmt: skip
    expected = brentq(
        lambda t: float(knife_edge.exact(np.array([t]), q, v)[0][0, 0]) - wall, 0.0, 1.0, xtol=1e-14
    )
    assert abs(run.events["wall"].t[0] - expected) < 1e-10


@pytest.mark.parametrize("method", [SemiImplicitDLA(), DiscreteGradient(), ReferenceFlow()], ids=str)
def test_a_terminal_event_is_the_last_row(method):
    run = simulate(BALL, method, [0.0, 1.0], [0.3, 0.2], step_size=0.03, events={"floor": FLOOR})
    exact = (0.2 + np.sqrt(0.04 + 2 * G)) / G
    assert run.stopped_by == "floor"
    assert abs(run.t[-1] - exact) < 1e-13
    assert abs(run.q[-1, 1]) <= 1e-12
    assert run.t[-1] == run.events["floor"].t[-1]
    assert np.array_equal(run.q[-1], run.events["floor"].q[-1])
    assert run.info.steps == len(run.t) - 1
    every = simulate(
        BALL, method, [0.0, 1.0], [0.3, 0.2], step_size=0.03, save_every=7, events={"floor": FLOOR}
    )
    assert np.array_equal(every.q, run.q[[0, 7, 14, 16]])
    with pytest.raises(ValueError, match="'floor' has ended"):
        resume(run, steps=3)


@pytest.mark.parametrize("method", [SemiImplicitDLA(), DiscreteGradient(), ReferenceFlow()], ids=str)
def test_a_bouncing_ball_keeps_its_times(method):
    run = simulate(
        BALL, method, [0.0, 1.0], [0.3, 0.0], step_size=0.03, steps=200, events={"floor": BOUNCE, "top": TOP}
    )
    quarter, floor, top = np.sqrt(2 / G), run.events["floor"], run.events["top"]
    assert len(floor) == 7
    assert np.max(np.abs(floor.t - quarter * np.arange(1, 14, 2))) < 1e-11
    assert np.max(np.abs(top.t - quarter * np.arange(2, 2 * len(top) + 1, 2))) < 1e-11
    assert np.max(np.abs(top.q[:, 1] - 1)) < 1e-11
    assert np.max(np.abs(run.energy - run.energy[0])) < 1e-11
    assert np.allclose(run.t, 0.03 * np.arange(201), rtol=0, atol=1e-12)
    t = np.linspace(0, 6, 500)
    phase = (t + quarter) % (2 * quarter) - quarter
    assert np.max(np.abs(run.at(t).q[:, 1] - (1 - G / 2 * phase**2))) < 1e-10


def test_directions_are_told_apart():
    system, q, v = kepler()
    how = {"step_size": 0.05, "steps": 400}
    events = {k: Event(lambda q, v, p: v[0], direction=d) for k, d in (("up", 1), ("down", -1), ("any", 0))}
    run = simulate(system, SemiImplicitDLA(), q, v, events=events, **how)
    up, down, either = (run.events[k] for k in ("up", "down", "any"))
    assert len(up) >= 1
    assert len(down) >= 1
    assert np.array_equal(np.sort(np.concatenate([up.t, down.t])), either.t)


def test_several_events_in_one_step_come_in_order():
    walls = [0.31, 0.34, 0.32, 0.33]
    events = {f"{w}": Event(lambda q, v, p, w=w: q[0] - w) for w in walls}
    run = simulate(BALL, SemiImplicitDLA(), [0.0, 0.0], [1.0, 0.0], step_size=0.25, steps=3, events=events)
    for w in walls:
        assert abs(run.events[f"{w}"].t[0] - w) < 1e-12
    stop = {**events, "stop": Event(lambda q, v, p: q[0] - 0.325, terminal=True)}
    run = simulate(BALL, SemiImplicitDLA(), [0.0, 0.0], [1.0, 0.0], step_size=0.25, steps=3, events=stop)
    assert [len(run.events[f"{w}"]) for w in walls] == [1, 0, 1, 0]
    assert abs(run.t[-1] - 0.325) < 1e-12


def test_angles_are_unwrapped_for_events_and_time_may_be_asked():
    system, q, v = kepler()
    events = {
        "turns": Event(lambda q, v, p: q[1] - 4 * jnp.pi, terminal=True),
        "late": Event(lambda q, v, t, p: t - 1.234),
    }
    run = simulate(system, SemiImplicitDLA(), q, v, step_size=0.1, max_steps=5000, events=events)
    assert run.stopped_by == "turns"
    assert abs(run.q[-1, 1] - 4 * np.pi) < 1e-12
    assert abs(run.events["late"].t[0] - 1.234) < 1e-12


def test_a_reset_is_put_on_the_constraint():
    """By the kinetic metric, which here is neither constant nor that of the plane."""
    system = System(
        lambda q, v, p: 0.5 * (1 + 0.2 * jnp.cos(q[0])) * v[0] ** 2 + v[1] ** 2 - 0.3 * jnp.sin(q[1]),
        one_forms=lambda q, p: jnp.array([[-jnp.sin(q[0]), jnp.cos(q[0])]]),
        coordinates=("x", "y"),
    )

    def back(q, v, p):
        return q, -0.5 * v + np.array([0.1, 0.2])

    events = {"wall": Event(lambda q, v, p: q[0] - 0.5, reset=back)}
    for method in (SemiImplicitDLA(), DiscreteGradient()):
        run = simulate(system, method, [0.0, 0.1], [1.0, 0.0], step_size=0.02, steps=100, events=events)
        assert len(run.events["wall"]) == 1
        assert np.max(np.abs(run.constraint_residual)) < 1e-14
        after = run.t > run.events["wall"].t[0]
        q1, v1 = back(run.events["wall"].q[0], run.events["wall"].v[0], {})
        energy = system.energy(q1, system.project_velocity(q1, v1))
        if "energy" in method.preserves:
            assert np.max(np.abs(run.energy[after] - energy)) < 1e-13


def test_the_order_survives_a_reset():
    system, q, v = OF_EVERY_KIND["particle"]()
    events = {"wall": Event(lambda q, v, p: q[0] - q[1] + 0.1, reset=lambda q, v, p: (q, -v))}
    how = {"events": events}
    exact = simulate(system, ReferenceFlow(), q, v, step_size=0.05, steps=40, **how)
    assert len(exact.events["wall"])
    for method in (SemiImplicitDLA(), LobattoSpark(3)):
        errors = [
            np.max(
                np.abs(simulate(system, method, q, v, step_size=2.0 / k, steps=k, **how).q[-1] - exact.q[-1])
            )
            for k in (20, 40)
        ]
        assert np.log2(errors[0] / errors[1]) > method.order - 0.3


def test_bounces_that_come_to_rest_are_said_so():
    lossy = Event(height, direction=-1, reset=lambda q, v, p: (q, v * jnp.array([1.0, -0.5])))
    with pytest.raises(SolveFailed, match="more than 8 events"):
        simulate(
            BALL, SemiImplicitDLA(), [0.0, 1.0], [0.3, 0.0], step_size=0.1, steps=100, events={"floor": lossy}
        )


def test_a_method_that_makes_its_own_time_has_events_in_physical_time():
    system, (q, v) = fbo_particle.system(), fbo_particle.typical_state()
    events = {"x": Event(lambda q, v, p: q[0] - float(q0) - 0.1, terminal=True)}
    q0 = float(q[0])
    exact = simulate(system, ReferenceFlow(), q, v, step_size=0.05, max_steps=400, events=events)
    run = simulate(system, HamiltonizedDEL(), q, v, step_size=0.01, max_steps=4000, events=events)
    assert run.stopped_by == exact.stopped_by == "x"
    assert abs(run.q[-1, 0] - q0 - 0.1) < 1e-12
    assert abs(run.t[-1] - exact.t[-1]) < 1e-4


@pytest.mark.parametrize(
    "method", [RungeKutta4(), pytest.param(SemiImplicitDLA(), marks=pytest.mark.slow)], ids=str
)
def test_native_and_xla_agree_on_events(method):
    runs = [
        simulate(
            BALL, method, [0.0, 1.0], [0.3, 0.0], step_size=0.03, steps=60,
            events={"floor": BOUNCE, "top": TOP}, backend=backend, save_every=4,
        )
        for backend in ("native", "xla")
    ]  # fmt: skip
    assert np.max(np.abs(runs[0].q - runs[1].q)) < 1e-12
    for name in ("floor", "top"):
        assert np.max(np.abs(runs[0].events[name].t - runs[1].events[name].t)) < 1e-12


@pytest.mark.parametrize(
    ("method", "name"),
    [(RungeKutta4(), "ball"), pytest.param(SemiImplicitDLA(), "particle", marks=pytest.mark.slow)],
    ids=str,
)
def test_gradients_go_through_the_time_of_an_event(method, name):
    system, q, v = (BALL, [0.0, 1.0], [0.3, 0.2]) if name == "ball" else OF_EVERY_KIND[name]()
    events = {"wall": Event(lambda q, v, p: q[0] - 1.3 * q[1] + 0.1, terminal=True)}

    def run(s):
        start = np.asarray(q) + s * np.eye(system.n)[0]
        speed = system.project_velocity(start, v) if system.m else v
        return simulate(system, method, start, speed, step_size=0.05, max_steps=30, events=events)

    def ends(run, xp):
        return xp.concatenate([run.t[-1:], run.q[-1], run.v[-1], run.events["wall"].t])

    slopes = np.asarray(jax.jit(jax.jacrev(lambda s: ends(run(s), jnp)))(0.0))
    differences = (ends(run(1e-6), np) - ends(run(-1e-6), np)) / 2e-6
    assert run(0.0).stopped_by == "wall"
    assert np.max(np.abs(slopes - differences)) < 1e-7 * np.max(np.abs(differences))
    assert abs(slopes[0]) > 0.1  # the time of the event is another


@pytest.mark.parametrize("events", [{"floor": FLOOR}, {"floor": BOUNCE, "top": TOP}], ids=["stop", "bounce"])
@pytest.mark.parametrize("backend", ["native", pytest.param("xla", marks=pytest.mark.slow)])
def test_members_have_the_events_of_their_single_runs(events, backend):
    rng = np.random.default_rng(3)
    q, v = np.stack([np.zeros(11), rng.uniform(0.1, 1.5, 11)], axis=1), rng.uniform(-1, 1, (11, 2))
    how = {"step_size": 0.03, "max_steps": 40, "events": events, "parameters": {"m": 0.7}}
    many = ensemble(BALL, SemiImplicitDLA(), q, v, backend=backend, **how)
    for i in range(11):
        one = simulate(BALL, SemiImplicitDLA(), q[i], v[i], backend=backend, **how)
        assert many.stopped_by[i] == (one.stopped_by or "")
        for name, there in one.events.items():
            assert many.events[name].count[i] == len(there)
            if len(there):
                assert many.events[name].t[i] == there.t[0] or backend == "xla"
                assert abs(many.events[name].t[i] - there.t[0]) < 1e-14
        assert np.max(np.abs(many.q[i, -1] - one.q[-1])) <= (0 if backend == "native" else 1e-13)
    exact = (v[:, 1] + np.sqrt(v[:, 1] ** 2 + 2 * G * q[:, 1])) / G
    assert np.nanmax(np.abs(many.events["floor"].t - exact)) < 1e-12


def test_events_are_saved_with_the_run(tmp_path):
    system, (q, v) = chaplygin_sleigh.system(), chaplygin_sleigh.typical_state()
    events = {"turned": Event(lambda q, v, p: q[2] - 0.2), "never": Event(lambda q, v, p: q[2] - 1e6)}
    run = simulate(system, SemiImplicitDLA(), q, v, step_size=0.1, steps=40, events=events)
    run.save(tmp_path / "run.nc")
    again = load(tmp_path / "run.nc")
    assert again == run
    assert np.array_equal(again.events["turned"].q, run.events["turned"].q)
    assert len(again.events["never"]) == 0
    part = simulate(system, SemiImplicitDLA(), q, v, step_size=0.1, steps=15, events=events)
    assert resume(part, steps=25) == run


@pytest.mark.parametrize(
    ("how", "kind", "words"),
    [
        ({"events": {"a": Event(height)}}, ValueError, "exactly one of"),
        ({"events": {"a": FLOOR}, "steps": 3, "max_steps": 3}, ValueError, "max_steps"),
        ({"events": {"a": height}, "steps": 3}, TypeError, "map names to Events"),
        ({"events": [FLOOR], "steps": 3}, TypeError, "must be a mapping"),
        ({"events": {"a/b": FLOOR}}, ValueError, "without '/'"),
        ({"events": {"a": Event(lambda q, v, p: q)}, "steps": 3}, ValueError, "must be a number"),
        (
            {"events": {"a": Event(height, reset=lambda q, v, p: (q, 1.0))}, "steps": 3},
            ValueError,
            "must return",
        ),
        ({"events": {"a": Event(height, reset=lambda q, v, p: q)}, "steps": 3}, ValueError, "must return"),
        ({"events": {"a": Event(lambda q, v, p: np.sin(q[0]))}, "steps": 3}, ValueError, "must be made of"),
        ({"events": {"a": Event(lambda q, v, p: p["x"])}, "steps": 3}, ValueError, "'a' uses a parameter"),
        ({"events": {"a": Event(lambda q: q[0])}, "steps": 3}, ValueError, "'a' failed with TypeError"),
    ],
)
def test_events_that_make_no_sense_are_refused(how, kind, words):
    with pytest.raises(kind, match=words):
        simulate(BALL, SemiImplicitDLA(), [0.0, 1.0], [0.3, 0.0], step_size=0.1, **how)


def test_an_event_says_what_it_must_be():
    with pytest.raises(ValueError, match="-1, 0 or 1"):
        Event(height, direction=2)
    with pytest.raises(ValueError, match="this has both"):
        Event(height, terminal=True, reset=bounce)
    with pytest.raises(TypeError, match="must have a function"):
        Event("height")


@pytest.mark.slow
@pytest.mark.parametrize(
    "method", [SemiImplicitDLA(), pytest.param(RungeKutta4(), marks=pytest.mark.all_pairs)], ids=str
)
def test_gradients_by_parameters_and_inputs_go_through_events_and_resets(method):
    """A sled with a varying mass, that is pushed, jumps back from one wall and ends at another line."""
    sled = System(
        lambda q, v, p: 0.5 * (1 + p["k"] * jnp.cos(q[0])) * jnp.dot(v, v) - 0.3 * jnp.sin(q[1]),
        one_forms=lambda q, p: jnp.array([[-jnp.sin(q[0]), jnp.cos(q[0])]]),
        coordinates=("x", "y"),
        parameters={"k": 0.2},
        force=lambda q, v, t, p: p["push"] * jnp.array([1.0, 0.0]),
        inputs={"push": 0.0},
    )
    events = {
        "wall": Event(lambda q, v, p: q[0] - 0.25 - p["k"] / 10, reset=lambda q, v, p: (q, -0.7 * v)),
        "line": Event(lambda q, v, p: q[0] - 0.1, direction=-1, terminal=True),
    }

    def ends(x):
        run = simulate(
            sled, method, jnp.array([0.0, 0.1]), jnp.array([1.0, 0.0]), step_size=0.1, steps=7,
            parameters={"k": x[0]}, inputs={"push": x[1:]}, events=events,
        )  # fmt: skip
        there = [run.events[name].t for name in events]
        return jnp.concatenate([run.q[-1], run.v[-1], *there])

    x = jnp.array([0.3, *np.linspace(0.5, -0.4, 7)])
    slopes, found = jax.jit(jax.jacrev(ends))(x), ends(x)
    assert np.all(np.isfinite(found))
    for k in (0, 1, 3, 5):
        e = 1e-5 * (np.arange(8) == k)
        difference = (ends(x + e) - ends(x - e)) / 2e-5
        assert np.max(np.abs(slopes[:, k] - difference)) < 1e-7 * max(1.0, np.max(np.abs(difference)))
    assert np.max(np.abs(slopes[:, 3])) > 1e-3


@pytest.mark.slow
def test_a_million_members_with_a_terminal_event():
    rng = np.random.default_rng(5)
    q = np.stack([np.zeros(10**6), rng.uniform(0.1, 1.5, 10**6)], axis=1)
    v = rng.uniform(-1, 1, (10**6, 2))
    many = ensemble(
        BALL, RungeKutta4(), q, v, step_size=0.02, max_steps=60, events={"floor": FLOOR}, save_every=60
    )
    exact = (v[:, 1] + np.sqrt(v[:, 1] ** 2 + 2 * G * q[:, 1])) / G
    assert np.all(many.stopped_by == "floor")
    assert np.max(np.abs(many.events["floor"].t - exact)) < 1e-12
    assert np.max(np.abs(many.q[:, -1, 1])) <= 1e-12
    assert np.array_equal(many.q[:, -1], many.events["floor"].q)
