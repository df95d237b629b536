"""Scalar programs as one Pallas kernel: each thread carries a member through many steps in its registers.

The kernel reads the state of a block of members once, runs the time loop, and writes the state back; sums for
observables are part of the state. Newton's fallback is not in the kernel, and a failed step is taken all the
same: the ensemble runs such members again by XLA, on a CPU.
"""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, TypeAlias

import jax
import jax.numpy as jnp
from jax import Array, lax
from jax.experimental import pallas as pl
from jax.experimental.pallas import triton
from jax.typing import ArrayLike, DTypeLike

from noslip.engine.program import UNUSED, CannotTranslate, Dense, Loop, Number, Program, Rolled, Visitor, walk
from noslip.engine.translate.functions import MAGIC

if TYPE_CHECKING:
    from jax.ref import Ref

Advance: TypeAlias = Callable[[Array, Array, Array, ArrayLike], tuple[Array, Array]]
BLOCK = 32  # members per block: one warp, so that the end of a loop is agreed upon without a barrier
WARPS = 1
UNKNOWNS = 16  # the largest dense solve that is kept in registers
DTYPES = {"f": jnp.float64, "i": jnp.int64, "b": jnp.bool_}


def _bits(x: Array, dtype: DTypeLike) -> Array:
    return lax.bitcast_convert_type(x, dtype)


def _fma(x: Array | Number, y: Array | Number, z: Array | Number) -> Array:
    """x y + z rounded once, whatever the compiler thinks of contraction."""
    x, y, z = jnp.broadcast_arrays(*(jnp.asarray(a, jnp.float64) for a in (x, y, z)))
    (out,) = triton.elementwise_inline_asm(
        "fma.rn.f64 $0, $1, $2, $3;",
        args=[x, y, z],
        constraints="=d,d,d,d",
        pack=1,
        result_shape_dtypes=[jax.ShapeDtypeStruct(x.shape, x.dtype)],
    )
    return out


def _rint(x: Array | Number) -> Array:
    return jnp.subtract(jnp.add(x, MAGIC), MAGIC)


def _plain_fma(x: Array | Number, y: Array | Number, z: Array | Number) -> Array:
    return jnp.add(jnp.multiply(x, y), z)


OPERATIONS: dict[str, Callable[..., Array]] = {
    "add": jnp.add, "sub": jnp.subtract, "mul": jnp.multiply, "div": jnp.divide, "neg": jnp.negative,
    "iadd": jnp.add, "isub": jnp.subtract, "imul": jnp.multiply, "ineg": jnp.negative,
    "idiv": lax.div, "irem": lax.rem,
    "iand": jnp.bitwise_and, "ior": jnp.bitwise_or, "ixor": jnp.bitwise_xor,
    "ishl": jnp.left_shift, "iashr": jnp.right_shift,
    "and": jnp.logical_and, "or": jnp.logical_or, "xor": jnp.logical_xor, "not": jnp.logical_not,
    "lt": jnp.less, "le": jnp.less_equal, "eq": jnp.equal, "ne": jnp.not_equal,
    "max": jnp.maximum, "min": jnp.minimum, "abs": jnp.abs, "sqrt": jnp.sqrt,
    "floor": jnp.floor, "ceil": jnp.ceil,
    "select": jnp.where,
    "itof": lambda x: x.astype(jnp.float64),
    "ftoi": lambda x: x.astype(jnp.int64),
    "ftobits": partial(_bits, dtype=jnp.int64),
    "bitstof": partial(_bits, dtype=jnp.float64),
}  # fmt: skip


