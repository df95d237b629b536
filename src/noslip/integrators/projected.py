"""Symmetric projection of a method on D* onto the level set of the energy and all declared first integrals.

With g(z) the energy and the integrals as functions on D*, B = dg(z), B' = dg(z'), and Phi the base method,
a step of the symmetric projection of Hairer 2000 (Norton et al. 2015, cited by CFHM, has its theory) is

    z~ = z + B^T mu,      z~' = Phi(z~),      z' = z~' + B'^T mu,      g(z') = g at the start

with one mu for both ends, which keeps the method self-adjoint and its order. Without a frame z, B and B' are
seen from the middle of z and z', and B^T is taken in the kinetic metric. Step and projection are solved
together: the unknowns are those of the base, mu, and the whole increment e = z' - z. Given them,

    x   = the base's map, from z~,   e = B^T mu + d(x) + B'^T mu
    mu -= W^+ (g(z + e) - g),        W = B B^T + B' B'^T

W is the derivative of g(z') by mu where the base keeps g, for then B' DPhi = B, be it ever so stiff. W^+ is
a solution in which dependent integrals have no part of their own: integrals may depend on each other (the
gearbox's energy is a sum) or have no gradient for a while (an oscillator at rest). Rows of B are normalised
at z, noise counts as zero.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import jax.numpy as jnp
import numpy as np
from jax import Array, vmap

from noslip.integrators.discrete_gradient import DiscreteGradient
from noslip.integrators.families import projection as level
from noslip.integrators.families.bracket import OnDStar
from noslip.integrators.families.built_on import BuiltOn
from noslip.integrators.families.projection import ProjectedState as State
from noslip.integrators.families.projection import ProjectedUnknown as Unknown
from noslip.numerics.discrete_gradients import soft
from noslip.system import System


@dataclass(frozen=True)
class Projected(BuiltOn):
    """Symmetric projection onto energy and first integrals; keeps constraint, order and reversibility."""

    base: OnDStar = field(default_factory=DiscreteGradient)  #: the method on D* that is projected

    reference = "Hairer 2000; Norton et al. 2015; CFHM section 1"

    def __post_init__(self) -> None:
        if not isinstance(self.base, OnDStar) or "constraint" not in self.base.preserves:
            raise ValueError(f"`base` must be a method on D*, as DiscreteGradient(), but it is {self.base}")

    @property
    def order(self) -> int:
        return self.base.order

    @property
    def preserves(self) -> frozenset[str]:
        return self.base.preserves | {"energy", "first_integrals"}

    def applies_to(self, system: System) -> str | None:
        return level.refusal(system) or super().applies_to(system)

    def applies_around(self, system: System, q: np.ndarray, v: np.ndarray) -> str | None:
        return super().applies_around(system, q, v) or level.changing(system, q, v)

    def init(self, system: System, q: Array, v: Array, t: Array, h: Array) -> State:
        return level.first(self.base, system, self.base.init(system, q, v, t, h), h)

    def guess(self, system: System, state: State, h: Array) -> Unknown:
        return level.guess(self.base.guess(system, state, h), self.base, state)

    def scale(self, system: System, state: State, guess: Unknown, h: Array) -> Unknown:
        return level.scale(self.base.scale(system, state, guess.x, h), state, guess)

    def fixed_point(self, system: System, state: State, x: Unknown, h: Array) -> Unknown:
        return self.turned(system, state, x, h, self.base.fixed_point)

    def simplified_newton(self, system: System, state: State, x: Unknown, h: Array) -> level.Turn:
        """For every mu the base is solved as it solves its own steps, for which W is right."""
        return lambda x: self.turned(system, state, x, h, level.solved(self.base))

    def turned(self, system: System, state: State, x: Unknown, h: Array, step: level.Step) -> Unknown:
        """The unknowns after `step` of the base from z~, and a correction of mu."""
        bracket, z = self.base.chart(system, state, x.e, h)
        vectors = vmap(bracket.vector)
        start = level.normals(system, bracket, z, state)
        shift = x.mu @ vectors(start)
        moved = level.displaced(bracket, z, state, shift)
        new = step(system, moved, x.x, h)
        B = level.gradients(system, bracket, z + x.e) / state.sizes[:, None]
        d = self.base.landed(system, moved, self.base.increment(new), h)
        e = bracket.joined(z, shift, moved.z, d) + x.mu @ vectors(B)
        defect = (level.integrals(system, bracket, z + e) - state.targets) / state.sizes
        W = start @ vectors(start).T + B @ vectors(B).T
        mu = level.multipliers(W, x.mu, soft(defect, state.levels))
        return Unknown(new, mu, e + (mu - x.mu) @ vectors(start + B))

    def update(self, system: System, state: State, x: Unknown, h: Array) -> State:
        moved = self.base.moved(system, state, x.x, x.e, jnp.zeros(()), h)
        extra = jnp.concatenate([jnp.concatenate([x.mu, x.e])[None], state.extra[:-1]])
        return level.completed(self.base, system, moved, state.targets, extra, h)
