"""One member of an ensemble: the functions that every backend runs, whatever their number.

`start`, `step` (that of a single run, so that a member's bits do not depend on its company), `begin` and
`after` for the sums of the observables, and `save`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from noslip.integrators.base import Integrator
from noslip.integrators.solve import Status, without_derivatives
from noslip.numerics.pytrees import pytree
from noslip.run import step as _loop
from noslip.system import System

Watch = tuple[tuple[str, Any, tuple[str, ...]], ...]  # name, function, statistics


@pytree
class Row:
    """What is saved of a member at one time; angles are unwrapped."""

    t: Array
    q: Array
    v: Array
    multipliers: Array
    energy: Array
    constraint: Array
    observed: dict[str, Array]


@pytree
class Full:
    """The state of a member, and the running sums of its observables."""

    carry: _loop.Carry
    sums: dict[str, dict[str, Array]]


@dataclass(frozen=True)
class Member:
    """The functions of one member; equal for equal methods and observables."""

    integrator: Integrator
    watch: Watch

    def start(self, fixed: Any, initial: Any) -> _loop.Carry:
        q, v, t = initial
        return _loop.first_state(fixed[0], self.integrator, q, v, t, fixed[1])[0]

    def begin(self, fixed: Any, carry: _loop.Carry) -> dict[str, dict[str, Array]]:
        """The sums with the initial state in them."""
        sums = {}
        for name, f, kinds in self.watch:
            first = self._value(f, fixed[0], carry, None)
            x, sums[name] = self._value(f, fixed[0], carry, first), {"first": first}
            for kind in kinds:
                sums[name] |= _START[kind](x)
        return _loop.strong(sums)

    def step(self, fixed: Any, carry: _loop.Carry) -> tuple[_loop.Carry, Array]:
        with without_derivatives():
            return _loop.step_or_stay(fixed[0], self.integrator, carry, fixed[1])

    def step_regardless(self, fixed: Any, carry: _loop.Carry) -> _loop.Carry:
        with without_derivatives():
            return _loop.step_regardless(fixed[0], self.integrator, carry, fixed[1])

    def after(self, fixed: Any, full: Full) -> dict[str, dict[str, Array]]:
        """The sums with the new state in them, unless the member has failed."""
        running = full.carry.interval.status == Status.SOLVED
        count = (full.carry.step + 1).astype(float)
        sums = {}
        for name, f, kinds in self.watch:
            old = full.sums[name]
            x, new = self._value(f, fixed[0], full.carry, old["first"]), dict(old)
            for kind in kinds:
                new |= _UPDATE[kind](old, x, count)
            sums[name] = jax.tree.map(lambda new, old: jnp.where(running, new, old), new, old)
        return sums

    def save(self, fixed: Any, full: Full) -> Row:
        """The row of a state, NaN for a member that has failed before it."""
        system, carry = fixed[0], full.carry
        seen = self.integrator.observe(carry.state)
        lam = system.multipliers(seen.q, seen.v, seen.t) if seen.multipliers is None else seen.multipliers
        observed = {
            name: self._value(f, system, carry, full.sums[name]["first"]) for name, f, _ in self.watch
        }
        row = Row(
            seen.t,
            seen.q + _loop.TURN * carry.turns,
            seen.v,
            lam,
            system.energy(seen.q, seen.v),
            jnp.max(jnp.abs(system.phi(seen.q, seen.v))),
            observed,
        )
        failed = carry.interval.status != Status.SOLVED
        return jax.tree.map(lambda x: jnp.where(failed, jnp.nan, x), row)

    def _value(self, function: Any, system: System, carry: _loop.Carry, first: Array | None) -> Array:
        """An observable of a state; those relative to the start get the first value, or None at the start."""
        seen = self.integrator.observe(carry.state)
        if function == "energy_error":
            energy = system.energy(seen.q, seen.v)
            return energy if first is None else jnp.abs(energy - first)
        if function == "energy":
            return system.energy(seen.q, seen.v)
        if function == "constraint":
            return jnp.max(jnp.abs(system.phi(seen.q, seen.v)))
        return jnp.asarray(function(seen.q, seen.v, system.parameters), float)


def _mean(old: Mapping[str, Array], x: Array, count: Array) -> dict[str, Array]:
    return {"mean": old["mean"] + (x - old["mean"]) / count}


def _variance(old: Mapping[str, Array], x: Array, count: Array) -> dict[str, Array]:
    mean = _mean(old, x, count)["mean"]
    return {"mean": mean, "squares": old["squares"] + (x - old["mean"]) * (x - mean)}


# sums over the steps of a member: how they begin, go on (Welford), and what they say in the end
_START: dict[str, Callable[..., dict[str, Array]]] = {
    "max": lambda x: {"max": x},
    "mean": lambda x: {"mean": x},
    "variance": lambda x: {"mean": x, "squares": jnp.zeros(())},
    "last": lambda x: {"last": x},
}
_UPDATE: dict[str, Callable[..., dict[str, Array]]] = {
    "max": lambda old, x, count: {"max": jnp.maximum(old["max"], x)},
    "mean": _mean,
    "variance": _variance,
    "last": lambda old, x, count: {"last": x},
}
STATISTICS: dict[str, Callable[..., Any]] = {
    "max": lambda sums, count: sums["max"],
    "mean": lambda sums, count: sums["mean"],
    "variance": lambda sums, count: sums["squares"] / count,
    "last": lambda sums, count: sums["last"],
}


class Inputs:
    """Parameters, step and initial states of the members; leaves that do not vary have no member axis."""

    def __init__(self, system: System, varying: Mapping[str, Any], h: Any, initial: Any, members: int):
        full = dict(system.parameters) | dict(varying)
        _, static = system.tree_flatten()
        self.fixed = (system.tree_unflatten(static, (full,)), np.float64(h))
        self.shape = (
            jax.tree.map(lambda x: jax.ShapeDtypeStruct(np.shape(x), float), system),
            jax.ShapeDtypeStruct((), float),
        )
        self.initial, self.members = initial, members
        axes = {name: 0 if name in varying else None for name in full}
        self.axes = [axes[name] for name in sorted(full)] + [None]  # as JAX orders the leaves
        x, scalar = jax.ShapeDtypeStruct((system.n,), float), jax.ShapeDtypeStruct((), float)
        self.initial_shape = (x, x, scalar)
