"""A discrete gradient method on T*Q with multipliers: CFHM (15), GONZALEZ-F.

With z = (q, p), H(q, p) and a discrete gradient gbar = (gbar_q, gbar_p), the step z' = z + d is

    d_q = h gbar_p,      d_p = h (-gbar_q + mu(qm)^T lam + force),      mu(qm) gbar_p = 0,   qm = q + d_q / 2

Since gbar . d = H(z') - E, with the anchor E' = E + force . d_q, the energy is exact; the constraint
holds for the difference quotient d_q / h at qm, not for the velocity at q.

As a fixed point: gbar at the last d; then d_p and lam such that gbar_p + M^-1 (d_p - last d_p) / 2, which
is gbar_p to first order in d_p, satisfies the constraint. The multipliers reported are those of the node.
"""

from __future__ import annotations

from dataclasses import dataclass

import jax.numpy as jnp
from jax import Array

from noslip.geometry.bracket import refusal
from noslip.geometry.discrete_gradients import GRADIENTS, Step, discrete_gradient
from noslip.geometry.linear import spd_solve
from noslip.integrators._base import require_one_of
from noslip.integrators._bracket import BracketState, OnDStar
from noslip.system import System


@dataclass(frozen=True)
class FullSpaceDiscreteGradient(OnDStar):
    """CFHM (15) on T*Q: keeps the energy, but the constraint only at the midpoints."""

    gradient: str = "gonzalez"

    frame = "coordinates"
    reference = "CFHM (15)"

    def __post_init__(self) -> None:
        require_one_of("gradient", self.gradient, GRADIENTS)

    @property
    def order(self) -> int:
        return 1 if self.gradient == "coordinate_increment" else 2

    @property
    def preserves(self) -> frozenset[str]:
        return frozenset({"energy", "reversible"} if self.order == 2 else {"energy"})

    def applies_to(self, system: System) -> str | None:
        reason = refusal(system)
        return None if reason is None else reason.replace("the bracket on D*", "exact energy")

    def fixed_point(self, system: System, state: BracketState, x: Array, h: Array) -> Array:
        n = system.n
        bracket, z = self.bracket(system, state.signs, h), state.z
        middle = bracket.at(z + x / 2)
        step = Step(z, x, state.energy.value, state.gradient, state.noise)
        g = discrete_gradient(self.gradient, bracket, step)
        free = -h * g[:n]
        if system.force is not None:
            free = free + h * system.applied_force(middle.q, middle.v, state.t.value + h / 2)
        mu, M = system.mu(middle.q, middle.v), system.mass_matrix(middle.q)
        solved = spd_solve(M, jnp.column_stack([free - x[n:], mu.T]))  # M^-1 of both
        quotient, lift = g[n:] + solved[:, 0] / 2, solved[:, 1:]
        impulse = -2 * spd_solve(mu @ lift, mu @ quotient)  # h lam
        return jnp.concatenate([h * (quotient + lift @ impulse / 2), free + mu.T @ impulse])
