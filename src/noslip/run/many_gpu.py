"""Many members on GPUs: one thread each, the whole step in a kernel, Newton's method in a second one."""

from __future__ import annotations

import functools
from collections.abc import Sequence

import jax
import numpy as np

from noslip.engine.backends import cuda, ptx
from noslip.engine.kept import Large, kept
from noslip.engine.memory import Table
from noslip.engine.usual import usual
from noslip.numerics.pytrees import PyTree, anatomy
from noslip.numerics.threads import cores
from noslip.run.driving import driving_table
from noslip.run.many_native import Lanes, MemberPrograms
from noslip.run.member import Member, MemberInputs, MemberRow, MemberState
from noslip.run.programs import RARELY, Shapes, require_native


class GpuMembers:
    """Members in threads, shared among the GPUs of this process; their bits are those of native code.

    Nearly every solve settles by the method's quick iteration, and a kernel with that alone needs far fewer
    registers. Members for which it does not are left as they were at the call, and a second kernel with the
    whole step takes them through it.
    """

    backend = "gpu"

    def __init__(self, member: Member, inputs: MemberInputs, devices: Sequence[cuda.Device] | None = None):
        require_native(inputs.shape[0])
        self.code = _gpu_code(member, *anatomy(inputs.shape)[1:], jax.tree.structure(inputs.drive))
        self.members, self.reached = inputs.members, 0
        fixed = Table(inputs.shape).pack(inputs.fixed, self.members, ptx.WARP)
        chosen = _devices() if devices is None else devices
        ends = np.linspace(0, len(fixed), min(len(chosen), len(fixed)) + 1).astype(int).tolist()
        self.shares = [
            _Share(device, self.code, fixed[a:b])
            for device, a, b in zip(chosen, ends[:-1], ends[1:], strict=False)
        ]
        # what runs once is not worth a kernel, on which the driver would spend as long as on a step's
        lanes = Lanes(self.code.made, inputs, None)
        self.resume(Table(self.code.full).unpack(lanes.start(inputs), self.members), 0)
        if inputs.drive is not None:
            table = driving_table(inputs.drive, self.members, ptx.WARP)
            for share, a, b in zip(self.shares, ends[:-1], ends[1:], strict=True):
                share.drive(table if len(table) == 1 else table[a:b])

    def to(self, stop: int) -> int:
        if stop > self.reached:
            for share in self.shares:
                share.advance(self.reached, stop)
            for share in self.shares:
                share.finish()
        self.reached = stop
        return stop

    def row(self) -> MemberRow:
        return self._unpacked(self.code.row, [share.row() for share in self.shares])

    def final(self) -> MemberState:
        return self._unpacked(self.code.full, [share.full.get(share.shape("full")) for share in self.shares])

    def _unpacked(self, shape: PyTree, tables: list[np.ndarray]) -> PyTree:
        table = tables[0] if len(tables) == 1 else np.concatenate(tables)
        return Table(shape).unpack(table, self.members, cores())

    def resume(self, full: MemberState, reached: int) -> None:
        table, first = Table(self.code.full).pack(full, self.members, ptx.WARP), 0
        for share in self.shares:
            share.full.put(table[first : first + share.groups])
            first += share.groups
        self.reached = reached


class _Share:
    """The groups of members that one device has, and their tables there."""

    def __init__(self, device: cuda.Device, code: _GpuCode, fixed: np.ndarray):
        self.device, self.code, self.groups = device, code, len(fixed)
        self.members = self.groups * ptx.WARP  # those that fill the last group up are run like others
        self.fixed, self.full = device.array(fixed), device.empty(self.members * code.slots["full"])
        self.left, self.count = device.empty(self.members), device.array(np.zeros(1, np.int64))
        self.inputs: tuple[cuda.Array, ...] = ()

    def shape(self, name: str) -> tuple[int, int, int]:
        return self.groups, self.code.slots[name], ptx.WARP

    def row(self) -> np.ndarray:
        """The table of what is saved now, in memory that the next one takes again."""
        on_device, here = self.saved
        self.code.kernel(self.device, "save").launch(self.members, self.fixed, self.full, on_device)
        self.device.wait()
        return on_device.get_into(here)

    @functools.cached_property
    def saved(self) -> tuple[cuda.Array, np.ndarray]:
        """Room for what is saved, on the device and here."""
        return self.device.empty(self.members * self.code.slots["row"]), np.empty(self.shape("row"), np.int64)

    def drive(self, table: np.ndarray) -> None:
        """The inputs of these groups, or of every group."""
        self.inputs = (self.device.array(table),)
        self.stride = 0 if len(table) == 1 else table[0].size

    def advance(self, first: int, stop: int) -> None:
        self.numbers = (stop - first, first, self.stride) if self.inputs else (stop - first,)
        self.count.put(np.zeros(1, np.int64))
        self._launch("usual")

    def finish(self) -> None:
        self.device.wait()
        if self.count.get((1,))[0]:
            self._launch("whole")
            self.device.wait()

    def _launch(self, name: str) -> None:
        kernel = self.code.kernel(self.device, name)
        tables = (self.fixed, self.full, self.left, self.count, *self.inputs)
        kernel.launch(self.members, *tables, numbers=self.numbers)


class _GpuCode(Large):
    """The programs of a member, and their kernels on each device that has asked for one."""

    def __init__(self, made: MemberPrograms):
        self.made, self.full, self.row, self.inputs = made, made.full, made.row, made.inputs
        self.programs = made.programs
        step = self.programs["step"]
        self.slots = {"full": Table(self.full).slots, "row": Table(self.row).slots}
        results = Table(self.full.carry).slots + 1
        self.usual_step = usual(step, results, range(results, len(step.outputs)))
        self.kernel = functools.cache(self._kernel)

    def nodes(self) -> int:
        return sum(len(program.nodes) for program in self.programs.values())

    def _kernel(self, device: cuda.Device, name: str) -> cuda.Kernel:
        """What runs but once for each row is not worth the driver's full effort."""
        return device.kernel(self.text(name), cuda.MOST if name in ("usual", "whole") else cuda.LEAST)

    def text(self, name: str) -> str:
        """The kernel of a program, or of one of the two time loops, as LLVM text."""
        if name not in ("usual", "whole"):
            return ptx.map_kernel(self.programs[name])
        sums = self.programs["after"]
        step = self.usual_step if name == "usual" else self.programs["step"]
        after = sums if sums.outputs else None
        return ptx.advance_kernel(step, after, usual=name == "usual", inputs=self.inputs)


@kept
def _gpu_code(
    member: Member, structure: jax.tree_util.PyTreeDef, shapes: Shapes, inputs: jax.tree_util.PyTreeDef
) -> _GpuCode:
    shape = jax.tree.unflatten(structure, [jax.ShapeDtypeStruct(s, float) for s in shapes])
    return _GpuCode(MemberPrograms(member, shape, inputs, (*RARELY, "happenings")))


def _devices() -> list[cuda.Device]:
    """The GPU that JAX was told to use, or all that this process has."""
    chosen = jax.config.jax_default_device  # type: ignore[attr-defined]
    if chosen is not None and getattr(chosen, "platform", "") == "gpu":
        return [cuda.device(chosen.local_hardware_id)]
    return [cuda.device(number) for number in range(cuda.count())]
