"""A run of the reference flow that has been made before, as calls of machine code alone."""

from __future__ import annotations

import ctypes
import itertools
import time
import weakref
from typing import NamedTuple

import numpy as np

from noslip.errors import unknown_name
from noslip.run.flow_code import GIVEN, LED, FlowCode, flow_code_of, numbers_of
from noslip.run.flows import LEAST, Taylor, grain_of
from noslip.run.one_reference import marks_of, rows_of
from noslip.run.pairing import Pairing
from noslip.run.step import Row
from noslip.run.sure import SMALL
from noslip.system.conditions import region_of
from noslip.system.derived import Parameters
from noslip.system.time import visible

AT_ONCE = 0.05  # seconds: nobody wants to interrupt what takes no longer
MOST = 2**14  # steps of such a run


def brief(steps: int, began: float) -> bool:
    """Whether a run of so many steps that began then, and has ended now, may be made without a watch."""
    return 0 < steps <= MOST and time.monotonic() - began < AT_ONCE


class _Block(NamedTuple):
    """A part of a run without a restart: the times at which the flow is asked; how many rows it has, where
    they begin among all, where their times lie, and how many states before the first they do not show."""

    times: np.ndarray
    rows: int
    first: int
    shown: int
    skipped: int


class _Memory:
    """Where a run takes place, with views and addresses made once: what is fixed, a state with its time and
    how the flow gets there, where it begins, and the doubt about that."""

    def __init__(self, motion: FlowCode, flow: Taylor):
        n, own, begun = motion.n, motion.size, motion.size + 2 * motion.n + 3
        fixed = motion.leaves + begun + 2 * n
        self.numbers = np.zeros(fixed + 3 * n + begun + 3)
        ends = [0, fixed, fixed + 2 * n, fixed + 2 * n + 2, fixed + 3 * n + 2 + begun]
        self.fixed, self.state, self.when, found = (self.numbers[a:b] for a, b in itertools.pairwise(ends))
        places = [address(self.numbers) + 8 * x for x in ends]
        self.at_fixed, self.at_state, self.at_when, self.at_begun, self.at_doubt = places
        self.leaves, self.begun = self.fixed[: motion.leaves], self.fixed[motion.leaves : -2 * n]
        self.box = self.fixed[-2 * n :]
        self.q, self.v, self.led = self.state[:n], self.state[n:], self.state[: n + own]
        self.start, self.started = found[: n + own], found[n:]
        self.looking = (self.at_fixed, self.at_doubt, 1, 1, self.at_state, self.at_when)
        self.beginning = (self.at_fixed, self.at_begun, 1, 1, self.at_state, self.at_when)
        self.solver, self.y, self.pars = flow.another()
        self.own = self.fixed[: len(self.pars)]
        self.taken: tuple[np.ndarray | None, np.ndarray | None] = (None, None)

    def take(self, numbers: np.ndarray, box: np.ndarray) -> None:
        """The parameters and the box of a run: those of the last one mostly, and nobody changes them."""
        if self.taken[0] is not numbers:
            self.leaves[:] = numbers
            self.pars[:] = self.own
        if self.taken[1] is not box:
            self.box[:] = box
        self.taken = numbers, box


