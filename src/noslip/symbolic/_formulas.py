"""What the functions of a system say, as formulas: L, phi and the force, traced by JAX, on SymPy symbols.

So a system that was stated in JAX can be read, in pages and reports, in the form in which it is computed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import sympy as sp

from noslip.symbolic._latex import accent
from noslip.system import System

LONGEST = 400  # operations; a formula beyond this is not for reading


@dataclass(frozen=True)
class Formulas:
    """L, the constraints phi = 0 and the force components that are not zero, in the symbols q, v and those of
    the parameters; `names` are the LaTeX names of all symbols."""

    lagrangian: sp.Expr
    constraints: tuple[sp.Expr, ...]
    force: Mapping[str, sp.Expr]
    q: tuple[sp.Symbol, ...]
    v: tuple[sp.Symbol, ...]
    names: Mapping[sp.Symbol, str]

    def latex(self) -> list[str]:
        """One equation per entry."""

        def show(expression: sp.Expr) -> str:
            return str(sp.latex(expression, symbol_names=self.names))

        lines = [f"L = {show(self.lagrangian)}"]
        lines += [f"{show(phi)} = 0" for phi in self.constraints]
        return lines + [f"F_{{{name}}} = {show(f)}" for name, f in self.force.items()]


def formulas(system: System) -> Formulas | None:
    """The formulas of a system, or None where its functions use operations that have none."""
    names = [_name(name) for name in system.coordinates]
    # SymPy writes factors in the order of their names: these come after those of all parameters
    q, v = (tuple(sp.Symbol(f"~{x}{k}") for k in range(system.n)) for x in "qv")
    t = sp.Symbol("t")
    parameters = {name: _symbols(name, np.shape(value)) for name, value in system.parameters.items()}
    shown = dict(zip(q, names, strict=True))
    shown |= {s: accent(r"\dot", name) for s, name in zip(v, names, strict=True)}
    shown |= {x: _name(x.name) for array in parameters.values() for x in array.flat}
    values = {name: jnp.asarray(value, dtype=float) for name, value in system.parameters.items()}
    at, arrays = jnp.ones(system.n), (_array(q), _array(v))

    def run(function: Callable[..., Any], *extra: Any) -> np.ndarray:
        closed = jax.make_jaxpr(function)(at, at, *([0.0] if extra else []), values)
        flat = [*arrays, *extra, *jax.tree.leaves(parameters, is_leaf=lambda x: isinstance(x, np.ndarray))]
        return _evaluate(closed.jaxpr, closed.consts, flat)[0]

    def phi(q: Any, v: Any, p: Any) -> Any:
        if system.constraint is not None:
            return system.constraint(q, v, p)
        assert system.one_forms is not None
        forms = jnp.asarray(system.one_forms(q, p)) @ v
        return forms if system.drift is None else forms + system.drift(q, p)

    try:
        lagrangian = run(system.lagrangian)[()]
        constraints = tuple(run(phi).ravel())
        force = run(system.force, _array(t)).ravel() if system.force is not None else ()
    except NotImplementedError:
        return None
    if sum(sp.count_ops(x) for x in (lagrangian, *constraints, *force)) > LONGEST:
        return None
    acting = {name: f for name, f in zip(names, force, strict=False) if f != 0}
    return Formulas(lagrangian, constraints, acting, q, v, shown)


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


def _exact(value: Any) -> Any:
    """A number as a formula shows it: 1/2 for 0.5, whole numbers as such, others as they are."""
    if isinstance(value, (sp.Basic, bool, np.bool_)):
        return value
    short = Fraction(float(value)).limit_denominator(1000)
    return (
        sp.Rational(short.numerator, short.denominator) if float(short) == float(value) else sp.Float(value)
    )


def _evaluate(jaxpr: Any, consts: Any, inputs: list[np.ndarray]) -> list[np.ndarray]:
    known: dict[Any, np.ndarray] = {}

    def read(atom: Any) -> np.ndarray:
        return _numbers(atom.val) if hasattr(atom, "val") else known[atom]

    known |= dict(zip(jaxpr.constvars, map(_numbers, consts), strict=True))
    known |= dict(zip(jaxpr.invars, inputs, strict=True))
    for equation in jaxpr.eqns:
        found = _apply(equation.primitive.name, equation.params, [read(a) for a in equation.invars])
        known |= dict(zip(equation.outvars, found, strict=True))
    return [read(a) for a in jaxpr.outvars]


def _numbers(value: Any) -> np.ndarray:
    array = np.asarray(value)
    return _array([_exact(x) for x in array.ravel()]).reshape(array.shape)


ELEMENTWISE: Mapping[str, Callable[..., Any]] = {
    "add": lambda a, b: a + b,
    "add_any": lambda a, b: a + b,
    "sub": lambda a, b: a - b,
    "mul": lambda a, b: a * b,
    "div": lambda a, b: a / b,
    "neg": lambda a: -a,
    "pow": lambda a, b: a**b,
    "square": lambda a: a**2,
    "sqrt": sp.sqrt,
    "rsqrt": lambda a: 1 / sp.sqrt(a),
    "sin": sp.sin,
    "cos": sp.cos,
    "tan": sp.tan,
    "exp": sp.exp,
    "log": sp.log,
    "atan2": sp.atan2,
    "abs": sp.Abs,
    "sinh": sp.sinh,
    "cosh": sp.cosh,
    "tanh": sp.tanh,
}


def _apply(name: str, params: Mapping[str, Any], x: list[np.ndarray]) -> list[np.ndarray]:
    """One operation of JAX on arrays of expressions."""
    if name in ELEMENTWISE:
        return [_array(np.frompyfunc(ELEMENTWISE[name], len(x), 1)(*x))]
    if name in ("pjit", "jit", "closed_call", "custom_jvp_call", "custom_vjp_call"):
        inner = params.get("jaxpr") or params.get("call_jaxpr") or params["fun_jaxpr"]
        return _evaluate(inner.jaxpr, inner.consts, x)
    if name == "integer_pow":
        return [_array(x[0] ** params["y"])]
    if name == "dot_general":
        return [_dot(*x, *params["dimension_numbers"])]
    if name == "reduce_sum":
        return [_array(np.sum(x[0], axis=tuple(params["axes"])))]
    if name == "slice":
        steps = params["strides"] or (1,) * x[0].ndim
        bounds = zip(params["start_indices"], params["limit_indices"], steps, strict=True)
        return [x[0][tuple(slice(*b) for b in bounds)]]
    if name in ("squeeze", "reshape"):
        return [
            x[0].reshape(params["new_sizes"] if name == "reshape" else _squeezed(x[0], params["dimensions"]))
        ]
    if name == "broadcast_in_dim":
        shape = [1] * len(params["shape"])
        for axis, size in zip(params["broadcast_dimensions"], x[0].shape, strict=True):
            shape[axis] = size
        return [np.broadcast_to(x[0].reshape(shape), params["shape"])]
    if name == "concatenate":
        return [np.concatenate(x, axis=params["dimension"])]
    if name == "stack":
        return [np.stack(x, axis=params.get("axis", params.get("dimension", 0)))]
    if name == "transpose":
        return [np.transpose(x[0], params["permutation"])]
    if name in ("convert_element_type", "copy", "stop_gradient"):
        return [_numbers(np.vectorize(int)(x[0]))] if x[0].size and isinstance(x[0].flat[0], bool) else [x[0]]
    if name == "iota":
        shape, axis = params["shape"], params["dimension"]
        view = [1] * len(shape)
        view[axis] = shape[axis]
        return [_numbers(np.broadcast_to(np.arange(shape[axis]).reshape(view), shape))]
    if name == "eq":
        return [_array(np.frompyfunc(lambda a, b: bool(a == b), 2, 1)(*x))]
    raise NotImplementedError(f"`{name}` has no formula")


def _squeezed(x: np.ndarray, dimensions: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(size for axis, size in enumerate(x.shape) if axis not in dimensions)


def _dot(a: np.ndarray, b: np.ndarray, contracting: Any, batch: Any) -> np.ndarray:
    if any(batch):
        raise NotImplementedError("a product of stacks has no formula")
    of_a, of_b = contracting
    return _array(np.tensordot(a, b, axes=(list(of_a), list(of_b))))
