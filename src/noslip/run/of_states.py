"""Functions of a state, at many states in one call of machine code."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import numpy as np

from noslip.engine.backends import native
from noslip.engine.kept import jitted, kept
from noslip.engine.memory import Table
from noslip.engine.program import CannotTranslate, PyTree
from noslip.engine.translate import translate
from noslip.numerics.pytrees import anatomy, of_leaves
from noslip.run.programs import Shapes, require_native
from noslip.system import System

OfState = Callable[..., PyTree]  # of a system and of arrays


class OfStates:
    """`function` on one system, of arrays with these `shapes`; XLA's where it has no scalar program."""

    def __init__(self, function: OfState, system: System, shapes: Shapes):
        leaves, structure, leaf_shapes = anatomy(system)
        self.system, self.native = system, True
        try:
            require_native(system)
            self.call, table, self.out = _code(function, structure, leaf_shapes, shapes)
            self.fixed = table.pack(leaves, 1, 1)
        except CannotTranslate:
            self.native = False
            self.many, self.given, self.out = _by_xla(function, structure, leaf_shapes, shapes)

    def __call__(self, values: np.ndarray) -> np.ndarray:
        """The bits of what it makes, in slots: a row for each row of `values`, the arrays side by side."""
        count = len(values)
        if not self.native:
            found = self.many(self.system, *self.given.split(values))
            return self.out.pack(found, count, 1)[:, :, 0]
        out = np.empty((count, self.out.slots), np.int64)
        fixed = self.fixed if count == 1 else np.repeat(self.fixed, count, axis=0)
        self.call(fixed, np.ascontiguousarray(values), out, count)
        return out


def _arrays(shapes: Shapes) -> tuple[Any, ...]:
    return tuple(jax.ShapeDtypeStruct(shape, float) for shape in shapes)


@kept
def _code(
    function: OfState, structure: jax.tree_util.PyTreeDef, leaves: Shapes, shapes: Shapes
) -> tuple[native.NativeFunction, Table, Table]:
    system = jax.tree.unflatten(structure, _arrays(leaves))
    program = translate(lambda s, at: function(s, *at), system, _arrays(shapes))
    return native.map_function(program, 1), Table(system), Table(program.shape)


@kept
def _by_xla(
    function: OfState, structure: jax.tree_util.PyTreeDef, leaves: Shapes, shapes: Shapes
) -> tuple[Callable[..., Any], Table, Table]:
    system, arrays = jax.tree.unflatten(structure, _arrays(leaves)), _arrays(shapes)
    flat, parts = of_leaves(function, system, *arrays)
    many = jitted(jax.vmap(function, (None, *(0 for _ in shapes))))
    return many, Table(arrays), Table(jax.eval_shape(flat, *parts))
