"""JAX functions from SymPy expressions."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Collection
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
import sympy as sp
from jax import Array
from sympy.printing.numpy import JaxPrinter

from noslip.symbolic._symbols import TIME, Symbols

LARGEST_INTEGER = 2**53


class _Printer(JaxPrinter):
    """SymPy's printer for JAX, with powers as cheap as those written by hand.

    SymPy prints 1/x^2 as x**(-2.0), a call of pow, and x^(3/2) likewise; and it takes the special
    functions from `math`, which JAX cannot trace.
    """

    _kf: ClassVar[dict[str, str]] = {
        **JaxPrinter._kf,
        "erf": "jax.scipy.special.erf",
        "erfc": "jax.scipy.special.erfc",
        "gamma": "jax.scipy.special.gamma",
        "loggamma": "jax.scipy.special.gammaln",
    }

    def _print_Pow(self, expr: sp.Pow, rational: bool = False) -> str:
        base, exponent = expr.base, expr.exp
        if exponent.is_Integer and exponent != -1:
            return f"({self._print(base)})**({exponent})"
        if exponent.is_Rational and exponent.q == 2 and abs(exponent.p) != 1:
            return f"{self._module_format('jax.numpy.sqrt')}({self._print(base)})**({exponent.p})"
        return self._hprint_Pow(expr, rational=rational, sqrt="jax.numpy.sqrt")

    def _print_Integer(self, expr: sp.Integer) -> str:
        return str(int(expr)) if abs(expr) < LARGEST_INTEGER else repr(float(expr))

    def _print_And(self, expr: sp.And) -> str:
        return "(" + " & ".join(f"({self._print(x)})" for x in expr.args) + ")"

    def _print_Or(self, expr: sp.Or) -> str:
        return "(" + " | ".join(f"({self._print(x)})" for x in expr.args) + ")"


@dataclass(frozen=True)
class Generated:
    """A function of (q, p), (q, v, p), (q, t, p) or (q, v, t, p) with the values of some expressions.

    Equal by value: the same definition made twice shares its compiled code.
    """

    label: str
    expressions: tuple[sp.Expr, ...]
    shape: tuple[int, ...]
    arguments: str  # "q", "qv", "qt" or "qvt"
    symbols: Symbols

    def __call__(self, *arguments: Any) -> Array:
        *state, p = arguments
        pick = dict(zip(self.arguments, state, strict=True)) | {"c": p}
        values = self._function(
            *(pick[group] if key is None else pick[group][key] for group, key in self._needed)
        )
        if not self.shape:
            return jnp.asarray(values[0], dtype=float)
        if len(self.shape) == 2:
            width = self.shape[1]
            values = [values[i : i + width] for i in range(0, len(values), width)]
        return jnp.array(values, dtype=float)

    @cached_property
    def _sources(self) -> dict[sp.Symbol, tuple[str, int | str | None]]:
        """Where each symbol that occurs is found: which argument, and which entry of it."""
        s = self.symbols
        places: dict[sp.Symbol, tuple[str, int | str | None]] = {q: ("q", i) for i, q in enumerate(s.q)}
        places |= {v: ("v", i) for i, v in enumerate(s.v)}
        places |= {c: ("c", name) for c, name in zip(s.c, s.constant_names, strict=True)}
        places[TIME] = ("t", None)
        used = set().union(*(e.free_symbols for e in self.expressions))
        return {symbol: place for symbol, place in places.items() if symbol in used}

    @cached_property
    def _needed(self) -> tuple[tuple[str, int | str | None], ...]:
        return tuple(self._sources.values())

    @cached_property
    def _function(self) -> Callable[..., list[Any]]:
        settings = {"fully_qualified_modules": False, "inline": True, "allow_unknown_functions": True}
        return sp.lambdify(
            list(self._sources), list(self.expressions), modules="jax", printer=_Printer(settings), cse=True
        )

    @property
    def source(self) -> str:
        """The generated Python code; q_i, v_i, c_i are coordinate, velocity and constant number i."""
        return inspect.getsource(self._function)


def generate(
    label: str, expressions: Collection[sp.Expr], shape: tuple[int, ...], arguments: str, symbols: Symbols
) -> Generated:
    """A function of the expressions, tried once, so that what JAX lacks is named at once."""
    made = Generated(label, tuple(expressions), shape, arguments, symbols)
    try:
        jax.eval_shape(made._function, *([0.5] * len(made._needed)))
    except (NameError, TypeError, NotImplementedError):
        names = sorted({str(f.func) for e in expressions for f in e.atoms(sp.Function)})
        raise ValueError(
            f"`{label}` must consist of functions that JAX has, but one of {', '.join(names)} is not"
        ) from None
    return made
