"""The events of a run, as its result has them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from noslip.numerics.tracing import Either, Values
from noslip.run.events import Events, Function
from noslip.run.pieces import Driving
from noslip.run.runner import Happened
from noslip.system import System


@dataclass(frozen=True)
class Occurrences:
    """When an event has happened and in what state, in order: t (k,), q and v (k, n). With traced arguments
    the first time only, NaN where there is none. Of an ensemble the first time in each member, and how often
    it happened as `count`."""

    t: Either
    q: Either
    v: Either
    count: Either = None

    def __len__(self) -> int:
        return len(self.t)

    def columns(self, name: str) -> dict[str, tuple[tuple[str, ...], Either]]:
        """Those of the event of this name as they are called in a dataset, with their dimensions."""
        dim = f"event_{name}"
        states = {f"{dim}_q": ((dim, "coordinate"), self.q), f"{dim}_v": ((dim, "coordinate"), self.v)}
        return {f"{dim}_t": ((dim,), self.t), **states}

    def then(self, later: Occurrences) -> Occurrences:
        """Both, in order."""
        return Occurrences(
            *(np.concatenate(x) for x in ((self.t, later.t), (self.q, later.q), (self.v, later.v)))
        )


class Log:
    """Takes down what a runner tells."""

    def __init__(self, system: System, events: Events):
        self.n, self.names = system.n, [name for name, _ in events]
        self.found: list[Happened] = []
        self.stopped = -1

    def note(self, happened: Happened) -> bool:
        """Whether the run has ended."""
        if len(happened.which):
            self.found.append(happened)
        self.stopped = happened.stopped
        return self.stopped >= 0

    def forget(self) -> None:
        """What has been written elsewhere."""
        self.found = []

    @property
    def stopped_by(self) -> str:
        return self.names[self.stopped] if self.stopped >= 0 else ""

    def occurrences(self) -> dict[str, Occurrences]:
        """By name."""
        n = self.n
        which = np.concatenate([np.empty(0, int), *(h.which for h in self.found)])
        t = np.concatenate([np.empty(0), *(h.t for h in self.found)])
        q, v = (np.concatenate([np.empty((0, n)), *(h[k] for h in self.found)]) for k in (2, 3))
        return {
            name: Occurrences(t[which == k], q[which == k], v[which == k])
            for k, name in enumerate(self.names)
        }


def first_of_each(
    events: Events, which: Array, t: Array, q: Array, v: Array
) -> dict[str, tuple[Array, Array, Array]]:
    """t, q and v, of the slots of all steps of a traced run, flat."""
    found = {}
    for k, (name, _) in enumerate(events):
        here = which == k
        i, some = jnp.argmax(here), jnp.any(here)
        t1, q1, v1 = (jnp.where(some, x[i], jnp.nan)[None] for x in (t, q, v))
        found[name] = t1, q1, v1
    return found


def with_knots(
    system: System,
    events: Events,
    occurrences: Mapping[str, Occurrences],
    t: Values,
    q: Values,
    v: Values,
    driving: Driving | None = None,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The rows of a run with two more at every reset: before it and after it."""
    times, before, rows = [np.asarray(t)], [np.zeros(len(t))], [[np.asarray(q)], [np.asarray(v)]]
    for name, event in events:
        there = occurrences[name]
        if event.reset is None or not len(there):
            continue
        states = (jnp.asarray(x) for x in (there.q, there.v, there.t))
        drive = None if driving is None else driving.at(there.t)
        new = jax.vmap(lambda drive, *x, e=event: after_reset(e.reset, system.driven(drive), *x))(
            drive, *states
        )
        for part, values in zip(rows, zip((there.q, there.v), new, strict=True), strict=True):
            part += [np.asarray(x) for x in values]
        times += [there.t, there.t]
        before += [np.full(len(there), -1.0), np.full(len(there), 1.0)]
    order = np.lexsort((np.concatenate(before), np.concatenate(times)))
    all_q, all_v = (np.concatenate(part)[order] for part in rows)
    return np.concatenate(times)[order], all_q, all_v


def after_reset(reset: Function, system: System, q: Array, v: Array, t: Array) -> tuple[Array, Array]:
    """The (q, v) with which a run goes on."""
    q, v = reset(q, v, system.at(t).parameters)
    return q, system.project_velocity(q, v, t)
