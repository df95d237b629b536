"""A discrete gradient method on T*Q with multipliers: CFHM (15), GONZALEZ-F.

With z = (q, p), H(q, p) and a discrete gradient gbar = (gbar_q, gbar_p), the step z' = z + d is

    d_q = h gbar_p,      d_p = h (-gbar_q + mu(qm)^T lam + force),      mu(qm) gbar_p = 0,   qm = q + d_q / 2

Since gbar . d = H(z') - E, with the anchor E' = E + force . d_q, the energy is exact; the constraint
holds for the difference quotient d_q / h at qm, not for the velocity at q.

As a fixed point: gbar at the last d; then d_p and lam such that gbar_p + M^-1 (d_p - last d_p) / 2, which
is gbar_p to first order in d_p, satisfies the constraint.

The multipliers reported are lam, which act at the midpoints. Since mu v swings between 0 and a value of order
h^2 from node to node, they carry an alternating error of order h; the mean of two neighbours, which belongs
to the node between them, is of order 2. With `coordinate_increment` mu v swings by O(h): neither converges.
"""

from __future__ import annotations

from dataclasses import dataclass

import jax.numpy as jnp
from jax import Array

from noslip.geometry.bracket import refusal
from noslip.integrators.base import Observation, OwnState, require_one_of
from noslip.integrators.families.bracket import OnDStar
from noslip.integrators.families.bracket_state import BracketState, FullSpaceState, with_multipliers
from noslip.numerics.discrete_gradients import GRADIENTS, Step, discrete_gradient
from noslip.numerics.linear import spd_solve
from noslip.system import System


@dataclass(frozen=True)
class FullSpaceDiscreteGradient(OnDStar):
    """CFHM (15) on T*Q: keeps the energy, but the constraint only at the midpoints."""

    gradient: str = "gonzalez"  #: which discrete gradient, CFHM (11)-(13)

    frame, uses_frame = "coordinates", False
    reference = "CFHM (15)"

    def __post_init__(self) -> None:
        require_one_of("gradient", self.gradient, GRADIENTS)

    @property
    def order(self) -> int:
        return 1 if self.gradient == "coordinate_increment" else 2

    @property
    def multiplier_order(self) -> int:
        return self.order - 1

    @property
    def preserves(self) -> frozenset[str]:
        return frozenset({"energy", "reversible"} if self.order == 2 else {"energy"})

    def applies_to(self, system: System) -> str | None:
        reason = refusal(system)
        return None if reason is None else reason.replace("the bracket on D*", "exact energy")

    def fixed_point(self, system: System, state: BracketState, x: Array, h: Array) -> Array:
        return self._map(system, state, x, h)[0]

    def _map(self, system: System, state: BracketState, x: Array, h: Array) -> tuple[Array, Array]:
        """The next d, and h lam."""
        n = system.n
        bracket, z = self.chart(system, state, x, h)
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
        return jnp.concatenate([h * (quotient + lift @ impulse / 2), free + mu.T @ impulse]), impulse

    def init(self, system: System, q: Array, v: Array, t: Array, h: Array) -> FullSpaceState:
        return with_multipliers(system, super().init(system, q, v, t, h), system.multipliers(q, v, t), t)

    def update(self, system: System, state: BracketState, x: Array, h: Array) -> FullSpaceState:
        lam = self._map(system, state, x, h)[1] / h
        return with_multipliers(system, super().update(system, state, x, h), lam, state.t.value + h / 2)

    def observe(self, state: OwnState) -> Observation:
        return Observation(state.t.value, state.q.value, state.v, state.lam, state.lam_t)
