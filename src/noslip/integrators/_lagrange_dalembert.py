"""What the methods from a discrete Lagrange-d'Alembert principle share: unknowns, guess and state.

The unknowns of a step are the velocity increment d = v_{k+1} - v_k and the multipliers lam, which
are forces: D1 L_d + D2 L_d + h mu^T lam = 0.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import jax.numpy as jnp
from jax import Array

from noslip._pytree import pytree
from noslip.integrators._base import Integrator, Observation, Sum

if TYPE_CHECKING:
    from noslip.system import System


@pytree
class VelocityState:
    """A state on the constraint: position, velocity, and the multipliers of the step that led here."""

    t: Sum
    q: Sum
    v: Sum
    lam: Array
    lam_t: Array


@pytree
class Unknown:
    """Increment of the velocity and multipliers; as a residual: momentum balance and constraint."""

    d: Array
    lam: Array


class LagrangeDAlembert(Integrator):
    """Common parts; a method adds `residual`, `drift` and the date of its multipliers."""

    def drift(self, v: Array, v1: Array, h: Array) -> Array:
        """Displacement of the node over a step with velocities v before and v1 after."""
        raise NotImplementedError(f"{type(self).__name__} must define drift")

    def multiplier_delay(self, h: Array) -> Array:
        """How long before the new node the multiplier acts."""
        raise NotImplementedError(f"{type(self).__name__} must define multiplier_delay")

    def init(self, system: System, q: Array, v: Array, t: Array, h: Array) -> VelocityState:
        return VelocityState(Sum.start(t), Sum.start(q), Sum.start(v), system.multipliers(q, v, t), t)

    def guess(self, system: System, state: VelocityState, h: Array) -> Unknown:
        q, v, t = state.q.value, state.v.value, state.t.value
        return Unknown(h * system.acceleration(q, v, t), system.multipliers(q, v, t))

    def scale(self, system: System, state: VelocityState, guess: Unknown, h: Array) -> Unknown:
        return kinetic_scale(system, state.q.value, state.v.value, guess.d, h)

    def update(self, system: System, state: VelocityState, x: Unknown, h: Array) -> VelocityState:
        v, t = state.v.plus(x.d), state.t.plus(h)
        q = state.q.plus(self.drift(state.v.value, v.value, h))
        return VelocityState(t, q, v, x.lam, t.value - self.multiplier_delay(h))

    def observe(self, state: VelocityState) -> Observation:
        return Observation(state.t.value, state.q.value, state.v.value, state.lam, state.lam_t)


def kinetic_scale(system: System, q: Array, v: Array, d: Array, h: Array) -> Unknown:
    """Sizes of velocity and multipliers in the kinetic metric, so that no choice of units matters:
    with K = v.Mv + d.Md, a velocity component can be sqrt(K / M_ii), an impulse sqrt(K / C_aa)."""
    M, mu = system.mass_matrix(q), system.mu(q, v)
    diagonal = jnp.diagonal(M)
    kinetic = v @ M @ v + d @ M @ d
    stiffness = jnp.sum(mu**2 / diagonal, axis=1)  # the diagonal of C, for a diagonal M
    return Unknown(jnp.sqrt(kinetic / diagonal), jnp.sqrt(kinetic / stiffness) / jnp.abs(h))
