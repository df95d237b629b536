"""Inputs: parameters of a system that a run changes. `Held` and `Ramp` are those of one step.

Like time they are parameters to the rest of the house. `System.driven` puts the values of a step there, with
their rates where they grow linearly, and `System.at(t)` takes them to the time t. So a method that evaluates
a system at its own times meets the inputs of those times.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Self

import jax
import jax.numpy as jnp
from jax import Array
from numpy.typing import ArrayLike

from noslip.engine.kept import kept
from noslip.engine.translate import depends_on
from noslip.numerics.pytrees import PyTree, anatomy, pytree
from noslip.numerics.tracing import Either, Real
from noslip.system.time import TIME, Timed

STANDS_STILL = (
    "a Lagrangian and constraints that stay the same during a step, but these contain t, or inputs that vary "
    "with it"
)
CONTAIN_T = ("lagrangian", "one_forms", "drift", "constraint", "holonomic")
Signal = Callable[[Array], Array]  # an input as a function of t
InputLike = ArrayLike | Signal  # what a run may be given: a number, one per step or node, a function of t


@pytree
class Held:
    """Values that stay the same during a step."""

    values: dict[str, Real]


@pytree
class Ramp:
    """Values at the time t, and the rates at which they grow from there."""

    values: dict[str, Real]
    rates: dict[str, Real]
    t: Real


Drive = Held | Ramp | None


def rate(name: str) -> str:
    """Under which name the rate of an input is among the parameters."""
    return f"(rate of {name})"


@kept
def contained(
    structure: jax.tree_util.PyTreeDef, shapes: tuple[tuple[int, ...], ...], names: tuple[str, ...]
) -> tuple[bool, bool]:
    """Whether the Lagrangian, and whether the constraints, contain some of these inputs."""
    system: Any = jax.tree.unflatten(structure, [jax.ShapeDtypeStruct(s, float) for s in shapes])
    own = {name: jax.ShapeDtypeStruct((), float) for name in names}
    x, p = jax.ShapeDtypeStruct((system.n,), float), dict(system.parameters)

    def constraints(u: dict[str, Array], q: Array, v: Array, p: dict[str, Array]) -> PyTree:
        p = p | u
        if system.constraint is not None:
            return system.constraint(q, v, p)
        found = [] if system.one_forms is None else [system.one_forms(q, p)]
        return found if system.drift is None else [*found, system.drift(q, p)]

    in_lagrangian = depends_on(lambda u, q, v, p: system.lagrangian(q, v, p | u), 0, own, x, x, p)
    return in_lagrangian, depends_on(constraints, 0, own, x, x, p)


class Steered:
    """What a system can say and do about time and its inputs."""

    parameters: Mapping[str, Either]
    inputs: Mapping[str, float]
    signals: tuple[tuple[str, Signal], ...]

    @property
    def time(self) -> Either:
        """The time at which the system is; 0 unless `at` has set it."""
        return self.parameters.get(TIME, 0.0)

    @property
    def clocked(self) -> bool:
        """Whether `at` makes a difference: functions take t, or inputs vary with it."""
        return bool(self.signals) or TIME in self.parameters

    def at(self, t: Either) -> Self:
        """The same system at time t; itself where nothing but its force contains t."""
        if not self.clocked:
            return self
        p = dict(self.parameters)
        for name in self.inputs:
            if (slope := p.get(rate(name))) is not None:
                p[name] = p[name] + slope * (t - p[TIME])
        p |= {name: jnp.asarray(signal(t), float) for name, signal in self.signals}
        return self._with(p | {TIME: t} if TIME in p else p)

    def driven(self, drive: Drive) -> Self:
        """The same system with the inputs of a step."""
        if drive is None:
            return self
        p = dict(self.parameters) | drive.values
        if isinstance(drive, Ramp):
            p |= {rate(name): x for name, x in drive.rates.items()} | {TIME: drive.t}
        return self._with(p)

    @functools.cached_property
    def moving(self) -> bool:
        """Whether the Lagrangian or the constraints contain t, or inputs that vary with it."""
        functions = (getattr(self, name) for name in CONTAIN_T)
        if any(isinstance(function, Timed) for function in functions):
            return True
        growing = [name for name in self.inputs if rate(name) in self.parameters]
        return any(self.inputs_within([*growing, *dict(self.signals)]))

    def inputs_within(self, names: Iterable[str]) -> tuple[bool, bool]:
        """Whether the Lagrangian, and whether the constraints, contain some of these inputs."""
        chosen = tuple(names)
        return contained(*anatomy(self)[1:], chosen) if chosen else (False, False)

    def _with(self, parameters: dict[str, Either]) -> Self:
        system: Any = self
        return system.tree_unflatten(system._static, (parameters,))
