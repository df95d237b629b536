"""What `SymbolicSystem.chaplygin` returns: reduction and Hamiltonization in the user's own symbols."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

import sympy as sp

from noslip.symbolic._chaplygin import Reduced
from noslip.symbolic._generate import generate
from noslip.symbolic._hamiltonization import Hamiltonized, hamiltonize, omega
from noslip.symbolic._reduced_latex import ReducedWriter
from noslip.symbolic._symbols import Written

if TYPE_CHECKING:
    from noslip.symbolic._system import SymbolicSystem


@dataclass(frozen=True, repr=False)
class SymbolicReduction:
    """A Chaplygin system reduced by its group, FBO section 1. Made by `SymbolicSystem.chaplygin`."""

    system: SymbolicSystem
    plain: Reduced

    def _written(self, expression: Written) -> Written:
        return self.plain.model.symbols.write(expression)

    @property
    def group(self) -> str:
        """'translations' or 'planar'."""
        return self.plain.group

    @property
    def base(self) -> tuple[str, ...]:
        """Names of the coordinates r."""
        return tuple(self.system.coordinates[i] for i in self.plain.base)

    @property
    def fibre(self) -> tuple[str, ...]:
        """Names of the group coordinates s."""
        return tuple(self.system.coordinates[i] for i in self.plain.fibre)

    @property
    def group_velocity(self) -> sp.ImmutableMatrix:
        """The symbols xi = g^-1 gdot; for translations sdot itself."""
        return self._written(sp.ImmutableMatrix(self.plain.xi))

    @property
    def determinant(self) -> sp.Expr:
        """Of the constraints on the fibre: where it vanishes, they do not determine xi and the chart ends."""
        return self._written(self.plain.determinant)

    @property
    def connection(self) -> sp.ImmutableMatrix:
        """A, one row for each direction of the group: xi = -A(r) rdot."""
        return self._written(self.plain.connection)

    @property
    def curvature(self) -> tuple[sp.ImmutableMatrix, ...]:
        """B, one matrix for each direction of the group."""
        return tuple(self._written(B) for B in self.plain.curvature)

    @property
    def lagrangian(self) -> sp.Expr:
        """l(r, rdot, xi)."""
        return self._written(self.plain.lagrangian)

    @property
    def constrained_lagrangian(self) -> sp.Expr:
        """l_c(r, rdot)."""
        return self._written(self.plain.constrained_lagrangian)

    @property
    def metric(self) -> sp.ImmutableMatrix:
        """G = d2l_c/drdot2."""
        return self._written(self.plain.metric)

    @property
    def potential(self) -> sp.Expr:
        """V(r)."""
        return self._written(self.plain.potential)

    @property
    def group_momentum(self) -> sp.ImmutableMatrix:
        """J = dl/dxi on the constraint."""
        return self._written(self.plain.group_momentum)

    @property
    def reaction(self) -> sp.ImmutableMatrix:
        """F of (5), which does no work."""
        return self._written(self.plain.reaction)

    @property
    def force(self) -> sp.ImmutableMatrix:
        """The part of an applied force along the base."""
        return self._written(self.plain.force)

    @property
    def equations(self) -> tuple[sp.Eq, ...]:
        """d/dt dl_c/drdot - dl_c/dr = F + force, (5)."""
        right = self.plain.reaction + self.plain.force
        pairs = zip(self._written(self.plain.euler_lagrange), self._written(right), strict=True)
        return tuple(sp.Eq(a, b, evaluate=False) for a, b in pairs)

    @property
    def acceleration(self) -> sp.ImmutableMatrix:
        """d2r/dt2 in closed form, from (5)."""
        return self._written(self.plain.acceleration)

    @property
    def reconstruction(self) -> sp.ImmutableMatrix:
        """sdot over rdot, (6)."""
        return self._written(self.plain.reconstruction)

    @cached_property
    def omega(self) -> sp.ImmutableMatrix:
        """The only candidate for d ln f, whether or not the system is Hamiltonizable."""
        return self._written(sp.ImmutableMatrix(omega(self.plain)))

    def hamiltonization(self) -> SymbolicHamiltonization:
        """Chaplygin's multiplier and what follows, or a ValueError that says what stands against it."""
        return SymbolicHamiltonization(self, hamiltonize(self.plain))

    def latex(self) -> str:
        """l_c, connection, curvature, reduced equations and reconstruction."""
        return ReducedWriter(self.plain).reduction()

    def _repr_latex_(self) -> str:
        return f"$\\displaystyle {self.latex()}$"

    def __repr__(self) -> str:
        return f"SymbolicReduction(base={self.base}, fibre={self.fibre}, group='{self.group}')"


