"""The scalar programs of a method on a kind of system: start, step and save; and their machine code."""

from __future__ import annotations

import functools
import importlib.util
from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from noslip.engine import stored
from noslip.engine.backends import native
from noslip.engine.kept import Large, kept
from noslip.engine.memory import Table
from noslip.engine.program import CannotTranslate, Program, TooLarge
from noslip.engine.translate import translate
from noslip.integrators.base import Integrator
from noslip.integrators.solve import without_derivatives
from noslip.numerics.linear import independence
from noslip.run import step as steps
from noslip.run.aside import row_aside
from noslip.run.events import Events, first_of_run, step_of_run
from noslip.run.step import Carry, Row
from noslip.system import System
from noslip.system.conditions import ADMISSIBLE
from noslip.system.inputs import Drive
from noslip.system.positions import placement

LARGEST = 64  # coordinates; beyond, XLA runs the step better, unless M and mu are mostly zeros
FEW = 16  # entries of a row of M or mu, on the average, that are not zero everywhere
Fixed = tuple[System, Array]  # what no step changes: the system, and h
Initial = tuple[Array, Array, Array, Drive]  # q, v, t and the inputs of the first step
Shapes = tuple[tuple[int, ...], ...]
NO_INPUTS = jax.tree.structure(None)
RARELY = ("newton_fallback",)  # what hardly ever happens in a step, by the names of jitted functions


class StepPrograms(Large):
    """Start, step and save as scalar programs, the same for one trajectory and for members in lanes. What
    a step reads after its state are its inputs."""

    def __init__(self, system: System, integrator: Integrator, events: Events = (), drive: Drive = None):
        self.integrator = integrator
        x, scalar = jax.ShapeDtypeStruct((system.n,), float), jax.ShapeDtypeStruct((), float)
        self.fixed, self.initial = (system, scalar), (x, x, scalar, drive)

        def start(fixed: Fixed, initial: Initial) -> tuple[Carry, Row]:
            q, v, t, drive = initial
            return first_of_run(fixed[0], integrator, events, q, v, t, fixed[1], drive)

        def step(fixed: Fixed, before: tuple[Carry, Drive]) -> tuple[Carry, Array, tuple[Array, ...]]:
            with without_derivatives():
                return step_of_run(fixed[0], integrator, events, before[0], fixed[1], before[1])

        def save(fixed: Fixed, carry: Carry) -> tuple[Row, Carry]:
            return steps.save(fixed[0], integrator, carry)

        self._parts = (self.fixed, self.initial, integrator, events)
        self.start = self._stored("start", lambda: translate(start, self.fixed, self.initial))
        self.carry, self.row = self.start.shape
        given = (self.carry, drive)
        self.step = self._stored("step", lambda: translate(step, self.fixed, given, rare=RARELY))
        self.save = self._stored("save", lambda: translate(save, self.fixed, self.carry))
        self.tables = {
            "fixed": Table(self.fixed),
            "initial": Table(self.initial),
            "drive": Table(drive),
            "carry": Table(self.carry),
            "row": Table(self.row),
            "carry and row": Table((self.carry, self.row)),
            "row and carry": Table((self.row, self.carry)),
        }

    def _stored(self, what: str, make: Callable[[], Program]) -> Program:
        return stored.program((what, *self._parts), make)

    def nodes(self) -> int:
        return sum(len(program.nodes) for program in (self.start, self.step, self.save))

    @functools.cached_property
    def start_one(self) -> native.NativeFunction:
        """Machine code of `start` for one trajectory."""
        return native.map_function(self.start, 1)

    @functools.cached_property
    def verdict_one(self) -> native.NativeFunction:
        """Machine code of a verdict on an initial state: whether it is finite and its velocity admissible
        without any doubt. By itself, so that the start is computed as in every other run."""

        def verdict(fixed: Fixed, initial: Initial) -> Array:
            q, v, t, drive = initial
            here = fixed[0].driven(drive).at(t)
            finite = jnp.all(jnp.isfinite(q)) & jnp.all(jnp.isfinite(v))
            good = jnp.all(jnp.abs(here.phi(q, v)) <= ADMISSIBLE * here.constraint_size(q, v))
            if here.k:
                g, allowed = placement(None, here, q)
                good = good & jnp.all(jnp.abs(g) <= allowed)
            return finite & good

        return native.map_function(
            self._stored("verdict", lambda: translate(verdict, self.fixed, self.initial)), 1
        )

    @functools.cached_property
    def independence_one(self) -> native.NativeFunction:
        """Machine code of the `independence` of the one-forms at rows."""

        def surely(fixed: Fixed, row: Row) -> Array:
            return independence(fixed[0].mu(row.q, row.v, row.t))

        made = self._stored("independence", lambda: translate(surely, self.fixed, self.row))
        return native.map_function(made, 1)

    @functools.cached_property
    def save_one(self) -> native.NativeFunction:
        """Machine code of `save` for one trajectory."""
        return native.map_function(self.save, 1)

    @functools.cached_property
    def aside_one(self) -> tuple[native.NativeFunction, Table]:
        """Machine code of looks aside, and the table of what they take: the state, the part of a step, and
        its inputs."""
        integrator, scalar = self.integrator, jax.ShapeDtypeStruct((), float)
        given = (self.carry, scalar, self.initial[3])

        def aside(fixed: Fixed, values: tuple[Carry, Array, Drive]) -> Row:
            carry, part, drive = values
            with without_derivatives():
                return row_aside(fixed[0], integrator, carry, fixed[1], part, drive)

        made = self._stored("aside", lambda: translate(aside, self.fixed, given))
        return native.map_function(made, 1), Table(given)

    @functools.cached_property
    def advance_one(self) -> native.NativeFunction:
        """Machine code of the time loop of one trajectory: steps, and rows where they are due."""
        return native.advance_function(self.step, None, self.save, 1, self.tables["drive"].slots)


