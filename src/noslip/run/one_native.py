"""The time loop as native code, for one trajectory or for many."""

from __future__ import annotations

import functools
import importlib.util
from typing import Any

import jax
import numpy as np

from noslip.engine.backends import native
from noslip.engine.memory import Table
from noslip.engine.program import CannotTranslate, TooLarge, cached_with_refusals
from noslip.engine.translate.lower import translate
from noslip.integrators.base import Integrator
from noslip.integrators.solve import Status, without_derivatives
from noslip.numerics.pytrees import anatomy
from noslip.run import step as _loop
from noslip.system import System

CAPACITY = 8192  # rows of one trajectory that one call can save
LARGEST = 64  # coordinates; beyond, XLA runs the step better


@functools.cache
def _has_llvmlite() -> bool:
    return importlib.util.find_spec("llvmlite") is not None


def require_native(system: System) -> None:
    """Raise `CannotTranslate` where native code is out of the question."""
    if not _has_llvmlite():
        raise CannotTranslate("native code needs the package llvmlite, which is not installed")
    if system.n > LARGEST:
        raise TooLarge(f"the system has {system.n} coordinates, over {LARGEST}")


class Loop:
    """The scalar programs of one method on one kind of system, and their machine code by width."""

    def __init__(self, system: Any, integrator: Integrator):
        x, scalar = jax.ShapeDtypeStruct((system.n,), float), jax.ShapeDtypeStruct((), float)
        self.fixed = (system, scalar)
        self.initial = (x, x, scalar)

        def start(fixed: Any, initial: Any) -> Any:
            q, v, t = initial
            return _loop.first_state(fixed[0], integrator, q, v, t, fixed[1])

        def step(fixed: Any, carry: _loop.Carry) -> Any:
            with without_derivatives():
                return _loop.step_or_stay(fixed[0], integrator, carry, fixed[1])

        def save(fixed: Any, carry: _loop.Carry) -> Any:
            return _loop.save(fixed[0], integrator, carry)

        self.start = translate(start, self.fixed, self.initial)
        self.carry, self.row = self.start.shape
        self.step = translate(step, self.fixed, self.carry)
        self.save = translate(save, self.fixed, self.carry)
        self.tables = {
            "fixed": Table(self.fixed),
            "initial": Table(self.initial),
            "carry": Table(self.carry),
            "row": Table(self.row),
            "carry and row": Table((self.carry, self.row)),
            "row and carry": Table((self.row, self.carry)),
        }
        self._compiled: dict[Any, Any] = {}

    def function(self, name: str, width: int) -> Any:
        """Machine code of `start` or `save` for each member, or of the loop `advance`."""
        key = name, width
        if key not in self._compiled:
            if name == "advance":
                made = native.advance_function(self.step, None, self.save, width)
            else:
                made = native.map_function(getattr(self, name), width)
            self._compiled[key] = made
        return self._compiled[key]


def loop_of(system: System, integrator: Integrator) -> Loop:
    """The compiled loop, made once for equal methods on systems of one structure."""
    require_native(system)
    _, structure, shapes = anatomy(system)
    return _loop_of(structure, shapes, integrator)


@cached_with_refusals
def _loop_of(structure: Any, leaf_shapes: tuple[Any, ...], integrator: Integrator) -> Loop:
    system = jax.tree.unflatten(structure, [jax.ShapeDtypeStruct(s, float) for s in leaf_shapes])
    try:
        return Loop(system, integrator)
    except TooLarge:
        raise
    except CannotTranslate:  # of a first integral that has no scalar form, or of the step
        if not system.first_integrals:
            raise
        return Loop(system.without_first_integrals(), integrator)


class NativeRunner:
    """One trajectory; the interface of the XLA loop, whose rows stay in their slots until they are joined."""

    backend = "native"
    first_piece, brief = 1024, 256  # steps of the first call, microseconds each; steps that are no time

    def __init__(self, system: System, integrator: Integrator, q: Any, v: Any, t: Any, h: Any):
        self.loop, self.system = loop_of(system, integrator), system
        tables = self.loop.tables
        self.carries, self.rows = tables["carry"], tables["row"]
        self.step_size(h)
        initial = tables["initial"].pack((q, v, t), 1, 1)
        out = np.zeros((1, tables["carry and row"].slots, 1), np.int64)
        self.loop.function("start", 1)(self.fixed, initial, out, 1)
        self.carry = np.ascontiguousarray(out[:, : self.carries.slots])
        self.first = out[:, None, self.carries.slots :]
        self.reached = 0

    def step_size(self, h: Any) -> None:
        """Go on with another step, say backwards."""
        self.fixed = self.loop.tables["fixed"].pack((self.system, h), 1, 1)

    def snapshot(self) -> _loop.Carry:
        """Everything that the next step needs."""
        return jax.tree.map(lambda x: x[0].copy(), self.carries.unpack(self.carry, 1))

    def restore(self, carry: _loop.Carry) -> None:
        """Go on from there."""
        self.carry, self.reached = self.carries.pack(carry, 1, 1), int(carry.step)

    def join(self, parts: list[np.ndarray]) -> _loop.Row:
        """The rows of several calls."""
        together = np.concatenate(parts, axis=1) if len(parts) > 1 else parts[0]
        return self.rows.split_bits(together.reshape(-1, self.rows.slots))

    def to(self, stop: int, last: int, every: int) -> tuple[np.ndarray, int, bool]:
        """Advance towards step `stop`: the new rows, the step reached, and whether a solve failed."""
        first = self.reached
        stop = min(stop, (first // every + CAPACITY) * every)
        capacity = saves(first, stop, last, every)
        table = np.zeros((1, capacity, self.rows.slots, 1), np.int64)
        self.loop.function("advance", 1)(self.fixed, self.carry, table, 1, first, stop, last, every, capacity)
        slots = self.carries.first_slots
        failed = bool(self.carry[0, slots.interval.status, 0] != Status.SOLVED)
        self.reached = int(self.carry[0, slots.step, 0])
        count = saves(first, self.reached + failed, last, every)
        rows = table[:, :count]
        if failed and count == saves(first, self.reached, last, every):
            rows = np.concatenate([rows, self._row_of_failure()], axis=1)
        return rows, self.reached, failed

    def _row_of_failure(self) -> np.ndarray:
        out = np.zeros((1, self.loop.tables["row and carry"].slots, 1), np.int64)
        self.loop.function("save", 1)(self.fixed, self.carry, out, 1)
        return out[:, None, : self.rows.slots]


def saves(first: int, stop: int, last: int, every: int) -> int:
    """How many rows are saved after step `first` up to step `stop`."""
    return stop // every - first // every + (first < last <= stop and last % every != 0)
