"""Chaplygin's multiplier in closed form: when is the reduced motion Hamiltonian in a time dtau = f(r) dt?

The Euler-Lagrange equations of Lc(r, r') = l_c(r, f r') are the reduced equations, FBO (5), just if

    F_i = (omega_i p_j - omega_j p_i) rdot^j,      omega = d ln f,   p = dl_c/drdot = G rdot + a

With J = J_j rdot^j + .. the trace of the quadratic terms by G^jk leaves one candidate in d dimensions,

    omega_i = -G^jk J_k B_ij / (d - 1)             (group indices not written; omega = 0 for d = 1)

What is left to decide is the equation itself (automatic for d = 2 without terms linear in the velocities)
and d omega = 0. Then f is looked for as a product of powers: the factors of the denominators of omega and
exp(r_i), with exponents that are constants.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations

import sympy as sp

from noslip.errors import NotHamiltonizable
from noslip.symbolic._chaplygin import Reduced, polynomial
from noslip.symbolic._exact import Undecided, is_zero, sample, zero
from noslip.symbolic._integrability import antiderivative
from noslip.symbolic._tidy import coefficients, neat, reduced_forms, sines_and_cosines, tidy

Factors = dict[sp.Expr, sp.Expr]  # base -> exponent


@dataclass(frozen=True)
class Hamiltonized:
    """What Chaplygin's theorem makes of a reduced system, in plain symbols. Made by `hamiltonize`."""

    reduced: Reduced
    factors: tuple[tuple[sp.Expr, sp.Expr], ...]
    proved: bool

    @cached_property
    def multiplier(self) -> sp.Expr:
        """f."""
        return sp.Mul(*(base**exponent for base, exponent in self.factors))

    @property
    def slopes(self) -> tuple[sp.Symbol, ...]:
        return tuple(self.reduced.model.symbols.slopes[i] for i in self.reduced.base)

    @property
    def momenta(self) -> tuple[sp.Symbol, ...]:
        return tuple(self.reduced.model.symbols.momenta[i] for i in self.reduced.base)

    @cached_property
    def measure(self) -> sp.Expr:
        """Density f^(d-1) of the invariant measure with respect to dr dp, p = dl_c/drdot."""
        return self.multiplier ** (len(self.reduced.base) - 1)

    @cached_property
    def _metric(self) -> sp.Matrix:
        """f^2 G."""
        return (self.multiplier**2 * self.reduced.metric).applyfunc(neat)

    @cached_property
    def _gyroscopic(self) -> sp.Matrix:
        """f a, by way of f^2 a, which is free of the roots in f."""
        return (self.multiplier**2 * self.reduced.gyroscopic).applyfunc(neat) / self.multiplier

    @cached_property
    def lagrangian(self) -> sp.Expr:
        """Lc(r, r') = l_c(r, f r')."""
        return polynomial(self._metric, self._gyroscopic, self.slopes) - self.reduced.potential

    @cached_property
    def momentum(self) -> sp.ImmutableMatrix:
        """P = dLc/dr'."""
        return sp.ImmutableMatrix(self._metric * sp.Matrix(self.slopes) + self._gyroscopic)

    @cached_property
    def hamiltonian(self) -> sp.Expr:
        """Hc(r, P) = (P - f a)^T (f^2 G)^-1 (P - f a) / 2 + V."""
        kinetic = [P - a for P, a in zip(self.momenta, self._gyroscopic, strict=True)]
        none = sp.zeros(len(kinetic), 1)
        raised = (self.reduced.inverse_metric / self.multiplier**2).applyfunc(neat)
        return polynomial(raised, none, kinetic) + self.reduced.potential

    @cached_property
    def poincare_lagrangian(self) -> sp.Expr:
        """f (l_c + E), FBO (44)."""
        reduced = self.reduced
        energy = reduced.model.symbols.energy
        kinetic = polynomial(self._metric / self.multiplier, self._gyroscopic, reduced.rdot)
        return kinetic + self.multiplier * (energy - reduced.potential)

    def turn_factor(self, angle: sp.Symbol) -> sp.Expr:
        """f(angle + 2 pi) / f(angle); 1 if f is single valued."""
        factor = sp.simplify(self.multiplier.subs(angle, angle + 2 * sp.pi) / self.multiplier)
        return sp.Integer(1) if is_zero(factor - 1) else factor

    def zeros(self, x: sp.Symbol, domain: sp.Set) -> sp.Set:
        """Where f vanishes by a factor of x alone, if SymPy can tell."""
        found = sp.S.EmptySet
        for base, exponent in self.factors:
            if base.free_symbols & set(self.reduced.r) == {x} and exponent.is_positive:
                roots = sp.solveset(base, x, domain)
                found |= sp.S.EmptySet if roots.has(sp.ConditionSet, sp.Intersection) else roots
        return found


