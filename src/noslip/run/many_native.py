"""Many members in lanes of native code, groups of them spread over threads."""

from __future__ import annotations

from collections.abc import Callable

import jax
import numpy as np

from noslip.engine.backends import native
from noslip.engine.kept import Large, kept
from noslip.engine.memory import Table
from noslip.engine.program import TooLarge
from noslip.engine.translate import translate
from noslip.numerics.pytrees import PyTree, anatomy
from noslip.numerics.threads import cores, in_ranges
from noslip.run.driving import driving_table
from noslip.run.member import Member, MemberInputs, MemberRow, MemberState
from noslip.run.programs import Fixed, Shapes, programs_of, require_native

MOST = 80_000  # operations of a step; larger ones take LLVM, and a GPU's driver, many seconds to optimise


class Lanes:
    """Members side by side in tables, and programs that run on ranges of their groups, on all threads."""

    def __init__(self, code: MemberPrograms, inputs: MemberInputs, threads: int | None):
        self.code, self.members, self.width = code, inputs.members, native.lanes()
        self.threads = threads or cores()
        self.fixed = Table(inputs.shape).pack(inputs.fixed, self.members, self.width)

    def start(self, inputs: MemberInputs) -> np.ndarray:
        """The table of the members' states at the start."""
        initial = Table(inputs.initial_shape).pack(inputs.initial, self.members, self.width)
        started = self.map("start", initial, self.code.single.start.shape)
        carry = np.ascontiguousarray(started[:, : Table(self.code.full.carry).slots])
        return np.concatenate([carry, self.map("begin", carry, self.code.full.sums)], axis=1)

    def map(self, name: str, values: np.ndarray, shape: PyTree) -> np.ndarray:
        call, out = self.code.function(name), Table(shape)
        table = np.zeros((len(values), out.slots, self.width), np.int64)
        self.spread(lambda a, b: call(self.fixed[a:b], values[a:b], table[a:b], b - a))
        return table

    def spread(self, run: Callable[[int, int], None]) -> None:
        """Call run(a, b) for ranges of groups, on all threads."""
        in_ranges(run, len(self.fixed), self.threads)


class NativeMembers:
    """Lanes of native code, groups of members spread over threads."""

    backend = "native"

    def __init__(self, member: Member, inputs: MemberInputs, threads: int | None):
        require_native(inputs.shape[0])
        self.code = _native_code(member, *anatomy(inputs.shape)[1:], jax.tree.structure(inputs.drive))
        self.lanes = Lanes(self.code, inputs, threads)
        self.full = self.lanes.start(inputs)
        self.reached, self.driving = 0, None
        if inputs.drive is not None:
            self.driving = driving_table(inputs.drive, inputs.members, self.lanes.width)

    def to(self, stop: int) -> int:
        advance, fixed = self.code.function("advance"), self.lanes.fixed
        nothing = np.zeros(1, np.int64)

        def run(a: int, b: int) -> None:
            steps = (b - a, self.reached, stop, -1, stop + 1, 0)
            advance(fixed[a:b], self.full[a:b], nothing, *steps, *self._inputs_from(a))

        self.lanes.spread(run)
        self.reached = stop
        return stop

    def _inputs_from(self, group: int) -> tuple[()] | tuple[np.ndarray, int]:
        """Those of the groups from this one on, and how far apart they are."""
        if self.driving is None:
            return ()
        shared = len(self.driving) == 1
        return self.driving if shared else self.driving[group:], 0 if shared else self.driving[0].nbytes

    def row(self) -> MemberRow:
        saved = self.lanes.map("save", self.full, self.code.row)
        return Table(self.code.row).unpack(saved, self.lanes.members, self.lanes.threads)

    def final(self) -> MemberState:
        return Table(self.code.full).unpack(self.full, self.lanes.members, self.lanes.threads)

    def resume(self, full: MemberState, reached: int) -> None:
        self.full = Table(self.code.full).pack(full, self.lanes.members, self.lanes.width)
        self.reached = reached


class MemberPrograms(Large):
    """The programs of a member, their machine code in lanes, and how many inputs its step reads."""

    def __init__(
        self, member: Member, shape: Fixed, inputs: jax.tree_util.PyTreeDef, rare: tuple[str, ...] = ()
    ):
        _, structure, shapes = anatomy(shape[0])
        # of a single run, hence its bits; but a member with an event does not wait for the others
        self.single = programs_of(structure, shapes, member.integrator, member.events, inputs)
        if (size := self.single.step.size()) > MOST:
            raise TooLarge(f"the step has {size} scalar operations, over {MOST} for many members")
        drive = self.single.initial[3]
        self.inputs = self.single.tables["drive"].slots
        begin = translate(member.begin, shape, self.single.carry)
        self.full = MemberState(self.single.carry, begin.shape)
        self.programs = {
            "start": self.single.start,
            "begin": begin,
            "step": self.single.step
            if not member.events
            else translate(
                lambda fixed, x: member.step(fixed, *x), shape, (self.single.carry, drive), rare=rare
            ),
            "after": translate(member.after, shape, self.full),
            "save": translate(member.save, shape, self.full),
        }
        self.row = self.programs["save"].shape
        self.compiled: dict[str, Callable[..., None]] = {}

    def nodes(self) -> int:
        return sum(len(program.nodes) for program in self.programs.values())

    def function(self, name: str) -> Callable[..., None]:
        if name not in self.compiled:
            p = self.programs
            if name == "advance":
                after = p["after"] if p["after"].outputs else None
                made = native.advance_function(p["step"], after, None, native.lanes(), self.inputs)
            else:
                made = native.map_function(p[name], native.lanes())
            self.compiled[name] = made
        return self.compiled[name]


@kept
def _native_code(
    member: Member, structure: jax.tree_util.PyTreeDef, shapes: Shapes, inputs: jax.tree_util.PyTreeDef
) -> MemberPrograms:
    shape = jax.tree.unflatten(structure, [jax.ShapeDtypeStruct(s, float) for s in shapes])
    return MemberPrograms(member, shape, inputs)
