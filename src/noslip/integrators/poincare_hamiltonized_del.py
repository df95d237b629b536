"""PTHDEL: discrete Euler-Lagrange equations of the Poincare Lagrangian, in physical time (FBO section 4.2).

    D1 Ld(r_i, r_{i+1}) + D2 Ld(r_{i-1}, r_i) = 0,     Ld from f (l_c + E)       (44), (46)

with E the energy at the start. The symplectic form dr ^ dP on T*M is kept, and with it nearly
f (energy - E); so the energy itself is E plus a quantity that varies like 1/f, (50).
Where f has a zero the Lagrangian is singular, but the discrete equations can step over it: of the two
roots that they have there, the one nearest the extrapolation goes on. That needs f with its sign, that is
the system's own `multiplier`; one found along the path ends at the zero.
"""

from __future__ import annotations

from dataclasses import dataclass

import jax.numpy as jnp
from jax import Array

from noslip.integrators.families.chaplygin import HamiltonizedState, OnHamiltonizedBase
from noslip.system import System


@dataclass(frozen=True)
class PoincareHamiltonizedDEL(OnHamiltonizedBase):
    """Variational integrator of the Poincare-transformed Hamiltonized system, with equal steps in t."""

    reference = "FBO (44)-(46)"

    @classmethod
    def variants(cls) -> tuple[PoincareHamiltonizedDEL, ...]:
        return cls(), cls(epsilon=0.2), cls(group="planar")

    def momenta(self, system: System, state: HamiltonizedState, d: Array, h: Array) -> tuple[Array, Array]:
        reduced = self.reduced(system)

        def lagrangian(r: Array, w: Array) -> Array:
            return self.multiplier(system, state, r) * (reduced.constrained_lagrangian(r, w) + state.energy)

        return self.discrete_momenta(lagrangian, state.q.value[reduced.base_index], d, h)

    def passes_zero(
        self, system: System, state: HamiltonizedState, moved: HamiltonizedState, met: Array
    ) -> Array:
        """A multiplier that was found as exp(ln f) has no sign to change."""
        return met if system.multiplier is None else jnp.array(False)
