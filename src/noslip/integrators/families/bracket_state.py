"""The state of the methods on D*."""

from __future__ import annotations

import jax.numpy as jnp
from jax import Array

from noslip.numerics.pytrees import pytree
from noslip.numerics.sums import Sum

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
