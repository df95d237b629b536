"""The Poincare transformation of a Hamiltonized system: physical time with a Hamiltonian (FBO section 4.2).

With Hc(r, P) of `hamiltonization`, P = f dl_c/drdot, and E the energy of the start, the Hamiltonian

    Hp(r, P) = f(r) (Hc(r, P) - E)

has the canonical equations in t

    dr/dt = f dHc/dP                                                        (41)
    dP/dt = -f dHc/dr - (Hc - E) df/dr                                      (42)

On the level Hc = E, that is Hp = 0, the last term is gone, and what remains, (43), is the reduced motion. Off
it (42) is another system: only solutions that start with energy E are motions. Hp is the Legendre transform
of the Poincare Lagrangian f (l_c + E), (44), which `PoincareHamiltonizedDEL` discretises; its energy is
Hp again, (49). The paper's H~ and L~ are Hp and `Hamiltonization.poincare_lagrangian`.
"""

from __future__ import annotations

from dataclasses import dataclass

import jax
from jax import Array

from noslip.geometry.hamiltonization import Hamiltonization


@dataclass(frozen=True)
class PoincareSystem:
    """The transformed system of the motions with energy `energy`; f is 1 at `start`."""

    made: Hamiltonization
    start: Array
    energy: Array

    def hamiltonian(self, r: Array, P: Array) -> Array:
        """Hp(r, P)."""
        excess = self.made.hamiltonian(self.start, r, P) - self.energy
        return self.made.multiplier(self.start, r) * excess

    def lagrangian(self, r: Array, w: Array) -> Array:
        """f (l_c + E), (44)."""
        return self.made.poincare_lagrangian(self.start, r, w, self.energy)

    def field(self, r: Array, P: Array) -> tuple[Array, Array]:
        """(dr/dt, dP/dt) of (41), (42)."""
        rate, force = self.restricted_field(r, P)
        excess = self.made.hamiltonian(self.start, r, P) - self.energy
        slope = self.made.multiplier(self.start, r) * self.made.omega(r)  # df = f omega
        return rate, force - excess * slope

    def restricted_field(self, r: Array, P: Array) -> tuple[Array, Array]:
        """(43), the canonical equations of Hc in tau with dtau = f dt; they are not Hamiltonian in t."""
        f = self.made.multiplier(self.start, r)
        along_r, along_P = jax.grad(self.made.hamiltonian, (1, 2))(self.start, r, P)
        return f * along_P, -f * along_r
