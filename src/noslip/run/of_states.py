"""Functions of states, at many states in one call of machine code: a column for each number they give."""

from __future__ import annotations

from collections.abc import Callable

import jax
import numpy as np

from noslip.engine import stored
from noslip.engine.backends import native
from noslip.engine.backends.native_columns import columns_function
from noslip.engine.kept import jitted
from noslip.engine.memory import Table
from noslip.engine.program import CannotTranslate, PyTree
from noslip.engine.translate import translate
from noslip.numerics.pytrees import of_leaves
from noslip.run.programs import Shapes, require_native
from noslip.system import System

WIDE = 2000  # operations up to which code for several rows at a time is made about as soon as for one


class OfStates:
    """function(fixed, *values) of what is `fixed`, given by its shapes, and of arrays with these `shapes`;
    all that it gives are floats. XLA's where it has no scalar program. For `many` rows, code in lanes."""

    def __init__(
        self,
        function: Callable[..., PyTree],
        fixed: tuple[System, *tuple[PyTree, ...]],
        shapes: Shapes,
        many: bool,
    ):
        values = tuple(jax.ShapeDtypeStruct(shape, float) for shape in shapes)
        self.given, self.fixed = [Table(x) for x in values], Table(fixed)
        self.width, self.native = 1, True
        try:
            require_native(fixed[0])
            program = stored.program(
                ("of states", function, fixed, values),
                lambda: translate(lambda own, at: function(own, *at), fixed, values),
            )
            self.nodes, self.out = len(program.nodes), Table(program.shape)
            if many and program.size() <= WIDE:
                self.width = native.lanes()
            self.code = columns_function(program, self.width, [x.slots for x in self.given])
        except CannotTranslate:
            self.nodes, self.native = 0, False
            flat, leaves = of_leaves(function, fixed, *values)
            self.out = Table(jax.eval_shape(flat, *leaves))
            self.many = jitted(jax.vmap(function, (None, *(0 for _ in shapes))))

    def __call__(self, fixed: np.ndarray, *values: np.ndarray) -> np.ndarray:
        """The numbers that it makes, [slot][row], for rows of numbers; what is fixed is one row."""
        rows = len(values[0])
        if not self.native:
            return self._by_xla(fixed, values)
        out = np.empty((self.out.slots, rows + self.width - 1))
        self.code(fixed, out, rows, out.shape[1], *values)
        return out[:, :rows]

    def _by_xla(self, fixed: np.ndarray, values: tuple[np.ndarray, ...]) -> np.ndarray:
        own = jax.tree.map(lambda x: x[0], self.fixed.split(fixed[None]))
        rows = len(values[0])
        given = (x.split(array.reshape(rows, -1)) for x, array in zip(self.given, values, strict=True))
        found = jax.tree.leaves(self.many(own, *given))
        return np.concatenate([np.asarray(x, float).reshape(rows, -1).T for x in found])

    def split(self, out: np.ndarray) -> PyTree:
        """What the columns are, as arrays (rows, ...) that share their memory."""
        leaves = [
            out[place.start] if shape == () else out[place].T.reshape(out.shape[1], *shape)
            for shape, place in zip(self.out.shapes, self.out.places, strict=True)
        ]
        return jax.tree.unflatten(self.out.structure, leaves)
