"""What a run looks out for: functions of the state whose zeros are events.

A sign change between the ends of a step is an event within it. It is located by shortened steps of the same
method from the start of the step, so that its state has what the method keeps. A terminal event ends the
run there. One with a `reset` changes the state: the rest of the step is taken from there, so that later steps
end where they would have. All others leave the run as it is, but for roundings.

    carry, ok = step_watching(...)      a step; `carry.watch` holds what has happened in it
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from types import ModuleType
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax

from noslip.integrators.base import Integrator
from noslip.integrators.solve import Status
from noslip.numerics.pytrees import either, pytree, replaced
from noslip.numerics.tracing import Values
from noslip.run.aside import plain_step, shortened, step_once
from noslip.run.step import TURN, Carry, Row, Step, first_state, seen_of, step_or_stay, strong
from noslip.system import System
from noslip.system.inputs import Drive

SLOTS = 8  # events within one step
LOCATED = 1e-13  # a value this small is a zero
NARROW = 4 * 2.0**-52  # and so is a bracket this narrow, in steps
LEAST = 1e-13  # the shortest step, in steps
TURNS = 80  # evaluations; bisection alone would need 52
NEVER = 2**62  # steps
TINY = 1e-290  # with a sign: a value that has just been zero

Function = Callable[..., Any]


@dataclass(frozen=True)
class Event:
    """A zero of function(q, v, p) or function(q, v, t, p) along a run; angles in q are unwrapped.

    `direction` 1 means from below to above zero, -1 the other way, 0 both. A `terminal` event ends the run.
    `reset(q, v, p)` returns the (q, v) with which it goes on; a v that leaves the constraint is projected
    onto it, in the kinetic metric.
    """

    function: Function
    direction: int = 0
    terminal: bool = False
    reset: Function | None = None

    def __post_init__(self) -> None:
        if not callable(self.function):
            raise TypeError(f"an event must have a function of (q, v, p), but {self.function!r} was provided")
        if self.direction not in (-1, 0, 1):
            raise ValueError(f"`direction` must be -1, 0 or 1, but {self.direction!r} was provided")
        if self.reset is not None and not callable(self.reset):
            raise TypeError(f"`reset` must be a function of (q, v, p), but {self.reset!r} was provided")
        if self.terminal and self.reset is not None:
            raise ValueError("an event must be terminal or have a `reset`, but this has both")

    def value(self, system: System, q: Array, v: Array, t: Array) -> Array:
        """The number whose zeros are meant."""
        return self.answer(system, q, v, t).astype(float)

    def answer(self, system: System, q: Array, v: Array, t: Array) -> Array:
        """What the function returns, which need not be a number."""
        p = system.at(t).parameters
        given = inspect.signature(self.function).parameters.values()
        timed = sum(x.default is inspect.Parameter.empty for x in given) == 4
        return jnp.asarray(self.function(q, v, t, p) if timed else self.function(q, v, p))


Events = tuple[tuple[str, Event], ...]  # with their names; hashable, for the code that they become part of


@pytree
class Watch:
    """The values of the events at a state, which of them have happened in the step that led there and where,
    and the number of the one that has ended the run, or -1."""

    values: Array
    which: Array
    t: Array
    q: Array
    v: Array
    stopped: Array


def watch_at(system: System, integrator: Integrator, events: Events, carry: Carry) -> Watch:
    """Nothing has happened yet."""
    n = system.n
    none = jnp.full(SLOTS, -1)
    values = values_at(system, integrator, events, carry)
    return Watch(values, none, jnp.zeros(SLOTS), jnp.zeros((SLOTS, n)), jnp.zeros((SLOTS, n)), jnp.array(-1))


def seen(system: System, integrator: Integrator, carry: Carry) -> tuple[Array, Array, Array]:
    """q, with angles unwrapped, v and t of a state."""
    found = seen_of(system, integrator, carry.state)
    return found.q + TURN * carry.turns, found.v, found.t


def values_at(system: System, integrator: Integrator, events: Events, carry: Carry) -> Array:
    """The event functions at a state."""
    q, v, t = seen(system, integrator, carry)
    system = system.driven(carry.drive)
    return jnp.stack([event.value(system, q, v, t) for _, event in events])


def crosses(events: Events, before: Values, after: Values, xp: ModuleType = jnp) -> Values:
    """Which events lie between two states, by the values there."""
    direction = np.array([event.direction for _, event in events])
    rising = (before < 0) & (after >= 0) & (direction >= 0)
    falling = (before > 0) & (after <= 0) & (direction <= 0)
    return rising | falling


@pytree
class _Step:
    """A step that is being looked through: from `start`, part `done` of it is behind."""

    start: Carry
    done: Array  # parts of h at which `start` stands
    a: Array  # parts of h from `start` that have been looked through
    fa: Array
    end: Carry
    fb: Array
    watch: Watch
    count: Array
    pending: Array


def step_watching(
    system: System,
    integrator: Integrator,
    events: Events,
    carry: Carry,
    h: Array,
    drive: Drive = None,
    traced: bool = False,
) -> tuple[Carry, Array]:
    """`step_or_stay` with a look at what happens on the way; a run that has ended stays where it is. Where
    `traced`, loops have a fixed length and can be differentiated."""
    before = carry.watch
    plain = replaced(carry, watch=None)
    method = _Method(system, integrator, events, h, drive, traced)
    whole, ok, _ = step_or_stay(system, integrator, plain, h, drive, method.step)
    fb = values_at(system, integrator, events, whole)
    going = ok & (before.stopped < 0)
    nothing = replaced(before, values=fb, which=jnp.full(SLOTS, -1))
    zero, crossed = jnp.zeros(()), going & jnp.any(crosses(events, before.values, fb))
    first = strong(_Step(plain, zero, zero, before.values, whole, fb, nothing, jnp.array(0), crossed))
    if traced:
        last, _ = lax.scan(
            lambda s, _: (lax.cond(s.pending, method.look, lambda s: s, s), None), first, None, length=SLOTS
        )
    else:

        def happenings(first: _Step) -> _Step:
            return lax.while_loop(lambda s: s.pending & (s.count < SLOTS), method.look, first)

        last = jax.jit(happenings)(first)
    end = _recorded(plain, last)
    quiet = replaced(before, which=jnp.full(SLOTS, -1))
    kept = replaced(carry, interval=either(going, end.interval, carry.interval), watch=quiet)
    moved = going & (end.interval.status == Status.SOLVED)
    values = jnp.where(jnp.abs(last.fb) == TINY, 0.0, last.fb)
    new = replaced(end, step=carry.step + 1, watch=replaced(last.watch, values=values))
    result = either(moved, new, kept)
    return result, (result.interval.status == Status.SOLVED) & (result.watch.stopped < 0)


def _recorded(first: Carry, last: _Step) -> Carry:
    """The state at the end of the step, with one more step on its record whatever happened on the way."""
    end = last.end
    status = jnp.where(last.pending, int(Status.TOO_MANY_EVENTS), end.interval.status)
    solved = status == Status.SOLVED
    interval = replaced(
        end.interval,
        steps=first.interval.steps + solved,
        status=status,
        failed_step=jnp.where(solved, first.interval.failed_step, first.step + 1),
    )
    return replaced(end, interval=interval)


@dataclass(frozen=True)
class _Method:
    """The next event within a step: `look`."""

    system: System
    integrator: Integrator
    events: Events
    h: Array
    drive: Drive
    traced: bool

    @property
    def step(self) -> Step:
        return step_once if self.traced else plain_step

    def aside(self, start: Carry, part: Array) -> tuple[Carry, Array]:
        at = shortened(self.system, self.integrator, start, self.h, part, self.drive, self.step)
        return at, values_at(self.system, self.integrator, self.events, at)

    def look(self, s: _Step) -> _Step:
        """Locate the first event after s.a, write it down, and let it act."""
        theta, at, f, e = self._locate(s)
        q, v, t = seen(self.system, self.integrator, at)
        slot, w = jnp.arange(SLOTS) == s.count, s.watch
        terminal = jnp.asarray([event.terminal for _, event in self.events])[e]
        watch = Watch(
            w.values,
            jnp.where(slot, e, w.which),
            jnp.where(slot, t, w.t),
            jnp.where(slot[:, None], q, w.q),
            jnp.where(slot[:, None], v, w.v),
            jnp.where(terminal, e, w.stopped),
        )
        # one that has happened is past, others at the same time are still to come
        after = jnp.where(crosses(self.events, s.fa, f), 2 * jnp.sign(s.fa) * TINY, f)
        this = jnp.arange(len(f)) == e
        after = jnp.where(this, -jnp.sign(s.fa) * TINY, after)
        # at the very end of the step it is past there too
        end, fb = either(terminal, (at, f), (s.end, jnp.where(this & (s.fb == 0), after, s.fb)))
        passed = _Step(s.start, s.done, theta, after, end, fb, watch, s.count + 1, s.pending)
        if any(event.reset is not None for _, event in self.events):
            resets = jnp.asarray([event.reset is not None for _, event in self.events])[e]
            passed = self._when(resets, lambda p: self._reset(p, at, e, q, v, t), passed)
        failed = (at.interval.status != Status.SOLVED) | (passed.end.interval.status != Status.SOLVED)
        passed = replaced(passed, end=either(at.interval.status != Status.SOLVED, at, passed.end))
        more = jnp.any(crosses(self.events, passed.fa, passed.fb)) & ~terminal & ~failed
        return strong(replaced(passed, pending=more))

    def _when(self, choice: Array, function: Callable[[_Step], _Step], value: _Step) -> _Step:
        return lax.cond(choice, lambda x: strong(function(x)), lambda x: x, strong(value))

    def _reset(self, s: _Step, at: Carry, e: Array, q: Array, v: Array, t: Array) -> _Step:
        """Go on from the state that the event gives, to the end of the step."""
        system = self.system.driven(self.drive)
        for k, (_, event) in enumerate(self.events):
            if event.reset is not None:
                q1, v1 = (jnp.asarray(x, float) for x in event.reset(q, v, system.at(t).parameters))
                q, v = either(e == k, (q1, system.project_velocity(q1, v1, t)), (q, v))
        whole = jnp.where(system.angle_mask, jnp.round(q / TURN), 0.0)
        state = self.integrator.init(system, q - whole * TURN, v, t, self.h)
        start = Carry(state, at.step, whole, at.interval, drive=at.drive)
        done = s.done + s.a
        f = values_at(system, self.integrator, self.events, start)
        ahead = jnp.stack([self._rate(event, q, v, t) for _, event in self.events])
        fa = jnp.where(jnp.abs(f) <= 10 * LOCATED, jnp.sign(ahead) * TINY, f)
        rest = jnp.maximum(1 - done, LEAST)
        end, fb = self.aside(start, rest)
        following = self.integrator.for_step(system, end.state, self.h)
        if (history := self.integrator.history(following)) is not None:
            scaled = jax.tree.map(lambda x: x / rest, history)
            following = self.integrator.with_history(following, scaled)
        end = replaced(end, state=following)
        return replaced(s, start=start, done=done, a=jnp.zeros(()), fa=fa, end=end, fb=fb)

    def _rate(self, event: Event, q: Array, v: Array, t: Array) -> Array:
        """df/dt along the motion."""
        system = self.system.driven(self.drive)
        a = system.acceleration(q, v, t)
        return jax.jvp(lambda q, v, t: event.value(system, q, v, t), (q, v, t), (v, a, jnp.ones(())))[1]

    def _locate(self, s: _Step) -> tuple[Array, Carry, Array, Array]:
        """Where the first event is, in parts of h from s.start, the state and the values there, and which."""
        if not self.traced:
            return self._search(s)
        still, h, drive = lax.stop_gradient((self.system, self.h, self.drive))
        searching = _Method(still, self.integrator, self.events, h, drive, False)
        theta, _, _, e = searching._search(lax.stop_gradient(s))

        def value(theta: Array) -> Array:
            return self.aside(s.start, theta)[1][e]

        theta = lax.custom_root(value, theta, lambda _, x: x, lambda g, y: y / g(jnp.ones_like(y)))
        return theta, *self.aside(s.start, theta), e

    def _search(self, s: _Step) -> tuple[Array, Carry, Array, Array]:
        """False position for the event that comes first by it; every third time, and where the event has just
        happened, bisection."""
        events = self.events

        def ahead(a: Array, fa: Array, b: Array, fb: Array) -> tuple[Array, Array]:
            between = crosses(events, fa, fb)
            guess = jnp.where(between, a + (b - a) * fa / jnp.where(between, fa - fb, 1.0), jnp.inf)
            e = jnp.argmin(guess)
            return e, guess[e]

        def turn(x: Any) -> Any:
            a, fa, b, fb, theta, at, f, e, count, _ = x
            e, guess = ahead(a, fa, b, fb)
            halve = (count % 3 == 2) | (jnp.abs(fa[e]) <= TINY)
            theta = jnp.maximum(jnp.where(halve, (a + b) / 2, jnp.clip(guess, a, b)), LEAST)
            at, f = self.aside(s.start, theta)
            here = crosses(events, fa, f)
            zero = jnp.abs(f[e]) <= LOCATED
            others = here & (jnp.arange(len(f)) != e)
            found = zero & (jnp.abs(fa[e]) > TINY) & ~jnp.any(others & (jnp.abs(f) > LOCATED))
            a, fa, b, fb = either(jnp.any(here), (a, fa, theta, f), (theta, f, b, fb))
            found = found | (b - a <= NARROW) | (at.interval.status != Status.SOLVED)
            return a, fa, b, fb, theta, at, f, e, count + 1, found

        b, e0 = 1 - s.done, jnp.argmax(crosses(events, s.fa, s.fb))
        start = (s.a, s.fa, b, s.fb, b, s.end, s.fb, e0, jnp.array(0), jnp.array(False))
        last = lax.while_loop(lambda x: ~x[-1] & (x[-2] < TURNS), turn, strong(start))
        return last[4], last[5], last[6], last[7]


def first_of_run(
    system: System,
    integrator: Integrator,
    events: Events,
    q: Array,
    v: Array,
    t: Array,
    h: Array,
    drive: Drive = None,
) -> tuple[Carry, Row]:
    """State and row of the initial time, and the watch of a run with events."""
    carry, row = first_state(system, integrator, q, v, t, h, drive)
    if events:
        carry = strong(replaced(carry, watch=watch_at(system, integrator, events, carry)))
    return carry, row


def step_of_run(
    system: System, integrator: Integrator, events: Events, carry: Carry, h: Array, drive: Drive = None
) -> tuple[Carry, Array, tuple[Array, ...]]:
    """One step of a run, unless it has ended; whether to go on without telling anybody; and without events
    the truths of a usual step."""
    if not events:
        return step_or_stay(system, integrator, carry, h, drive)
    carry, going = step_watching(system, integrator, events, carry, h, drive)
    return carry, going & (carry.watch.which[0] < 0), ()


# ---- what a member of an ensemble keeps of an event: how often, and the first time ------------------------
def nothing_yet(n: int) -> dict[str, Array]:
    """It has not happened."""
    never = jnp.full(n, jnp.nan)
    return {"count": jnp.array(0), "t": jnp.array(jnp.nan), "q": never, "v": never}


def also(old: dict[str, Array], k: int, watch: Watch) -> dict[str, Array]:
    """With the times that event k has happened in the last step."""
    new = dict(old)
    for slot in range(SLOTS):
        here = watch.which[slot] == k
        first = here & (new["count"] == 0)
        for name, there in (("t", watch.t), ("q", watch.q), ("v", watch.v)):
            new[name] = jnp.where(first, there[slot], new[name])
        new["count"] = new["count"] + here
    return new