@dataclass(frozen=True, repr=False)
class SymbolicHamiltonization:
    """A reduced system that is Hamiltonian in the time dtau = f dt, FBO sections 3 and 4.

    f is determined up to a constant factor. `proved` is False if a zero was seen at random points with 50
    digits, but not confirmed by SymPy.
    """

    reduction: SymbolicReduction
    plain: Hamiltonized

    def _written(self, expression: Written) -> Written:
        return self.plain.reduced.model.symbols.write(expression)

    @property
    def proved(self) -> bool:
        """Whether all conditions are proved, and not only seen at random points."""
        return self.plain.proved

    @property
    def multiplier(self) -> sp.Expr:
        """f(r)."""
        return self._written(self.plain.multiplier)

    @property
    def measure(self) -> sp.Expr:
        """f^(d-1), the density of an invariant measure with respect to dr dp, p = dl_c/drdot."""
        return self._written(self.plain.measure)

    @property
    def slopes(self) -> sp.ImmutableMatrix:
        """The symbols r' = dr/dtau."""
        return self._written(sp.ImmutableMatrix(self.plain.slopes))

    @property
    def momenta(self) -> sp.ImmutableMatrix:
        """The symbols P."""
        return self._written(sp.ImmutableMatrix(self.plain.momenta))

    @property
    def energy(self) -> sp.Symbol:
        """The symbol E in the Poincare Lagrangian."""
        return self._written(self.plain.reduced.model.symbols.energy)

    @property
    def lagrangian(self) -> sp.Expr:
        """Lc(r, r') = l_c(r, f r')."""
        return self._written(self.plain.lagrangian)

    @property
    def momentum(self) -> sp.ImmutableMatrix:
        """P = dLc/dr' as a function of r and r'."""
        return self._written(self.plain.momentum)

    @property
    def hamiltonian(self) -> sp.Expr:
        """Hc(r, P)."""
        return self._written(self.plain.hamiltonian)

    @property
    def poincare_lagrangian(self) -> sp.Expr:
        """f (l_c + E), (44)."""
        return self._written(self.plain.poincare_lagrangian)

    @cached_property
    def turn_factors(self) -> dict[str, sp.Expr]:
        """By how much f is multiplied after a turn of each declared base angle; 1 if it is single valued."""
        reduced, names = self.plain.reduced, self.reduction.system.coordinates
        angles = [i for i in reduced.base if names[i] in self.reduction.system.angles]
        q = reduced.model.symbols.q
        return {names[i]: self._written(self.plain.turn_factor(q[i])) for i in angles}

    @cached_property
    def zeros(self) -> dict[str, sp.Set]:
        """Values of a coordinate at which f vanishes; those of declared angles from 0 to 2 pi.

        Factors of several coordinates, and those that SymPy cannot solve, are not looked at.
        """
        system, reduced = self.reduction.system, self.plain.reduced
        found = {}
        for i in reduced.base:
            turn = sp.Interval.Ropen(0, 2 * sp.pi) if system.coordinates[i] in system.angles else sp.S.Reals
            roots = self.plain.zeros(reduced.model.symbols.q[i], turn)
            if roots is not sp.S.EmptySet:
                found[system.coordinates[i]] = self._written(roots)
        return found

    def system_with_multiplier(self) -> SymbolicSystem:
        """The system with f as its `multiplier`; declared angles must leave f single valued."""
        for name, factor in self.turn_factors.items():
            if factor != 1:
                raise ValueError(
                    "`multiplier` must be single valued on the declared angles, but it is multiplied by "
                    f"{factor} after a turn of {name}"
                )
        symbols = self.plain.reduced.model.symbols
        function = generate("multiplier", [self.plain.multiplier], (), "q", symbols)
        return replace(self.reduction.system, multiplier=function)

    def latex(self) -> str:
        """f, the invariant measure, Lc, P, Hc and the Poincare Lagrangian."""
        return ReducedWriter(self.plain.reduced).hamiltonization(self.plain)

    def _repr_latex_(self) -> str:
        return f"$\\displaystyle {self.latex()}$"

    def __repr__(self) -> str:
        return f"SymbolicHamiltonization(multiplier={self.multiplier})"

    def __str__(self) -> str:
        text = f"Hamiltonizable with f = {self.multiplier} up to a constant factor"
        for name, factor in self.turn_factors.items():
            if factor != 1:
                text += f"; a turn of {name} multiplies f by {factor}"
        for name, roots in self.zeros.items():
            text += f"; f vanishes where {name} is in {roots}"
        return text