class _Kernel(Visitor):
    """Writes a program on vectors of BLOCK members."""

    def __init__(self, program: Program, width: int, interpret: bool):
        self.nodes, self.width, self.program = program.nodes, width, program
        self.fma = _plain_fma if interpret else _fma
        self.rint = jnp.round if interpret else _rint  # Triton has no rounding; XLA would undo the trick
        self.values: dict[int, Array | Number] = {}
        self.mask: Array | None = None  # the members that the innermost loop is running for

    def value(self, node: int) -> Array | Number:
        found = self.values.get(node)
        return self.program.constant(node) if found is None else found

    def vector(self, node: int) -> Array:
        return jnp.broadcast_to(jnp.asarray(self.value(node), DTYPES[self.nodes[node].kind]), (self.width,))

    def setup(self, fixed: Sequence[Array]) -> None:
        self.values.update(zip(self.program.inputs[: self.program.fixed], fixed, strict=True))
        self.block(self.program.setup)

    def main(self, inputs: Sequence[Array]) -> list[Array]:
        """Outputs for these inputs, after `setup`."""
        kept = dict(self.values)
        self.values.update(zip(self.program.inputs[self.program.fixed :], inputs, strict=True))
        self.block(self.program.main)
        outputs = [self.vector(o) for o in self.program.outputs]
        self.values = kept
        return outputs

    def operation(self, number: int) -> None:
        node = self.nodes[number]
        self.values[number] = self.apply(node.op, [self.value(a) for a in node.args])

    def apply(self, op: str, args: list[Array | Number]) -> Array:
        if op == "rint":
            return self.rint(args[0])
        if op == "fma":
            return self.fma(*args)
        if op == "fnma":
            return self.fma(-args[0], args[1], args[2])
        if op == "fms":
            return self.fma(args[0], args[1], -args[2])
        if op in OPERATIONS:
            return OPERATIONS[op](*args)
        return getattr(jnp, NAMES.get(op, op.removeprefix("libm:")))(*args)

    def loop(self, loop: Loop) -> None:
        outer = self.mask
        enter = self.vector(loop.enter) if outer is None else jnp.logical_and(self.vector(loop.enter), outer)
        inits = [self.vector(i) for i in loop.inits]
        kept = dict(self.values)

        def turn(carry: tuple[Array, ...]) -> tuple[Array, ...]:
            self.values = dict(kept)
            active, x = carry[0], carry[1:]
            self.mask = active
            self.values.update(zip(loop.params, x, strict=True))
            self.block(loop.before)  # the compiler moves it out, or recomputes it: no second loop for it
            self.block(loop.body)
            outs = [
                self.vector(o) if r == UNUSED else jnp.where(active, self.vector(o), old)
                for o, r, old in zip(loop.outs, loop.results, x, strict=True)
            ]
            return (jnp.logical_and(active, self.vector(loop.again)), *outs)

        def any_active(carry: tuple[Array, ...]) -> Array:
            return jnp.max(carry[0].astype(jnp.int32)) > 0

        out = lax.while_loop(any_active, turn, (enter, *inits))
        self.values, self.mask = kept, outer
        self.values.update((r, v) for r, v in zip(loop.results, out[1:], strict=True) if r != UNUSED)

    def rolled(self, item: Rolled) -> None:
        """A kernel has no tables: the turns of a rolled loop one after the other."""
        x = [self.value(i) for i in item.inits]
        for k in range(item.length):
            self.values.update(zip(item.params, x, strict=True))
            self.values.update((r, self.value(t[k])) for r, t in zip(item.reads, item.tables, strict=True))
            self.block(item.body)
            x = [self.value(o) for o in item.outs]
            self.values.update((s[k], self.value(w)) for s, w in zip(item.stacked, item.writes, strict=True))
        self.values.update(zip(item.results, x, strict=True))

    def dense(self, item: Dense) -> None:
        """Gauss-Jordan in registers; a better pivot row changes places as it is met."""
        n = item.size[0]
        flat = [self.vector(a) for a in item.inputs]
        wide = len(flat) // n
        table = [flat[i * wide : (i + 1) * wide] for i in range(n)]
        if item.routine == "inverse":
            one, zero = jnp.ones(self.width), jnp.zeros(self.width)
            table = [[*row, *(one if i == j else zero for j in range(n))] for i, row in enumerate(table)]
        for k in range(n):
            for i in range(k + 1, n):
                better = jnp.abs(table[i][k]) > jnp.abs(table[k][k])
                both = [(jnp.where(better, y, x), jnp.where(better, x, y))
                        for x, y in zip(table[k], table[i], strict=True)]  # fmt: skip
                table[k], table[i] = [a for a, _ in both], [b for _, b in both]
            scale = 1.0 / table[k][k]
            table[k] = [x * scale for x in table[k]]
            for i in range(n):
                if i != k:
                    factor = -table[i][k]
                    table[i] = [
                        *table[i][: k + 1],
                        *(
                            self.fma(factor, x, y)
                            for x, y in zip(table[k][k + 1 :], table[i][k + 1 :], strict=True)
                        ),
                    ]
        results = [x for row in table for x in row[n:]]
        self.values.update(zip(item.results, results, strict=True))


