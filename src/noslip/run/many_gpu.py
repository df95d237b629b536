"""Many members in one kernel on a GPU."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from noslip.engine.program import CannotTranslate, cached_with_refusals
from noslip.engine.translate import translate
from noslip.integrators.solve import Status
from noslip.numerics.pytrees import PyTree, anatomy
from noslip.run.many_xla import OVER_MEMBERS, SHARED, XlaMembers, in_shares
from noslip.run.member import Member, MemberInputs, MemberRow, MemberState
from noslip.run.programs import Shapes


class GpuMembers:
    """One kernel that takes every step as solved; members for which one was not are run again by XLA from
    where the call began, on a CPU, with Newton's method to fall back on.

    Calls begin at multiples of `grain` and where rows are saved, never where a clock says: the bits of a
    member that is run again must not depend on the speed of the machine.
    """

    backend = "gpu"
    grain = 128

    def __init__(self, member: Member, inputs: MemberInputs, interpret: bool = False):
        from noslip.engine.backends import pallas

        if inputs.drive is not None:
            raise CannotTranslate("the kernel does not read inputs that change from step to step yet")
        self.xla, self.block = XlaMembers(member, inputs), pallas.BLOCK
        self.kernel = _gpu_code(member, *anatomy(inputs.shape)[1:], interpret)
        axes = tuple(inputs.axes)

        def advance(leaves: list[Array], full: MemberState, steps: Array) -> MemberState:
            table = _columns(leaves, axes, len(full.carry.step), self.block)
            numbers, counts = self.kernel(table, *_to_tables(full, self.block), steps)
            return _from_tables(numbers, counts, full)

        given = [SHARED if axis is None else OVER_MEMBERS for axis in axes]
        self.advance = in_shares(advance, self.xla.mesh, (given, OVER_MEMBERS, SHARED))
        self.dead = np.zeros(len(self.xla.full.carry.step), bool)  # failed for good

    @property
    def reached(self) -> int:
        return self.xla.reached

    def to(self, stop: int) -> int:
        while self.reached < stop:
            self._call(min((self.reached // self.grain + 1) * self.grain, stop))
        return self.reached

    def _call(self, stop: int) -> None:
        from noslip.engine.backends import pallas

        before = self.xla.full
        with pallas.quiet():
            full = jax.block_until_ready(self.advance(self.xla.leaves, before, stop - self.reached))
        failed = np.asarray(full.carry.interval.status) != Status.SOLVED
        if self.dead.any():
            full = _kept(full, before, self.dead)
        if len(again := np.flatnonzero(failed & ~self.dead)):
            full = self._rerun(full, before, again, stop)
        self.xla.full, self.xla.reached = full, stop

    def _rerun(self, full: MemberState, before: MemberState, failed: np.ndarray, stop: int) -> MemberState:
        """`full` with these members run again from `before`.

        A few of them run on a CPU, where a step takes microseconds and not the time to launch its many
        operations on a GPU; more than 1024 stay here. Their number is rounded up to 16, 64, ..., each of
        which is compiled once.
        """
        size = 16
        while size < len(failed):
            size *= 4
        padded = np.resize(failed, size)
        all_leaves = self.xla.leaves
        varying = {k: all_leaves[k] for k, axis in enumerate(self.xla.axes) if axis is not None}
        own, state = jax.device_get(_taken((varying, before), padded))
        leaves = [own[k] if k in own else np.asarray(x) for k, x in enumerate(all_leaves)]
        with jax.default_device(jax.local_devices(backend="cpu" if size <= 1024 else None)[0]):
            done = jax.device_get(self.xla.code.advance_anywhere(leaves, state, np.int64(stop), None))
        self.dead[failed] = done.carry.interval.status[: len(failed)] != Status.SOLVED
        return _put_back(full, padded, done)

    def row(self) -> MemberRow:
        return self.xla.row()

    def final(self) -> MemberState:
        return self.xla.final()

    def resume(self, full: MemberState, reached: int) -> None:
        self.xla.resume(full, reached)
        self.dead = np.asarray(self.xla.full.carry.interval.status) != Status.SOLVED


@jax.jit
def _taken(tree: PyTree, which: Array) -> PyTree:
    return jax.tree.map(lambda x: x[which], tree)


@jax.jit
def _kept(new: MemberState, old: MemberState, which: Array) -> MemberState:
    return jax.tree.map(
        lambda a, b: jnp.where(which.reshape(which.shape + (1,) * (a.ndim - 1)), b, a), new, old
    )


@jax.jit
def _put_back(tree: MemberState, which: Array, part: MemberState) -> MemberState:
    return jax.tree.map(lambda x, new: x.at[which].set(new), tree, part)


@cached_with_refusals
def _gpu_code(
    member: Member, structure: jax.tree_util.PyTreeDef, shapes: Shapes, interpret: bool
) -> Callable[..., Any]:
    from noslip.engine.backends import pallas

    shape = jax.tree.unflatten(structure, [jax.ShapeDtypeStruct(s, float) for s in shapes])
    n = shape[0].n
    x, scalar = jax.ShapeDtypeStruct((n,), float), jax.ShapeDtypeStruct((), float)
    carry = jax.eval_shape(member.start, shape, (x, x, scalar, None))
    full = MemberState(carry, jax.eval_shape(member.begin, shape, carry))
    step = translate(member.step_regardless, shape, carry, skip="newton_fallback")
    after = translate(member.after, shape, full) if member.watch else None
    return pallas.advance_function(step, after, interpret)


def _padded(columns: list[Array], members: int, block: int, dtype: type) -> Array:
    table = jnp.concatenate(columns) if columns else jnp.zeros((0, members), dtype)
    missing = -members % block
    return jnp.concatenate([table, jnp.repeat(table[:, -1:], missing, axis=1)], axis=1) if missing else table


def _columns(leaves: list[Array], axes: Sequence[int | None], members: int, block: int) -> Array:
    """The fixed inputs as a table [slot][member]."""
    rows = []
    for leaf, axis in zip(leaves, axes, strict=True):
        array = jnp.asarray(leaf, float)
        full = array if axis == 0 else jnp.broadcast_to(array, (members, *array.shape))
        rows.append(full.reshape(members, -1).T)
    return _padded(rows, members, block, float)


def _to_tables(full: MemberState, block: int) -> tuple[Array, Array]:
    """Floats and whole numbers of the state, [slot][member]."""
    leaves = jax.tree.leaves(full)
    members = leaves[0].shape[0]
    flat = [leaf.reshape(members, -1).T for leaf in leaves]
    floats = [x for x in flat if x.dtype == float]
    wholes = [x.astype(jnp.int64) for x in flat if x.dtype != float]
    return _padded(floats, members, block, float), _padded(wholes, members, block, jnp.int64)


def _from_tables(numbers: Array, counts: Array, like: MemberState) -> MemberState:
    leaves, structure = jax.tree.flatten(like)
    out, first = [], {True: 0, False: 0}
    for leaf in leaves:
        real, size = leaf.dtype == float, leaf[0].size
        table = numbers if real else counts
        part = table[first[real] : first[real] + size, : len(leaf)]
        out.append(part.T.reshape(leaf.shape).astype(leaf.dtype))
        first[real] += size
    return jax.tree.unflatten(structure, out)
