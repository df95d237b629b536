"""How many digits a function has: a bound of what its roundings add up to, in parts of the rounding of 1.

Along the operations of f, each z = f_k(x, y, ...) has the error

    e_z = |df_k/dx| e_x + |df_k/dy| e_y + ... + |z|

and an argument x itself |x| (running error analysis, Wilkinson 1986). So 1 - cos(x) has about 1, also near
x = 0, where its value has none. What is inside a loop or a branch counts as one operation.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

import jax
import jax.numpy as jnp
from jax import Array, lax
from jax.extend.core import ClosedJaxpr, Jaxpr, JaxprEqn, Literal, Var, jaxpr_as_fun
from jax.typing import ArrayLike

CALLS = ("pjit", "jit", "closed_call", "custom_jvp_call", "custom_vjp_call")  # functions written elsewhere
EXACT = {  # operations that move or choose numbers
    "broadcast_in_dim", "concatenate", "convert_element_type", "copy", "dynamic_slice", "expand_dims",
    "gather", "neg", "pad", "reshape", "rev", "select_n", "slice", "squeeze", "stop_gradient", "transpose",
}  # fmt: skip
BRANCHES = ("while", "scan", "cond")
Number = tuple[Array, Array]  # a value and its error


def rounding(f: Callable[[Array], Array], x: Array) -> Array:
    """The error of f(x), a single number; 0 where the bound is infinite or has no value."""
    made = jax.make_jaxpr(f)(x)
    error = _errors(made.jaxpr, made.consts, [(x, jnp.abs(x))])[0][1]
    return lax.stop_gradient(jnp.where(jnp.isfinite(error), error, 0.0))


def _errors(jaxpr: Jaxpr, consts: Sequence[Array], given: list[Number]) -> list[Number]:
    known: dict[Var, Number] = dict(zip(jaxpr.invars, given, strict=True))
    known |= {var: _exact(c) for var, c in zip(jaxpr.constvars, consts, strict=True)}
    for equation in jaxpr.eqns:
        known.update(zip(equation.outvars, _of(jaxpr, equation, known), strict=True))
    return [_known(x, known) for x in jaxpr.outvars]


def _known(x: Var | Literal, known: dict[Var, Number]) -> Number:
    return _exact(x.val) if isinstance(x, Literal) else known[x]


def _exact(x: ArrayLike) -> Number:
    return jnp.asarray(x), jnp.zeros(jnp.shape(x))


def _of(jaxpr: Jaxpr, equation: JaxprEqn, known: dict[Var, Number]) -> list[Number]:
    name, inner = equation.primitive.name, equation.params.get("jaxpr", equation.params.get("call_jaxpr"))
    if name in CALLS and isinstance(inner, ClosedJaxpr):
        return _errors(inner.jaxpr, inner.consts, [_known(a, known) for a in equation.invars])
    given = list(dict.fromkeys(a for a in equation.invars if isinstance(a, Var)))
    alone = jaxpr.replace(constvars=[], invars=given, outvars=equation.outvars, eqns=[equation])
    z, x = jaxpr_as_fun(ClosedJaxpr(alone, ())), [known[a][0] for a in given]
    e = [known[a][1] for a in given]
    return [(out, _error(partial(_output, z, k), name, out, x, e)) for k, out in enumerate(z(*x))]


def _output(z: Callable[..., list[Array]], k: int, *x: Array) -> Array:
    return z(*x)[k]


def _error(z: Callable[..., Array], name: str, out: Array, x: list[Array], e: list[Array]) -> Array:
    if not jnp.issubdtype(out.dtype, jnp.floating):
        return jnp.zeros(out.shape)
    error = jnp.zeros_like(out) if name in EXACT else jnp.abs(out)
    if name in BRANCHES:
        return error
    if name == "dot_general":  # a sum, which may cancel
        x = [jnp.abs(y) for y in x]
    for i, y in enumerate(x):
        if jnp.issubdtype(y.dtype, jnp.floating):
            along = partial(_with, z, x, i)
            error = error + jnp.abs(jax.jvp(along, (y,), (e[i],))[1])
    return error


def _with(z: Callable[..., Array], x: list[Array], i: int, y: Array) -> Array:
    """z with y in the place of x_i."""
    return z(*x[:i], y, *x[i + 1 :])
