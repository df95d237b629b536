"""Many members advanced together: in lanes of native code, by XLA, or by one kernel on a GPU."""

from __future__ import annotations

import functools
import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax
from jax.sharding import AxisType, Mesh, NamedSharding, PartitionSpec

from noslip.engine.backends import native
from noslip.engine.memory import Table
from noslip.engine.program import cached_with_refusals
from noslip.engine.translate.lower import translate
from noslip.integrators.solve import Status
from noslip.run.member import Full, Inputs, Member, Row
from noslip.run.one_native import loop_of, require_native

OVER_MEMBERS, SHARED = PartitionSpec("member"), PartitionSpec()


class NativeMembers:
    """Lanes of native code, groups of members spread over threads."""

    backend = "native"
    grain = 1

    def __init__(self, member: Member, inputs: Inputs, threads: int | None):
        require_native(inputs.shape[0])
        self.code = _native_code(member, *_key(inputs.shape))
        self.members, self.width = inputs.members, native.lanes()
        self.threads = threads or _cores()
        self.fixed = Table(inputs.shape).pack(inputs.fixed, self.members, self.width)
        initial = Table(inputs.initial_shape).pack(inputs.initial, self.members, self.width)
        started = self._map("start", initial, self.code.loop.start.shape)
        carry = np.ascontiguousarray(started[:, : Table(self.code.full.carry).slots])
        self.full = np.concatenate([carry, self._map("begin", carry, self.code.full.sums)], axis=1)
        self.reached = 0

    def to(self, stop: int) -> None:
        advance = self.code.function("advance")
        nothing = np.zeros(1, np.int64)

        def run(a: int, b: int) -> None:
            advance(self.fixed[a:b], self.full[a:b], nothing, b - a, self.reached, stop, -1, stop + 1, 0)

        self._spread(run)
        self.reached = stop

    def row(self) -> Row:
        return Table(self.code.row).unpack(self._map("save", self.full, self.code.row), self.members)

    def final(self) -> Full:
        return Table(self.code.full).unpack(self.full, self.members)

    def resume(self, full: Full, reached: int) -> None:
        """Go on from what `final` gave at step `reached`."""
        self.full = Table(self.code.full).pack(full, self.members, self.width)
        self.reached = reached

    def _map(self, name: str, values: np.ndarray, shape: Any) -> np.ndarray:
        call, out = self.code.function(name), Table(shape)
        table = np.zeros((len(values), out.slots, self.width), np.int64)
        self._spread(lambda a, b: call(self.fixed[a:b], values[a:b], table[a:b], b - a))
        return table

    def _spread(self, run: Callable[[int, int], None]) -> None:
        """Call run(a, b) for ranges of groups, on all threads."""
        groups = len(self.fixed)
        pieces = min(groups, 8 * self.threads) if self.threads > 1 else 1
        ends = np.linspace(0, groups, pieces + 1).astype(int)
        if self.threads == 1:
            run(0, groups)
            return
        with ThreadPoolExecutor(self.threads) as pool:
            for done in [pool.submit(run, int(a), int(b)) for a, b in pairwise(ends)]:
                done.result()


