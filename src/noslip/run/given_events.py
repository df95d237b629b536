"""The events that the caller of a run gives, checked, and how long a run may be that one of them ends."""

from __future__ import annotations

from collections.abc import Mapping

import jax

from noslip.numerics.pytrees import of_leaves
from noslip.run.events import NEVER, Event, Events
from noslip.system import System
from noslip.system.checks import in_one_sentence, refuse_bad_indices


def checked(system: System, events: Mapping[str, Event] | None) -> Events:
    """The events that a user gives; each must be a real number of the state."""
    if events is None:
        return ()
    if not isinstance(events, Mapping):
        raise TypeError(f"`events` must be a mapping of names to Events, but {events!r} was provided")
    x, t = jax.ShapeDtypeStruct((system.n,), float), jax.ShapeDtypeStruct((), float)
    for name, event in events.items():
        if not isinstance(name, str) or not isinstance(event, Event):
            raise TypeError(f"`events` must map names to Events, but {name!r}: {event!r} was provided")
        if not name or "/" in name:
            raise ValueError(f"an event must have a name without '/', but '{name}' was provided")
        flat, leaves = of_leaves(event.answer, system, x, x, t)
        with in_one_sentence(f"event '{name}'", system.parameters):
            answer = jax.eval_shape(flat, *leaves)
        if answer.shape != ():
            raise ValueError(
                f"event '{name}' must be a number, but an array of shape {answer.shape} was returned"
            )
        if answer.dtype == bool:
            raise ValueError(
                f"event '{name}' must be a number that changes its sign, such as q[0] - 1.0 where "
                "q[0] > 1.0 is meant, but a truth value was returned"
            )
        refuse_bad_indices(f"events['{name}']", lambda q, v, t, e=event: e.answer(system, q, v, t), (x, x, t))
        if event.reset is not None:
            with in_one_sentence(f"the reset of '{name}'", system.parameters):
                out = jax.eval_shape(lambda *z, r=event.reset: tuple(r(*z)), x, x, dict(system.parameters))
            if [getattr(y, "shape", None) for y in out] != [(system.n,)] * 2:
                raise ValueError(f"the reset of '{name}' must return (q, v) of {system.n} numbers each")
    return tuple(events.items())


def bounded(
    steps: int | None, t_end: float | None, max_steps: int | None, events: Events, traced: bool
) -> int | None:
    """The number of steps, where there need be none: a terminal event may end a run, or `max_steps`."""
    if max_steps is not None:
        if steps is not None or t_end is not None:
            raise ValueError("`max_steps` is for runs without `steps` and `t_end`, but one of them was given")
        return max_steps
    if steps is None and t_end is None and any(event.terminal for _, event in events):
        if traced:
            raise ValueError("`max_steps` must be given where a run is traced, and for an ensemble")
        return NEVER
    return steps
