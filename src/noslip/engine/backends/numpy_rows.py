"""Scalar programs run by NumPy, one array operation per node, over many rows at once.

For what is computed once per run: checks at the start, and diagnostics of the saved states. Nothing is
compiled. Fused operations are rounded twice here; otherwise the values are those of native code. For one
state a short program can be written as Python on floats instead, with the same bits.
"""

from __future__ import annotations

import contextlib
import functools
import math
from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import TypeAlias

import jax
import numpy as np
from jax.tree_util import PyTreeDef
from jax.typing import ArrayLike

from noslip.engine import stored
from noslip.engine.kept import OF_XLA, Large, jitted, kept
from noslip.engine.memory import Table
from noslip.engine.program import (
    UNUSED,
    CannotTranslate,
    Dense,
    Evaluation,
    Loop,
    Number,
    Program,
    PyTree,
)
from noslip.engine.translate import translate
from noslip.engine.translate.builder import KINDS
from noslip.engine.translate.functions import FUNCTIONS
from noslip.numerics.pytrees import anatomy

ROWS = 4096  # rows at a time, so that everything stays in the cache
SHORT = 400  # operations; to write more of them as Python takes longer than it saves
LONG = 250_000  # operations, a second of them or more; what is longer is XLA's

Shapes: TypeAlias = tuple[tuple[int, ...], ...]