@functools.cache
def _has_llvmlite() -> bool:
    return importlib.util.find_spec("llvmlite") is not None


def require_native(system: System) -> None:
    """Raise `CannotTranslate` where native code is out of the question."""
    if not _has_llvmlite():
        raise CannotTranslate("native code needs the package llvmlite, which is not installed")
    if system.n > LARGEST:
        leaves, structure = jax.tree.flatten(system)
        if _entries(structure, tuple(np.shape(leaf) for leaf in leaves)) > FEW * (system.n + system.m):
            raise TooLarge(
                f"the system has {system.n} coordinates, over {LARGEST}, and M and mu have few zeros"
            )


@kept
def _entries(structure: jax.tree_util.PyTreeDef, shapes: Shapes) -> int:
    """How many entries of M and mu are not zero everywhere."""
    system = jax.tree.unflatten(structure, [jax.ShapeDtypeStruct(s, float) for s in shapes])

    def both(system: System, q: Array) -> tuple[Array, Array]:
        return system.mass_matrix(q), system.mu(q, jnp.zeros_like(q))

    made = translate(both, system, jax.ShapeDtypeStruct((system.n,), float))
    return sum(made.nodes[entry].value != 0 for entry in made.outputs)


@kept
def programs_of(
    structure: jax.tree_util.PyTreeDef,
    shapes: Shapes,
    integrator: Integrator,
    events: Events = (),
    inputs: jax.tree_util.PyTreeDef = NO_INPUTS,
) -> StepPrograms:
    """Made once for equal methods and events on systems of one structure, with inputs of another."""
    system = jax.tree.unflatten(structure, [jax.ShapeDtypeStruct(s, float) for s in shapes])
    drive = jax.tree.unflatten(inputs, [jax.ShapeDtypeStruct((), float)] * inputs.num_leaves)
    try:
        return StepPrograms(system, integrator, events, drive)
    except TooLarge:
        raise
    except CannotTranslate:  # of a first integral that has no scalar form, or of the step
        if not system.first_integrals:
            raise
        return StepPrograms(system.without_first_integrals(), integrator, events, drive)
