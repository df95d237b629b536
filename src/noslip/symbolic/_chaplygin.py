"""Chaplygin systems in symbols: reduction by a group that the constraints are transversal to (FBO section 1).

The group acts on the m fibre coordinates s by left multiplication; r are the d = n - m others, the base.
With xi = g^-1 gdot and the left-invariant fields E(s), sdot = E(s) xi, everything that is invariant depends
on r, rdot and xi alone:

    xi = -A(r) rdot                                                              connection, (6)
    l(r, rdot, xi) = L,   l_c(r, rdot) = l(r, rdot, -A rdot)                      (4)
    B^a_ij = d_j A^a_i - d_i A^a_j + C^a_bc A^b_i A^c_j                           curvature
    d/dt dl_c/drdot - dl_c/dr = F,   F_i = -J_a B^a_ij rdot^j,   J = dl/dxi       (5)

The curvature is minus (7) as printed, which goes with (5) and with the example B_xy = -1. An applied force
that is invariant adds its part along D to F.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

import sympy as sp

from noslip.errors import unknown_name
from noslip.symbolic._exact import is_zero
from noslip.symbolic._model import SymbolicModel
from noslip.symbolic._tidy import inverse, neat, sines_and_cosines, tidy


# ---- groups -------------------------------------------------------------------------------------------
def _translations(s: Sequence[sp.Symbol]) -> sp.Matrix:
    """R^i x T^(m-i)."""
    return sp.eye(len(s))


def _planar(s: Sequence[sp.Symbol]) -> sp.Matrix:
    """SE(2) on (x, y, heading): velocities ahead, to the left, and of turning."""
    c, n = sp.cos(s[2]), sp.sin(s[2])
    return sp.Matrix([[c, -n, 0], [n, c, 0], [0, 0, 1]])


GROUPS: dict[str, Callable[[Sequence[sp.Symbol]], sp.Matrix]] = {
    "translations": _translations,
    "planar": _planar,
}


@dataclass(frozen=True)
class Reduced:
    """The reduction of a model in plain symbols; `base` and `fibre` are positions of coordinates."""

    model: SymbolicModel
    group: str
    base: tuple[int, ...]
    fibre: tuple[int, ...]

    def _pick(self, symbols: Sequence[sp.Symbol], which: Sequence[int]) -> tuple[sp.Symbol, ...]:
        return tuple(symbols[i] for i in which)

    @property
    def r(self) -> tuple[sp.Symbol, ...]:
        return self._pick(self.model.symbols.q, self.base)

    @property
    def rdot(self) -> tuple[sp.Symbol, ...]:
        return self._pick(self.model.symbols.v, self.base)

    @property
    def s(self) -> tuple[sp.Symbol, ...]:
        return self._pick(self.model.symbols.q, self.fibre)

    @property
    def sdot(self) -> tuple[sp.Symbol, ...]:
        return self._pick(self.model.symbols.v, self.fibre)

    @property
    def xi(self) -> tuple[sp.Symbol, ...]:
        """The group velocity, which is sdot itself for translations."""
        return self.sdot if self.group == "translations" else self.model.symbols.xi(len(self.fibre))

    @cached_property
    def body_fields(self) -> sp.Matrix:
        """E(s), the left-invariant fields as columns."""
        return GROUPS[self.group](self.s)

    # ---- what is still to be found invariant --------------------------------------------------------
    def in_group_velocity(self, expression: sp.Expr) -> sp.Expr:
        """The same with sdot = E(s) xi."""
        own = self.body_fields * sp.Matrix(self.xi)
        return expression.xreplace(dict(zip(self.sdot, own, strict=True)))

    @cached_property
    def determinant(self) -> sp.Expr:
        """Of the constraints on the fibre; where it vanishes they do not determine xi."""
        return tidy(self._columns(self.fibre).det())

    def _columns(self, which: Sequence[int]) -> sp.Matrix:
        return self.model.mu.extract(list(range(self.model.mu.rows)), list(which))

    @cached_property
    def connection_anywhere(self) -> sp.Matrix:
        """A at a group element s."""
        solved = inverse(self._columns(self.fibre)) * self._columns(self.base)
        solved = solved.applyfunc(sines_and_cosines)
        return (self.body_fields.T * solved).applyfunc(tidy)  # E is orthogonal for both groups

    @cached_property
    def force_anywhere(self) -> sp.Matrix:
        """The applied force along r, then along xi, at a group element s."""
        force = self.model.applied_force.applyfunc(self.in_group_velocity)
        along = self.body_fields.T * force.extract(list(self.fibre), [0])
        return sp.Matrix([*force.extract(list(self.base), [0]), *along]).applyfunc(tidy)

    def _at_identity(self, expression: sp.Expr) -> sp.Expr:
        """An expression that does not truly depend on s, without it."""
        if not expression.free_symbols & set(self.s):
            return expression
        identity = dict.fromkeys(self.s, sp.Integer(0))
        value = expression.subs(identity)
        if value.has(sp.nan, sp.zoo):  # 0/0 as it is written
            value = sp.simplify(expression).subs(identity)
        return tidy(value)

    # ---- connection and curvature -------------------------------------------------------------------
    @cached_property
    def connection(self) -> sp.ImmutableMatrix:
        """A of shape (m, d)."""
        return sp.ImmutableMatrix(self.connection_anywhere.applyfunc(self._at_identity))

    @cached_property
    def structure_constants(self) -> tuple[sp.ImmutableMatrix, ...]:
        """C^a as matrices over b, c: [e_b, e_c] = C^a_bc e_a, from the left-invariant fields."""
        E, m = self.body_fields, len(self.s)
        constants = [sp.zeros(m, m) for _ in range(m)]
        for b in range(m):
            for c in range(m):
                bracket = E[:, c].jacobian(self.s) * E[:, b] - E[:, b].jacobian(self.s) * E[:, c]
                for a, value in enumerate((E.T * bracket).applyfunc(sp.simplify)):
                    constants[a][b, c] = value
        return tuple(map(sp.ImmutableMatrix, constants))

    @cached_property
    def curvature(self) -> tuple[sp.ImmutableMatrix, ...]:
        """B^a as matrices over i, j."""
        A, found = self.connection, []
        for a, C in enumerate(self.structure_constants):
            slopes = A[a, :].jacobian(self.r)
            found.append(sp.ImmutableMatrix((slopes - slopes.T + A.T * C * A).applyfunc(tidy)))
        return tuple(found)

    # ---- the reduced Lagrangian ---------------------------------------------------------------------
    @cached_property
    def lagrangian(self) -> sp.Expr:
        """l(r, rdot, xi)."""
        return tidy(sines_and_cosines(self._at_identity(self.in_group_velocity(self.model.lagrangian))))

    def _constrained(self, expression: sp.Expr) -> sp.Expr:
        xi = -self.connection * sp.Matrix(self.rdot)
        return expression.xreplace(dict(zip(self.xi, xi, strict=True)))

    @cached_property
    def _constrained_plain(self) -> sp.Expr:
        return self._constrained(self.lagrangian)

    @cached_property
    def metric(self) -> sp.ImmutableMatrix:
        """G of (4)."""
        return sp.ImmutableMatrix(sp.hessian(self._constrained_plain, self.rdot).applyfunc(neat))

    @cached_property
    def gyroscopic(self) -> sp.ImmutableMatrix:
        """The covector a of the terms a rdot of l_c."""
        slopes = sp.Matrix([self._constrained_plain.diff(v) for v in self.rdot])
        return sp.ImmutableMatrix(slopes.subs(dict.fromkeys(self.rdot, 0)).applyfunc(tidy))

    @cached_property
    def potential(self) -> sp.Expr:
        """V of (4)."""
        return tidy(-self._constrained_plain.subs(dict.fromkeys(self.rdot, 0)))

    @cached_property
    def constrained_lagrangian(self) -> sp.Expr:
        """l_c(r, rdot) of (4)."""
        return polynomial(self.metric, self.gyroscopic, self.rdot) - self.potential

    @cached_property
    def group_momentum(self) -> sp.ImmutableMatrix:
        """J = dl/dxi on the constraint."""
        slopes = [self._constrained(self.lagrangian.diff(x)) for x in self.xi]
        return sp.ImmutableMatrix(sp.Matrix(slopes).applyfunc(tidy))

    @cached_property
    def momentum(self) -> sp.ImmutableMatrix:
        """p = dl_c/drdot."""
        return sp.ImmutableMatrix(self.metric * sp.Matrix(self.rdot) + self.gyroscopic)

    # ---- the motion ---------------------------------------------------------------------------------
    @cached_property
    def reaction(self) -> sp.ImmutableMatrix:
        """F of (5)."""
        v = sp.Matrix(self.rdot)
        terms = (J * B * v for J, B in zip(self.group_momentum, self.curvature, strict=True))
        return sp.ImmutableMatrix((-sum(terms, sp.zeros(len(v), 1))).applyfunc(tidy))

    @cached_property
    def force(self) -> sp.ImmutableMatrix:
        """The part of the applied force along D."""
        d = len(self.r)
        at_identity = self.force_anywhere.applyfunc(self._at_identity).applyfunc(self._constrained)
        along = at_identity[:d, :] - self.connection.T * at_identity[d:, :]
        return sp.ImmutableMatrix(along.applyfunc(tidy))

    @cached_property
    def _drift(self) -> sp.Matrix:
        """d/dt dl_c/drdot - dl_c/dr without the accelerations."""
        l_c = self.constrained_lagrangian
        advance = self.momentum.jacobian(self.r) * sp.Matrix(self.rdot)
        return advance - sp.Matrix([l_c.diff(r) for r in self.r])

    @cached_property
    def euler_lagrange(self) -> sp.ImmutableMatrix:
        """d/dt dl_c/drdot - dl_c/dr."""
        accelerations = sp.Matrix(self._pick(self.model.symbols.a, self.base))
        return sp.ImmutableMatrix((self.metric * accelerations + self._drift).applyfunc(tidy))

    @cached_property
    def inverse_metric(self) -> sp.Matrix:
        G = sp.Matrix(self.metric)
        return (G.adjugate().applyfunc(tidy) / tidy(G.det())).applyfunc(neat)

    @cached_property
    def acceleration(self) -> sp.ImmutableMatrix:
        """d2r/dt2 from (5)."""
        right = self.reaction + self.force - self._drift
        return sp.ImmutableMatrix((self.inverse_metric * right.applyfunc(tidy)).applyfunc(tidy))

    @cached_property
    def reconstruction(self) -> sp.ImmutableMatrix:
        """sdot = -E(s) A rdot, (6)."""
        return sp.ImmutableMatrix(
            (-self.body_fields * self.connection * sp.Matrix(self.rdot)).applyfunc(tidy)
        )


def polynomial(quadratic: sp.MatrixBase, linear: sp.MatrixBase, w: Sequence[sp.Expr]) -> sp.Expr:
    """w^T quadratic w / 2 + linear w, each coefficient kept as it is."""
    d, total = len(w), sp.Integer(0)
    for i in range(d):
        total += quadratic[i, i] * w[i] ** 2 / 2 + linear[i] * w[i]
        total += sum(quadratic[i, j] * w[i] * w[j] for j in range(i + 1, d))
    return total


# ---- the conditions of a Chaplygin system -------------------------------------------------------------
def reduce(model: SymbolicModel, group: str, fibre: Sequence[str]) -> Reduced:
    """The reduction, or a sentence that says which condition fails and why."""
    if group not in GROUPS:
        raise ValueError(unknown_name("group", group, GROUPS))
    names = model.symbols.names
    places = tuple(names.index(name) for name in fibre)
    base = tuple(i for i in range(len(names)) if i not in places)
    reduced = Reduced(model, group, base, places)
    if reason := _refusal(reduced):
        action = "translations" if group == "translations" else "planar motions"
        raise ValueError(f"this is no Chaplygin system under {action} of ({', '.join(fibre)}): {reason}")
    return reduced


def _refusal(reduced: Reduced) -> str:
    model, names = reduced.model, reduced.model.symbols.names
    if model.kind != "linear":
        return f"the constraints must be linear in the velocities, but they are {model.kind}"
    m = len(reduced.fibre)
    if reduced.group == "planar" and m != 3:
        return (
            "the group must have as many directions as there are constraints, "
            f"but SE(2) has 3 directions and the system {m} constraint{'s' if m > 1 else ''}"
        )
    velocities = (*reduced.rdot, *reduced.xi)
    if found := _dependent(reduced, [reduced.in_group_velocity(model.lagrangian)], velocities):
        return f"the Lagrangian must be invariant, but its term {found}"
    if is_zero(reduced.determinant):
        fibre = ", ".join(names[i] for i in reduced.fibre)
        return (
            "T_qQ must be the sum of the fibre directions and the admissible ones, "
            f"but the constraints do not determine the velocities of ({fibre}): "
            "the determinant of their coefficients is 0"
        )
    solved = -reduced.connection_anywhere * sp.Matrix(reduced.rdot)
    if found := _dependent(reduced, solved, velocities):
        return f"the constraints must be invariant, but solved for the fibre velocities their term {found}"
    if found := _dependent(reduced, reduced.force_anywhere, ()):
        return f"the force must be invariant, but its part {found}"
    return ""


def _dependent(reduced: Reduced, expressions: Sequence[sp.Expr], velocities: Sequence[sp.Symbol]) -> str:
    """'<term> depends on <coordinate>' for the first term that does; empty if none does.

    Terms are compared by their powers of the velocities, so that x'^2 cos^2 + x'^2 sin^2 passes.
    """
    write = reduced.model.symbols.write
    for expression in expressions:
        for s in reduced.s:
            if is_zero(expression.diff(s)):
                continue
            terms = sp.Poly(expression, *velocities).terms() if velocities else [((), expression)]
            for powers, coefficient in terms:
                if is_zero(coefficient.diff(s)):
                    continue
                parts = sp.Add.make_args(sp.expand(coefficient))
                guilty = sp.Add(*(part for part in parts if s in part.free_symbols))
                monomial = sp.Mul(*(v**k for v, k in zip(velocities, powers, strict=True)))
                return f"{write(guilty * monomial)} depends on {write(s).func}"
    return ""
