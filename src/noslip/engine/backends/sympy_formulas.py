"""Scalar programs as SymPy expressions, to be read."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction

import sympy as sp

from noslip.engine.backends.expressions import Algebra, expressions
from noslip.engine.program import Number, Program

FUNCTIONS: Mapping[str, Callable[..., sp.Expr]] = {
    "sqrt": sp.sqrt, "abs": sp.Abs, "exp": sp.exp, "log": sp.log, "pow": sp.Pow,
    "sin": sp.sin, "cos": sp.cos, "tan": sp.tan,
    "asin": sp.asin, "acos": sp.acos, "atan": sp.atan, "atan2": sp.atan2,
    "sinh": sp.sinh, "cosh": sp.cosh, "tanh": sp.tanh,
    "asinh": sp.asinh, "acosh": sp.acosh, "atanh": sp.atanh, "erf": sp.erf, "erfc": sp.erfc,
    "exp2": lambda x: 2**x, "expm1": lambda x: sp.exp(x) - 1, "log1p": lambda x: sp.log(1 + x),
    "logistic": lambda x: 1 / (1 + sp.exp(-x)),
}  # fmt: skip


def sympy_formulas(program: Program, inputs: Sequence[sp.Expr]) -> list[sp.Expr]:
    """The outputs of a program, translated with `expand=False`, for these inputs."""
    return expressions(program, inputs, Algebra(exact, FUNCTIONS))


def exact(value: Number) -> sp.Expr:
    """A number as a formula shows it: 1/2 for 0.5, whole numbers as such, others as they are."""
    short = Fraction(value).limit_denominator(1000) if math.isfinite(value) else None
    if short is None or float(short) != float(value):
        return sp.Float(value)
    return sp.Rational(short.numerator, short.denominator)
