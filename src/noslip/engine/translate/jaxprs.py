"""How JAX's traced functions nest, for all who look into one: an equation may hold functions of its own."""

from __future__ import annotations

from collections.abc import Iterator

import jax
import numpy as np
from jax.core import ShapedArray
from jax.extend.core import ClosedJaxpr, JaxprEqn, Literal, Var

from noslip.engine.program import CannotTranslate

PLAIN_CALLS = {"checkpoint", "remat", "remat2", "core_call", "core_closed_call", "eval_jaxpr", "custom_lin"}


def array_of(atom: Var | Literal) -> ShapedArray:
    """Shape and type of a value."""
    if not isinstance(atom.aval, ShapedArray):
        raise CannotTranslate(f"the step computes with {atom.aval}, which is not an array")
    return atom.aval


def inner(eqn: JaxprEqn) -> list[ClosedJaxpr]:
    """The functions that an operation holds: what it calls, its branches, the body of its loop."""
    if eqn.primitive.name == "call_hi_primitive":
        return [expanded(eqn)]
    found = jax.tree.leaves(list(eqn.params.values()), is_leaf=lambda x: hasattr(x, "eqns"))
    return [x if isinstance(x, ClosedJaxpr) else ClosedJaxpr(x, ()) for x in found if hasattr(x, "eqns")]


def expanded(eqn: JaxprEqn) -> ClosedJaxpr:
    """JAX 0.11's form of a function with derivative rules of its own, as the function that it computes."""
    made = eqn.params["_prim"]

    def call(*flat: jax.Array) -> list[jax.Array]:
        return jax.tree.leaves(made.expand(*jax.tree.unflatten(made.in_tree, flat)))

    return jax.make_jaxpr(call)(*(atom.aval for atom in eqn.invars))


def called(eqn: JaxprEqn) -> ClosedJaxpr | None:
    """The function that a plain call (checkpoint, eval_jaxpr, ...) runs; None for other operations."""
    if eqn.primitive.name not in PLAIN_CALLS or len(found := inner(eqn)) != 1:
        return None
    fits = len(found[0].in_avals) == len(eqn.invars) and len(found[0].out_avals) == len(eqn.outvars)
    return found[0] if fits else None


def every_function(closed: ClosedJaxpr) -> Iterator[ClosedJaxpr]:
    """A traced function and all those inside it."""
    yield closed
    for eqn in closed.eqns:
        for function in inner(eqn):
            yield from every_function(function)


def every_equation(closed: ClosedJaxpr) -> Iterator[JaxprEqn]:
    """The operations of a traced function and of all those inside it."""
    for function in every_function(closed):
        yield from function.eqns


def has_loop(closed: ClosedJaxpr) -> bool:
    """Whether a `while` is somewhere inside."""
    return any(eqn.primitive.name == "while" for eqn in every_equation(closed))


def scan_groups(eqn: JaxprEqn) -> tuple[int, int]:
    """How many constants and carried values a scan has: its slices alone lose an axis on the way in and out.
    (The parameters that say so have other names in other versions of JAX.)"""
    (body,) = inner(eqn)
    same = [
        sum(array_of(a).ndim == b.ndim for a, b in zip(outer, own, strict=True))
        for outer, own in ((eqn.invars, body.in_avals), (eqn.outvars, body.out_avals))
    ]
    return same[0] - same[1], same[1]


def float_types(closed: ClosedJaxpr) -> set[np.dtype]:
    """The types of floating-point numbers that a traced function computes with, its constants included."""
    found: set[np.dtype] = set()
    for function in every_function(closed):
        atoms = (atom.aval for eqn in function.eqns for atom in (*eqn.invars, *eqn.outvars))
        types = (getattr(x, "dtype", None) for x in (*function.consts, *atoms))
        found |= {np.dtype(t) for t in types if t is not None and jax.dtypes.issubdtype(t, np.floating)}
    return found
