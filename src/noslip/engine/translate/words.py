"""A traced function as words that are the same in every process, with all numbers in it."""

from __future__ import annotations

import dataclasses
import enum
from collections.abc import Callable, Mapping

import jax
import numpy as np
from jax.extend.core import ClosedJaxpr, Jaxpr, Literal, Var

from noslip.engine.program import PyTree
from noslip.engine.told import PLAIN, CannotTell, told

PLACES = (jax.sharding.Mesh, jax.sharding.AbstractMesh, jax.sharding.Sharding)  # where an array is to be


def told_traced(function: Callable[..., PyTree], *args: PyTree) -> str:
    """The words for a function of arrays of these shapes: its traced form, with all numbers in it."""
    return _closed(jax.make_jaxpr(function)(*args))


def _closed(closed: ClosedJaxpr) -> str:
    numbers = [told(np.asarray(x)) for x in closed.consts]
    return f"[{', '.join(numbers)}] {_jaxpr(closed.jaxpr)}"


def _jaxpr(jaxpr: Jaxpr) -> str:
    """Variables are numbered in the order in which they come."""
    if jaxpr.effects:
        raise CannotTell("a function with effects has no name")
    names: dict[Var, str] = {}

    def name(atom: Var | Literal) -> str:
        if isinstance(atom, Literal):
            return f"({told(np.asarray(atom.val))} {atom.aval})"
        return f"{names.setdefault(atom, f'x{len(names)}')}:{atom.aval}"

    lines = [" ".join(map(name, [*jaxpr.constvars, *jaxpr.invars]))]
    for equation in jaxpr.eqns:
        if equation.primitive.name.startswith(("custom_jvp", "custom_vjp")):  # the rule is not in the trace
            raise CannotTell("a function with a derivative of its own has no name")
        how = ", ".join(f"{k}={_parameter(x)}" for k, x in sorted(equation.params.items()))
        left, right = (" ".join(map(name, atoms)) for atoms in (equation.outvars, equation.invars))
        lines.append(f"{left} = {equation.primitive.name}[{how}] {right}")
    lines.append(" ".join(map(name, jaxpr.outvars)))
    return "{" + "; ".join(lines) + "}"


def _parameter(value: object) -> str:
    if isinstance(value, ClosedJaxpr):
        return _closed(value)
    if isinstance(value, Jaxpr):
        return _jaxpr(value)
    if isinstance(value, enum.Enum):
        return str(value)
    if isinstance(value, (tuple, list)):
        return f"{type(value).__name__}({', '.join(map(_parameter, value))})"
    if isinstance(value, Mapping):
        return f"{{{', '.join(f'{k}: {_parameter(x)}' for k, x in value.items())}}}"
    if isinstance(value, (*PLAIN, float, np.ndarray, np.generic)):
        return told(value)
    if isinstance(value, (*PLACES, jax.core.AbstractValue, np.dtype)):
        return repr(value)
    kind = type(value)
    if kind.__module__.partition(".")[0] == "jax" and dataclasses.is_dataclass(value):  # rules for indices
        parts = [f"{f.name}={_parameter(getattr(value, f.name))}" for f in dataclasses.fields(value)]
        return f"{kind.__name__}({', '.join(parts)})"
    if kind.__name__ == "UnspecifiedValue" and not vars(value):  # anywhere
        return kind.__name__
    raise CannotTell(f"a parameter that is a {kind.__name__} has no name")
