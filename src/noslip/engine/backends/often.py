"""Questions about a system, answered by machine code: at once, or from some time on and by NumPy before.

To compile a question takes as long as to answer it some dozen times by NumPy, whose answers may differ in
their last digits: good for the checks that every run makes anew, and not for results. What has very many
operations, of a large system without zeros, is not compiled here: NumPy goes on with the checks, and whoever
asks for anything else has XLA, to which it is a few products of matrices.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Hashable
from typing import TypeAlias

import jax
import numpy as np
from jax.tree_util import PyTreeDef

from noslip.engine import stored
from noslip.engine.backends import native
from noslip.engine.backends.numpy_rows import evaluate
from noslip.engine.kept import Large, kept
from noslip.engine.memory import Table
from noslip.engine.program import CannotTranslate, PyTree
from noslip.engine.translate import translate
from noslip.numerics.pytrees import anatomy

OFTEN = 8  # times that NumPy answers
USUAL = 4000  # nodes of a question that is not short
# operations that take a second to compile, and three; a chain of 67 blades has 20000
INSTEAD_OF_XLA, INSTEAD_OF_NUMPY = 30_000, 100_000

Shapes: TypeAlias = tuple[tuple[int, ...], ...]


def evaluate_often(
    function: Callable[..., PyTree], static: Hashable, fixed: PyTree, *arrays: np.ndarray
) -> PyTree:
    """function(static, fixed, *row) for every row of the arrays, as arrays (rows, ...). Raises
    `CannotTranslate` where there is no scalar program."""
    leaves, structure, shapes = anatomy(fixed)
    row = tuple(np.shape(x)[1:] for x in arrays)
    question = _question(function, static, structure, shapes, row, INSTEAD_OF_NUMPY)
    question.asked += 1
    if question.asked <= OFTEN or (code := question.code) is None:
        return evaluate(function, static, fixed, *arrays)
    return code(leaves, arrays)


def evaluate_by_code(
    function: Callable[..., PyTree], static: Hashable, fixed: PyTree, *arrays: np.ndarray
) -> PyTree | None:
    """The same by machine code alone, or None where that cannot be made."""
    leaves, structure, shapes = anatomy(fixed)
    row = tuple(np.shape(x)[1:] for x in arrays)
    code = _question(function, static, structure, shapes, row, INSTEAD_OF_XLA).code
    return None if code is None else code(leaves, arrays)


class _Question(Large):
    """One that is asked about systems of one structure."""

    def __init__(
        self, function: Callable[..., PyTree], fixed: PyTree, values: tuple[PyTree, ...], limit: int
    ):
        self.function, self.fixed, self.values, self.limit = function, fixed, values, limit
        self.asked = 0

    def nodes(self) -> int:
        return USUAL

    @functools.cached_property
    def code(self) -> _Code | None:
        """What answers it, if there is a scalar program that is not too long."""
        function = self.function
        try:
            program = stored.program(
                ("often", function, self.fixed, self.values, self.limit),
                lambda: translate(
                    lambda fixed, values: function(fixed, *values), self.fixed, self.values, limit=self.limit
                ),
            )
            call = native.map_function(program, 1)
        except (CannotTranslate, ImportError):
            return None
        return _Code(call, Table(self.fixed), Table(self.values), Table(program.shape))


class _Code:
    def __init__(self, call: native.NativeFunction, fixed: Table, given: Table, out: Table):
        self.call, self.fixed, self.given, self.out = call, fixed, given, out

    def __call__(self, leaves: list[np.ndarray], arrays: tuple[np.ndarray, ...]) -> PyTree:
        count = len(arrays[0])
        out = np.empty((count, self.out.slots), np.int64)
        fixed, given = self.fixed.pack(leaves, count, 1), self.given.pack(arrays, count, 1)
        self.call(fixed, given, out, count)
        return self.out.split_bits(out)


@kept
def _question(
    function: Callable[..., PyTree],
    static: Hashable,
    structure: PyTreeDef,
    leaves: Shapes,
    row: Shapes,
    limit: int,
) -> _Question:
    fixed = jax.tree.unflatten(structure, [jax.ShapeDtypeStruct(s, float) for s in leaves])
    values = tuple(jax.ShapeDtypeStruct(s, float) for s in row)
    return _Question(functools.partial(function, static), fixed, values, limit)
