"""`noslip.symbolic.system`: a `System` from SymPy expressions."""

from __future__ import annotations

import warnings
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import jax
import sympy as sp
from sympy.core.function import AppliedUndef

from noslip.errors import unknown_name
from noslip.rotations import names as quaternion
from noslip.symbolic._chaplygin import reduce
from noslip.symbolic._exact import Undecided
from noslip.symbolic._generate import Generated, generate
from noslip.symbolic._integrability import Integrability
from noslip.symbolic._latex import Writer
from noslip.symbolic._model import SymbolicModel
from noslip.symbolic._reduction import SymbolicReduction
from noslip.symbolic._symbols import TIME, Symbols, Written, make_symbols, sequence
from noslip.system import System
from noslip.system.time import Timed


def system(
    lagrangian: sp.Expr,
    coordinates: Sequence[sp.Expr],
    nonholonomic_constraints: Sequence[sp.Expr],
    constants: Mapping[sp.Symbol, Any],
    *,
    angles: Sequence[sp.Expr | str] = (),
    force: Sequence[sp.Expr] | None = None,
    frame: sp.MatrixBase | None = None,
    first_integrals: Mapping[str, sp.Expr] | None = None,
    fibre: Sequence[sp.Expr | str] | None = None,
    multiplier: sp.Expr | None = None,
    inputs: Mapping[sp.Symbol, float] | None = None,
    holonomic_constraints: Sequence[sp.Expr] = (),
    rotations: Sequence[str] = (),
) -> SymbolicSystem:
    """The mechanical system of a Lagrangian and constraints stated in SymPy.

    `coordinates` are functions of time (sympy.physics.mechanics.dynamicsymbols), velocities their time
    derivatives; all but `multiplier` may contain the time itself. Each constraint is an expression that is
    zero, or an equation; whether they are linear, affine or nonlinear in the velocities is found out; there
    may be none. `holonomic_constraints` relate coordinates. A rotation "u" is the quaternion of the
    coordinates u0, u1, u2, u3, and expressions are for one of length 1. `constants` gives every other symbol
    its value and makes it a parameter. The keywords mean what they mean in `System`, as expressions.
    Constraints that are holonomic in disguise are accepted with a warning; see `integrability()`.
    """
    for name, values in (("constants", constants), ("inputs", inputs or {})):
        if not isinstance(values, Mapping):
            raise TypeError(f"`{name}` must be a dict of symbols and numbers, but {values!r} was provided")
    given = dict(inputs or {})
    symbols, parameters = make_symbols(coordinates, {**constants, **given})
    model = _read(symbols, lagrangian, nonholonomic_constraints, force, holonomic_constraints, rotations)
    made = SymbolicSystem(
        _function("lagrangian", [model.lagrangian], (), "qv", symbols),
        **_constraint_functions(model),
        **_force_function(model),
        coordinates=symbols.names,
        parameters=parameters,
        angles=_names("angles", angles),
        frame=None if frame is None else _frame(model, frame),
        first_integrals=_integrals(symbols, first_integrals),
        fibre=None if fibre is None else _names("fibre", fibre),
        multiplier=None if multiplier is None else _function_of_q(symbols, "multiplier", multiplier),
        inputs={symbol.name: parameters[symbol.name] for symbol in given},
        holonomic=_function("holonomic_constraints", model.g, (len(model.g),), "q", symbols)
        if model.g
        else None,
        rotations=tuple(rotations),
        model=model,
    )
    if message := _disguise(model):
        warnings.warn(message, UserWarning, stacklevel=2)
    return made


