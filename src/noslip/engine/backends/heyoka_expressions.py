"""A system's vector field as heyoka expressions, by interpreting its JAX program element by element.

Data movement (slices, transposes, gathers, ...) is done by running the same primitive on an array of
indices, so that only arithmetic needs a table.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from noslip.numerics.linear import written_out
from noslip.system import System

MOVES = {
    "broadcast_in_dim", "concatenate", "dynamic_slice", "expand_dims", "gather", "pad", "reshape", "rev",
    "scatter", "slice", "squeeze", "stack", "transpose", "dynamic_update_slice", "copy", "split",
}  # fmt: skip
CALLS = {"jit", "pjit", "closed_call", "core_call", "custom_jvp_call", "custom_vjp_call", "remat"}
UNARY = {
    "sin", "cos", "tan", "exp", "log", "sqrt", "tanh", "sinh", "cosh",
    "asin", "acos", "atan", "asinh", "acosh", "atanh",
}  # fmt: skip


class NotExpressible(Exception):
    """The vector field uses an operation that has no analytic expression."""


def vector_field(hy: Any, system: System) -> tuple[list[Any], list[Any]]:
    """Variables (q then v) and their time derivatives; parameters are heyoka's par[i], leaf by leaf."""
    q = np.array([hy.expression(f"q{i}") for i in range(system.n)], dtype=object)
    v = np.array([hy.expression(f"v{i}") for i in range(system.n)], dtype=object)
    leaves, structure = jax.tree.flatten(system)
    sizes = [np.size(leaf) for leaf in leaves]
    starts = np.cumsum([0, *sizes])
    pars = [
        np.array([hy.par[int(k)] for k in range(start, start + size)], dtype=object).reshape(np.shape(leaf))
        for leaf, start, size in zip(leaves, starts, sizes, strict=False)
    ]

    def acceleration(q: Any, v: Any, t: Any, *leaves: Any) -> Any:
        return jax.tree.unflatten(structure, leaves).acceleration(q, v, t)

    x = jnp.zeros(system.n)
    program = jax.make_jaxpr(acceleration)(x, x, 0.0, *(jnp.asarray(leaf, dtype=float) for leaf in leaves))
    t = np.array(hy.time, dtype=object)
    (a,) = _interpret(hy, program.jaxpr, program.consts, [q, v, t, *pars])
    return [*q, *v], [*v, *(x if _is_symbol(x) else hy.expression(float(x)) for x in a)]


def _interpret(hy: Any, jaxpr: Any, consts: Any, arguments: list[Any]) -> list[Any]:
    values: dict[Any, Any] = dict(zip(jaxpr.constvars, (np.asarray(c) for c in consts), strict=True))
    values |= zip(jaxpr.invars, arguments, strict=True)

    def read(atom: Any) -> Any:
        return np.asarray(atom.val) if hasattr(atom, "val") else values[atom]

    for equation in jaxpr.eqns:
        inputs = [read(atom) for atom in equation.invars]
        if any(x.dtype == object for x in inputs):
            outputs = _apply(hy, equation, inputs)
        else:
            outputs = equation.primitive.bind(*inputs, **equation.params)
            outputs = outputs if equation.primitive.multiple_results else [outputs]
        values |= zip(equation.outvars, (np.asarray(x) for x in outputs), strict=True)
    return [read(atom) for atom in jaxpr.outvars]


def _apply(hy: Any, equation: Any, inputs: list[Any]) -> list[Any]:
    name, params = equation.primitive.name, equation.params
    if name in CALLS:
        inner = params.get("jaxpr") or params.get("call_jaxpr")
        return _interpret(hy, inner.jaxpr, inner.consts, inputs)
    if name in MOVES:
        return _move(equation, inputs)
    if name in ARITHMETIC:
        return [_elementwise(ARITHMETIC[name], inputs)]
    if name in UNARY:
        function = getattr(hy, name)
        return [_elementwise(lambda x: function(x) if _is_symbol(x) else getattr(np, name)(x), inputs)]
    if name == "atan2":
        return [_elementwise(lambda y, x: hy.atan2(y, x), inputs)]
    if name == "rsqrt":
        return [_elementwise(lambda x: 1.0 / hy.sqrt(x) if _is_symbol(x) else 1.0 / np.sqrt(x), inputs)]
    if name == "integer_pow":
        return [_elementwise(lambda x: _power(x, params["y"]), inputs)]
    if name == "small_solve":
        inner = jax.make_jaxpr(partial(written_out, **params))(*(atom.aval for atom in equation.invars))
        return _interpret(hy, inner.jaxpr, inner.consts, inputs)
    if name == "stop_gradient" or (name == "convert_element_type" and params["new_dtype"] == np.float64):
        return inputs
    if name == "reduce_sum":
        return [_sum(inputs[0], params["axes"])]
    if name == "dot_general":
        return [_dot(*inputs, *params["dimension_numbers"])]
    if name == "select_n" and inputs[0].dtype != object:
        return [np.where(inputs[0], inputs[2], inputs[1]) if len(inputs) == 3 else inputs[1]]
    raise NotExpressible(name)


