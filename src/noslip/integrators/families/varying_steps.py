"""Steps of varying length: what all have in common, and those that the last error decides."""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jax import Array

from noslip.integrators.base import Integrator, Observation, OwnState, Solve, Sum, pytree, replaced
from noslip.integrators.families.built_on import BuiltOn
from noslip.integrators.families.step_lengths import FREE, LEAST, distance
from noslip.system import System


@pytree
class DensityState:
    """The state of the base, the density and its slope there, the last step, and T of the start."""

    t: Sum
    q: Sum
    base: OwnState
    rho: Array
    slope: Array
    dt: Array
    T: Array


class Varying(BuiltOn):
    """A base whose steps have the length h / rho."""

    base: Integrator
    tolerance: float | None

    own_time = True
    remembers_start = True

    def __post_init__(self) -> None:
        unfit = self.base.own_time or self.base.host_driven or self.base.remembers_reaction
        if unfit or "deformed_constraint" in self.base.preserves:
            raise ValueError(
                f"`base` must have steps in t that can change their length, but {self.base} has not"
            )
        if self.tolerance is not None and not 0 < self.tolerance < 1:
            raise ValueError(f"`tolerance` must be between 0 and 1, but {self.tolerance!r} was provided")

    @property
    def order(self) -> int:
        return self.base.order

    def moved(self, system: System, base: OwnState, last: Array, dt: Array) -> tuple[OwnState, Solve]:
        """Phi_dt, after a step of the length `last`."""
        base = self.base.for_step(system, base, dt)
        if (history := self.base.history(base)) is not None:
            ratio = dt / last
            base = self.base.with_history(base, jax.tree.map(lambda x: ratio * x, history))
        return self.base.advance(system, base, dt)

    def measured(
        self, system: System, start: OwnState, state: DensityState, h: Array
    ) -> tuple[DensityState, Solve]:
        """The step whose error decides on the next."""
        assert self.tolerance is not None
        dt = h / state.rho
        once, _ = self.moved(system, start, state.dt, dt)
        half, first = self.moved(system, start, state.dt, dt / 2)
        base, record = self.moved(system, half, dt / 2, dt / 2)
        d = distance(system, state.T, self.base.observe(base), self.base.observe(once))
        d = jnp.where(jnp.isfinite(d), d, jnp.inf)
        longer = 0.9 * (self.tolerance / (d + LEAST)) ** (1 / (self.order + 1))
        rho = jnp.maximum(state.rho / jnp.clip(longer, 0.2, 2.0), FREE * jnp.abs(h) / state.T)
        new = replaced(state, t=base.t, q=base.q, base=base, rho=rho, dt=dt / 2)
        return new, jax.tree.map(jnp.maximum, first, record)

    def history(self, state: DensityState) -> None:
        return None

    def observe(self, state: DensityState) -> Observation:
        return self.base.observe(replaced(state.base, t=state.t, q=state.q))