@jax.tree_util.register_pytree_node_class
@dataclass(frozen=True, eq=False)
class SymbolicSystem(System):
    """A `System` that also knows its equations in symbols. Made by `noslip.symbolic.system`."""

    model: SymbolicModel = field(kw_only=True, repr=False)

    # ---- in the user's symbols --------------------------------------------------------------------
    @property
    def lagrangian_expr(self) -> sp.Expr:
        """L."""
        return self._written(self.model.lagrangian)

    @property
    def energy_expr(self) -> sp.Expr:
        """v . dL/dv - L."""
        return self._written(self.model.energy)

    @property
    def momentum_expr(self) -> sp.ImmutableMatrix:
        """dL/dv."""
        return self._written(self.model.momentum)

    @property
    def mass_matrix_expr(self) -> sp.ImmutableMatrix:
        """M = d2L/dv2."""
        return self._written(self.model.mass_matrix)

    @property
    def one_forms_expr(self) -> sp.ImmutableMatrix:
        """mu = dphi/dv, one row per constraint."""
        return self._written(self.model.mu)

    @property
    def drift_expr(self) -> sp.ImmutableMatrix:
        """b of affine constraints mu v + b = 0; zero for linear ones."""
        return self._written(self.model.drift)

    @property
    def constraints_expr(self) -> sp.ImmutableMatrix:
        """phi, as given; `holonomic_expr` has the rest."""
        return self._written(sp.ImmutableMatrix(self.m, 1, self.model.phi))

    @property
    def holonomic_expr(self) -> sp.ImmutableMatrix:
        """g, as given."""
        return self._written(sp.ImmutableMatrix(self.k, 1, self.model.g))

    @property
    def multipliers_expr(self) -> sp.ImmutableMatrix:
        """lam of JS (23) in closed form, then those of holonomic constraints."""
        return self._written(self.model.whole.multipliers[: self.m + self.k, :])

    @property
    def acceleration_expr(self) -> sp.ImmutableMatrix:
        """dv/dt in closed form, JS (22); with rotations, at quaternions of length 1."""
        return self._written(self.model.whole.acceleration)

    def _written(self, expression: Written) -> Written:
        return self.model.symbols.write(expression)

    # ---- LaTeX ------------------------------------------------------------------------------------
    def equations_latex(self) -> str:
        """d/dt dL/dv - dL/dq = mu^T lam + force, and the constraints."""
        return Writer(self.model.whole).equations()

    def multipliers_latex(self) -> str:
        """The multipliers in closed form."""
        if not self.k:
            self._need_constraints("multipliers_latex()")
        return Writer(self.model.whole).multipliers()

    def accelerations_latex(self) -> str:
        """The accelerations in closed form."""
        return Writer(self.model.whole).accelerations()

    def one_forms_latex(self) -> str:
        """The one-forms of the constraints (for nonlinear ones dphi/dv) and the drift."""
        self._need_constraints("one_forms_latex()")
        return Writer(self.model).one_forms()

    def _repr_latex_(self) -> str:
        return f"$\\displaystyle {self.equations_latex()}$"

    # ---- geometry ---------------------------------------------------------------------------------
    def integrability(self) -> Integrability:
        """Whether the constraints are nonholonomic, partly holonomic or holonomic (Frobenius)."""
        self._need_constraints("integrability()")
        if self.kind == "nonlinear":
            raise ValueError("integrability() needs linear or affine constraints, but these are nonlinear")
        return self.model.integrability

    def chaplygin(self, group: str = "translations") -> SymbolicReduction:
        """The reduction by a group that acts on the fibre (by default the last m coordinates).

        `group` is "translations", or "planar": SE(2) acting on a fibre (x, y, angle). Whether L and the
        constraints are invariant, and transversal to the group, is decided exactly; if not, a ValueError says
        which condition fails and why.
        """
        self._need_constraints("chaplygin()")
        self.need_free_positions("chaplygin()")
        if self.moving:
            raise ValueError("chaplygin() needs a Lagrangian and constraints without t, but these contain it")
        fibre = self.fibre or self.coordinates[-self.m :]
        return SymbolicReduction(self, reduce(self.model, group, fibre))

    def _need_constraints(self, what: str) -> None:
        if not self.m:
            raise ValueError(f"{what} is about constraints, but this system has none")


def _disguise(model: SymbolicModel) -> str:
    """A sentence about hidden holonomic constraints; empty if there are none or nobody knows."""
    if model.kind == "nonlinear" or not model.phi:
        return ""
    try:
        found = model.integrability
    except Undecided:  # `integrability()` says so to whoever asks
        return ""
    return "" if found.kind == "nonholonomic" else str(found)


def _constraint(symbols: Symbols, given: object) -> sp.Expr:
    if isinstance(given, bool) or given in (sp.true, sp.false):
        raise ValueError(
            f"a constraint must relate velocities, but {given} was provided: it holds always or never"
        )
    phi = symbols.read("nonholonomic_constraints", given, time=True)
    if not phi.free_symbols & set(symbols.v):
        own = symbols.write(phi)
        raise ValueError(
            f"a constraint must contain velocities, but {own} = 0 does not: it is holonomic and "
            "belongs into `holonomic_constraints`"
        )
    return phi