# ---- the conditions -----------------------------------------------------------------------------------
def omega(reduced: Reduced) -> tuple[sp.Expr, ...]:
    """The only candidate for d ln f."""
    d = len(reduced.base)
    if d == 1:
        return (sp.Integer(0),)
    slopes = reduced.group_momentum.jacobian(reduced.rdot)
    traces = sp.zeros(d, 1)
    for a, B in enumerate(reduced.curvature):
        traces += B * reduced.inverse_metric * slopes[a, :].T
    return tuple(tidy(-trace / (d - 1)) for trace in traces)


def hamiltonize(reduced: Reduced) -> Hamiltonized:
    """The Hamiltonization, or a sentence that says what stands against it."""
    write = reduced.model.symbols.write
    if not all(is_zero(force) for force in reduced.force):
        raise NotHamiltonizable(
            "not Hamiltonizable: an applied force has no Hamiltonian, but this system has a `force`"
        )
    candidate = omega(reduced)
    proved = [_check_algebraic(reduced, candidate), _check_integrable(reduced, candidate)]
    factors = find_multiplier(candidate, reduced.r)
    if factors is None:
        form = ", ".join(str(write(w)) for w in candidate)
        raise Undecided(
            f"the system is Hamiltonizable, but SymPy found no closed form of f from d ln f = ({form})"
        )
    proved.append(_matches(factors, reduced.r, candidate)[1])
    return Hamiltonized(reduced, tuple(factors.items()), all(proved))


def _check_algebraic(reduced: Reduced, candidate: Sequence[sp.Expr]) -> bool:
    """F_i = (omega_i p_j - omega_j p_i) rdot^j, or a sentence; whether it is proved."""
    write, names = reduced.model.symbols.write, reduced.model.symbols.names
    w, p, v = sp.Matrix(candidate), reduced.momentum, sp.Matrix(reduced.rdot)
    defects = reduced.reaction - w * p.dot(v) + p * w.dot(v)
    proved = True
    for i, defect in enumerate(defects):
        holds, sure = zero(defect)
        if not holds:
            linear = tidy(sum(defect.diff(x).subs(dict.fromkeys(reduced.rdot, 0)) * x for x in reduced.rdot))
            where = f"in the equation of {names[reduced.base[i]]}"
            if is_zero(defect - linear):
                raise NotHamiltonizable(
                    "not Hamiltonizable: the terms of the Lagrangian linear in the velocities "
                    f"leave the defect {write(linear)} {where}"
                )
            raise NotHamiltonizable(
                f"not Hamiltonizable: the algebraic defect is {write(tidy(defect))} {where}, "
                "a reaction that no f(r) explains"
            )
        proved = proved and sure
    return proved


def _check_integrable(reduced: Reduced, candidate: Sequence[sp.Expr]) -> bool:
    """d omega = 0, or a sentence; whether it is proved."""
    write, names, proved = reduced.model.symbols.write, reduced.model.symbols.names, True
    for i, j in combinations(range(len(candidate)), 2):
        defect = candidate[j].diff(reduced.r[i]) - candidate[i].diff(reduced.r[j])
        holds, sure = zero(defect)
        if not holds:
            x, y = (names[reduced.base[k]] for k in (i, j))
            raise NotHamiltonizable(
                f"not Hamiltonizable: the integrability defect is {write(tidy(defect))} "
                f"(d_{x} omega_{y} - d_{y} omega_{x} with omega = d ln f)"
            )
        proved = proved and sure
    return proved


