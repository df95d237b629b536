"""What a system says of itself: to notebooks, and to the cache on disk, which is told of its functions as JAX
sees them, with every number in them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp
from jax import Array

from noslip.engine.kept import kept
from noslip.engine.told import CannotTell, Told, told
from noslip.engine.translate.words import told_traced
from noslip.markdown import html_table
from noslip.numerics.pytrees import anatomy
from noslip.system.derived import Parameters
from noslip.texts import listed

if TYPE_CHECKING:
    from noslip.system import System

OF_SYSTEM = ("coordinates", "angles", "fibre", "rotations", "m", "k", "orthogonal")
OF_POSITION = ("one_forms", "drift", "frame", "multiplier", "holonomic")
ARGUMENTS = dict.fromkeys(OF_POSITION, "qp") | {"force": "qvtp"}


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


class Worded(Told):
    """A system that can be told and shown."""

    coordinates: tuple[str, ...]
    angles: tuple[str, ...]
    constraints: Any
    parameters: Parameters
    force: Callable[[Array, Array, Array, Parameters], Array] | None
    first_integrals: Mapping[str, Callable[[Array, Array, Parameters], Array]]

    def told(self) -> str:
        """What the system is made of, for the cache on disk."""
        words = words_of(*anatomy(self)[1:])
        if words is None:
            raise CannotTell("a function of the system has no name")
        return words

    def _repr_html_(self) -> str:
        """For notebooks."""
        angles = dict.fromkeys(self.angles, " (angle)")
        rows = [
            ("coordinates", ", ".join(name + angles.get(name, "") for name in self.coordinates)),
            ("constraints", self.constraints),
            ("parameters", listed(self.parameters)),
            ("force", "none" if self.force is None else "yes"),
            ("first integrals", ", ".join(self.first_integrals) or "none declared"),
        ]
        return html_table("System", rows)
