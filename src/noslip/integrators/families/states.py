"""States and unknowns that several families of methods use."""

from __future__ import annotations

from typing import TYPE_CHECKING

import jax.numpy as jnp
from jax import Array

from noslip.integrators.base import State, Sum, kinetic_sizes, pytree, round_off

if TYPE_CHECKING:
    from noslip.system import System


@pytree
class VelocityState:
    """A position and a velocity, and the multipliers of the step that led here with the time they act at."""

    t: Sum
    q: Sum
    v: Sum
    lam: Array
    lam_t: Array

    @classmethod
    def start(cls, system: System, q: Array, v: Array, t: Array) -> VelocityState:
        """At the beginning of a run the multipliers are those of the motion."""
        return cls(Sum.start(t), Sum.start(q), Sum.start(v), system.multipliers(q, v, t), t)

    @property
    def shown(self) -> tuple[Array, Array]:
        """The position and the velocity that others see."""
        return self.q.value, self.v.value


@pytree
class Unknown:
    """Increment of the velocity and multipliers; as a residual: momentum balance and constraint."""

    d: Array
    lam: Array


@pytree
class Stages:
    """V_j - v of stages, multipliers, v' - v; as a residual: momenta, constraints, momentum at the end."""

    V: Array
    lam: Array
    d: Array

    @classmethod
    def alike(cls, one: Unknown, stages: int) -> Stages:
        """The same for all stages."""
        V, lam = (jnp.broadcast_to(x, (stages, x.size)) for x in (one.d, one.lam))
        return cls(V, lam, one.d)


def kinetic_grain(system: System, state: State, v: Array, h: Array) -> Unknown:
    """By how much round-off may move an `Unknown`."""
    return Unknown(*round_off(system.at(state.t.value), state.q.value, v, h))


def kinetic_scale(system: System, q: Array, v: Array, d: Array, h: Array) -> Unknown:
    """The sizes of an `Unknown` near the guess d."""
    return Unknown(*kinetic_sizes(system, q, v, d, h))
