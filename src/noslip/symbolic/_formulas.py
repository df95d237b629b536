"""What the functions of a system say, as formulas: L, phi and the force, traced by JAX, on SymPy symbols.

So a system that was stated in JAX can be read, in pages and reports, in the form in which it is computed.
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import sympy as sp
from jax import Array
from numpy.typing import ArrayLike

from noslip import rotations
from noslip.engine.backends.numpy_rows import evaluate
from noslip.engine.backends.sympy_formulas import sympy_formulas
from noslip.engine.program import CannotTranslate
from noslip.engine.translate import translate
from noslip.symbolic._latex import accent
from noslip.system import System
from noslip.system.time import TIME

LONGEST = 400  # operations; a formula beyond this is not for reading
ACCURATE = 1e-12


@dataclass(frozen=True)
class Turning:
    """The symbols of a rotation: its matrix R from body to space, and its rates in both axes, which stand for
    its quaternion and the velocity of that in the formulas."""

    matrix: tuple[sp.Symbol, ...]  # by rows
    body_rates: tuple[sp.Symbol, ...]
    space_rates: tuple[sp.Symbol, ...]

    @classmethod
    def named(cls) -> Turning:
        def three(letter: str) -> tuple[sp.Symbol, ...]:
            return tuple(sp.Symbol(f"~{letter}{k}") for k in (1, 2, 3))

        entries = [sp.Symbol(f"~R{j}{k}") for j in (1, 2, 3) for k in (1, 2, 3)]
        return cls(tuple(entries), three("w"), three("W"))

    @property
    def names(self) -> dict[sp.Symbol, str]:
        """Their LaTeX."""
        named = {x: rf"\mathsf{{R}}_{{{x.name[2:]}}}" for x in self.matrix}
        named |= {x: rf"\omega_{{{x.name[2:]}}}" for x in self.body_rates}
        return named | {x: rf"\Omega_{{{x.name[2:]}}}" for x in self.space_rates}

    def values(self, u: np.ndarray, du: np.ndarray) -> dict[sp.Symbol, float]:
        """Of a quaternion and its velocity."""
        numbers = (rotations.matrix(u).ravel(), rotations.body_rates(u, du), rotations.space_rates(u, du))
        symbols = (*self.matrix, *self.body_rates, *self.space_rates)
        return dict(zip(symbols, np.concatenate(numbers).tolist(), strict=True))


@dataclass(frozen=True)
class Formulas:
    """L, the constraints phi = 0, the force components that are not zero and those first integrals that are
    short enough to read, in the symbols q, v and those of the parameters, with those of `turning` for a
    quaternion; `names` are the LaTeX names of all symbols."""

    lagrangian: sp.Expr
    constraints: tuple[sp.Expr, ...]  # holonomic ones last
    force: Mapping[str, sp.Expr]
    q: tuple[sp.Symbol, ...]
    v: tuple[sp.Symbol, ...]
    names: Mapping[sp.Symbol, str]
    first_integrals: Mapping[str, sp.Expr] = field(default_factory=dict)
    turning: Turning | None = None

    def latex(self) -> list[str]:
        """One equation per entry: L, the constraints, the force; and what R is, where there is a rotation."""
        lines = [f"L = {self._shown(self.lagrangian)}"]
        lines += [f"{self._shown(phi)} = 0" for phi in self.constraints]
        lines += [f"F_{{{name}}} = {self._shown(f)}" for name, f in self.force.items()]
        if self.turning is not None:
            lines.append(r"\dot{\mathsf{R}} = \mathsf{R} [\omega]_{\times} = [\Omega]_{\times} \mathsf{R}")
        return lines

    def first_integrals_latex(self) -> dict[str, str]:
        """The first integrals by their names."""
        return {name: self._shown(integral) for name, integral in self.first_integrals.items()}

    def _shown(self, expression: sp.Expr) -> str:
        return str(sp.latex(expression, symbol_names=self.names))


def formulas(system: System) -> Formulas | None:
    """The formulas of a system, or None where its functions use operations that have none, or are too long.

    A rotation is shown by its matrix and rates: its functions must know it by `noslip.rotations` alone, which
    is tried at a state. Forces and a second rotation have no formulas beside it.
    """
    if system.rotations and (len(system.rotations) > 1 or system.force is not None):
        return None
    writer = _Writer(system)
    try:
        (lagrangian,) = writer.written(system.lagrangian)
        constraints = writer.written(functools.partial(_phi, system))
        holonomic = system.holonomic
        constraints += [] if holonomic is None else writer.written(lambda q, v, p: holonomic(q, p))
        force = [] if system.force is None else writer.force()
    except CannotTranslate:
        return None
    if sum(sp.count_ops(x) for x in (lagrangian, *constraints, *force)) > LONGEST:
        return None
    integrals = {}
    for name, integral in system.first_integrals.items():
        with contextlib.suppress(CannotTranslate):
            (expression,) = writer.written(integral)
            if sp.count_ops(expression) <= LONGEST // 4:
                integrals[name] = expression
    acting = {name: f for name, f in zip(writer.latex_names, force, strict=False) if f != 0}
    return Formulas(
        lagrangian, tuple(constraints), acting, writer.q, writer.v, writer.shown, integrals, writer.turning
    )


def _phi(system: System, q: Array, v: Array, p: Mapping[str, Array]) -> Array:
    if system.constraint is not None:
        return system.constraint(q, v, p)
    if system.one_forms is None:
        return jnp.zeros(0)
    forms = jnp.asarray(system.one_forms(q, p)) @ v
    return forms if system.drift is None else forms + system.drift(q, p)


class _Writer:
    """Writes functions of a system down."""

    def __init__(self, system: System):
        self.system, self.latex_names = system, [_name(name) for name in system.coordinates]
        # SymPy writes factors in the order of their names: these come after those of all parameters
        self.q, self.v = (tuple(sp.Symbol(f"~{x}{k}") for k in range(system.n)) for x in "qv")
        self.t = sp.Symbol("t")
        self.parameters = {
            name: _array(self.t) if name == TIME else _symbols(name, np.shape(value))
            for name, value in system.parameters.items()
        }
        self.turning = Turning.named() if system.rotations else None
        self.shown = dict(zip(self.q, self.latex_names, strict=True))
        self.shown |= {s: accent(r"\dot", name) for s, name in zip(self.v, self.latex_names, strict=True)}
        self.shown |= {x: _name(x.name) for array in self.parameters.values() for x in array.flat}
        self.shown |= {} if self.turning is None else self.turning.names

    def force(self) -> list[sp.Expr]:
        assert self.system.force is not None
        return self._run(self.system.force, _array(self.q), _array(self.v), _array(self.t))

    def written(self, function: Callable[..., Any]) -> list[sp.Expr]:
        """A function of q, v and the parameters."""
        if self.turning is None:
            return self._run(function, _array(self.q), _array(self.v))
        ways = [self._turned(function, axes) for axes in ("body", "space")]
        found = min(ways, key=lambda way: sum(sp.count_ops(x) for x in way))
        self._compare(function, found)
        return found

    def _turned(self, function: Callable[..., Any], axes: str) -> list[sp.Expr]:
        """With a matrix for the quaternion, and rates about these axes for its velocity."""
        assert self.turning is not None
        place = np.array(self.system.blocks[0])

        def of(q: Array, v: Array, A: Array, w: Array, p: Mapping[str, Array]) -> Any:
            q = q.at[place].set(np.array([1.0, 0.0, 0.0, 0.0]))
            v = v.at[place].set(jnp.concatenate([jnp.zeros(1), w / 2]))
            with rotations.written(A, axes):
                return function(q, v, p)

        rates = self.turning.body_rates if axes == "body" else self.turning.space_rates
        arguments = (self.q, self.v, self.turning.matrix, rates)
        q, v, A, w = (_array(x) for x in arguments)
        return self._run(of, q, v, A.reshape(3, 3), w)

    def _compare(self, function: Callable[..., Any], found: list[sp.Expr]) -> None:
        """What a function does with a quaternion beyond its matrix and rates shows in its value."""
        assert self.turning is not None
        system, rng = self.system, np.random.default_rng(0)
        q, v = (np.asarray(x) for x in system.shown(*rng.uniform(0.3, 0.9, (2, system.n))))
        place = list(system.blocks[0])
        values = dict(zip((*self.q, *self.v), [*q.tolist(), *v.tolist()], strict=True))
        values |= self.turning.values(q[place], v[place])
        for name, array in self.parameters.items():
            numbers = np.ravel(system.parameters[name]).tolist()
            values |= dict(zip(array.flat, numbers, strict=True))
        wanted = np.ravel(evaluate(_value, function, dict(system.parameters), q[None], v[None]))
        written = np.array([complex(x.subs(values)) for x in found])
        if not np.all(np.abs(written - wanted) <= ACCURATE * (1 + np.abs(wanted))):
            raise CannotTranslate("a quaternion that is more than its rotation")

    def _run(self, function: Callable[..., Any], *arguments: np.ndarray) -> list[sp.Expr]:
        symbols = (*arguments, self.parameters)
        shapes = jax.tree.map(lambda x: jax.ShapeDtypeStruct(x.shape, float), symbols)
        # what has many more operations than can be read is not even tried
        program = translate(lambda _, x: function(*x), (), shapes, expand=False, limit=4 * LONGEST)
        return sympy_formulas(program, [symbol for x in jax.tree.leaves(symbols) for symbol in x.flat])


def _value(function: Callable[..., Any], p: Mapping[str, Array], q: Array, v: Array) -> Any:
    return function(q, v, p)


def _symbols(name: str, shape: tuple[int, ...]) -> np.ndarray:
    if not shape:
        return _array(sp.Symbol(name))
    entries = [sp.Symbol(f"{name}_{'_'.join(str(i + 1) for i in index)}") for index in np.ndindex(shape)]
    return _array(entries).reshape(shape)


def _name(name: str) -> str:
    """The LaTeX of a name; a word is set upright."""
    plain = str(sp.latex(sp.Symbol(name)))
    return rf"\mathrm{{{name}}}" if plain == name and len(name) > 1 else plain


def _array(values: ArrayLike) -> np.ndarray:
    return np.array(values, dtype=object)
