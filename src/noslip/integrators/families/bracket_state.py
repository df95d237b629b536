"""The states of the methods on D*, and of that on T*Q."""

from __future__ import annotations

import jax.numpy as jnp
from jax import Array, lax

from noslip.geometry.frame_free import rounding_of_potential
from noslip.numerics.discrete_gradients import NOISE, noise
from noslip.numerics.pytrees import pytree
from noslip.numerics.sums import Sum
from noslip.system import System

PAST = 5  # increments that the guess is extrapolated from


@pytree
class BracketState:
    """A point of D* and what the next step needs there."""

    t: Sum
    q: Sum
    rho: Sum
    v: Array
    energy: Sum
    gradient: Array
    noise: Array
    scale: Array
    past: Array
    signs: Array
    g: Array | None  # what the holonomic constraints ought to be here, zero but for a projection

    @property
    def z(self) -> Array:
        return jnp.concatenate([self.q.value, self.rho.value])


@pytree
class FullSpaceState(BracketState):
    """A point of T*Q with the multipliers of the step that led there, and their date."""

    lam: Array
    lam_t: Array


def energy_size(system: System, q: Array, energy: Sum, twice: Array) -> Array:
    """Of what is rounded where H is evaluated: |H| + |p . v|, and the terms of V, which may cancel. Two
    values of V differ by EPS times its rounding at most, and NOISE is 4 EPS."""
    return jnp.abs(energy.value) + jnp.abs(twice) + rounding_of_potential(system, q) / 4


def with_multipliers(system: System, state: BracketState, lam: Array, lam_t: Array) -> FullSpaceState:
    """The same point with these multipliers."""
    kept = {name: getattr(state, name) for name in BracketState.__dataclass_fields__} | {
        "noise": _noise(system, state)
    }
    return FullSpaceState(**kept, lam=lam, lam_t=lam_t)


def _noise(system: System, state: BracketState) -> Array:
    """The threshold, with the motions of q and of p apart: a force that the reactions nearly balance is in
    the gradient, and taken together with the change of p it would hide that a body hardly moves."""
    S = energy_size(system, state.q.value, state.energy, jnp.dot(state.rho.value, state.v))
    squares = [jnp.sum(x.reshape(2, -1) ** 2, axis=1) for x in (state.gradient, state.past[0])]
    return noise(S, jnp.sqrt(lax.stop_gradient(jnp.dot(*squares))))


def followed(energy: Sum, H: Array, S: Array, level: Array) -> Sum:
    """The energy that a state with a `force` must have: H where they differ by noise alone. A body that
    friction stops has nothing to lose in the end, and would be pushed about by what it ought to have lost."""
    stops = (jnp.abs(H - energy.value) <= level) & (level > 0.99 * NOISE * S)
    return Sum(jnp.where(stops, H, energy.value), jnp.where(stops, 0.0, energy.low))
