"""A Chaplygin reduction and its Hamiltonization as LaTeX."""

from __future__ import annotations

from itertools import combinations

import sympy as sp

from noslip.symbolic._chaplygin import Reduced
from noslip.symbolic._hamiltonization import Hamiltonized
from noslip.symbolic._latex import Writer, environment


class ReducedWriter(Writer):
    """Prints r' with a prime, momenta as P_x, group velocities as xi_1, xi_2, ..."""

    def __init__(self, reduced: Reduced):
        super().__init__(reduced.model)
        self.reduced, s = reduced, reduced.model.symbols
        self.names |= {u: f"{self.names[q]}'" for q, u in zip(s.q, s.slopes, strict=True)}
        self.names |= {P: f"P_{{{self.names[q]}}}" for q, P in zip(s.q, s.momenta, strict=True)}
        self.names |= {xi: rf"\xi_{{{a + 1}}}" for a, xi in enumerate(s.xi(len(s.q)))}
        self.names[s.energy] = sp.latex(s.write(s.energy))

    def reduction(self) -> str:
        """l_c, connection, curvature, the reduced equations (5) and the reconstruction (6) of FBO."""
        reduced = self.reduced
        one = [f"d{self.names[r]}" for r in reduced.r]
        two = {(i, j): rf"{one[i]} \wedge {one[j]}" for i, j in combinations(range(len(one)), 2)}
        rows = [self._row("l_c", reduced.constrained_lagrangian)]
        for a in range(len(reduced.fibre)):
            form = self._form(zip(reduced.connection[a, :], one, strict=True))
            rows.append(self._numbered(r"\mathcal{A}", "^", a) + f" &= {form}")
        for a, B in enumerate(reduced.curvature):
            form = self._form((B[place], pair) for place, pair in two.items())
            rows.append(self._numbered(r"\mathcal{B}", "^", a) + f" &= {form}")
        right = reduced.reaction + reduced.force
        equations = [*zip(reduced.euler_lagrange, right, strict=True)]
        equations += zip(reduced.sdot, reduced.reconstruction, strict=True)
        return environment([*rows, *(self._row(self._print(left), right) for left, right in equations)])

    def hamiltonization(self, found: Hamiltonized) -> str:
        """f, the invariant measure, Lc, P, Hc and the Poincare Lagrangian (44) of FBO."""
        momenta = zip(found.momenta, found.momentum, strict=True)
        rows = [
            ("f", found.multiplier),
            ("f^{d-1}", found.measure),
            (r"\mathcal{L}_c", found.lagrangian),
            *((self.names[P], value) for P, value in momenta),
            (r"\mathcal{H}_c", found.hamiltonian),
            (r"\tilde{\mathcal{L}}_c", found.poincare_lagrangian),
        ]
        return environment(self._row(label, value) for label, value in rows)
