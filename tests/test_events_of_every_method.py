"""Events with every method: located, on the constraint, with their energy; a reset costs no order."""

import functools
import itertools

import jax.numpy as jnp
import numpy as np
import pytest

from models import OF_EVERY_KIND
from noslip import Event, integrators, simulate
from noslip.integrators import (
    Composition,
    DiscreteGradient,
    GeneratingFunction,
    LobattoSpark,
    ReferenceFlow,
    SemiImplicitDLA,
    VariableStep,
)
from noslip.systems import fbo_particle, knife_edge

CASES = {
    "sleigh": OF_EVERY_KIND["sleigh"],
    "particle": lambda: (fbo_particle.system(), *map(np.asarray, fbo_particle.typical_state())),
    "knife edge": lambda: (knife_edge.system(), *map(np.asarray, knife_edge.typical_state())),
}


def back(q, v, p):
    return q, v * jnp.array([-0.8, 0.9, -1.1])


@functools.cache
def truth(name):
    """The system, a start, the two events, and the motion at the second, which follows a reset by the
    first."""
    system, q, v = CASES[name]()

    def flown(t, **events):
        return simulate(system, ReferenceFlow(), q, v, step_size=t / 20, steps=20, events=events or None)

    first = float(flown(0.43).q[-1, 0])
    wall = Event(lambda q, v, p: q[0] - first, reset=back)
    second = float(flown(0.81, wall=wall).q[-1, 1])
    line = Event(lambda q, v, t, p: (q[1] - second) * jnp.where(t > 0.5, 1.0, jnp.nan), terminal=True)
    events = {"wall": wall, "line": line}
    exact = simulate(system, ReferenceFlow(), q, v, step_size=0.05, max_steps=40, events=events)
    assert exact.stopped_by == "line"
    assert abs(exact.t[-1] - 0.81) < 1e-12
    assert len(exact.events["wall"]) == 1
    return system, q, v, events, exact


def check(method):
    name = next((name for name in CASES if method.applies_to(truth(name)[0]) is None), None)
    if name is None:
        pytest.skip("of another group than these systems have")
    system, q, v, events, exact = truth(name)
    long, short = (0.08, 0.02) if method.order >= 4 else (0.02, 0.005)
    errors = {long: 0.0, short: 0.0}
    for h, part in itertools.product(
        errors, (1.0, 0.9, 0.8)
    ):  # where in its step the event is should not matter
        run = simulate(system, method, q, v, step_size=part * h, max_steps=400, events=events)
        assert run.stopped_by == "line"
        (q1, q2), (v1, v2) = ([getattr(run.events[e], x)[0] for e in ("wall", "line")] for x in "qv")
        t2 = run.events["line"].t[0]
        assert abs(events["wall"].function(q1, v1, {})) <= 1e-12
        assert abs(events["line"].function(q2, v2, t2, {})) <= 1e-12
        if "constraint" in method.preserves:
            assert max(np.max(np.abs(system.phi(x, y))) for x, y in ((q1, v1), (q2, v2))) < 2e-14
        if "energy" in method.preserves:
            again = system.project_velocity(*back(q1, v1, {}))
            assert abs(system.energy(q1, v1) - run.energy[0]) < 1e-13
            assert abs(system.energy(q2, v2) - system.energy(q1, again)) < 1e-13
        errors[h] = max(errors[h], abs(t2 - exact.t[-1]), np.max(np.abs(q2 - exact.q[-1])))
    assert np.log2(errors[long] / errors[short]) / 2 > method.order - 0.2, errors


ALL = [v for cls in integrators.discover().values() for v in cls.variants() if not v.exact]
MORE = [Composition(SemiImplicitDLA(), "suzuki4"), VariableStep(DiscreteGradient())]


@pytest.mark.parametrize("method", [GeneratingFunction(projected=True), LobattoSpark(3)], ids=str)
def test_an_event_and_a_reset_keep_order_and_promises(method):
    check(method)


@pytest.mark.slow
@pytest.mark.parametrize("method", [*ALL, *MORE], ids=str)
def test_an_event_and_a_reset_keep_order_and_promises_of_every_method(method):
    check(method)


@pytest.mark.parametrize("backend", ["native", "xla"])
@pytest.mark.parametrize("direction", [-1, 0, 1])
def test_an_event_that_is_exactly_zero_where_a_step_ends_happens_once(backend, direction):
    system, (q, v) = knife_edge.system(), knife_edge.typical_state()
    functions = {"through": lambda q, v, t, p: t - 1, "touched": lambda q, v, t, p: -((t - 1) ** 2)}
    events = {name: Event(f, direction=direction) for name, f in functions.items()}
    given = {"step_size": 0.25, "steps": 8, "backend": backend}
    run = simulate(system, SemiImplicitDLA(), q, v, events=events, **given)
    for event in run.events.values():
        np.testing.assert_array_equal(event.t, [1.0] if direction >= 0 else [])
    ended = simulate(
        system, SemiImplicitDLA(), q, v, events={"end": Event(functions["through"], terminal=True)}, **given
    )
    assert ended.t[-1] == 1.0
