"""How many digits a function has: a bound of what its roundings add up to, in parts of the rounding of 1.

Along the operations of f, each z = f_k(x, y, ...) has the error

    e_z = |df_k/dx| e_x + |df_k/dy| e_y + ... + |z|

and an argument x itself |x|. So 1 - cos(x) has about 1, also near x = 0, where its value has none. What is
inside a loop, a branch or an operation with functions of its own counts as one operation.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

import jax
import jax.numpy as jnp
from jax import Array, lax
from jax.extend.core import ClosedJaxpr, JaxprEqn, Literal, Var, jaxpr_as_fun
from jax.typing import ArrayLike

from noslip.engine.translate.jaxprs import inner

EXACT = {  # operations that move or choose numbers
    "broadcast_in_dim", "concatenate", "convert_element_type", "copy", "dynamic_slice", "expand_dims",
    "gather", "neg", "pad", "reshape", "rev", "select_n", "slice", "squeeze", "stop_gradient", "transpose",
}  # fmt: skip
BRANCHES = {"while", "scan", "cond"}
Number = tuple[Array, Array]  # a value and its error
Known = dict[Var, Number]


def rounding(f: Callable[[Array], Array], x: Array) -> Array:
    """The error of f(x), a single number; 0 where the bound is infinite or has no value."""
    error = _errors(jax.make_jaxpr(f)(x), [(x, jnp.abs(x))])[0][1]
    return lax.stop_gradient(jnp.where(jnp.isfinite(error), error, 0.0))


def _errors(closed: ClosedJaxpr, given: Sequence[Number]) -> list[Number]:
    own = closed.jaxpr
    known: Known = dict(zip(own.invars, given, strict=True))
    known |= {var: _exact(c) for var, c in zip(own.constvars, closed.consts, strict=True)}
    for equation in own.eqns:
        known.update(zip(equation.outvars, _of(closed, equation, known), strict=True))
    return [_known(x, known) for x in own.outvars]


def _known(x: Var | Literal, known: Known) -> Number:
    return _exact(x.val) if isinstance(x, Literal) else known[x]


def _exact(x: ArrayLike) -> Number:
    return jnp.asarray(x), jnp.zeros(jnp.shape(x))


def _of(closed: ClosedJaxpr, equation: JaxprEqn, known: Known) -> list[Number]:
    """The results of an operation."""
    name, functions = equation.primitive.name, inner(equation)
    numbers = [_known(x, known) for x in equation.invars]
    if name not in BRANCHES and functions and len(functions[0].in_avals) == len(numbers):
        return _errors(functions[0], numbers)
    given = list(dict.fromkeys(x for x in equation.invars if isinstance(x, Var)))
    alone = closed.jaxpr.replace(constvars=[], invars=given, outvars=equation.outvars, eqns=[equation])
    z, x, e = jaxpr_as_fun(ClosedJaxpr(alone, ())), [known[a][0] for a in given], [known[a][1] for a in given]
    return [
        (out, _error(partial(_output, z, k), bool(functions), name, out, x, e)) for k, out in enumerate(z(*x))
    ]


def _output(z: Callable[..., list[Array]], k: int, *x: Array) -> Array:
    return z(*x)[k]


def _error(
    z: Callable[..., Array], whole: bool, name: str, out: Array, x: list[Array], e: list[Array]
) -> Array:
    if not jnp.issubdtype(out.dtype, jnp.floating):
        return jnp.zeros(out.shape)
    own = jnp.zeros_like(out) if name in EXACT else jnp.abs(out)
    if name == "dot_general":  # a sum, which may cancel
        x = [jnp.abs(y) for y in x]
    real = [i for i, y in enumerate(x) if jnp.issubdtype(y.dtype, jnp.floating)]
    try:
        for some in [real] if whole else [[i] for i in real]:
            along = partial(_with, z, x, some)
            own = own + jnp.abs(jax.jvp(along, [x[i] for i in some], [e[i] for i in some])[1])
    except (NotImplementedError, TypeError, ValueError):  # an operation without a derivative
        return jnp.abs(out)
    return own


def _with(z: Callable[..., Array], x: list[Array], some: list[int], *y: Array) -> Array:
    """z with others in the place of some x_i."""
    given = dict(zip(some, y, strict=True))
    return z(*(given.get(i, a) for i, a in enumerate(x)))
