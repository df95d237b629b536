"""Nonholonomic integrators from an approximate generating function and constraint force, LMS section 4.

With S_alpha^h(q0, q1) = h L((1 - alpha) q0 + alpha q1, (q1 - q0) / h), LMS (25), and the reaction
F = mu^T lam(q, v) taken at the same point, lam being the multiplier as a function of the state, (21) is

    D2 S(q_{k-1}, q_k) + D1 S(q_k, q_{k+1}) + alpha h F(q_{k-1}, q_k) + (1 - alpha) h F(q_k, q_{k+1}) = 0

`symmetric` averages alpha and 1 - alpha in S (remark 4.1) and in F, where each node keeps the weights of
its own alpha; without the latter the order would stay 1. `projected` is (33) and section 5.1:

    -D1 S(q_k, q_{k+1}) - (1 - alpha) h F(q_k, q_{k+1}) = P (D2 S(q_{k-1}, q_k) + alpha h F(q_{k-1}, q_k))

with P at q_k, so that the momentum at each node satisfies the constraint exactly. The first step is the
same equation with p0 = dL/dv(q0, v0) on the right, LMS (17).

For alpha = 1/2 this is the implicit midpoint rule for the equations (9) on T*Q; alpha = 0, 1 are its two
symplectic Euler rules, and alpha is adjoint to 1 - alpha. With constant M and mu affine in q, phi is
bilinear in (q, p) and kept to round-off even without projection.

Holonomic constraints and quaternions are kept as in `families.generating_functions`, RATTLE's way.

paper -> code: -Lambda~ -> F (see the errata for its sign), q_k -> q, p_k -> dL/dv(q, v). External forces
are added to F. The multipliers reported are those at the inner nodes, averaged if there are two.
"""

from __future__ import annotations

from dataclasses import dataclass

from jax import Array

from noslip.integrators.base import require_interval
from noslip.integrators.families import generating_functions as family
from noslip.integrators.families.states import VelocityState
from noslip.numerics.sums import average
from noslip.system import System


@dataclass(frozen=True)
class GeneratingFunction(family.Generating):
    """LMS section 4: the reaction as a given force; `projected` (33) keeps the constraint exactly."""

    alpha: float = 0.5  #: where in the step L and F are taken: 0 at its start, 1 at its end
    symmetric: bool = False  #: average alpha and 1 - alpha
    projected: bool = False  #: put the momentum on the constraint at each node

    reference = "LMS (21), (25), remark 4.1, (33), section 5.1"

    def __post_init__(self) -> None:
        require_interval("alpha", self.alpha, 0.0, 1.0)

    @property
    def order(self) -> int:
        return 2 if self.symmetric or self.alpha == 0.5 else 1

    @property
    def multiplier_order(self) -> int:
        return self.order

    @property
    def preserves(self) -> frozenset[str]:
        kept = {"constraint"} if self.projected else {"reversible"} if self.order == 2 else set()
        # for these alphas the reaction acts at a node, where it annihilates D, as P does
        kept |= {"momentum_equation"} if self.alpha in (0, 1) else set()
        return frozenset(kept | {"holonomic"})

    @classmethod
    def variants(cls) -> tuple[GeneratingFunction, ...]:
        plain = cls(), cls(0.0), cls(1.0), cls(0.2, symmetric=True), cls(0.0, symmetric=True)
        return *plain, cls(projected=True), cls(0.7, projected=True), cls(0.0, projected=True)

    @property
    def alphas(self) -> tuple[float, ...]:
        return (self.alpha, 1 - self.alpha) if self.symmetric else (self.alpha,)

    def applies_to(self, system: System) -> str | None:
        return family.needs_projectors(system) if self.projected else None

    def force(self, system: System, node: Array, w: Array, t: Array) -> Array:
        m = system.m
        reaction = system.mu(node, w, t)[:m].T @ system.multipliers(node, w, t)[:m]
        return reaction + system.applied_force(node, w, t)

    def departing(self, system: System, state: VelocityState, h: Array) -> Array:
        return system.momentum(state.q.value, state.v.value, state.t.value)

    def update(self, system: System, state: VelocityState, x: Array, h: Array) -> VelocityState:
        q, dv = self.arrival(system, state, x, h)
        v = state.v.plus(dv)
        w, t = state.v.value + family.parted(x)[0], state.t.value
        lam = [system.multipliers(state.q.value + a * h * w, w, t + a * h) for a in self.alphas]
        late = sum(self.alphas) / len(self.alphas)
        v = (family.project if self.projected else family.placed)(system, q.value, v, t + h)
        return VelocityState(state.t.plus(h), q, v, average(lam), t + late * h)
