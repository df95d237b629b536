"""Shorter forms of expressions: rational functions in lowest terms, with sin^2 + cos^2 = 1.

sin(x), sqrt(x) and the like are treated as unknowns of a polynomial; this takes a tenth of the time
of SymPy's `simplify` on the equations of mechanics and keeps sin(x) cos(x) as it is.
"""

from __future__ import annotations

import sympy as sp

LIMIT = 400  # operations above which an expression is left as it is: factoring would take minutes


def tidy(expression: sp.Expr) -> sp.Expr:
    """The shortest of some equal forms."""
    if not 2 < expression.count_ops() <= LIMIT:
        return expression
    candidates = [expression, sp.factor_terms(expression), *_reduced(expression)]
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


def _reduced(expression: sp.Expr) -> list[sp.Expr]:
    """In lowest terms; if sines and cosines meet, once with few sines and once with few cosines."""
    rule = _unknowns(expression)
    plain, back = expression.xreplace(rule), _reverse(rule)
    pairs = [
        (rule[f], rule[sp.cos(*f.args)]) for f in rule if isinstance(f, sp.sin) and sp.cos(*f.args) in rule
    ]
    if not pairs:
        return [sp.factor(plain).xreplace(back)]
    forms = []
    for few in (0, 1):
        parts = list(sp.fraction(sp.together(plain)))
        for pair in pairs:
            circle = pair[0] ** 2 + pair[1] ** 2 - 1
            parts = [sp.rem(sp.expand(part), circle, pair[few]) for part in parts]
        forms.append(sp.factor(sp.cancel(parts[0] / parts[1])).xreplace(back))
    return forms


def _unknowns(expression: sp.Expr | sp.MatrixBase) -> dict[sp.Expr, sp.Dummy]:
    """A new symbol for every function and root; what contains another comes first."""
    roots = {power for power in expression.atoms(sp.Pow) if not power.exp.is_Integer}
    found = sorted(expression.atoms(sp.Function) | roots, key=lambda e: (-e.count_ops(), str(e)))
    return {e: sp.Dummy(f"f_{i}") for i, e in enumerate(found)}


def _reverse(rule: dict[sp.Expr, sp.Dummy]) -> dict[sp.Dummy, sp.Expr]:
    return {dummy: e for e, dummy in rule.items()}
