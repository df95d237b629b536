"""A prepared run as calls of machine code on one piece of memory, and what little must be looked at."""

from __future__ import annotations

from collections.abc import Mapping

import jax
import numpy as np
from numpy.typing import ArrayLike

from noslip.engine.backends.native import LARGE
from noslip.errors import unknown_name
from noslip.integrators.solve import Status
from noslip.run.along import BLOWN_UP, conserves_energy
from noslip.run.pairing import Pairing
from noslip.run.step import TURN, Row
from noslip.system.conditions import LOOKS
from noslip.system.inputs import Drive, Held, rate
from noslip.system.time import TIME, visible

SOLVED = int(Status.SOLVED)  # members of an enumeration compare slowly
FEW = 64  # rows whose energies Python compares in no time


class _Memory:
    """Where a run takes place: the initial state and inputs, the state of the method, the rows, and the
    verdict on the start; what no step changes, once for each row that is looked at; all inputs. Views and
    addresses are made once."""

    def __init__(self, quick: Quick):
        self.words = np.empty(quick.verdict + 1, np.int64)
        self.numbers = self.words.view(np.float64)
        here = self.words.ctypes.data
        self.initial, self.state, self.verdict = (here + 8 * x for x in (0, quick.state, quick.verdict))
        self.table, self.rows = (here + 8 * x for x in (quick.table, quick.table + quick.row))
        n = quick.n
        self.q, self.v, self.drive = (
            self.numbers[a:b] for a, b in ((0, n), (n, 2 * n), (2 * n + 1, quick.state))
        )
        self.numbers[2 * n] = quick.t0
        rows = self.numbers[quick.table : quick.verdict].reshape(-1, quick.row)
        self.shown = rows[:, :-1]  # the last slot of a row, of its record, is a whole number
        self.energy = rows[:, quick.places.energy]
        self.fixed, self.found = quick.fixed_often.copy(), np.empty(quick.count)
        self.inputs = np.empty((quick.how[2], quick.state - 2 * n - 1))
        self.fixed_at, self.found_at, self.inputs_at = (
            x.ctypes.data for x in (self.fixed, self.found, self.inputs)
        )


def _names(inputs: Drive) -> list[str]:
    """Under which the numbers of a step's inputs are among the parameters, in their order."""
    if inputs is None:
        return []
    names = sorted(inputs.values)
    return names if isinstance(inputs, Held) else [*names, *map(rate, names), TIME]


