"""Derivatives of a function as one operation of JAX, so that the engine can make them on its scalar program.

`block(f, orders, *x)` is the array of derivatives of f by the arguments named in `orders`; `along` contracts
further derivatives with directions. While a scalar program is traced, the engine sees the operation whole: it
traces f once and differentiates what it traced. Anywhere else JAX's own transformations stand in its place,
and are what XLA gets. Derivatives of a block are blocks of the next order.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from types import MappingProxyType
from typing import Any, Protocol

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.extend.core import Primitive
from jax.interpreters import ad, batching, mlir

Orders = tuple[int, ...]
FULL = 2  # orders of derivatives of a number that are made as whole arrays; of an array one less


class Differentiable(Protocol):
    """What can be differentiated: hashable, equal where it computes the same, with the shape of its value."""

    @property
    def shape(self) -> tuple[int, ...]: ...
    def __call__(self, *arguments: Array) -> Array: ...


_scalar = jax.make_user_context(False)  # part of the key of JAX's caches


@contextmanager
def for_scalar_programs() -> Iterator[None]:
    """What is traced in here becomes a scalar program."""
    with _scalar(True):
        yield


def is_for_scalar_programs() -> bool:
    """Whether what is traced now becomes a scalar program."""
    return bool(_scalar.value)


def block(
    function: Differentiable,
    orders: Orders,
    *arguments: Array,
    along: Mapping[int, Array] = MappingProxyType({}),
) -> Array:
    """The derivative of a function by the arguments at the positions `orders`, which are sorted; its shape is
    that of the value, followed by those of the arguments. Those by the positions in `along` are contracted
    with directions."""
    arrays = [jnp.asarray(x, float) for x in (*arguments, *along.values())]
    return block_p.bind(*arrays, function=function, orders=orders, along=tuple(along), lead=0)


def plain(*arguments: Array, function: Differentiable, orders: Orders, along: Orders, lead: int) -> Array:
    """The same by JAX's transformations. The last arguments are the directions of `along`; the first `lead`
    axes of all arguments count many evaluations."""

    def made(*values: Array) -> Array:
        x, directions = values[: len(values) - len(along)], values[len(values) - len(along) :]
        f: Callable[..., Array] = function
        for k, i in enumerate(orders):
            f = (jax.grad if k == 0 and function.shape == () else jax.jacfwd)(f, i)
        for i, direction in zip(along, directions, strict=True):
            f = _directional(f, i, direction)
        return f(*x)

    for _ in range(lead):
        made = jax.vmap(made)
    return made(*arguments)


def _directional(f: Callable[..., Array], i: int, direction: Array) -> Callable[..., Array]:
    def along(*x: Array) -> Array:
        return jax.jvp(lambda y: f(*x[:i], y, *x[i + 1 :]), (x[i],), (direction,))[1]

    return along


# ---- the operation ------------------------------------------------------------------------------------
block_p = Primitive("derivative_block")


def _contracted(T: Array, axis: int, rank: int, t: Array, lead: int) -> Array:
    """T with its axes from `axis` on, as many as t has, summed against t."""
    axes = (list(range(axis, axis + rank)), list(range(rank)))
    contract = functools.partial(jnp.tensordot, axes=axes)
    for _ in range(lead):
        contract = jax.vmap(contract)
    return contract(T, t)


def _place(shape: tuple[int, ...], orders: Orders, i: int, arguments: Any, lead: int) -> int:
    """The axis at which the derivative by argument i begins, behind others by the same one."""
    return len(shape) + sum(arguments[k].ndim - lead for k in orders if k <= i)


def _derivative(primals: Any, tangents: Any, **how: Any) -> tuple[Array, Array]:
    function, orders, along, lead = (how[name] for name in ("function", "orders", "along", "lead"))
    out, total = block_p.bind(*primals, **how), None
    count, shape = len(primals) - len(along), function.shape
    whole = len(orders) + len(along) < (FULL if shape == () else FULL - 1)
    for i, t in enumerate(tangents):
        if type(t) is ad.Zero:
            continue
        if i >= count:  # linear in a direction
            term = block_p.bind(*primals[:i], t, *primals[i + 1 :], **how)
        elif whole:
            new = tuple(sorted((*orders, i)))
            T = block_p.bind(*primals, function=function, orders=new, along=along, lead=lead)
            place = _place(shape, orders, i, primals, lead)
            term = _contracted(T, place, primals[i].ndim - lead, t, lead)
        else:
            term = block_p.bind(*primals, t, function=function, orders=orders, along=(*along, i), lead=lead)
        total = term if total is None else total + term
    return out, jnp.zeros_like(out) if total is None else total


def _transpose(cotangent: Any, *arguments: Any, **how: Any) -> list[Any]:
    """Of a block as a linear function of one of its directions."""
    function, orders, along, lead = (how[name] for name in ("function", "orders", "along", "lead"))
    count = len(arguments) - len(along)
    (j,) = (k for k, x in enumerate(arguments) if ad.is_undefined_primal(x))
    if type(cotangent) is ad.Zero:
        return [ad.Zero(x.aval) if k == j else None for k, x in enumerate(arguments)]
    i, given = along[j - count], [x for k, x in enumerate(arguments) if k != j]
    rest = tuple(x for k, x in enumerate(along) if k != j - count)
    T = block_p.bind(*given, function=function, orders=tuple(sorted((*orders, i))), along=rest, lead=lead)
    first = _place(function.shape, orders, i, given, lead)
    rank = arguments[j].aval.ndim - lead

    def pulled(T: Array, c: Array) -> Array:
        T = jnp.moveaxis(T, range(first, first + rank), range(T.ndim - rank, T.ndim))
        return jnp.tensordot(c, T, axes=c.ndim)

    for _ in range(lead):
        pulled = jax.vmap(pulled)
    return [pulled(T, cotangent) if k == j else None for k in range(len(arguments))]


def _batch(arguments: Any, axes: Any, **how: Any) -> tuple[Array, int]:
    size = next(x.shape[i] for x, i in zip(arguments, axes, strict=True) if i is not None)
    first = [
        jnp.broadcast_to(x, (size, *x.shape)) if i is None else jnp.moveaxis(x, i, 0)
        for x, i in zip(arguments, axes, strict=True)
    ]
    return block_p.bind(*first, **how | {"lead": how["lead"] + 1}), 0


@block_p.def_abstract_eval
def _shape(*arguments: Any, function: Differentiable, orders: Orders, along: Orders, lead: int) -> Any:
    own = (d for i in orders for d in arguments[i].shape[lead:])
    shape = (*arguments[0].shape[:lead], *function.shape, *own)
    return jax.core.ShapedArray(shape, np.dtype(float))


block_p.def_impl(jax.jit(plain, static_argnames=("function", "orders", "along", "lead")))
mlir.register_lowering(block_p, mlir.lower_fun(plain, multiple_results=False))
ad.primitive_jvps[block_p] = _derivative
ad.primitive_transposes[block_p] = _transpose
batching.primitive_batchers[block_p] = _batch
