"""Many members by XLA: vmap, and each device's share of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax
from jax.sharding import AxisType, Mesh, NamedSharding, PartitionSpec

from noslip.engine.kept import OF_XLA, Large, kept
from noslip.numerics.forks import require_xla
from noslip.numerics.pytrees import PyTree
from noslip.run.driving import of_step
from noslip.run.member import Member, MemberInputs, MemberRow, MemberState
from noslip.run.programs import Fixed, Initial
from noslip.system.inputs import Drive

T = TypeVar("T")
OVER_MEMBERS, SHARED = PartitionSpec("member"), PartitionSpec()


class XlaMembers:
    """vmap, on whatever device JAX prefers; on several, each takes a share of the members."""

    backend = "xla"

    def __init__(self, member: Member, inputs: MemberInputs):
        require_xla()
        leaves, structure = jax.tree.flatten(inputs.fixed)
        self.members, self.axes, self.mesh = inputs.members, inputs.axes, _mesh()
        everywhere = NamedSharding(self.mesh, SHARED)
        self.leaves = [
            jax.device_put(np.asarray(x), everywhere) if axis is None else self._in_shares(x)
            for x, axis in zip(leaves, self.axes, strict=True)
        ]
        columns, shape = jax.tree.flatten(inputs.drive)
        dimensions = tuple(x.ndim for x in columns)
        self.code = _xla_code(member, structure, tuple(inputs.axes), self.mesh, shape, dimensions)
        self.drive = jax.tree.map(
            lambda x: self._in_shares(x) if x.ndim > 1 else jax.device_put(x, everywhere), inputs.drive
        )
        initial = jax.tree.map(
            lambda x, s: self._in_shares(np.broadcast_to(np.asarray(x), (self.members, *s.shape))),
            inputs.initial,
            inputs.initial_shape,
        )
        self.full = self.code.start(self.leaves, initial)
        self.reached = 0

    def to(self, stop: int) -> int:
        self.full = jax.block_until_ready(
            self.code.advance(self.leaves, self.full, np.int64(stop), self.drive)
        )
        self.reached = stop
        return stop

    def row(self) -> MemberRow:
        return self._without_fill(self.code.save(self.leaves, self.full))

    def final(self) -> MemberState:
        return self._without_fill(self.full)

    def resume(self, full: MemberState, reached: int) -> None:
        self.full, self.reached = jax.tree.map(self._in_shares, full), reached

    def _in_shares(self, x: np.ndarray | Array) -> Array:
        """Spread over the devices; the last share is filled up with the last member."""
        fill = np.repeat(np.asarray(x)[-1:], -self.members % self.mesh.size, axis=0)
        return jax.device_put(np.concatenate([x, fill]), NamedSharding(self.mesh, OVER_MEMBERS))

    def _without_fill(self, tree: T) -> T:
        return jax.tree.map(lambda x: np.asarray(x)[: self.members], tree)


def _mesh() -> Mesh:
    """The device that was asked for, or all of this process."""
    chosen = jax.config.jax_default_device  # type: ignore[attr-defined]
    devices = jax.local_devices() if chosen is None else [chosen]
    return Mesh(np.asarray(devices), ("member",), axis_types=(AxisType.Auto,))


class _XlaCode(Large):
    """The functions of a member for all members at once."""

    def __init__(
        self,
        member: Member,
        structure: jax.tree_util.PyTreeDef,
        axes: tuple[int | None, ...],
        mesh: Mesh,
        drives: PyTree,
    ):
        own = jax.tree.map(lambda ndim: 0 if ndim > 1 else None, drives)  # inputs by member, or shared

        def fixed(leaves: list[Array]) -> Fixed:
            return jax.tree.unflatten(structure, leaves)

        def each(function: Callable[..., PyTree]) -> Callable[..., PyTree]:
            return jax.vmap(lambda leaves, x: function(fixed(leaves), x), (list(axes), 0))

        def start(fixed: Fixed, initial: Initial) -> MemberState:
            carry = member.start(fixed, initial)
            return MemberState(carry, member.begin(fixed, carry))

        def step(leaves: list[Array], full: MemberState, drive: Drive) -> MemberState:
            carry, _ = member.step(fixed(leaves), full.carry, of_step(drive, full.carry.step))
            return MemberState(carry, member.after(fixed(leaves), MemberState(carry, full.sums)))

        def advance(leaves: list[Array], full: MemberState, stop: Array, drive: Drive) -> MemberState:
            """Members may stand at different steps; each goes on to `stop`, or until it fails."""

            def waiting(full: MemberState) -> Array:
                return (full.carry.step < stop) & member.going(full.carry)

            def turn(full: MemberState) -> MemberState:
                go, new = waiting(full), jax.vmap(step, (list(axes), 0, own))(leaves, full, drive)
                return jax.tree.map(
                    lambda a, b: jnp.where(go.reshape(go.shape + (1,) * (a.ndim - 1)), a, b), new, full
                )

            return lax.while_loop(lambda full: jnp.any(waiting(full)), turn, full)

        given = [SHARED if axis is None else OVER_MEMBERS for axis in axes]
        self.start = in_shares(each(start), mesh, (given, OVER_MEMBERS))
        self.save = in_shares(each(member.save), mesh, (given, OVER_MEMBERS))
        shares = jax.tree.map(lambda ndim: OVER_MEMBERS if ndim > 1 else SHARED, drives)
        self.advance = in_shares(advance, mesh, (given, OVER_MEMBERS, SHARED, shares))

    def nodes(self) -> int:
        return 2 * OF_XLA


def in_shares(function: Callable[..., PyTree], mesh: Mesh, given: PyTree) -> Callable[..., PyTree]:
    """The function on each device's share of the members; no device waits for another."""
    if mesh.size == 1:
        return jax.jit(function)
    return jax.jit(
        jax.shard_map(function, mesh=mesh, in_specs=given, out_specs=OVER_MEMBERS, check_vma=False)
    )


@kept
def _xla_code(
    member: Member,
    structure: jax.tree_util.PyTreeDef,
    axes: tuple[int | None, ...],
    mesh: Mesh,
    inputs: jax.tree_util.PyTreeDef,
    dimensions: tuple[int, ...],
) -> _XlaCode:
    return _XlaCode(member, structure, axes, mesh, jax.tree.unflatten(inputs, dimensions))
