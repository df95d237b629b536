"""What the methods from a discrete Lagrange-d'Alembert principle share: guess, scale, update.

The unknowns of a step are the velocity increment d = v_{k+1} - v_k and the multipliers lam, which
are forces: D1 L_d + D2 L_d + h mu^T lam = 0.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import jax
import jax.numpy as jnp
from jax import Array

from noslip.engine.translate import depends_on
from noslip.integrators.base import Integrator, Observation
from noslip.integrators.families.states import Unknown, VelocityState, kinetic_grain, kinetic_scale

if TYPE_CHECKING:
    from noslip.system import System


class LagrangeDAlembert(Integrator):
    """Common parts; a method adds `residual`, `displacement` and the date of its multipliers."""

    def displacement(self, v: Array, v1: Array, h: Array) -> Array:
        """Displacement of the node over a step with velocities v before and v1 after."""
        raise NotImplementedError(f"{type(self).__name__} must define displacement")

    def multiplier_delay(self, h: Array) -> Array:
        """How long before the new node the multiplier acts."""
        raise NotImplementedError(f"{type(self).__name__} must define multiplier_delay")

    def init(self, system: System, q: Array, v: Array, t: Array, h: Array) -> VelocityState:
        return VelocityState.start(system, q, v, t)

    def guess(self, system: System, state: VelocityState, h: Array) -> Unknown:
        q, v, t = state.q.value, state.v.value, state.t.value
        return Unknown(h * system.acceleration(q, v, t), system.multipliers(q, v, t))

    def scale(self, system: System, state: VelocityState, guess: Unknown, h: Array) -> Unknown:
        return kinetic_scale(system.at(state.t.value), state.q.value, state.v.value, guess.d, h)

    def grain(self, system: System, state: VelocityState, guess: Unknown, h: Array) -> Unknown:
        return kinetic_grain(system, state, state.v.value, h)

    def update(self, system: System, state: VelocityState, x: Unknown, h: Array) -> VelocityState:
        v, t = state.v.plus(x.d), state.t.plus(h)
        q = state.q.plus(self.displacement(state.v.value, v.value, h))
        return VelocityState(t, q, v, x.lam, t.value - self.multiplier_delay(h))

    def observe(self, state: VelocityState) -> Observation:
        return Observation(state.t.value, *state.shown, state.lam, state.lam_t)


def forces_ignore_velocity(system: System) -> bool:
    """Whether dL/dq and the force do not contain v, so that the mass matrix is constant and without
    gyroscopic terms; False where the program of the system does not show it."""
    q, t = jax.ShapeDtypeStruct((system.n,), float), jax.ShapeDtypeStruct((), float)
    p = jax.tree.map(lambda x: jax.ShapeDtypeStruct(jnp.shape(x), float), dict(system.parameters))
    if depends_on(jax.grad(system.lagrangian, 0), 1, q, q, p):
        return False
    return system.force is None or not depends_on(system.force, 1, q, q, t, p)
