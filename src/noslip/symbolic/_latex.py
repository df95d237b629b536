"""Equations of a model as LaTeX, with dots for time derivatives."""

from __future__ import annotations

from collections.abc import Iterable

import sympy as sp

from noslip.symbolic._model import SymbolicModel
from noslip.symbolic._symbols import TIME


class Writer:
    """Prints the plain symbols of a model under the user's names."""

    def __init__(self, model: SymbolicModel):
        s, self.m = model.symbols, len(model.phi)
        self.model = model
        self.names = {q: sp.latex(sp.Symbol(name)) for q, name in zip(s.q, s.names, strict=True)}
        self.names |= {c: sp.latex(own) for c, own in zip(s.c, s.constants, strict=True)}
        self.names |= {v: accent(r"\dot", self.names[q]) for q, v in zip(s.q, s.v, strict=True)}
        self.names |= {a: accent(r"\ddot", self.names[q]) for q, a in zip(s.q, s.a, strict=True)}
        taken = any(name.startswith(r"\lambda") for name in self.names.values())
        letter = r"\Lambda" if taken else r"\lambda"
        self.names |= {lam: self._numbered(letter, "_", a) for a, lam in enumerate(s.lam(self.m))}
        self.names[TIME] = sp.latex(s.time)

    def _numbered(self, letter: str, place: str, a: int) -> str:
        return letter if self.m == 1 else f"{letter}{place}{{{a + 1}}}"

    def _print(self, expression: sp.Expr) -> str:
        return sp.latex(expression, symbol_names=self.names)

    def equations(self) -> str:
        """d/dt dL/dv - dL/dq = mu^T lam + force, one row per coordinate, then phi = 0 and g = 0."""
        lam = sp.Matrix(self.m, 1, self.model.symbols.lam(self.m))
        right = self.model.mu.T * lam + self.model.applied_force
        rows = list(zip(self.model.euler_lagrange, right, strict=True))
        stated = self.model.phi if self.model.stated is None else self.model.stated
        return self._aligned([*rows, *((phi, sp.Integer(0)) for phi in stated)])

    def multipliers(self) -> str:
        """lam in closed form."""
        return self._aligned(zip(self.model.symbols.lam(self.m), self.model.multipliers, strict=True))

    def accelerations(self) -> str:
        """The vector field, with the multipliers eliminated."""
        return self._aligned(zip(self.model.symbols.a, self.model.acceleration, strict=True))

    def one_forms(self) -> str:
        """mu^a as one-forms; the drift b^a of affine constraints beside them."""
        rows = []
        differentials = [f"d{self.names[q]}" for q in self.model.symbols.q]
        for a in range(self.m):
            form = self._form(zip(self.model.mu[a, :], differentials, strict=True))
            rows.append(self._numbered(r"\mu", "^", a) + f" &= {form}")
        if self.model.kind == "affine":
            drift = enumerate(self.model.drift)
            rows += [f"{self._numbered('b', '^', a)} &= {self._print(b)}" for a, b in drift]
        return environment(rows)

    def _form(self, terms: Iterable[tuple[sp.Expr, str]]) -> str:
        """A sum of coefficients times differentials."""
        return _sum(self._term(c, differential) for c, differential in terms if c != 0)

    def _term(self, coefficient: sp.Expr, differential: str) -> str:
        if coefficient in (1, -1):
            return ("-" if coefficient == -1 else "") + differential
        factor = self._print(coefficient)
        return (rf"\left({factor}\right)" if coefficient.is_Add else factor) + r" \, " + differential

    def _aligned(self, pairs: Iterable[tuple[sp.Expr, sp.Expr]]) -> str:
        return environment(self._row(self._print(left), right) for left, right in pairs)

    def _row(self, left: str, right: sp.Expr) -> str:
        return f"{left} &= {self._print(right)}"


def environment(rows: Iterable[str]) -> str:
    """Rows aligned at their equality signs."""
    return "\\begin{aligned}\n" + " \\\\\n".join(rows) + "\n\\end{aligned}"


def _sum(terms: Iterable[str]) -> str:
    first, *rest = [*terms] or ["0"]
    signed = (f" - {t[1:].lstrip()}" if t.startswith("-") else f" + {t}" for t in rest)
    return first + "".join(signed)


def accent(accent: str, name: str) -> str:
    """The accent on the letter, not on its index: \\dot{x}_{1}."""
    letter, underscore, index = name.partition("_")
    return f"{accent}{{{letter}}}{underscore}{index}"