def _cores() -> int:
    """Processors that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


class _NativeCode:
    def __init__(self, member: Member, shape: Any):
        self.loop = loop_of(shape[0], member.integrator)  # the programs of a single run, hence its bits
        begin = translate(member.begin, shape, self.loop.carry)
        self.full = Full(self.loop.carry, begin.shape)
        self.programs = {
            "start": self.loop.start,
            "begin": begin,
            "step": self.loop.step,
            "after": translate(member.after, shape, self.full),
            "save": translate(member.save, shape, self.full),
        }
        self.row = self.programs["save"].shape
        self.compiled: dict[str, Any] = {}

    def function(self, name: str) -> Any:
        if name not in self.compiled:
            p = self.programs
            if name == "advance":
                after = p["after"] if p["after"].outputs else None
                made = native.advance_function(p["step"], after, None, native.lanes())
            else:
                made = native.map_function(p[name], native.lanes())
            self.compiled[name] = made
        return self.compiled[name]


def _key(shape: Any) -> tuple[Any, Any]:
    leaves, structure = jax.tree.flatten(shape)
    return structure, tuple(leaf.shape for leaf in leaves)


@cached_with_refusals
def _native_code(member: Member, structure: Any, shapes: Any) -> _NativeCode:
    return _NativeCode(
        member, jax.tree.unflatten(structure, [jax.ShapeDtypeStruct(s, float) for s in shapes])
    )


class XlaMembers:
    """vmap, on whatever device JAX prefers; on several, each takes a share of the members."""

    backend = "xla"
    grain = 1

    def __init__(self, member: Member, inputs: Inputs):
        leaves, structure = jax.tree.flatten(inputs.fixed)
        self.members, self.axes, self.mesh = inputs.members, inputs.axes, _mesh()
        everywhere = NamedSharding(self.mesh, SHARED)
        self.leaves = [
            jax.device_put(np.asarray(x), everywhere) if axis is None else self._in_shares(x)
            for x, axis in zip(leaves, self.axes, strict=True)
        ]
        self.code = _xla_code(member, structure, tuple(inputs.axes), self.mesh)
        initial = [self._in_shares(np.broadcast_to(x, (self.members, *s.shape)))
                   for x, s in zip(inputs.initial, inputs.initial_shape, strict=True)]  # fmt: skip
        self.full = self.code.start(self.leaves, tuple(initial))
        self.reached = 0

    def to(self, stop: int) -> None:
        self.full = jax.block_until_ready(self.code.advance(self.leaves, self.full, np.int64(stop)))
        self.reached = stop

    def row(self) -> Row:
        return self._without_fill(self.code.save(self.leaves, self.full))

    def final(self) -> Full:
        return self._without_fill(self.full)

    def resume(self, full: Full, reached: int) -> None:
        """Go on from what `final` gave at step `reached`."""
        self.full, self.reached = jax.tree.map(self._in_shares, full), reached

    def _in_shares(self, x: Any) -> Array:
        """Spread over the devices; the last share is filled up with the last member."""
        fill = np.repeat(np.asarray(x)[-1:], -self.members % self.mesh.size, axis=0)
        return jax.device_put(np.concatenate([x, fill]), NamedSharding(self.mesh, OVER_MEMBERS))

    def _without_fill(self, tree: Any) -> Any:
        return jax.tree.map(lambda x: np.asarray(x)[: self.members], tree)


def _mesh() -> Mesh:
    """The device that was asked for, or all of this process."""
    chosen = jax.config.jax_default_device  # type: ignore[attr-defined]
    devices = jax.local_devices() if chosen is None else [chosen]
    return Mesh(np.asarray(devices), ("member",), axis_types=(AxisType.Auto,))


class _XlaCode:
    def __init__(self, member: Member, structure: Any, axes: tuple[Any, ...], mesh: Mesh):
        def fixed(leaves: list[Array]) -> Any:
            return jax.tree.unflatten(structure, leaves)

        def each(function: Callable[..., Any]) -> Callable[..., Any]:
            return jax.vmap(lambda leaves, x: function(fixed(leaves), x), (list(axes), 0))

        def start(fixed: Any, initial: Any) -> Full:
            carry = member.start(fixed, initial)
            return Full(carry, member.begin(fixed, carry))

        def step(fixed: Any, full: Full) -> Full:
            carry, _ = member.step(fixed, full.carry)
            return Full(carry, member.after(fixed, Full(carry, full.sums)))

        def advance(leaves: list[Array], full: Full, stop: Array) -> Full:
            """Members may stand at different steps; each goes on to `stop`, or until it fails."""

            def waiting(full: Full) -> Array:
                return (full.carry.step < stop) & (full.carry.interval.status == Status.SOLVED)

            def turn(full: Full) -> Full:
                go, new = waiting(full), each(step)(leaves, full)
                return jax.tree.map(
                    lambda a, b: jnp.where(go.reshape(go.shape + (1,) * (a.ndim - 1)), a, b), new, full
                )

            return lax.while_loop(lambda full: jnp.any(waiting(full)), turn, full)

        self.advance_anywhere = jax.jit(advance)
        given = [SHARED if axis is None else OVER_MEMBERS for axis in axes]
        self.start = in_shares(each(start), mesh, (given, OVER_MEMBERS))
        self.save = in_shares(each(member.save), mesh, (given, OVER_MEMBERS))
        self.advance = in_shares(advance, mesh, (given, OVER_MEMBERS, SHARED))


def in_shares(function: Callable[..., Any], mesh: Mesh, given: Any) -> Callable[..., Any]:
    """The function on each device's share of the members; no device waits for another."""
    if mesh.size == 1:
        return jax.jit(function)
    return jax.jit(
        jax.shard_map(function, mesh=mesh, in_specs=given, out_specs=OVER_MEMBERS, check_vma=False)
    )


@functools.lru_cache(maxsize=64)
def _xla_code(member: Member, structure: Any, axes: tuple[Any, ...], mesh: Mesh) -> _XlaCode:
    return _XlaCode(member, structure, axes, mesh)


