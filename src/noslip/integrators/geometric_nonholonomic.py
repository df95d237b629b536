"""Geometric nonholonomic integrators, LMS section 5: P (D2 S(q_{k-1}, q_k) + D1 S(q_k, q_{k+1})) = 0.

As printed these are n - m equations for the n coordinates of q_{k+1}. Two ways to complete them, with
S = S_alpha^h of (25) and the M-orthogonal P, Q = 1 - P of LMS section 5 at q_k, acting on covectors:

    reflection:   -D1 S(q_k, q_{k+1}) = (P - Q) D2 S(q_{k-1}, q_k)
    projection:   -D1 S(q_k, q_{k+1}) = P D2 S(q_{k-1}, q_k)

The reaction is an impulse h mu(q_k)^T lam_k at the node. With p_k = P D2 S the momentum at the node,

    D2 S(q_{k-1}, q_k) = p_k - share h mu^T lam_k,    -D1 S(q_k, q_{k+1}) = p_k + (1 - share) h mu^T lam_k

where share = 1/2 (reflection: p_k is the mean of the momenta before and after) or 1 (projection). So
p_k and lam_k are both known when q_k is reached, (q_k, v_k) satisfies the constraint exactly, and the start
is p_0 = dL/dv(q_0, v_0) with lam_0 = lam(q_0, v_0), for every alpha. Affine constraints are reflected or
projected about phi = 0. External forces F have LMS's weights: D2 S + alpha h F, -D1 S - (1 - alpha) h F.

Holonomic constraints and quaternions are kept as in `families.generating_functions`, RATTLE's way: P leads
into the kernel of their rows too, and lam is the reaction of the others. The multipliers of g are lam(q, v).

Both readings keep the discrete nonholonomic momentum equation: it is P (...) = 0 along symmetries in D.
The reflection makes lam_{k+1} + lam_k, not lam, follow the motion: an error in lam lives on with alternating
sign. It starts at O(h^2) or below and stays there for the particle and the disk, but can grow over long times
(on `two_quadratic_constraints` within t = 500): watch `run.multipliers`. The projection forgets, but damps.
"""

from __future__ import annotations

from dataclasses import dataclass

from jax import Array

from noslip.integrators.base import require_interval
from noslip.integrators.families.generating_functions import Generating, needs_projectors, project, reactions
from noslip.integrators.families.states import VelocityState
from noslip.numerics.linear import spd_solve
from noslip.system import System

SHARE = {"reflection": 0.5, "projection": 1.0}


@dataclass(frozen=True)
class GeometricNonholonomic(Generating):
    """LMS section 5 in two readings: the reaction reflects the momentum, or projects it, at each node."""

    reading: str = "reflection"  #: how the reaction completes the equations
    alpha: float = 0.5  #: where in the step L is taken: 0 at its start, 1 at its end

    reference = "LMS section 5, after (34)"

    def __post_init__(self) -> None:
        require_interval("alpha", self.alpha, 0.0, 1.0)
        if self.reading not in SHARE:
            raise ValueError(
                f"`reading` must be 'reflection' or 'projection', but {self.reading!r} was provided"
            )

    @property
    def order(self) -> int:
        return 2 if self.reading == "reflection" and self.alpha == 0.5 else 1

    @property
    def multiplier_order(self) -> int:
        return self.order

    @property
    def preserves(self) -> frozenset[str]:
        kept = frozenset({"constraint", "holonomic", "momentum_equation"})
        return kept | {"reversible"} if self.order == 2 else kept

    @property
    def remembers_reaction(self) -> bool:
        return SHARE[self.reading] < 1

    @classmethod
    def variants(cls) -> tuple[GeometricNonholonomic, ...]:
        # for other alphas the reflection has order 2 where S ignores alpha: constant M, no potential
        return cls(), cls("projection")

    def applies_to(self, system: System) -> str | None:
        return needs_projectors(system)

    def force(self, system: System, node: Array, w: Array, t: Array) -> Array:
        return system.applied_force(node, w, t)

    def departing(self, system: System, state: VelocityState, h: Array) -> Array:
        q, v, t, m = state.q.value, state.v.value, state.t.value, system.m
        impulse = (1 - SHARE[self.reading]) * h * state.lam[:m]
        return system.momentum(q, v, t) + system.mu(q, v, t)[:m].T @ impulse

    def update(self, system: System, state: VelocityState, x: Array, h: Array) -> VelocityState:
        q, dv = self.arrival(system, state, x, h)
        t, v = state.t.plus(h), state.v.plus(dv)
        end = system.at(t.value)
        mu = end.mu(q.value, v.value)
        C = mu @ spd_solve(end.mass_matrix(q.value), mu.T)
        impulse = -spd_solve(C, end.phi(q.value, v.value))
        v = project(end, q.value, v, t.value)
        lam = reactions(end, impulse / (SHARE[self.reading] * h), q.value, v.value, t.value)
        return VelocityState(t, q, v, lam, t.value)
