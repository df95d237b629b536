"""The symbols of one system: read the user's expressions into plain symbols, write results back.

Inside, position i of q, v, a (accelerations), c (constants) and lam is a fixed symbol, so equal
definitions give equal expressions, and their names put a product in the order
constant, multiplier, coordinate, velocity, acceleration.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

import sympy as sp
from sympy.core.function import AppliedUndef

from noslip.errors import unknown_name

Written = TypeVar("Written", sp.Expr, sp.MatrixBase)
TIME = sp.Symbol("t", real=True)


def _plain(letter: str, count: int) -> tuple[sp.Symbol, ...]:
    return tuple(sp.Symbol(f"{letter}_{i}", real=True) for i in range(count))


@dataclass(frozen=True)
class Symbols:
    """What the user's expressions may contain, and the plain symbol for each."""

    coordinates: tuple[sp.Expr, ...]  # functions of time, as the user made them
    constants: tuple[sp.Symbol, ...]
    time: sp.Symbol

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(str(x.func) for x in self.coordinates)

    @property
    def constant_names(self) -> tuple[str, ...]:
        return tuple(c.name for c in self.constants)

    @property
    def q(self) -> tuple[sp.Symbol, ...]:
        return _plain("q", len(self.coordinates))

    @property
    def v(self) -> tuple[sp.Symbol, ...]:
        return _plain("v", len(self.coordinates))

    @property
    def a(self) -> tuple[sp.Symbol, ...]:
        return _plain("w", len(self.coordinates))

    @property
    def c(self) -> tuple[sp.Symbol, ...]:
        return tuple(
            sp.Symbol(f"c_{i}", real=True, positive=c.is_positive) for i, c in enumerate(self.constants)
        )

    @staticmethod
    def lam(m: int) -> tuple[sp.Symbol, ...]:
        return _plain("l", m)

    @staticmethod
    def xi(m: int) -> tuple[sp.Symbol, ...]:
        """Group velocities of a Chaplygin system."""
        return _plain("x", m)

    @property
    def slopes(self) -> tuple[sp.Symbol, ...]:
        """Velocities dr/dtau in the time of a Hamiltonized system."""
        return _plain("u", len(self.coordinates))

    @property
    def momenta(self) -> tuple[sp.Symbol, ...]:
        """Momenta of a Hamiltonized system."""
        return _plain("s", len(self.coordinates))

    @property
    def energy(self) -> sp.Symbol:
        """The energy as a constant, in FBO (44)."""
        return sp.Symbol("e", real=True)

    def _rule(self) -> dict[sp.Expr, sp.Expr]:
        t = self.time
        pairs = [*zip(self.coordinates, self.q, strict=True), *zip(self.constants, self.c, strict=True)]
        pairs += [(x.diff(t), v) for x, v in zip(self.coordinates, self.v, strict=True)]
        pairs += [(x.diff(t, 2), a) for x, a in zip(self.coordinates, self.a, strict=True)]
        return dict([*pairs, (t, TIME)])

    def _results(self) -> dict[sp.Expr, sp.Expr]:
        """Symbols that only results contain, under names that the user's leave free."""
        n, taken = len(self.coordinates), {*self.names, *self.constant_names, self.time.name}
        pairs = [(xi, f"xi_{a + 1}") for a, xi in enumerate(self.xi(n))]
        pairs += [(u, f"{name}'") for u, name in zip(self.slopes, self.names, strict=True)]
        pairs += [(P, f"P_{name}") for P, name in zip(self.momenta, self.names, strict=True)]
        pairs += [(self.energy, "E")]
        return {plain: sp.Symbol(_free(name, taken)) for plain, name in pairs}

    def write(self, expression: Written) -> Written:
        """An expression or matrix of plain symbols in the user's own symbols."""
        own = {plain: own for own, plain in self._rule().items()}
        return expression.xreplace(own | self._results())

    def read(self, label: str, expression: object, *, velocities: bool = True, time: bool = False) -> sp.Expr:
        """A user's expression in plain symbols; whatever does not belong there is an error that names it."""
        own = _expression(label, expression).doit()
        self._refuse_strangers(label, own)
        plain = own.xreplace(self._rule())
        if found := plain.free_symbols & set(self.a):
            raise ValueError(
                f"`{label}` must not contain accelerations, "
                f"but {self.write(min(found, key=str))} was found in it"
            )
        if not velocities and (found := plain.free_symbols & set(self.v)):
            raise ValueError(
                f"`{label}` must depend on coordinates and constants only, "
                f"but {self.write(min(found, key=str))} was found in it"
            )
        if not time and TIME in plain.free_symbols:
            raise ValueError(f"`{label}` must not depend explicitly on the time {self.time}, but {own} does")
        # decimals become the fractions they were written as: 0.1 + 0.2 - 0.3 is then exactly zero
        decimals = {x: sp.Rational(repr(float(x))) for x in plain.atoms(sp.Float)}
        return plain.xreplace(decimals)

    def _refuse_strangers(self, label: str, own: sp.Expr) -> None:
        allowed = f"`{label}` must be made of coordinates, their velocities and constants: "
        known = (*self.names, *self.constant_names)
        if powers := [d for d in own.atoms(sp.Derivative) if d not in self._rule()]:
            raise ValueError(f"{allowed}the derivative {powers[0]} is none of these")
        for function in sorted(own.atoms(AppliedUndef) - set(self.coordinates), key=str):
            raise ValueError(allowed + unknown_name("function", str(function.func), known))
        for symbol in sorted(own.free_symbols - {*self.constants, self.time}, key=str):
            if symbol.name in (*self.constant_names, self.time.name):
                meant = "time" if symbol.name == self.time.name else "constant"
                raise ValueError(
                    f"{allowed}its symbol '{symbol}' has other assumptions than the {meant} '{symbol}', "
                    "so it is another symbol to SymPy"
                )
            if symbol.name in self.names:
                raise ValueError(
                    f"{allowed}it contains the plain symbol '{symbol}', "
                    f"but the coordinate is the function {symbol}({self.time})"
                )
            raise ValueError(allowed + unknown_name("symbol", symbol.name, known))
        if bad := own.atoms(sp.nan, sp.zoo, sp.oo, -sp.oo, sp.I):
            raise ValueError(f"`{label}` must be real and finite, but {bad.pop()} was found in it")


