"""Functions of a state, at many states in one call of machine code."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import numpy as np
from jax import Array

from noslip.engine.backends import native
from noslip.engine.kept import jitted, kept
from noslip.engine.memory import Table
from noslip.engine.program import CannotTranslate, PyTree
from noslip.engine.translate import translate
from noslip.numerics.pytrees import anatomy
from noslip.run.programs import Shapes, require_native
from noslip.system import System

OfState = Callable[[System, Array, Array, Array], PyTree]  # of q, v and t


class OfStates:
    """`function` on one system; XLA's where it has no scalar program."""

    def __init__(self, function: OfState, system: System):
        leaves, structure, shapes = anatomy(system)
        self.system, self.native = system, True
        try:
            require_native(system)
            self.call, table, self.out = _code(function, structure, shapes)
            self.fixed = table.pack(leaves, 1, 1)
        except CannotTranslate:
            self.native, self.many = False, _by_xla(function)

    def __call__(self, q: np.ndarray, v: np.ndarray, t: np.ndarray) -> Any:
        """Arrays with a row for each state."""
        if not self.native:
            return jax.tree.map(np.asarray, self.many(self.system, q, v, t))
        count = len(t)
        states = np.ascontiguousarray(np.concatenate([q, v, t[:, None]], axis=1))  # SciPy's are columns
        out = np.empty((count, self.out.slots), np.int64)
        self.call(np.repeat(self.fixed, count, axis=0), states, out, count)
        return self.out.split_bits(out)


@kept
def _code(
    function: OfState, structure: jax.tree_util.PyTreeDef, shapes: Shapes
) -> tuple[native.NativeFunction, Table, Table]:
    system = jax.tree.unflatten(structure, [jax.ShapeDtypeStruct(s, float) for s in shapes])
    x, t = jax.ShapeDtypeStruct((system.n,), float), jax.ShapeDtypeStruct((), float)
    program = translate(lambda s, at: function(s, *at), system, (x, x, t))
    return native.map_function(program, 1), Table(system), Table(program.shape)


@kept
def _by_xla(function: OfState) -> Callable[..., Any]:
    return jitted(jax.vmap(function, (None, 0, 0, 0)))