def _is_symbol(x: Any) -> bool:
    return not isinstance(x, (float, int, np.number))


def _add(a: Any, b: Any) -> Any:
    if not _is_symbol(a) and a == 0.0:
        return b
    return a if not _is_symbol(b) and b == 0.0 else a + b


def _mul(a: Any, b: Any) -> Any:
    for x, y in ((a, b), (b, a)):
        if not _is_symbol(x) and x in (0.0, 1.0):
            return y if x == 1.0 else 0.0
    return a * b


def _power(x: Any, n: int) -> Any:
    result: Any = 1.0
    for _ in range(abs(n)):
        result = _mul(result, x)
    return result if n >= 0 else 1.0 / result


def _negative(a: Any) -> Any:
    return -a


ARITHMETIC: dict[str, Callable[..., Any]] = {
    "add": _add,
    "add_any": _add,
    "sub": lambda a, b: a if not _is_symbol(b) and b == 0.0 else a - b,
    "mul": _mul,
    "div": lambda a, b: a / b if _is_symbol(a) or a != 0.0 else 0.0,
    "neg": _negative,
    "pow": lambda a, b: a**b,
    "square": lambda a: _mul(a, a),
}


def _elementwise(function: Callable[..., Any], inputs: list[Any]) -> np.ndarray:
    arrays = np.broadcast_arrays(*inputs)
    out = np.empty(arrays[0].shape, dtype=object)
    for index in np.ndindex(out.shape):
        out[index] = function(*(a[index] for a in arrays))
    return out


def _sum(x: np.ndarray, axes: tuple[int, ...]) -> np.ndarray:
    kept = [axis for axis in range(x.ndim) if axis not in axes]
    flat = np.transpose(x, [*kept, *axes]).reshape([*(x.shape[axis] for axis in kept), -1])
    out = np.full(flat.shape[:-1], 0.0, dtype=object)
    for index in np.ndindex(out.shape):
        for term in flat[index]:
            out[index] = _add(out[index], term)
    return out


def _dot(a: np.ndarray, b: np.ndarray, contract: Any, batch: Any) -> np.ndarray:
    """dot_general: batch dimensions first, then what is left of `a`, then of `b`."""

    def arrange(x: np.ndarray, contracted: Any, batched: Any) -> tuple[np.ndarray, tuple[int, ...]]:
        free = [i for i in range(x.ndim) if i not in contracted and i not in batched]
        moved = np.transpose(x, [*batched, *free, *contracted])
        sizes = tuple(x.shape[i] for i in free)
        count = int(np.prod([x.shape[i] for i in batched], dtype=int))
        return moved.reshape(count, int(np.prod(sizes, dtype=int)), -1), sizes

    left, left_sizes = arrange(a, contract[0], batch[0])
    right, right_sizes = arrange(b, contract[1], batch[1])
    product = _elementwise(_mul, [left[:, :, None, :], right[:, None, :, :]])
    return _sum(product, (3,)).reshape([*(a.shape[i] for i in batch[0]), *left_sizes, *right_sizes])


def _move(equation: Any, inputs: list[Any]) -> list[Any]:
    """Run the primitive on indices into all the values that it may move, then look them up."""
    pool: list[Any] = []
    operands = []
    for x, variable in zip(inputs, equation.invars, strict=True):
        if np.issubdtype(variable.aval.dtype, np.integer):
            operands.append(x)  # indices of a gather or a slice, not values
            continue
        operands.append(np.arange(len(pool), len(pool) + x.size, dtype=float).reshape(x.shape))
        pool.extend(x.ravel())
    moved = equation.primitive.bind(*operands, **equation.params)
    moved = moved if equation.primitive.multiple_results else [moved]
    table = np.empty(len(pool), dtype=object)
    table[:] = pool
    return [table[np.asarray(x).astype(int)] for x in moved]
