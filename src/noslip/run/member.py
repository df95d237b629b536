"""One member of an ensemble: the functions that every backend runs, whatever their number.

`start`, `step` (that of a single run, so that a member's bits do not depend on its company), `begin` and
`after` for the sums of the observables, and `save`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from noslip.integrators.base import Integrator
from noslip.integrators.solve import Status, without_derivatives
from noslip.numerics.pytrees import pytree
from noslip.run import step as steps
from noslip.run.driving import of_step
from noslip.run.events import Events, also, first_of_run, nothing_yet, step_watching
from noslip.run.observables import START, UPDATE, Function, Watched
from noslip.run.programs import Fixed, Initial
from noslip.run.step import Carry
from noslip.system import System
from noslip.system.inputs import Drive

Sums = dict[str, dict[str, Array]]


@pytree
class MemberRow:
    """What is saved of a member at one time; angles are unwrapped."""

    t: Array
    q: Array
    v: Array
    multipliers: Array
    energy: Array
    energy_scale: Array
    constraint: Array
    holonomic: Array
    observed: dict[str, Array]


@pytree
class MemberState:
    """The state of a member, and the running sums of its observables."""

    carry: Carry
    sums: Sums


@dataclass(frozen=True)
class Member:
    """The functions of one member; equal for equal methods and observables."""

    integrator: Integrator
    watch: tuple[Watched, ...]
    events: Events = ()

    def start(self, fixed: Fixed, initial: Initial) -> Carry:
        q, v, t, drive = initial
        return first_of_run(fixed[0], self.integrator, self.events, q, v, t, fixed[1], drive)[0]

    def begin(self, fixed: Fixed, carry: Carry) -> Sums:
        """The sums with the initial state in them."""
        sums: Sums = {}
        for name, f, kinds in self.watch:
            first = self._value(f, fixed[0], carry, None)
            x, sums[name] = self._value(f, fixed[0], carry, first), {"first": first}
            for kind in kinds:
                sums[name] |= START[kind](x)
        for name, _ in self.events:
            sums[f"event_{name}"] = nothing_yet(fixed[0].n)
        return steps.strong(sums)

    def step(self, fixed: Fixed, carry: Carry, drive: Drive = None) -> tuple[Carry, Array]:
        with without_derivatives():
            if self.events:
                return step_watching(fixed[0], self.integrator, self.events, carry, fixed[1], drive)
            return steps.step_or_stay(fixed[0], self.integrator, carry, fixed[1], drive)[:2]

    def going(self, carry: Carry) -> Array:
        """Whether there is another step to take."""
        solved = carry.interval.status == Status.SOLVED
        return solved & (carry.watch.stopped < 0) if self.events else solved

    def after(self, fixed: Fixed, full: MemberState) -> Sums:
        """The sums with the new state in them, unless the member has failed."""
        running = full.carry.interval.status == Status.SOLVED
        if self.events:  # one that has ended now is in them, one that had ended before is already
            running = running & ((full.carry.watch.stopped < 0) | (full.carry.watch.which[0] >= 0))
        count = (full.carry.step + 1).astype(float)
        sums: Sums = {}
        for name, f, kinds in self.watch:
            old = full.sums[name]
            x, new = self._value(f, fixed[0], full.carry, old["first"]), dict(old)
            for kind in kinds:
                new |= UPDATE[kind](old, x, count)
            sums[name] = jax.tree.map(lambda new, old: jnp.where(running, new, old), new, old)
        for k, (name, _) in enumerate(self.events):
            key = f"event_{name}"
            sums[key] = also(full.sums[key], k, full.carry.watch)
        return sums

    def save(self, fixed: Fixed, full: MemberState) -> MemberRow:
        """The row of a state, NaN for a member that has failed before it."""
        carry, seen = full.carry, steps.seen_of(fixed[0], self.integrator, full.carry.state)
        system = fixed[0].driven(carry.drive).at(seen.t)
        lam = system.multipliers(seen.q, seen.v, seen.t) if seen.multipliers is None else seen.multipliers
        observed = {
            name: self._value(f, system, carry, full.sums[name]["first"]) for name, f, _ in self.watch
        }
        row = MemberRow(
            seen.t,
            seen.q + steps.TURN * carry.turns,
            seen.v,
            lam,
            system.energy(seen.q, seen.v),
            system.energy_scale(seen.q, seen.v),
            _worst_residual(system, seen.q, seen.v),
            system.g(seen.q),
            observed,
        )
        failed = carry.interval.status != Status.SOLVED
        return jax.tree.map(lambda x: jnp.where(failed, jnp.nan, x), row)

    def _value(self, function: Function | str, system: System, carry: Carry, first: Array | None) -> Array:
        """An observable of a state; those relative to the start get the first value, or None at the start."""
        seen = steps.seen_of(system, self.integrator, carry.state)
        system = system.driven(carry.drive).at(seen.t)
        if function == "energy_error":
            energy = system.energy(seen.q, seen.v)
            return energy if first is None else jnp.abs(energy - first)
        if function == "energy":
            return system.energy(seen.q, seen.v)
        if function == "constraint":
            return _worst_residual(system, seen.q, seen.v)
        assert callable(function)
        return jnp.asarray(function(seen.q, seen.v, system.parameters), float)


@dataclass(frozen=True, eq=False)
class MemberGroup:
    """Some members: their initial states, and the parameters that differ between them.
    A state without the leading axis belongs to every member."""

    q: np.ndarray
    v: np.ndarray
    varying: Mapping[str, np.ndarray]
    count: int

    def states(self, n: int) -> tuple[np.ndarray, np.ndarray]:
        """q and v of every member, (members, n)."""
        return np.broadcast_to(self.q, (self.count, n)), np.broadcast_to(self.v, (self.count, n))

    def first(self, n: int) -> MemberGroup:
        """The first member alone."""
        q, v = self.states(n)
        return MemberGroup(q[:1], v[:1], {name: x[:1] for name, x in self.varying.items()}, 1)


class MemberInputs:
    """Parameters, step, initial states and inputs of a group; leaves that do not vary have no member axis."""

    def __init__(self, system: System, group: MemberGroup, h: float, t: float, drive: Drive = None):
        full = dict(system.parameters) | dict(group.varying)
        _, static = system.tree_flatten()
        self.fixed = (system.tree_unflatten(static, (full,)), np.float64(h))
        self.shape = (
            jax.tree.map(lambda x: jax.ShapeDtypeStruct(np.shape(x), float), system),
            jax.ShapeDtypeStruct((), float),
        )
        self.initial = (group.q, group.v, np.float64(t), of_step(drive, 0))
        self.members, self.drive = group.count, drive
        axes = {name: 0 if name in group.varying else None for name in full}
        self.axes = [axes[name] for name in sorted(full)] + [None]  # as JAX orders the leaves
        x, scalar = jax.ShapeDtypeStruct((system.n,), float), jax.ShapeDtypeStruct((), float)
        self.initial_shape = (x, x, scalar, jax.tree.map(lambda _: scalar, drive))


def _worst_residual(system: System, q: Array, v: Array) -> Array:
    """The largest |phi(q, v)|, 0 where there are no constraints."""
    return jnp.max(jnp.abs(system.phi(q, v))) if system.rows else jnp.zeros(())