NAMES = {"libm:pow": "power", "libm:fmod": "fmod", "libm:asin": "arcsin", "libm:acos": "arccos",
         "libm:atan": "arctan", "libm:atan2": "arctan2", "libm:asinh": "arcsinh", "libm:acosh": "arccosh",
         "libm:atanh": "arctanh"}  # fmt: skip


def advance_function(step: Program, after: Program | None, interpret: bool = False) -> Advance:
    """call(fixed, numbers, counts, steps): the state of every member after so many more steps.

    The state is kept as two tables, floats and whole numbers, [slot][member]; truths are whole numbers.
    """
    for program in (step, after) if after is not None else (step,):
        for item in (*walk(program.setup), *walk(program.main)):
            if isinstance(item, Dense) and item.size[0] > UNKNOWNS:
                raise CannotTranslate(f"a solve of {item.size[0]} unknowns does not fit into a kernel")
    kinds = [step.nodes[i].kind for i in step.inputs[step.fixed :]]
    if after is not None:
        kinds = [after.nodes[i].kind for i in after.inputs[after.fixed :]]
    own = len(step.inputs) - step.fixed
    still = {k for k, o in enumerate(step.outputs) if o == step.inputs[step.fixed + k]}
    floats = [k for k, kind in enumerate(kinds) if kind == "f"]
    wholes = [k for k, kind in enumerate(kinds) if kind != "f"]

    def kernel(fixed_ref: Ref, f_ref: Ref, i_ref: Ref, steps_ref: Ref, f_out: Ref, i_out: Ref) -> None:
        here = pl.ds(pl.program_id(0) * BLOCK, BLOCK)
        fixed = [fixed_ref[k, here] for k in range(step.fixed)]
        state: dict[int, Array] = {}
        for slot, k in enumerate(floats):
            state[k] = f_ref[slot, here]
        for slot, k in enumerate(wholes):
            state[k] = i_ref[slot, here] != 0 if kinds[k] == "b" else i_ref[slot, here]
        stepper = _Kernel(step, BLOCK, interpret)
        stepper.setup(fixed)
        summer = None if after is None else _Kernel(after, BLOCK, interpret)
        if summer is not None:
            summer.setup(fixed)

        # what no step changes is not carried, and takes no register where no step reads it
        moving = [k for k in range(len(kinds)) if k not in still]

        def body(_: int, moved: tuple[Array, ...]) -> tuple[Array, ...]:
            now = state | dict(zip(moving, moved, strict=True))
            new = stepper.main([now[k] for k in range(own)])
            sums = [now[k] for k in range(own, len(kinds))]
            new += [] if summer is None else summer.main([*new, *sums])
            return tuple(new[k] for k in moving)

        moved = lax.fori_loop(0, steps_ref[0], body, tuple(state[k] for k in moving))
        state.update(zip(moving, moved, strict=True))
        for slot, k in enumerate(floats):
            f_out[slot, here] = state[k]
        for slot, k in enumerate(wholes):
            i_out[slot, here] = state[k].astype(jnp.int64)

    def call(fixed: Array, numbers: Array, counts: Array, steps: ArrayLike) -> tuple[Array, Array]:
        members = numbers.shape[1]
        return pl.pallas_call(
            kernel,
            grid=(members // BLOCK,),
            out_shape=(
                jax.ShapeDtypeStruct(numbers.shape, numbers.dtype),
                jax.ShapeDtypeStruct(counts.shape, counts.dtype),
            ),
            compiler_params=None if interpret else triton.CompilerParams(num_warps=WARPS, num_stages=1),
            interpret=interpret,
        )(fixed, numbers, counts, jnp.asarray(steps, jnp.int32).reshape(1))

    return call


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    """JAX 0.11 means to drop Triton and says so with every kernel; a user can do nothing about it."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "The Pallas Triton backend is deprecated", DeprecationWarning)
        yield
