"""The mechanics of a system in symbols, in the notation of `noslip.system`:

    f   = dL/dq - (d2L/dv dq) v + force
    lam = -C^-1 (dphi/dq v + mu M^-1 f),      C = mu M^-1 mu^T          JS (23)
    acceleration = M^-1 (f + mu^T lam)

with -d2L/dv dt in f and dphi/dt beside dphi/dq v where L and phi contain t. Rates of holonomic constraints g
and of the lengths of quaternions are rows of phi in the `whole` model, which is that of the motion.
Every result is worked out when it is first asked for, and kept.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import sympy as sp

from noslip.symbolic._exact import Undecided, generic_rank, is_zero
from noslip.symbolic._integrability import Integrability, classify
from noslip.symbolic._symbols import TIME, Symbols
from noslip.symbolic._tidy import inverse, tidy


@dataclass(frozen=True)
class SymbolicModel:
    """Lagrangian, constraints phi = 0 and applied force in the plain symbols of `symbols`."""

    symbols: Symbols
    lagrangian: sp.Expr
    phi: tuple[sp.Expr, ...]
    force: tuple[sp.Expr, ...] | None = None
    g: tuple[sp.Expr, ...] = ()
    turned: tuple[tuple[int, ...], ...] = ()  # the places of the quaternions
    stated: tuple[sp.Expr, ...] | None = None  # what is written in the place of phi = 0

    @cached_property
    def whole(self) -> SymbolicModel:
        """With dg/dt and u . du among the constraints, and with inertia along each u."""
        if not (self.g or self.turned):
            return self
        q, v = self.symbols.q, self.symbols.v
        rates = [sum((g.diff(x) * y for x, y in zip(q, v, strict=True)), g.diff(TIME)) for g in self.g]
        lengths = [sp.Add(*(q[k] * v[k] for k in block)) for block in self.turned]
        units = [sp.Add(*(q[k] ** 2 for k in block)) - 1 for block in self.turned]
        inertia = sp.Add(*(x**2 for x in lengths)) / 2
        stated = (*self.phi, *self.g, *units)
        return SymbolicModel(
            self.symbols, self.lagrangian + inertia, (*self.phi, *rates, *lengths), self.force, stated=stated
        )

    @property
    def _v(self) -> sp.Matrix:
        return sp.Matrix(self.symbols.v)

    # ---- the Lagrangian ---------------------------------------------------------------------------
    @cached_property
    def mass_matrix(self) -> sp.ImmutableMatrix:
        return sp.ImmutableMatrix(sp.hessian(self.lagrangian, self.symbols.v).applyfunc(tidy))

    @cached_property
    def momentum(self) -> sp.ImmutableMatrix:
        return sp.ImmutableMatrix([tidy(self.lagrangian.diff(v)) for v in self.symbols.v])

    @cached_property
    def energy(self) -> sp.Expr:
        return tidy(sum(p * v for p, v in zip(self.momentum, self.symbols.v, strict=True)) - self.lagrangian)

    @cached_property
    def free_force(self) -> sp.ImmutableMatrix:
        """f, without the applied force."""
        slope = sp.Matrix([self.lagrangian.diff(q) for q in self.symbols.q])
        transport = self.momentum.jacobian(self.symbols.q) * self._v + self.momentum.diff(TIME)
        return sp.ImmutableMatrix((slope - transport).applyfunc(tidy))

    @property
    def applied_force(self) -> sp.Matrix:
        return sp.zeros(len(self.symbols.q), 1) if self.force is None else sp.Matrix(self.force)

    # ---- the constraints --------------------------------------------------------------------------
    @cached_property
    def kind(self) -> str:
        """'linear', 'affine' or 'nonlinear'."""
        if not all(is_zero(x) for x in self._curvature()):
            return "nonlinear"
        return "linear" if all(is_zero(b) for b in self._remainder()) else "affine"

    def _curvature(self) -> Sequence[sp.Expr]:
        return [phi.diff(v, w) for phi in self.phi for v in self.symbols.v for w in self.symbols.v]

    def _remainder(self) -> sp.Matrix:
        """phi - (dphi/dv) v, the drift b of affine constraints."""
        return self._phi - self._slopes(self.symbols.v) * self._v

    @property
    def _phi(self) -> sp.Matrix:
        return sp.Matrix(len(self.phi), 1, self.phi)

    def _slopes(self, x: Sequence[sp.Symbol]) -> sp.Matrix:
        """dphi/dx, also of no constraints."""
        return sp.Matrix(len(self.phi), len(x), [phi.diff(y) for phi in self.phi for y in x])

    def _at_rest(self, expression: sp.Expr) -> sp.Expr:
        """The same without velocities, of an expression that does not truly depend on them."""
        if expression.free_symbols & set(self.symbols.v):
            return sp.simplify(expression).subs(dict.fromkeys(self.symbols.v, 0))
        return expression

    @cached_property
    def mu(self) -> sp.ImmutableMatrix:
        """dphi/dv; free of v unless the constraints are nonlinear."""
        slopes = self._slopes(self.symbols.v)
        return sp.ImmutableMatrix(slopes if self.kind == "nonlinear" else slopes.applyfunc(self._at_rest))

    @cached_property
    def drift(self) -> sp.ImmutableMatrix:
        """b of affine constraints mu v + b = 0, zero for linear ones."""
        if self.kind == "linear":
            return sp.ImmutableMatrix(sp.zeros(len(self.phi), 1))
        return sp.ImmutableMatrix(self._remainder().applyfunc(self._at_rest))

    @cached_property
    def integrability(self) -> Integrability:
        """Of linear and affine constraints."""
        forms, x = self.mu, self.symbols.q
        if self.kind == "affine" or TIME in forms.free_symbols:
            forms, x = forms.row_join(self.drift), (*x, TIME)
        found = classify(forms, x)
        return replace(found, functions=tuple(self.symbols.write(f) for f in found.functions))

    # ---- the motion -------------------------------------------------------------------------------
    @cached_property
    def _lift(self) -> sp.Matrix:
        """M^-1."""
        return inverse(sp.Matrix(self.mass_matrix))

    @cached_property
    def multipliers(self) -> sp.ImmutableMatrix:
        if not self.phi:
            return sp.ImmutableMatrix(0, 1, [])
        mu, f = self.mu, self.free_force + self.applied_force
        C = (mu * self._lift * mu.T).applyfunc(tidy)
        advance = self._slopes(self.symbols.q) * self._v + self._phi.diff(TIME)
        need = (advance + mu * self._lift * f).applyfunc(tidy)
        return sp.ImmutableMatrix((-inverse(C) * need).applyfunc(tidy))

    @cached_property
    def acceleration(self) -> sp.ImmutableMatrix:
        reaction = self.mu.T * self.multipliers
        return sp.ImmutableMatrix(
            (self._lift * (self.free_force + self.applied_force + reaction)).applyfunc(tidy)
        )

    @cached_property
    def euler_lagrange(self) -> sp.ImmutableMatrix:
        """d/dt dL/dv - dL/dq, with the accelerations as symbols."""
        inertia = self.mass_matrix * sp.Matrix(self.symbols.a)
        return sp.ImmutableMatrix((inertia - self.free_force).applyfunc(tidy))

    # ---- checks -----------------------------------------------------------------------------------
    def check(self) -> None:
        """Refuse what is no mechanical system, each for a reason that one sentence can tell."""
        s, n, m = self.symbols, len(self.symbols.q), len(self.phi)
        rows = len(self.whole.phi) - m
        hessian = sp.hessian(self.whole.lagrangian, s.v)
        third = [x.diff(v) for x in hessian for v in s.v]
        if not all(is_zero(x) for x in dict.fromkeys(third)):
            raise ValueError(
                "`lagrangian` must be quadratic in the velocities (v^T M(q) v / 2 + a(q) v - V(q)), "
                f"but {s.write(self.lagrangian)} is not"
            )
        if (rank := _rank(hessian)) < n:
            raise ValueError(
                f"`lagrangian` must have a mass matrix d2L/dv2 of rank {n}, but its rank is {rank}: "
                "some direction of motion has no kinetic energy"
            )
        if not rows < n:
            raise ValueError(f"`holonomic_constraints` must be fewer than coordinates, but {rows} were given")
        if not m < n - rows:
            raise ValueError(
                f"`nonholonomic_constraints` must be from 0 to {n - rows - 1}, but {m} were given"
            )
        if m and (rank := _rank(self.mu)) < m:
            raise ValueError(
                f"`nonholonomic_constraints` must be independent, but the {m} given have rank {rank}: "
                "some follow from the others"
            )


def _rank(matrix: sp.MatrixBase) -> int:
    """The rank at almost every point; the full one if it cannot be found."""
    try:
        return generic_rank(matrix)
    except Undecided:
        return min(matrix.shape)