OPERATIONS: dict[str, Callable[..., ArrayLike]] = {
    "add": np.add, "sub": np.subtract, "mul": np.multiply, "div": np.divide, "neg": np.negative,
    "fma": lambda x, y, z: x * y + z, "fnma": lambda x, y, z: z - x * y, "fms": lambda x, y, z: x * y - z,
    "iadd": np.add, "isub": np.subtract, "imul": np.multiply, "ineg": np.negative,
    "idiv": lambda x, y: (np.abs(x) // np.abs(y)) * np.sign(x) * np.sign(y), "irem": np.fmod,
    "iand": np.bitwise_and, "ior": np.bitwise_or, "ixor": np.bitwise_xor,
    "ishl": np.left_shift, "iashr": np.right_shift,
    "and": np.logical_and, "or": np.logical_or, "xor": np.logical_xor, "not": np.logical_not,
    "lt": np.less, "le": np.less_equal, "eq": np.equal, "ne": np.not_equal,
    "max": np.maximum, "min": np.minimum, "abs": np.abs, "sqrt": np.sqrt,
    "rint": np.rint, "floor": np.floor, "ceil": np.ceil,
    "select": np.where,
    "itof": lambda x: np.asarray(x, dtype=np.float64),
    "ftoi": lambda x: np.nan_to_num(x).astype(np.int64),
    "ftobits": lambda x: np.asarray(x, np.float64).view(np.int64),
    "bitstof": lambda x: np.asarray(x, np.int64).view(np.float64),
}  # fmt: skip
NUMPY_NAMES = {"asin": "arcsin", "acos": "arccos", "atan": "arctan", "atan2": "arctan2", "pow": "power",
               "asinh": "arcsinh", "acosh": "arccosh", "atanh": "arctanh"}  # fmt: skip


def _function(op: str) -> Callable[..., ArrayLike]:
    if op in OPERATIONS:
        return OPERATIONS[op]
    name = op.removeprefix("libm:")
    found = getattr(np, NUMPY_NAMES.get(name, name), None)
    return found if found is not None else np.vectorize(FUNCTIONS[name].exact, otypes=[float])


SIGNS = {"add": "{} + {}", "sub": "{} - {}", "mul": "{} * {}", "div": "{} / {}", "neg": "-{}",
         "fma": "{} * {} + {}", "fnma": "{2} - {0} * {1}", "fms": "{} * {} - {}",
         "lt": "{} < {}", "le": "{} <= {}", "eq": "{} == {}", "ne": "{} != {}",
         "and": "{} and {}", "or": "{} or {}", "not": "not {}", "select": "{1} if {0} else {2}"}  # fmt: skip


def in_python(program: Program) -> Callable[..., tuple[Number, ...]] | None:
    """A short program without loops as a function of Python numbers, else None."""
    items, nodes = [*program.setup.items, *program.main.items], program.nodes
    operations = [item for item in items if isinstance(item, int)]
    if len(items) > SHORT or len(operations) < len(items):
        return None
    known: dict[str, object] = {}

    def name(number: int) -> str:
        if nodes[number].home >= 0 or number in program.inputs:
            return f"x{number}"
        known[f"x{number}"] = program.constant(number)
        return f"x{number}"

    def formula(number: int) -> str:
        node, arguments = nodes[number], [name(a) for a in nodes[number].args]
        if node.op in SIGNS:
            return SIGNS[node.op].format(*arguments)
        known[f"f{number}"], known[f"k{number}"] = _function(node.op), KINDS[node.kind]
        return f"k{number}(f{number}({', '.join(arguments)}))"

    lines = [f"    x{number} = {formula(number)}" for number in operations]
    outputs = "".join(f"{name(number)}, " for number in program.outputs)
    inputs = ", ".join(f"x{number}" for number in program.inputs)
    exec(f"def run({inputs}):\n" + "\n".join([*lines, f"    return ({outputs})"]), known)
    run: Callable[..., tuple[Number, ...]] = known["run"]  # type: ignore[assignment]
    return run


class _Run(Evaluation[ArrayLike]):
    def __init__(self, program: Program, inputs: Sequence[ArrayLike]):
        self.program = program
        self.active = np.array(True)  # the rows that the innermost loop is running for
        self.values: dict[int, ArrayLike] = dict(zip(program.inputs, inputs, strict=True))
        self.block(program.setup)
        self.block(program.main)

    def value(self, node: int) -> ArrayLike:
        found = self.values.get(node)
        return self.program.constant(node) if found is None else found

    def operation(self, number: int) -> None:
        node = self.program.nodes[number]
        self.values[number] = _function(node.op)(*(self.value(a) for a in node.args))

    def loop(self, loop: Loop) -> None:
        outer = self.active
        active = np.logical_and(self.value(loop.enter), outer)
        x = [self.value(i) for i in loop.inits]
        if active.any():
            self.active = active
            self.block(loop.before)
        while active.any():
            self.values.update(zip(loop.params, x, strict=True))
            self.active = active
            self.block(loop.body)
            x = [np.where(active, self.value(o), old) for o, old in zip(loop.outs, x, strict=True)]
            active = np.logical_and(active, self.value(loop.again))
        self.active = outer
        self.values.update((r, v) for r, v in zip(loop.results, x, strict=True) if r != UNUSED)

    def dense(self, item: Dense) -> None:
        n = item.size[0]
        table = np.stack(np.broadcast_arrays(*(self.value(a) for a in item.inputs)), axis=-1)
        table = np.asarray(table, float).reshape(*table.shape[:-1], n, -1)
        singular = ~np.isfinite(table).all((-1, -2)) | (np.linalg.matrix_rank(table[..., :n]) < n)
        safe = np.where(singular[..., None, None], np.eye(n), table[..., :n])
        out = np.linalg.inv(safe) if item.routine == "inverse" else np.linalg.solve(safe, table[..., n:])
        out = np.where(singular[..., None, None], math.nan, out).reshape(*table.shape[:-2], -1)
        self.values.update((r, out[..., k]) for k, r in enumerate(item.results))


def evaluate(function: Callable[..., PyTree], static: Hashable, fixed: PyTree, *arrays: np.ndarray) -> PyTree:
    """function(static, fixed, *row) for every row of the arrays, as arrays (rows, ...)."""
    leaves, structure, shapes = anatomy(fixed)
    row = tuple(np.shape(x)[1:] for x in arrays)
    made = _program(function, static, structure, shapes, row)
    constants, rows = _numbers(leaves), len(arrays[0])
    values = np.empty((rows, made.out.slots))
    with np.errstate(all="ignore"):
        for first in range(0, rows, ROWS):
            part = [np.asarray(x[first : first + ROWS], float) for x in arrays]
            columns = [c for x in part for c in np.ascontiguousarray(x.reshape(len(x), -1).T)]
            run = _Run(made.program, [*constants, *columns])
            for k, o in enumerate(made.program.outputs):
                values[first : first + ROWS, k] = run.value(o)
    return made.out.split(values)


def _numbers(arrays: Iterable[ArrayLike]) -> list[float]:
    return [x for array in arrays for x in ([array] if type(array) is float else np.ravel(array).tolist())]


def short_function(
    function: Callable[..., PyTree], structure: PyTreeDef, leaves: Shapes, row: Shapes
) -> Callable[..., tuple[Number, ...]] | None:
    """function(fixed, *arrays) as a function of Python's numbers, if its program is short; else None.
    The numbers are those of the leaves of `fixed`, then of the arrays; no array is made of them."""
    with contextlib.suppress(CannotTranslate):
        return _python(function, structure, leaves, row)
    return None


def evaluate_anyhow(
    function: Callable[..., PyTree], static: Hashable, fixed: PyTree, *arrays: np.ndarray
) -> PyTree:
    """The same, by XLA where there is no scalar program."""
    try:
        return evaluate(function, static, fixed, *arrays)
    except CannotTranslate:
        found = _by_xla(function=function, static=static, fixed=fixed, arrays=arrays)
        return jax.tree.map(np.asarray, found)


def _rows_by_xla(
    function: Callable[..., PyTree], static: Hashable, fixed: PyTree, arrays: tuple[np.ndarray, ...]
) -> PyTree:
    return jax.vmap(functools.partial(function, static), (None, *(0 for _ in arrays)))(fixed, *arrays)


_by_xla = jitted(_rows_by_xla, ("function", "static"), OF_XLA)


@kept
def _python(
    function: Callable[..., PyTree], structure: PyTreeDef, leaves: Shapes, row: Shapes
) -> Callable[..., tuple[Number, ...]] | None:
    return in_python(_translated(function, structure, leaves, row))


class _Rows(Large):
    """A program that NumPy runs, and how its results lie in a row."""

    def __init__(self, program: Program):
        self.program, self.out = program, Table(program.shape)

    def nodes(self) -> int:
        return len(self.program.nodes)


@kept
def _program(
    function: Callable[..., PyTree], static: Hashable, structure: PyTreeDef, leaves: Shapes, row: Shapes
) -> _Rows:
    return _Rows(_translated(functools.partial(function, static), structure, leaves, row))


def _translated(
    function: Callable[..., PyTree], structure: PyTreeDef, leaves: Shapes, row: Shapes
) -> Program:
    fixed = jax.tree.unflatten(structure, [jax.ShapeDtypeStruct(s, float) for s in leaves])
    values = tuple(jax.ShapeDtypeStruct(s, float) for s in row)

    def make() -> Program:
        return translate(
            lambda fixed, values: function(fixed, *values), fixed, values, expand=False, limit=LONG
        )

    return stored.program(("rows", function, fixed, values), make)
