"""One trajectory as native code; its rows stay in their slots until they are joined."""

from __future__ import annotations

from typing import Any

import jax
import numpy as np

from noslip.integrators.solve import Status
from noslip.run.driving import driving_table, of_step
from noslip.run.pairing import Pairing
from noslip.run.programs import StepPrograms
from noslip.run.runner import NOTHING, Happened, Piece
from noslip.run.step import TURN, Carry, Row
from noslip.system.inputs import Drive

CAPACITY = 8192  # rows that one call can save


class NativeTrajectory:
    """The time loop of machine code, on a table of slots for the state and one for the rows, which stay as it
    leaves them, [group][row][slot][lane] of one member, until they are joined."""

    backend = "native"
    first_piece, brief = 1024, 256  # steps of the first call, microseconds each; steps that are no time
    grain = 1

    def __init__(
        self, pairing: Pairing, q: np.ndarray, v: np.ndarray, t: float, h: float, inputs: Drive = None
    ):
        self.pairing, self.drive = pairing, jax.tree.structure(inputs)
        self.leaves, self.events = pairing.leaves, pairing.events
        programs = pairing.driven_programs(self.drive)
        tables, self.n = programs.tables, pairing.system.n
        self.fixes = tables["fixed"]
        self.carries, self.rows = tables["carry"], tables["row"]
        self.step_size(h)
        now: Drive = None
        self.inputs: tuple[Any, ...] = ()
        if inputs is not None:
            now, self.inputs = of_step(inputs, 0), (driving_table(inputs, 1, 1), 0)
        initial = tables["initial"].pack((q, v, t, now), 1, 1)
        out = np.zeros((1, tables["carry and row"].slots, 1), np.int64)
        programs.start_one(self.fixed, initial, out, 1)
        self.carry = np.ascontiguousarray(out[:, : self.carries.slots])
        self.first = out[:, None, self.carries.slots :]
        self.reached = 0

    @property
    def programs(self) -> StepPrograms:
        """Start, step and save in machine code."""
        return self.pairing.driven_programs(self.drive)

    def step_size(self, h: float) -> None:
        self.fixed = self.fixes.pack([*self.leaves, h], 1, 1)

    def snapshot(self) -> Carry:
        return jax.tree.map(lambda x: x[0].copy(), self.carries.unpack(self.carry, 1))

    def restore(self, carry: Carry) -> None:
        self.carry, self.reached = self.carries.pack(carry, 1, 1), int(carry.step)

    def to(self, stop: int, last: int, every: int) -> Piece[np.ndarray]:
        first = self.reached
        stop = min(stop, (first // every + CAPACITY) * every)
        capacity = saves(first, stop, last, every)
        table = np.zeros((1, capacity, self.rows.slots, 1), np.int64)
        steps = (1, first, stop, last, every, capacity)
        self.programs.advance_one(self.fixed, self.carry, table, *steps, *self.inputs)
        slots = self.carries.first_slots
        failed = bool(self.carry[0, slots.interval.status, 0] != Status.SOLVED)
        self.reached = int(self.carry[0, slots.step, 0])
        stopped = self.happened().stopped >= 0
        count = saves(first, self.reached + failed, last, every)
        rows = table[:, :count]
        if (failed or stopped) and count == saves(first, self.reached - stopped, last, every):
            rows = np.concatenate([rows, self._row_of_failure()], axis=1)
        return Piece(rows, self.reached, failed)

    def join(self, parts: list[np.ndarray]) -> Row:
        together = np.concatenate(parts, axis=1) if len(parts) > 1 else parts[0]
        row: Row = self.rows.split_bits(together.reshape(-1, self.rows.slots))
        return row

    def last(self, rows: np.ndarray) -> tuple[float, np.ndarray, np.ndarray]:
        numbers, places, n = rows[0, -1, :, 0].view(np.float64), self.rows.first_slots, self.n
        turns = numbers[places.turns : places.turns + n]
        q, v = numbers[places.q : places.q + n], numbers[places.v : places.v + n]
        return float(numbers[places.t]), q + TURN * turns, v.copy()

    def feed(self, drive: Drive) -> None:
        table = self.inputs[0]
        if self.reached >= table.shape[1]:
            table = np.concatenate([table, table], axis=1)
            self.inputs = (table, 0)
        table[0, self.reached, :, 0] = jax.tree.leaves(drive)

    def happened(self) -> Happened:
        if not self.events:
            return NOTHING
        watch = self.carries.unpack(self.carry, 1).watch
        return Happened.of(jax.tree.map(lambda x: x[0], watch))

    def aside(self, parts: np.ndarray) -> np.ndarray:
        call, given = self.programs.aside_one
        count = len(parts)
        values = np.empty((count, given.slots, 1), np.int64)
        values[:, : self.carries.slots] = self.carry
        values[:, self.carries.slots, 0] = np.ascontiguousarray(parts, float).view(np.int64)
        if self.inputs:
            table = self.inputs[0][0]
            values[:, self.carries.slots + 1 :] = table[min(self.reached, len(table) - 1)].view(np.int64)
        out = np.zeros((count, self.rows.slots, 1), np.int64)
        call(np.repeat(self.fixed, count, axis=0), values, out, count)
        self.carry = np.ascontiguousarray(self._saved()[:, self.rows.slots :])
        return out[None]

    def _row_of_failure(self) -> np.ndarray:
        return self._saved()[:, None, : self.rows.slots]

    def _saved(self) -> np.ndarray:
        """The row of the state, and the state with a new record."""
        programs = self.programs
        out = np.zeros((1, programs.tables["row and carry"].slots, 1), np.int64)
        programs.save_one(self.fixed, self.carry, out, 1)
        return out


def saves(first: int, stop: int, last: int, every: int) -> int:
    """How many rows are saved after step `first` up to step `stop`."""
    return stop // every - first // every + (first < last <= stop and last % every != 0)