def _placed(symbols: Symbols, given: object) -> sp.Expr:
    if isinstance(given, bool) or given in (sp.true, sp.false):
        raise ValueError(
            f"a holonomic constraint must relate coordinates, but {given} was provided: it holds always or "
            "never"
        )
    g = symbols.read("holonomic_constraints", given, velocities=False, time=True)
    if not g.free_symbols & set(symbols.q):
        raise ValueError(
            f"a holonomic constraint must contain coordinates, but {symbols.write(g)} = 0 does not"
        )
    return g


def _turned(symbols: Symbols, rotations: object) -> tuple[tuple[int, ...], ...]:
    """The places of the quaternions; refuses names that are not there."""
    found = []
    for name in sequence("rotations", rotations):
        if missing := [x for x in quaternion(name) if x not in symbols.names]:
            raise ValueError(unknown_name("coordinate of a rotation", missing[0], symbols.names))
        found.append(tuple(symbols.names.index(x) for x in quaternion(name)))
    return tuple(found)


def _read(
    symbols: Symbols,
    lagrangian: object,
    constraints: object,
    force: object,
    holonomic: object,
    rotations: object,
) -> SymbolicModel:
    """The checked model of the user's expressions."""
    forces = None if force is None else sequence("force", force, len(symbols.q))
    model = SymbolicModel(
        symbols,
        symbols.read("lagrangian", lagrangian, time=True),
        tuple(_constraint(symbols, c) for c in sequence("nonholonomic_constraints", constraints)),
        None if forces is None else tuple(symbols.read("force", f, time=True) for f in forces),
        tuple(_placed(symbols, g) for g in sequence("holonomic_constraints", holonomic)),
        _turned(symbols, rotations),
    )
    model.check()
    return model


def _function(
    label: str, expressions: Collection[sp.Expr], shape: tuple[int, ...], arguments: str, symbols: Symbols
) -> Generated | Timed:
    """Of the arguments, and of t where it occurs."""
    if not any(TIME in x.free_symbols for x in expressions):
        return generate(label, expressions, shape, arguments, symbols)
    return Timed(generate(label, expressions, shape, arguments + "t", symbols))


def _force_function(model: SymbolicModel) -> dict[str, Generated]:
    if model.force is None:
        return {}
    return {"force": generate("force", model.force, (len(model.force),), "qvt", model.symbols)}


def _constraint_functions(model: SymbolicModel) -> dict[str, Generated | Timed]:
    s, m, n = model.symbols, len(model.phi), len(model.symbols.q)
    if not m:
        return {}
    if model.kind == "nonlinear":
        return {"constraint": _function("nonholonomic_constraints", model.phi, (m,), "qv", s)}
    functions = {"one_forms": _function("nonholonomic_constraints", model.mu, (m, n), "q", s)}
    if model.kind == "affine":
        functions["drift"] = _function("nonholonomic_constraints", model.drift, (m,), "q", s)
    return functions


def _integrals(symbols: Symbols, given: Mapping[str, sp.Expr] | None) -> dict[str, Generated | Timed]:
    if not isinstance(given or {}, Mapping):
        raise TypeError(
            f"`first_integrals` must be a dict of names and expressions, but {given!r} was provided"
        )
    integrals = {}
    for name, integral in (given or {}).items():
        label = f"first_integrals['{name}']"
        integrals[name] = _function(label, [symbols.read(label, integral, time=True)], (), "qv", symbols)
    return integrals


def _frame(model: SymbolicModel, given: object) -> Generated | Timed:
    s, m, n = model.symbols, len(model.phi), len(model.symbols.q)
    if not isinstance(given, sp.MatrixBase):
        raise TypeError(
            f"`frame` must be a SymPy Matrix, but {given!r} ({type(given).__name__}) was provided"
        )
    if given.shape != (n, n - m):
        raise ValueError(f"`frame` must have shape ({n}, {n - m}), but {given.shape} was provided")
    read = [s.read("frame", x, velocities=False, time=True) for x in given]
    return _function("frame", read, (n, n - m), "q", s)


def _function_of_q(symbols: Symbols, label: str, given: object) -> Generated:
    return generate(label, [symbols.read(label, given, velocities=False)], (), "q", symbols)


def _names(label: str, given: object) -> tuple[str, ...]:
    """Names of coordinates given as functions of time or as names."""
    return tuple(str(x.func) if isinstance(x, AppliedUndef) else x for x in sequence(label, given))