class Quick:
    """A run of known length and inputs of known names: `run` from any state, with any parameters."""

    def __init__(
        self, pairing: Pairing, t0: float, h: float, steps: int, every: int, rows: int, inputs: Drive = None
    ):
        programs = pairing.driven_programs(jax.tree.structure(inputs))
        self.pairing, self.programs, self.system = pairing, programs, pairing.system
        self.t0, self.n = t0, pairing.system.n
        self.fixed = programs.tables["fixed"].pack([*pairing.leaves, h], 1, 1)
        self.fixed_at = self.fixed.ctypes.data
        names = sorted(self.system.parameters)
        self.slots = dict(zip(names, programs.tables["fixed"].places, strict=False))
        self.names = [] if inputs is None else sorted(inputs.values)
        self.driven = [self.slots[name].start for name in _names(inputs)]
        first, loop, verdict = programs.start_one, programs.advance_one, programs.verdict_one
        self.code = (first.improved(LARGE), loop.improved(), verdict.improved())
        self.start, self.advance, self.judge = (function.call for function in self.code)
        self.state = programs.tables["initial"].slots
        self.carry, self.row = programs.tables["carry"].slots, programs.tables["row"].slots
        self.table = self.state + self.carry
        self.verdict = self.table + (rows + 1) * self.row
        self.status = self.state + programs.tables["carry"].first_slots.interval.status
        self.places = programs.tables["row"].first_slots
        self.scale = self.table + self.places.energy_scale
        self.conserved, self.rows = conserves_energy(self.system), rows
        self.how = (1, 0, steps, steps, every, rows)
        looks = np.unique(np.linspace(0, rows, LOOKS).round().astype(int))
        self.looks = None if len(looks) == rows + 1 else looks  # all of them, or some
        self.count = len(looks)
        self.fixed_often = np.repeat(self.fixed, self.count, axis=0)
        self.often_at = self.fixed_often.ctypes.data
        self.found = programs.independence_one.improved() if self.system.rows > 1 else None
        self.free: list[_Memory] = []

    def run(
        self, q: np.ndarray, v: np.ndarray, fixed: np.ndarray | None = None, inputs: np.ndarray | None = None
    ) -> np.ndarray | None:
        """The memory after the run, or None where there is a doubt. `fixed` is what `with_parameters` gives,
        `inputs` a table [step][slot]."""
        memory = self.free.pop() if self.free else _Memory(self)  # a thread has its own
        words = memory.words
        memory.q[:], memory.v[:] = q, v
        given: tuple[int, ...] = ()
        if inputs is not None:
            memory.drive[:] = inputs[0]
            memory.inputs[:] = inputs
            given = memory.inputs_at, 0
        at = self.fixed_at
        if fixed is not None:
            memory.fixed[:] = fixed
            at = memory.fixed_at
        self.judge(at, memory.initial, memory.verdict, 1)
        sure = False
        if words[self.verdict]:
            self.start(at, memory.initial, memory.state, 1)
            self.advance(at, memory.state, memory.rows, *self.how, *given)
            sure = words[self.status] == SOLVED and self._sound(memory)
            sure = sure and (self.found is None or self._independent(fixed, memory))
        done = words.copy() if sure else None
        self.free.append(memory)
        return done

    def admits(
        self, q: np.ndarray, v: np.ndarray, fixed: np.ndarray | None, first: np.ndarray | None
    ) -> bool:
        """Whether a run from there, with these inputs at first, can begin without any doubt."""
        memory = _Memory(self)
        memory.q[:], memory.v[:] = q, v
        if first is not None:
            memory.drive[:] = first
        at = self.fixed_at if fixed is None else fixed.ctypes.data
        self.judge(at, memory.initial, memory.verdict, 1)
        return bool(memory.words[self.verdict])

    def with_parameters(
        self, parameters: Mapping[str, ArrayLike] | None, first: np.ndarray | None
    ) -> np.ndarray | None:
        """What no step changes, with other parameters, and with the inputs of the first step where they are
        looked at; None where that is as ever."""
        steered = first is not None and self.found is not None
        if parameters is None and not steered:
            return None
        fixed = self.fixed.copy()
        numbers = fixed.view(np.float64)
        known = visible(self.slots) if parameters else {}
        for name, value in (parameters or {}).items():
            place = known.get(name)
            if place is None:
                raise ValueError(unknown_name("parameter", name, known))
            if type(value) is float and place.stop - place.start == 1 and value - value == 0:
                numbers[0, place, 0] = value
            else:
                checked = self.system.with_parameters({name: value}).parameters[name]
                numbers[0, place, 0] = np.ravel(checked)
        if first is not None and steered:
            row = numbers[0, :, 0]
            for slot, x in zip(self.driven, first.tolist(), strict=True):
                row[slot] = x
        return fixed

    def _sound(self, memory: _Memory) -> bool:
        """Whether all numbers of the rows are finite, and the energy is of its size."""
        total = float(np.add.reduce(memory.shown, axis=None))
        if total - total != 0:
            return False
        if not self.conserved:
            return True
        energy: np.ndarray = memory.energy
        if self.rows < FEW:
            values = energy.tolist()
            change = max(values) - min(values)
        else:
            change = float(energy.max()) - float(energy.min())
        return bool(change <= BLOWN_UP * float(memory.numbers[self.scale]))

    def _independent(self, fixed: np.ndarray | None, memory: _Memory) -> bool:
        """Whether the one-forms are surely not nearly parallel at the rows that `parallel_along` looks at."""
        many, rows = self.often_at if fixed is None else memory.fixed_at, memory.table
        if self.looks is not None:
            chosen = memory.words[self.table : self.verdict].reshape(-1, self.row)[self.looks]
            rows = chosen.ctypes.data
        assert self.found is not None
        self.found.call(many, rows, memory.found_at, self.count)
        return min(memory.found.tolist()) > 0

    # ---- what is read of a memory after its run ------------------------------------------------------------

    def table_of(self, words: np.ndarray) -> np.ndarray:
        return words[self.table : self.verdict].reshape(-1, self.row)

    def rows_of(self, words: np.ndarray) -> Row:
        row: Row = self.programs.tables["row"].split_bits(self.table_of(words))
        return row

    def end_of(self, words: np.ndarray) -> np.ndarray:
        """The state of the method after the last step."""
        return words[self.state : self.table][None, :, None].copy()

    def initial_of(self, words: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        q, v = words.view(np.float64)[: 2 * self.n].reshape(2, self.n).copy()
        return q, v

    def array(self, words: np.ndarray, name: str, t0: float, h: float, own_time: bool) -> np.ndarray:
        """t, q, v or energy of the rows, with the bits that it has in the whole trajectory."""
        table, places, n = self.table_of(words), self.places, self.n
        numbers = table.view(np.float64)
        if name == "t" and not own_time:
            return np.asarray(t0) + table[:, places.step] * np.asarray(h)
        if name in ("t", "energy"):
            return numbers[:, getattr(places, name)].copy()
        if name == "q":
            return numbers[:, places.q : places.q + n] + TURN * numbers[:, places.turns : places.turns + n]
        return numbers[:, places.v : places.v + n].copy()
