"""Frobenius: are the constraints nonholonomic, or holonomic ones in disguise?

With one-forms mu^1 .. mu^m and D their common kernel, D is integrable iff d mu^a ^ mu^1 ^ .. ^ mu^m = 0
for all a, that is iff d mu^a(X_i, X_j) = 0 for a basis X of D. If it is not, brackets of D are added until
nothing new comes: the one-forms that vanish on this larger distribution are the hidden holonomic ones.
Affine constraints mu v + b = 0 are the one-forms mu dq + b dt on space and time.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations

import sympy as sp
from sympy.integrals.manualintegrate import manualintegrate

from noslip.symbolic._exact import Undecided, generic_pivots, generic_rank, is_zero, zero
from noslip.symbolic._tidy import tidy

HINT_LIMIT = 80  # operations of a one-form above which no function is looked for


@dataclass(frozen=True)
class Integrability:
    """What Frobenius' theorem says about the constraints, for constants in general position.

    `kind` is 'nonholonomic', 'partly holonomic' or 'holonomic'; `rank` that of the smallest integrable
    distribution with all admissible velocities, in `dimension` dimensions (time included if affine);
    `functions` are verified to be constant along every motion, when such were found; `proved` is False
    if a zero was seen at random points with 50 digits, but not confirmed by SymPy.
    """

    kind: str
    rank: int
    dimension: int
    functions: tuple[sp.Expr, ...] = ()
    proved: bool = True

    def __str__(self) -> str:
        if self.kind == "nonholonomic":
            return "these constraints are nonholonomic: they keep no function of the coordinates constant"
        hidden = self.dimension - self.rank
        extent = "all of them" if self.kind == "holonomic" else f"{hidden} of their independent combinations"
        integrals = " and ".join(f"{function} = constant" for function in self.functions)
        return (
            f"these constraints are {self.kind} in disguise: {extent} can be integrated"
            f"{', to ' * bool(integrals)}{integrals}"
        )


def classify(forms: sp.MatrixBase, x: Sequence[sp.Symbol]) -> Integrability:
    """Integrability of the one-forms in the rows of `forms`, in the coordinates x."""
    m, n = forms.shape
    basis = kernel(forms)
    grown = _bracket_closure(forms, basis, x)
    rank = n - m + len(grown)
    if rank == n:
        return Integrability("nonholonomic", rank, n)
    hidden = sp.Matrix(forms)
    if grown:  # the combinations of the one-forms that vanish on the new brackets too
        combinations_ = kernel((forms * sp.Matrix.hstack(*grown)).applyfunc(tidy).T)
        hidden = (combinations_.T * forms).applyfunc(tidy)
    holds, proved = _frobenius(hidden, x)
    if not holds:
        raise Undecided("the integrability of the constraints must be decided by SymPy, but it was not")
    kind = "partly holonomic" if grown else "holonomic"
    return Integrability(kind, rank, n, tuple(_functions(hidden, x)), proved)


def kernel(forms: sp.MatrixBase) -> sp.Matrix:
    """A basis of vectors on which all rows vanish, without division (Cramer's rule)."""
    m, n = forms.shape
    dependent = generic_pivots(forms)
    free = [j for j in range(n) if j not in dependent]
    square, rest = forms.extract(list(range(m)), dependent), forms.extract(list(range(m)), free)
    top = -(square.adjugate() * rest)
    scale = square.det()
    basis = sp.zeros(n, n - m)
    for column, j in enumerate(free):
        basis[j, column] = scale
        for row, i in enumerate(dependent):
            basis[i, column] = top[row, column]
    return basis.applyfunc(tidy)


def _bracket_closure(forms: sp.MatrixBase, basis: sp.Matrix, x: Sequence[sp.Symbol]) -> list[sp.Matrix]:
    """Brackets that, with the basis of D, span the smallest integrable distribution."""
    m, n = forms.shape
    fields = [basis[:, j] for j in range(n - m)]
    grown: list[sp.Matrix] = []
    pairs = list(combinations(fields, 2))
    while pairs and len(grown) < m:
        fresh = []
        for first, second in pairs:
            new = (second.jacobian(x) * first - first.jacobian(x) * second).applyfunc(tidy)
            # the one-forms see what is new: a bracket in D has no component along them
            if generic_rank(forms * sp.Matrix.hstack(*grown, new)) > len(grown):
                grown.append(new)
                fresh.append(new)
            if len(grown) == m:
                break
        pairs = [(old, new) for new in fresh for old in fields]
    return grown


def _frobenius(forms: sp.MatrixBase, x: Sequence[sp.Symbol]) -> tuple[bool, bool]:
    """(d mu^a ^ mu^1 ^ .. ^ mu^m = 0 for all a, and this is proved)."""
    basis = kernel(forms)
    proved = True
    for a in range(forms.rows):
        slopes = forms[a, :].jacobian(x)
        table = basis.T * (slopes.T - slopes) * basis
        for i, j in combinations(range(basis.cols), 2):
            holds, sure = zero(table[i, j])
            if not holds:
                return False, sure
            proved = proved and sure
    return True, proved


def _functions(forms: sp.Matrix, x: Sequence[sp.Symbol]) -> Iterator[sp.Expr]:
    """Functions whose differentials span the forms, all or none, where they are easily found."""
    found = [_potential(forms[a, :], x) for a in range(forms.rows)]
    if None in found and forms.rows > 1:  # each solved for one velocity
        pivots = generic_pivots(forms)
        square = forms.extract(list(range(forms.rows)), pivots)
        reduced = (square.adjugate() * forms / square.det()).applyfunc(tidy)
        found = [_potential(reduced[a, :], x) for a in range(forms.rows)]
    if None not in found:
        yield from found


def _potential(form: sp.Matrix, x: Sequence[sp.Symbol]) -> sp.Expr | None:
    """F with dF = factor * form for some simple integrating factor, verified; None if none was found."""
    if sum(e.count_ops() for e in form) > HINT_LIMIT:
        return None
    for factor in _integrating_factors(form, x):
        scaled = (factor * form).applyfunc(tidy)
        slopes = scaled.jacobian(x)
        if not all(is_zero(e) for e in slopes - slopes.T):
            continue
        function = sp.Integer(0)
        for i, xi in enumerate(x):
            function += antiderivative(tidy(scaled[i] - function.diff(xi)), xi)
        if not function.has(sp.Integral) and all(
            is_zero(function.diff(xi) - e) for xi, e in zip(x, scaled, strict=True)
        ):
            return tidy(function)
    return None


def antiderivative(expression: sp.Expr, x: sp.Symbol) -> sp.Expr:
    """Of cases, such as a constant that may be zero, the general one; the caller verifies."""
    return manualintegrate(expression, x).replace(sp.Piecewise, lambda general, *_: general[0])


def _integrating_factors(form: sp.Matrix, x: Sequence[sp.Symbol]) -> Iterator[sp.Expr]:
    """1, one over a component, and functions f of one coordinate x_k: f'/f form_i = -(d form)_ki."""
    yield sp.Integer(1)
    components = [e for e in form if e != 0]
    yield from (1 / e for e in components if e.free_symbols)
    slopes = form.jacobian(x)
    for k, xk in enumerate(x):
        for i in range(len(x)):
            if i != k and form[i] != 0:
                rate = tidy((slopes[k, i] - slopes[i, k]) / form[i])
                if rate != 0 and not rate.free_symbols & (set(x) - {xk}):
                    yield sp.exp(antiderivative(rate, xk))
                break