def _free(name: str, taken: Collection[str]) -> str:
    """The name, with underscores added until nobody else has it."""
    return name if name not in taken else _free(f"{name}_", taken)


def _expression(label: str, given: object) -> sp.Expr:
    """A SymPy expression; an equation counts as left side minus right side."""
    try:
        expression = sp.sympify(given, strict=True)
    except sp.SympifyError:
        raise TypeError(
            f"`{label}` must be a SymPy expression, but {given!r} ({type(given).__name__}) was provided"
        ) from None
    if isinstance(expression, sp.Equality):
        expression = expression.lhs - expression.rhs
    if not isinstance(expression, sp.Expr) or expression.is_Matrix:
        raise TypeError(
            f"`{label}` must be a SymPy expression, "
            f"but {expression} ({type(expression).__name__}) was provided"
        )
    return expression


def sequence(label: str, given: object, length: int | None = None) -> list[Any]:
    """A list, tuple or vector as a list, of the wanted length."""
    if isinstance(given, list | tuple) or (isinstance(given, sp.MatrixBase) and 1 in given.shape):
        items = list(given)
    else:
        raise TypeError(f"`{label}` must be a list, but {given!r} ({type(given).__name__}) was provided")
    if length is not None and len(items) != length:
        raise ValueError(f"`{label}` must have {length} entries, but {len(items)} were provided")
    return items


def make_symbols(coordinates: object, constants: Mapping[sp.Symbol, Any]) -> tuple[Symbols, dict[str, Any]]:
    """The symbols of a system, and its parameters by name."""
    functions = sequence("coordinates", coordinates)
    for x in functions:
        if not isinstance(x, AppliedUndef) or len(x.args) != 1 or not isinstance(x.args[0], sp.Symbol):
            raise TypeError(
                "`coordinates` must be functions of time made by sympy.physics.mechanics.dynamicsymbols, "
                f"but {x!r} ({type(x).__name__}) was provided"
            )
    if not functions:
        raise ValueError("`coordinates` must be at least one, but none was provided")
    times = {x.args[0] for x in functions}
    if len(times) != 1:
        raise ValueError(f"`coordinates` must be functions of one time, but {_listed(times)} were found")
    for key in constants:
        if not isinstance(key, sp.Symbol):
            raise TypeError(
                "`constants` must have SymPy symbols as keys, "
                f"but {key!r} ({type(key).__name__}) was provided"
            )
    symbols = Symbols(tuple(functions), tuple(constants), times.pop())
    names = [*symbols.names, *symbols.constant_names, symbols.time.name]
    if repeated := {name for name in names if names.count(name) > 1}:
        raise ValueError(
            "coordinates, constants and the time must have different names, "
            f"but {_listed(repeated)} is repeated"
        )
    return symbols, {key.name: _number(key.name, value) for key, value in constants.items()}


def _listed(items: Iterable[object]) -> str:
    return ", ".join(sorted(f"'{item}'" for item in items))


def _number(name: str, value: Any) -> Any:
    """SymPy's numbers become floats; all others are for `System` to check."""
    if not isinstance(value, sp.Basic):
        return value
    if not isinstance(value, sp.Expr) or not value.is_real or not value.is_number:
        raise ValueError(f"constant '{name}' must be a number, but {value} was provided")
    return float(value)