class GpuMembers:
    """One kernel that takes every step as solved; members for which one was not are run again by XLA from
    where the call began, on a CPU, with Newton's method to fall back on.

    Calls begin at multiples of `grain` and where rows are saved, never where a clock says: the bits of a
    member that is run again must not depend on the speed of the machine.
    """

    backend = "gpu"
    grain = 128

    def __init__(self, member: Member, inputs: Inputs, interpret: bool = False):
        from noslip.engine.backends import pallas as gpu

        self.xla, self.block = XlaMembers(member, inputs), gpu.BLOCK
        self.kernel = _gpu_code(member, *_key(inputs.shape), interpret)
        axes = tuple(inputs.axes)

        def advance(leaves: list[Array], full: Full, steps: Array) -> Full:
            table = _columns(leaves, axes, len(full.carry.step), self.block)
            numbers, counts = self.kernel(table, *_to_tables(full, self.block), steps)
            return _from_tables(numbers, counts, full)

        given = [SHARED if axis is None else OVER_MEMBERS for axis in axes]
        self.advance = in_shares(advance, self.xla.mesh, (given, OVER_MEMBERS, SHARED))
        self.dead = np.zeros(len(self.xla.full.carry.step), bool)  # failed for good

    @property
    def reached(self) -> int:
        return self.xla.reached

    def to(self, stop: int) -> None:
        while self.reached < stop:
            self._call(min((self.reached // self.grain + 1) * self.grain, stop))

    def _call(self, stop: int) -> None:
        from noslip.engine.backends import pallas as gpu

        before = self.xla.full
        with gpu.quiet():
            full = jax.block_until_ready(self.advance(self.xla.leaves, before, stop - self.reached))
        failed = np.asarray(full.carry.interval.status) != Status.SOLVED
        if self.dead.any():
            full = _kept(full, before, self.dead)
        if len(again := np.flatnonzero(failed & ~self.dead)):
            full = self._rerun(full, before, again, stop)
        self.xla.full, self.xla.reached = full, stop

    def _rerun(self, full: Full, before: Full, failed: np.ndarray, stop: int) -> Full:
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
            done = jax.device_get(self.xla.code.advance_anywhere(leaves, state, np.int64(stop)))
        self.dead[failed] = done.carry.interval.status[: len(failed)] != Status.SOLVED
        return _put_back(full, padded, done)

    def row(self) -> Row:
        return self.xla.row()

    def final(self) -> Full:
        return self.xla.final()

    def resume(self, full: Full, reached: int) -> None:
        self.xla.resume(full, reached)
        self.dead = np.asarray(self.xla.full.carry.interval.status) != Status.SOLVED


@jax.jit
def _taken(tree: Any, which: Array) -> Any:
    return jax.tree.map(lambda x: x[which], tree)


@jax.jit
def _kept(new: Any, old: Any, which: Array) -> Any:
    return jax.tree.map(
        lambda a, b: jnp.where(which.reshape(which.shape + (1,) * (a.ndim - 1)), b, a), new, old
    )


@jax.jit
def _put_back(tree: Any, which: Array, part: Any) -> Any:
    return jax.tree.map(lambda x, new: x.at[which].set(new), tree, part)


@cached_with_refusals
def _gpu_code(member: Member, structure: Any, shapes: Any, interpret: bool) -> Any:
    from noslip.engine.backends import pallas as gpu

    shape = jax.tree.unflatten(structure, [jax.ShapeDtypeStruct(s, float) for s in shapes])
    n = shape[0].n
    x, scalar = jax.ShapeDtypeStruct((n,), float), jax.ShapeDtypeStruct((), float)
    carry = jax.eval_shape(member.start, shape, (x, x, scalar))
    full = Full(carry, jax.eval_shape(member.begin, shape, carry))
    step = translate(member.step_regardless, shape, carry, skip="newton_fallback")
    after = translate(member.after, shape, full) if member.watch else None
    return gpu.advance_function(step, after, interpret)


def _padded(columns: list[Array], members: int, block: int, dtype: Any) -> Array:
    table = jnp.concatenate(columns) if columns else jnp.zeros((0, members), dtype)
    missing = -members % block
    return jnp.concatenate([table, jnp.repeat(table[:, -1:], missing, axis=1)], axis=1) if missing else table


def _columns(leaves: list[Array], axes: Any, members: int, block: int) -> Array:
    """The fixed inputs as a table [slot][member]."""
    rows = []
    for leaf, axis in zip(leaves, axes, strict=True):
        array = jnp.asarray(leaf, float)
        full = array if axis == 0 else jnp.broadcast_to(array, (members, *array.shape))
        rows.append(full.reshape(members, -1).T)
    return _padded(rows, members, block, float)


def _to_tables(full: Full, block: int) -> tuple[Array, Array]:
    """Floats and whole numbers of the state, [slot][member]."""
    leaves = jax.tree.leaves(full)
    members = leaves[0].shape[0]
    flat = [leaf.reshape(members, -1).T for leaf in leaves]
    floats = [x for x in flat if x.dtype == float]
    wholes = [x.astype(jnp.int64) for x in flat if x.dtype != float]
    return _padded(floats, members, block, float), _padded(wholes, members, block, jnp.int64)


def _from_tables(numbers: Array, counts: Array, like: Full) -> Full:
    leaves, structure = jax.tree.flatten(like)
    out, first = [], {True: 0, False: 0}
    for leaf in leaves:
        real, size = leaf.dtype == float, leaf[0].size
        table = numbers if real else counts
        part = table[first[real] : first[real] + size, : len(leaf)]
        out.append(part.T.reshape(leaf.shape).astype(leaf.dtype))
        first[real] += size
    return jax.tree.unflatten(structure, out)
