"""Numbers that are watched at every step of every member: what they are, and their sums over the steps."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import Array

from noslip.errors import shown, unknown_name
from noslip.system import System
from noslip.system.checks import refuse_bad_indices

BUILT_IN = ("energy", "energy_error", "constraint")
Function = Callable[..., Any]  # f(q, v, p), a real number


def _mean(old: Mapping[str, Array], x: Array, count: Array) -> dict[str, Array]:
    return {"mean": old["mean"] + (x - old["mean"]) / count}


def _variance(old: Mapping[str, Array], x: Array, count: Array) -> dict[str, Array]:
    mean = _mean(old, x, count)["mean"]
    return {"mean": mean, "squares": old["squares"] + (x - old["mean"]) * (x - mean)}


# sums over the steps of a member: how they begin, go on (Welford), and what they say in the end
START: dict[str, Callable[..., dict[str, Array]]] = {
    "max": lambda x: {"max": x},
    "mean": lambda x: {"mean": x},
    "variance": lambda x: {"mean": x, "squares": jnp.zeros(())},
    "last": lambda x: {"last": x},
}
UPDATE: dict[str, Callable[..., dict[str, Array]]] = {
    "max": lambda old, x, count: {"max": jnp.maximum(old["max"], x)},
    "mean": _mean,
    "variance": _variance,
    "last": lambda old, x, count: {"last": x},
}
STATISTICS: dict[str, Callable[..., Array]] = {
    "max": lambda sums, count: sums["max"],
    "mean": lambda sums, count: sums["mean"],
    "variance": lambda sums, count: sums["squares"] / count,
    "last": lambda sums, count: sums["last"],
}


@dataclass(frozen=True)
class Observable:
    """A number watched at every step of every member, without storing the trajectory.

    `function` is f(q, v, p), the name of a first integral or of a coordinate of the system, "energy",
    "energy_error" (distance from the initial energy) or "constraint" (the largest |phi|). `statistics` over
    the steps of a member are any of "max", "mean", "variance" and "last". Its values at the saved times are
    always kept.
    """

    function: Function | str
    statistics: tuple[str, ...] = ("max", "mean", "variance")

    def __post_init__(self) -> None:
        given = (self.statistics,) if isinstance(self.statistics, str) else tuple(self.statistics)
        object.__setattr__(self, "statistics", given)
        for name in self.statistics:
            if name not in STATISTICS:
                raise ValueError(unknown_name("statistic", name, STATISTICS))
        if not callable(self.function) and not isinstance(self.function, str):
            raise TypeError(
                f"an observable must be a function or a name, but {shown(self.function)} was provided"
            )


class Watched(NamedTuple):
    """An observable with its name; `function` is one of BUILT_IN or f(q, v, p)."""

    name: str
    function: Function | str
    statistics: tuple[str, ...]


Observables = Mapping[str, Observable | str | Function] | Sequence[str] | None


def watched(system: System, observables: Observables) -> tuple[Watched, ...]:
    """The observables that a user names or gives, first integrals looked up."""
    if observables is None:
        return ()
    if isinstance(observables, str) or not isinstance(observables, Mapping | Sequence):
        raise TypeError(f"`observables` must be a list or a mapping, but {shown(observables)} was provided")
    given = observables if isinstance(observables, Mapping) else {name: name for name in observables}
    for name in given:
        if not isinstance(name, str):
            raise TypeError(f"an observable must have a name, but {shown(name)} was provided; give a mapping")
    watch: list[Watched] = []
    for name, what in given.items():
        item = what if isinstance(what, Observable) else Observable(what)
        function = item.function
        if isinstance(function, str) and function not in BUILT_IN:
            function = _named(system, function)
        if callable(function):
            _require_number(name, function, system)
        watch.append(Watched(name, function, item.statistics))
    return tuple(watch)


def _named(system: System, name: str) -> Function:
    """A first integral of the system, or one of its coordinates."""
    if name in system.first_integrals:
        return system.first_integrals[name]
    if name in system.coordinates:
        return _Coordinate(system.coordinates.index(name))
    known = (*BUILT_IN, *system.first_integrals, *system.coordinates)
    raise ValueError(unknown_name("observable", name, known))


@dataclass(frozen=True)
class _Coordinate:
    """Equal for equal places, so that nothing is compiled again."""

    place: int

    def __call__(self, q: Array, v: Array, p: Mapping[str, Any]) -> Array:
        return q[self.place]


def _require_number(name: str, function: Function, system: System) -> None:
    x = jax.ShapeDtypeStruct((system.n,), float)
    shape = jax.eval_shape(lambda q, v, p: jnp.asarray(function(q, v, p)), x, x, dict(system.parameters))
    if shape.shape != () or shape.dtype.kind not in "fib":
        raise ValueError(
            f"observable '{name}' must be a real number, but {shape.dtype} {shape.shape} was returned"
        )
    refuse_bad_indices(f"observables['{name}']", function, (x, x, dict(system.parameters)))