class QuickFlow:
    """A run of known length: `run` from any state, with any parameters."""

    def __init__(self, pairing: Pairing, t0: float, h: float, steps: int, every: int):
        system = pairing.system
        self.pairing, self.system, self.how = pairing, system, (t0, h, steps, every)
        self.n, self.t0, self.region = system.n, t0, region_of(system)
        self.careful = system.n > SMALL or system.clocked
        self.numbers = numbers_of(system)
        self.marks = marks_of(0, steps, every)
        self.count = len(self.marks)
        self.t = t0 + self.marks * h
        self._blocks: dict[int, list[_Block]] = {}
        self._places: dict[str, slice | int] = {}  # of what is read, among the columns
        self._motion: weakref.ref[FlowCode] | None = None
        self._looked: tuple[list[float] | None, np.ndarray] = (None, np.empty(0))
        self.everywhere = np.repeat([-np.inf, np.inf], self.n)
        self.given = np.array([t0, GIVEN])

    def motion(self) -> FlowCode:
        """Not held: systems are kept for long, and would keep the machine code."""
        found = None if self._motion is None else self._motion()
        if found is None:
            found = flow_code_of(self.system, self.pairing.integrator.flow_tolerance)
            self._motion = weakref.ref(found)
        return found

    def run(
        self, q: np.ndarray, v: np.ndarray, numbers: np.ndarray | None = None, box: np.ndarray | None = None
    ) -> np.ndarray | None:
        """The columns of all rows, or None where there is a doubt: that there is outside a `box`, by its
        corners. `numbers` are those of other parameters."""
        motion = self.motion()
        flow = motion.flow
        if not (isinstance(flow, Taylor) and motion.many.native):
            return None
        memory = motion.free.pop() if motion.free else _Memory(motion, flow)  # a thread has its own
        memory.take(self.numbers if numbers is None else numbers, self.everywhere if box is None else box)
        memory.q[:], memory.v[:], memory.when[:] = q, v, self.given
        motion.start.code.call(*memory.looking)
        columns = None if memory.numbers[-1] else self._flown(motion, flow, memory)
        motion.free.append(memory)
        return columns

    def _flown(self, motion: FlowCode, flow: Taylor, memory: _Memory) -> np.ndarray | None:
        shown, solver, (_, h, steps, _) = motion.many, memory.solver, self.how
        stride = self.count + shown.width - 1
        out = np.empty((shown.out.slots, stride))
        at, grain, grid = address(out), LEAST, out
        motion.standing.code.call(*memory.beginning)
        if steps > LEAST:
            memory.y[:], solver.time = memory.start, self.t0
            grain = grain_of(solver.step()[1], h)
        for times, rows, first, when, skipped in self._blocks.get(grain) or self._cut(grain):
            if skipped:
                memory.led[:], memory.when[:] = grid[-1], (times[0], LED)
                motion.standing.code.call(*memory.beginning)
            memory.begun[:], memory.y[:], solver.time = memory.started, memory.start, times[0]
            grid = flow.grid(solver, memory.y, times)
            if len(grid) != len(times):
                return None
            states = address(grid) + 8 * skipped * len(memory.y)
            shown.code.call(memory.at_fixed, at + 8 * first, rows, stride, states, when)
        return None if np.count_nonzero(out[-1, : self.count]) else out[:, : self.count]

    def _cut(self, grain: int) -> list[_Block]:
        """The blocks of a run that begins anew after so many steps."""
        (t0, h, steps, every), blocks, first = self.how, list[_Block](), 0
        for begin in range(0, steps, grain):
            end = min(begin + grain, steps)
            marks = marks_of(begin, end, every)
            unseen = end % every != 0 and end < steps  # no row is due where the block ends
            rows = len(marks) - (begin > 0) - unseen
            blocks.append(_Block(t0 + marks * h, rows, first, address(self.t) + 8 * first, int(begin > 0)))
            first += rows
        self._blocks[grain] = blocks
        return blocks

    def looked_at(self) -> np.ndarray | None:
        """The box in which the conditions of the system have been looked at; None where to know that is not
        enough."""
        low, high = self.region.low, self.region.high
        if self.careful or not low:
            return None
        if self._looked[0] is not low:
            self._looked = low, np.array([*low, *high])
        return self._looked[1]

    def with_parameters(self, parameters: Parameters) -> np.ndarray:
        """The numbers of the system with other parameters."""
        for name in parameters:
            if name not in (known := visible(self.system.parameters)):
                raise ValueError(unknown_name("parameter", name, known))
        return numbers_of(self.system.with_parameters(parameters))

    # ---- what is read of the columns after a run -----------------------------------------------------------

    def array(self, columns: np.ndarray, name: str) -> np.ndarray:
        """t, q, v or energy of the rows, with the bits that it has in the whole trajectory."""
        if name == "t":
            return self.t.copy()
        if not self._places:
            at = self.motion().shown.out.first_slots
            first = {"q": at.whole if self.system.angles else at.q, "v": at.v}
            self._places = {name: slice(k, k + self.n) for name, k in first.items()} | {"energy": at.energy}
        return columns[self._places[name]].T

    def rows(self, columns: np.ndarray) -> Row:
        return rows_of(self.motion(), columns, self.marks.copy(), self.t.copy(), 0)


def address(array: np.ndarray) -> int:
    """Where the numbers of an array that may be written lie, in a third of the time that its `ctypes`
    takes."""
    return ctypes.addressof(ctypes.c_char.from_buffer(array))  # type: ignore[arg-type]
