"""What the functions of a system say, as formulas: L, phi and the force, traced by JAX, on SymPy symbols.

So a system that was stated in JAX can be read, in pages and reports, in the form in which it is computed.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import sympy as sp
from jax import Array

from noslip.engine.backends.sympy_formulas import sympy_formulas
from noslip.engine.program import CannotTranslate
from noslip.engine.translate import translate
from noslip.symbolic._latex import accent
from noslip.system import System
from noslip.system.time import TIME

LONGEST = 400  # operations; a formula beyond this is not for reading


@dataclass(frozen=True)
class Formulas:
    """L, the constraints phi = 0, the force components that are not zero and those first integrals that are
    short enough to read, in the symbols q, v and those of the parameters; `names` are the LaTeX names of all
    symbols."""

    lagrangian: sp.Expr
    constraints: tuple[sp.Expr, ...]  # holonomic ones last
    force: Mapping[str, sp.Expr]
    q: tuple[sp.Symbol, ...]
    v: tuple[sp.Symbol, ...]
    names: Mapping[sp.Symbol, str]
    first_integrals: Mapping[str, sp.Expr] = field(default_factory=dict)

    def latex(self) -> list[str]:
        """One equation per entry: L, the constraints, the force."""
        lines = [f"L = {self._shown(self.lagrangian)}"]
        lines += [f"{self._shown(phi)} = 0" for phi in self.constraints]
        return lines + [f"F_{{{name}}} = {self._shown(f)}" for name, f in self.force.items()]

    def first_integrals_latex(self) -> dict[str, str]:
        """The first integrals by their names."""
        return {name: self._shown(integral) for name, integral in self.first_integrals.items()}

    def _shown(self, expression: sp.Expr) -> str:
        return str(sp.latex(expression, symbol_names=self.names))


def formulas(system: System) -> Formulas | None:
    """The formulas of a system, or None where its functions use operations that have none."""
    names = [_name(name) for name in system.coordinates]
    # SymPy writes factors in the order of their names: these come after those of all parameters
    q, v = (tuple(sp.Symbol(f"~{x}{k}") for k in range(system.n)) for x in "qv")
    at, velocity, t = _array(q), _array(v), sp.Symbol("t")
    parameters = {
        name: _array(t) if name == TIME else _symbols(name, np.shape(value))
        for name, value in system.parameters.items()
    }
    shown = dict(zip(q, names, strict=True))
    shown |= {s: accent(r"\dot", name) for s, name in zip(v, names, strict=True)}
    shown |= {x: _name(x.name) for array in parameters.values() for x in array.flat}

    def run(function: Callable[..., Array], *arguments: np.ndarray) -> list[sp.Expr]:
        symbols = (*arguments, parameters)
        shapes = jax.tree.map(lambda x: jax.ShapeDtypeStruct(x.shape, float), symbols)
        # what has many more operations than can be read is not even tried
        program = translate(lambda _, x: function(*x), (), shapes, expand=False, limit=4 * LONGEST)
        return sympy_formulas(program, [symbol for x in jax.tree.leaves(symbols) for symbol in x.flat])

    def phi(q: Array, v: Array, p: Mapping[str, Array]) -> Array:
        if system.constraint is not None:
            return system.constraint(q, v, p)
        if system.one_forms is None:
            return jnp.zeros(0)
        forms = jnp.asarray(system.one_forms(q, p)) @ v
        return forms if system.drift is None else forms + system.drift(q, p)

    try:
        (lagrangian,) = run(system.lagrangian, at, velocity)
        constraints = run(phi, at, velocity)
        constraints += [] if system.holonomic is None else run(system.holonomic, at)
        force = [] if system.force is None else run(system.force, at, velocity, _array(t))
    except CannotTranslate:
        return None
    if sum(sp.count_ops(x) for x in (lagrangian, *constraints, *force)) > LONGEST:
        return None
    integrals = {}
    for name, integral in system.first_integrals.items():
        with contextlib.suppress(CannotTranslate):
            (expression,) = run(integral, at, velocity)
            if sp.count_ops(expression) <= LONGEST // 4:
                integrals[name] = expression
    acting = {name: f for name, f in zip(names, force, strict=False) if f != 0}
    return Formulas(lagrangian, tuple(constraints), acting, q, v, shown, integrals)


def _symbols(name: str, shape: tuple[int, ...]) -> np.ndarray:
    if not shape:
        return _array(sp.Symbol(name))
    entries = [sp.Symbol(f"{name}_{'_'.join(str(i + 1) for i in index)}") for index in np.ndindex(shape)]
    return _array(entries).reshape(shape)


def _name(name: str) -> str:
    """The LaTeX of a name; a word is set upright."""
    plain = str(sp.latex(sp.Symbol(name)))
    return rf"\mathrm{{{name}}}" if plain == name and len(name) > 1 else plain


def _array(values: Any) -> np.ndarray:
    return np.array(values, dtype=object)
