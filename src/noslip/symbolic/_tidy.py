"""Shorter forms of expressions: rational functions in lowest terms, with sin^2 + cos^2 = 1.

sin(x), sqrt(x) and the like are treated as unknowns of a polynomial; this takes a tenth of the time
of SymPy's `simplify` on the equations of mechanics and keeps sin(x) cos(x) as it is.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import permutations

import sympy as sp

LIMIT = 400  # operations above which an expression is left as it is: factoring would take minutes


def tidy(expression: sp.Expr) -> sp.Expr:
    """The shortest of some equal forms."""
    if not 2 < expression.count_ops() <= LIMIT:
        return expression
    candidates = [expression, sp.factor_terms(expression), *reduced_forms(expression)]
    return min(candidates, key=lambda e: e.count_ops())


def inverse(matrix: sp.MatrixBase) -> sp.Matrix:
    """The inverse matrix, by polynomials: rows cleared of denominators, then adjugate over determinant."""
    rule = _unknowns(matrix)
    fractions = sp.Matrix(matrix).xreplace(rule).applyfunc(sp.together)
    rows, scales = [], []
    for i in range(fractions.rows):
        parts = [sp.fraction(e) for e in fractions[i, :]]
        scales.append(sp.lcm_list([denominator for _, denominator in parts]))
        rows.append([a * sp.cancel(scales[i] / b) for a, b in parts])
    table = sp.polys.matrices.DomainMatrix.from_Matrix(sp.Matrix(rows))
    adjugate, determinant = table.adj_det()
    result = adjugate.to_Matrix() * sp.diag(*scales) / table.domain.to_sympy(determinant)
    return result.xreplace(_reverse(rule)).applyfunc(tidy)


def reduced_forms(expression: sp.Expr) -> list[sp.Expr]:
    """In lowest terms; if sines and cosines meet, once with few sines and once with few cosines."""
    rule = _unknowns(expression)
    plain, back, pairs = expression.xreplace(rule), _reverse(rule), _circles(rule)
    if not pairs:
        return [sp.factor(plain).xreplace(back)]
    forms = []
    for few in (0, 1):
        parts = sp.fraction(sp.together(plain))
        top, bottom = (_on_circles(part, pairs, few) for part in parts)
        forms.append(sp.factor(sp.cancel(top / bottom)).xreplace(back))
    return forms


def coefficients(expression: sp.Expr, x: Sequence[sp.Symbol]) -> list[sp.Expr]:
    """What must vanish for the expression to vanish for all x: the coefficients of its numerator.

    Functions of x other than sines and cosines count as independent of x and of each other, so that these
    may be more conditions than needed, but never fewer.
    """
    rule = _unknowns(expression)
    plain = sp.fraction(sp.together(expression.xreplace(rule)))[0]
    unknowns = [*x, *(dummy for f, dummy in rule.items() if f.free_symbols & set(x))]
    table = sp.Poly(_on_circles(plain, _circles(rule), 1), *unknowns)
    return [coefficient.xreplace(_reverse(rule)) for coefficient in table.coeffs()]


def neat(expression: sp.Expr) -> sp.Expr:
    """The tidied expression with the sines and cosines in each of its factors chosen for few minus signs:
    1 + sin^2 rather than 2 - cos^2, and a sin^2 + b cos^2 rather than a + (b - a) cos^2."""
    factors, sign = [], sp.Integer(1)
    for factor in sp.Mul.make_args(sp.factor_terms(tidy(expression))):
        base, exponent = factor.as_base_exp()
        if base.is_Add and base.has(sp.sin, sp.cos):
            form = _neat_polynomial(base)
            if exponent.is_Integer and _clutter(form)[0] > 0:
                other = _neat_polynomial(-base)
                if _clutter(other) < _clutter(form):
                    form, sign = other, sign * (-1) ** exponent
            factor = sp.factor_terms(form) ** exponent
        factors.append(factor)
    return sp.Mul(sign, *factors)


def sines_and_cosines(expression: sp.Expr) -> sp.Expr:
    """tan, cot, sec, csc and the hyperbolic ones written out, so that their zeros and denominators show."""
    for sine, cosine, quotients in (
        (sp.sin, sp.cos, (sp.tan, sp.cot, sp.sec, sp.csc)),
        (sp.sinh, sp.cosh, (sp.tanh, sp.coth, sp.sech, sp.csch)),
    ):
        tan, cot, sec, csc = quotients
        expression = (
            expression.replace(tan, lambda x, s=sine, c=cosine: s(x) / c(x))
            .replace(cot, lambda x, s=sine, c=cosine: c(x) / s(x))
            .replace(sec, lambda x, c=cosine: 1 / c(x))
            .replace(csc, lambda x, s=sine: 1 / s(x))
        )
    return expression


def _clutter(form: sp.Expr) -> tuple[int, int]:
    signs = sum(term.could_extract_minus_sign() for term in sp.Add.make_args(form))
    return signs, form.count_ops()


def _neat_polynomial(expression: sp.Expr) -> sp.Expr:
    """Of a polynomial in sines and cosines; other expressions come back as they are."""
    rule = _unknowns(expression)
    for f in [f for f in rule if isinstance(f, sp.sin | sp.cos)]:
        partner = sp.cos(*f.args) if isinstance(f, sp.sin) else sp.sin(*f.args)
        rule.setdefault(partner, sp.Dummy())
    plain, pairs = expression.xreplace(rule), _circles(rule)
    if not plain.is_polynomial(*(x for pair in pairs for x in pair)):
        return expression
    forms = [plain]
    for order in permutations(pairs):
        form = _on_circles(plain, pairs, 1)
        for pair in order:
            others = [x for other in pairs if other is not pair for x in other]
            terms = sp.Poly(form, *others).terms() if others else [((), form)]
            form = sp.Add(
                *(
                    min(_circle_forms(c, pair), key=_clutter)
                    * sp.Mul(*(x**k for x, k in zip(others, powers, strict=True)))
                    for powers, c in terms
                )
            )
        forms.append(sp.expand(form))
    return min(forms, key=_clutter).xreplace(_reverse(rule))


def _circle_forms(form: sp.Expr, pair: tuple[sp.Symbol, sp.Symbol]) -> list[sp.Expr]:
    """Few sines, few cosines, and all terms of the same degree."""
    forms = [_on_circles(form, [pair], few) for few in (0, 1)]
    sine, cosine = pair
    plain = sp.Poly(forms[1], sine, cosine)  # no cosine but in first power
    degree = plain.degree(sine)
    if plain.degree(cosine) == 0 and all(power % 2 == 0 for power, _ in plain.monoms()):
        even = (
            c * sine**power * (sine**2 + cosine**2) ** ((degree - power) // 2)
            for (power, _), c in plain.terms()
        )
        forms.append(sp.expand(sp.Add(*even)))
    return forms


def _circles(rule: dict[sp.Expr, sp.Dummy]) -> list[tuple[sp.Symbol, sp.Symbol]]:
    """The unknowns that stand for the sine and cosine of one angle."""
    return [
        (rule[f], rule[sp.cos(*f.args)]) for f in rule if isinstance(f, sp.sin) and sp.cos(*f.args) in rule
    ]


def _on_circles(part: sp.Expr, pairs: Sequence[tuple[sp.Symbol, sp.Symbol]], few: int) -> sp.Expr:
    """A polynomial with the power of every sine (few = 0) or cosine (few = 1) below 2."""
    for pair in pairs:
        part = sp.rem(sp.expand(part), pair[0] ** 2 + pair[1] ** 2 - 1, pair[few])
    return part


def _unknowns(expression: sp.Expr | sp.MatrixBase) -> dict[sp.Expr, sp.Dummy]:
    """A new symbol for every function and root; what contains another comes first."""
    roots = {power for power in expression.atoms(sp.Pow) if not power.exp.is_Integer}
    found = sorted(expression.atoms(sp.Function) | roots, key=lambda e: (-e.count_ops(), str(e)))
    return {e: sp.Dummy(f"f_{i}") for i, e in enumerate(found)}


def _reverse(rule: dict[sp.Expr, sp.Dummy]) -> dict[sp.Dummy, sp.Expr]:
    return {dummy: e for e, dummy in rule.items()}
