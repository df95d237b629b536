"""What a method for pairs of nodes has of its own: a state, and what becomes of it between steps."""

from __future__ import annotations

from typing import TYPE_CHECKING

import jax.numpy as jnp
from jax import Array

from noslip.integrators.base import Integrator, Observation, Sum, pytree, replaced
from noslip.integrators.families.states import Unknown, kinetic_grain, kinetic_scale

if TYPE_CHECKING:
    from noslip.system import System


@pytree
class TwoPointState:
    """The last node, the momentum that arrives there, and the last difference quotient."""

    t: Sum
    q: Sum
    p: Array
    v: Array
    lam: Array
    lam_t: Array


class TwoPoints(Integrator):
    """A method whose velocity is the difference quotient of its last two nodes."""

    def guess(self, system: System, state: TwoPointState, h: Array) -> Unknown:
        q, v, t = state.q.value, state.v, state.t.value
        return Unknown(h * system.acceleration(q, v, t), system.multipliers(q, v, t))

    def scale(self, system: System, state: TwoPointState, guess: Unknown, h: Array) -> Unknown:
        return kinetic_scale(system.at(state.t.value), state.q.value, state.v, guess.d, h)

    def grain(self, system: System, state: TwoPointState, guess: Unknown, h: Array) -> Unknown:
        return kinetic_grain(system, state, state.v, h)

    def observe(self, state: TwoPointState) -> Observation:
        return Observation(state.t.value, state.q.value, state.v, state.lam, state.lam_t)

    def in_mid_run(self, system: System, q: Array, v: Array, t: Array, h: Array) -> TwoPointState:
        """The end of a step that led from q - h v to q without a change of v."""
        unchanged = Unknown(jnp.zeros(system.n), jnp.zeros(system.m))
        return self.update(system, self.init(system, q - h * v, v, t - h, h), unchanged, h)

    def for_step(self, system: System, state: TwoPointState, h: Array) -> TwoPointState:
        """As it is: p cannot be had again from v, a quotient of nodes. That a part of the reaction in p has
        another length goes into the next lam, not into the next node."""
        return state

    def switched(self, before: System, system: System, state: TwoPointState, h: Array) -> TwoPointState:
        """p, that of the pair before, changes with L and with the velocity that the constraint leaves."""
        q, v, t = state.q.value, state.v, state.t.value
        v1 = system.project_velocity(q, v, t) if system.inputs_within(system.inputs)[1] else v
        return replaced(state, p=state.p + system.momentum(q, v1, t) - before.momentum(q, v, t), v=v1)