# ---- the multiplier from its logarithmic differential ---------------------------------------------------
def find_multiplier(candidate: Sequence[sp.Expr], r: Sequence[sp.Symbol]) -> Factors | None:
    """f with d ln f = omega for a closed omega, as powers; None if SymPy does not find it."""
    plain = [sp.expand_trig(sines_and_cosines(w)) for w in candidate]
    for bases in _bases(plain, r):
        if (exponents := _exponents(plain, bases, r)) is not None:
            factors = _arranged(dict(zip(bases, exponents, strict=True)), r)
            if _matches(factors, r, candidate)[0]:
                return factors
    potential = sp.Integer(0)
    for x, w in zip(r, plain, strict=True):
        potential += antiderivative(tidy(w - potential.diff(x)), x)
    factors = {sp.exp(potential): sp.Integer(1)}
    if potential.has(sp.Integral) or not _matches(factors, r, candidate)[0]:
        return None
    return factors


def _matches(factors: Factors, r: Sequence[sp.Symbol], candidate: Sequence[sp.Expr]) -> tuple[bool, bool]:
    """(d ln f = omega, and this is proved)."""
    found = [zero(slope - w) for slope, w in zip(_log_slopes(factors, r), candidate, strict=True)]
    return all(holds for holds, _ in found), all(sure for _, sure in found)


def _log_slopes(factors: Factors, r: Sequence[sp.Symbol]) -> list[sp.Expr]:
    """d ln f."""
    return [sp.Add(*(c * base.diff(x) / base for base, c in factors.items())) for x in r]


def _bases(candidate: Sequence[sp.Expr], r: Sequence[sp.Symbol]) -> Iterator[list[sp.Expr]]:
    """Factors of the denominators, written with few sines, with few cosines, or both; and exp(r_i)."""
    written = [reduced_forms(w) for w in candidate]
    few_sines = _denominators([forms[0] for forms in written], r)
    few_cosines = _denominators([forms[-1] for forms in written], r)
    # factors are not unique on the circle: cos^2 = (1 - sin) (1 + sin)
    partner = {sp.cos: sp.sin, sp.sin: sp.cos}
    functions = [partner[e.func](*e.args) for e in few_sines + few_cosines if e.func in partner]
    hidden = [1 + sign * function for function in functions for sign in (1, -1)]
    for factors in (few_sines, few_cosines, list(dict.fromkeys(few_sines + few_cosines + hidden))):
        yield [*factors, *(sp.exp(x) for x in r)]


def _denominators(expressions: Sequence[sp.Expr], r: Sequence[sp.Symbol]) -> list[sp.Expr]:
    found: dict[sp.Expr, None] = {}
    for expression in expressions:
        for factor in sp.Mul.make_args(sp.fraction(sp.together(expression))[1]):
            base = factor.as_base_exp()[0]
            if base.free_symbols & set(r):
                found[base] = None
    return list(found)


def _exponents(
    candidate: Sequence[sp.Expr], bases: Sequence[sp.Expr], r: Sequence[sp.Symbol]
) -> list[sp.Expr] | None:
    """Constants c with omega = sum c_i d ln(base_i)."""
    unknown = sp.symbols(f"k:{len(bases)}", cls=sp.Dummy)
    slopes = _log_slopes(dict(zip(bases, unknown, strict=True)), r)
    equations = [c for w, slope in zip(candidate, slopes, strict=True) for c in coefficients(w - slope, r)]
    solutions = sp.linsolve(equations, *unknown)
    if not solutions:
        return None
    (found,) = solutions
    return [tidy(c.subs(dict.fromkeys(unknown, 0))) for c in found]


def _arranged(factors: Factors, r: Sequence[sp.Symbol]) -> Factors:
    """Factors of exponent 0 left out, bases positive and in their nicest form, one exponential."""
    arranged: Factors = {}
    rate = sp.Integer(0)
    for base, exponent in factors.items():
        if exponent == 0:
            continue
        if isinstance(base, sp.exp) and base.exp in r:
            rate += exponent * base.exp
            continue
        values = [row[0] for row in sample([base])]
        negative = values and all(value.real < 0 for value in values)
        nice = neat(-base if negative else base)
        fixed, moving = nice.as_independent(*r, as_Add=True)
        nice = fixed + sp.factor_terms(moving)  # 1 + c^2 (x^2 + y^2)
        arranged[nice] = arranged.get(nice, sp.Integer(0)) + exponent
    if rate != 0:
        arranged[sp.exp(tidy(rate))] = sp.Integer(1)
    return arranged
