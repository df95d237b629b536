"""The words for a system in the cache on disk: its functions as JAX sees them, with every number in them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp

from noslip.engine.kept import kept
from noslip.engine.told import CannotTell, told
from noslip.engine.translate.words import told_traced

if TYPE_CHECKING:
    from noslip.system import System

OF_SYSTEM = ("coordinates", "angles", "fibre", "m", "orthogonal")
ARGUMENTS = {"one_forms": "qp", "drift": "qp", "frame": "qp", "multiplier": "qp", "force": "qvtp"}


@kept
def words_of(structure: jax.tree_util.PyTreeDef, shapes: tuple[tuple[int, ...], ...]) -> str | None:
    """The same words in every process for systems that move alike; None where there are none."""
    system: System = jax.tree.unflatten(structure, [jax.ShapeDtypeStruct(s, float) for s in shapes])
    x, t = jax.ShapeDtypeStruct((system.n,), float), jax.ShapeDtypeStruct((), float)
    given: dict[str, Any] = {"q": x, "v": x, "t": t, "p": dict(system.parameters)}
    parts = [type(system).__name__, *(told(getattr(system, name)) for name in OF_SYSTEM)]
    parts += [told(tuple(system.inputs)), told(given["p"])]
    try:
        for name, function in system._functions.items():
            names = "t" if name.startswith("inputs[") else ARGUMENTS.get(name, "qvp")
            arguments = [given[k] for k in names]
            parts.append(f"{name} {told_traced(lambda *a, f=function: jnp.asarray(f(*a)), *arguments)}")
    except CannotTell:
        return None
    return "\n".join(parts)
