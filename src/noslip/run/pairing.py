"""A method on a system: what is known of the two before any state is given, worked out once.

It is kept with the system, so that a second run of an equal method on the same system asks nothing twice.
"""

from __future__ import annotations

import contextlib
import functools
import importlib
import weakref
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import jax
import numpy as np
from jax import Array

from noslip import systems
from noslip.engine import stored
from noslip.engine.backends.numpy_rows import short_function
from noslip.engine.kept import kept
from noslip.integrators import Integrator, word_of
from noslip.numerics.blocks import for_scalar_programs
from noslip.numerics.pytrees import PyTree, anatomy, of_leaves
from noslip.numerics.tracing import has_tracers
from noslip.run.events import Events
from noslip.run.programs import NO_INPUTS, Shapes, StepPrograms, programs_of, require_native
from noslip.system import System
from noslip.system.conditions import AROUND, Region, around
from noslip.system.time import visible

OfState = Callable[[System, Array, Array], PyTree]


class Pairing:
    """See `pairing_of`."""

    def __init__(self, system: System, integrator: Integrator, events: Events = ()):
        self.system, self.integrator, self.events = system, integrator, events
        self.leaves, self.structure, self.shapes = anatomy(system)
        self._watching: dict[Events, Pairing] = {}
        self._programs: dict[jax.tree_util.PyTreeDef, weakref.ref[StepPrograms]] = {}
        self._short: dict[OfState, Callable[..., Sequence[float]] | None] = {}

    @functools.cached_property
    def refusal(self) -> str | None:
        """Why this method cannot run on this system, if it cannot."""
        return self.integrator.refusal(self.system)

    def refusal_near(self, q: np.ndarray, v: np.ndarray) -> str | None:
        """The same for a run from this state; asked anew only where no run has started nearby."""
        if self._applies_anywhere:
            return self.refusal
        if self._region.holds(q.tolist()):
            return None
        reason = self.integrator.applies_around(self.system, q, v)
        if reason is None:
            near = around(q, AROUND)
            self._region.grow(near.min(axis=0), near.max(axis=0))
        return reason

    @functools.cached_property
    def _applies_anywhere(self) -> bool:
        """Whether the state does not matter to what the method can run on."""
        leaves = self.integrator.leaves_positions(self.system)
        return bool(leaves) or not self.integrator.defines("applies_around")

    @functools.cached_property
    def _region(self) -> Region:
        return Region()

    @functools.cached_property
    def is_implicit(self) -> bool:
        """Whether a step solves equations that are given as a residual."""
        return self.integrator.defines("residual") and not self.integrator.is_explicit(self.system)

    @functools.cached_property
    def clocked(self) -> bool:
        """Whether the system is another at another time."""
        return self.system.clocked

    @functools.cached_property
    def own_time(self) -> bool:
        """Whether the method makes its own time."""
        return self.integrator.own_time

    @functools.cached_property
    def where_forms_are_parallel(self) -> Pairing:
        """The same method on the same system with its one-forms made orthogonal before they are used."""
        return Pairing(self.system.with_orthogonal_forms(), self.integrator, self.events)

    def watching(self, events: Events) -> Pairing:
        """The same for runs that look out for these events."""
        if not events:
            return self
        if events not in self._watching:
            self._watching[events] = Pairing(self.system, self.integrator, events)
        return self._watching[events]

    @property
    def programs(self) -> StepPrograms:
        """The step as scalar programs; raises `CannotTranslate` where there are none."""
        return self.driven_programs(NO_INPUTS)

    def driven_programs(self, inputs: jax.tree_util.PyTreeDef) -> StepPrograms:
        """The same for a step with inputs of this structure. Not held: a system, or a result, would keep the
        machine code."""
        known = self._programs.get(inputs)
        found = None if known is None else known()
        if found is None:
            require_native(self.system)
            found = programs_of(self.structure, self.shapes, self.integrator, self.events, inputs)
            self._programs[inputs] = weakref.ref(found)
        return found

    def at_state(self, function: OfState, q: np.ndarray, v: np.ndarray) -> Sequence[float] | None:
        """The numbers that function(system, q, v) is made of, in a row, if its program is short enough for
        Python to compute them; else None. For checks that a run of a few microseconds can afford."""
        if function not in self._short:
            self._short[function] = short_function(function, self.structure, self.shapes, (q.shape, v.shape))
        python = self._short[function]
        with contextlib.suppress(ZeroDivisionError), np.errstate(all="ignore"):
            return None if python is None else python(*self._numbers, *q.tolist(), *v.tolist())
        return None

    @functools.cached_property
    def _numbers(self) -> list[float]:
        return [x for leaf in self.leaves for x in np.ravel(leaf).tolist()]

    @functools.cached_property
    def words(self) -> tuple[str, str, Mapping[str, object]]:
        """The method for the record: its name, the word by which it is found, its options."""
        kind = type(self.integrator)
        return kind.__name__, word_of(kind), self.integrator.options()

    @functools.cached_property
    def parameters(self) -> Mapping[str, Any]:
        """Those of the system that its user has named."""
        return visible(self.system.parameters)

    @functools.cached_property
    def facts(self) -> tuple[str, str]:
        """Whose multipliers are shown, the method's own ("method") or the motion's at the node ("node"),
        and the name of the system in the catalogue or an installed package, if it is exactly what is made
        there."""
        whose, name = _facts(self.integrator, self.structure, self.shapes)
        return whose, "" if has_tracers(self.leaves) else name


def pairing_of(system: System, integrator: Integrator) -> Pairing:
    """What is known of this method on this system."""
    kept = system.remembered
    if integrator not in kept:
        kept[integrator] = Pairing(system, integrator)
    return kept[integrator]


@kept  # a trace costs more than a short run
def _facts(integrator: Integrator, structure: jax.tree_util.PyTreeDef, shapes: Shapes) -> tuple[str, str]:
    system = jax.tree.unflatten(structure, [jax.ShapeDtypeStruct(s, float) for s in shapes])
    x, t = jax.ShapeDtypeStruct((system.n,), float), jax.ShapeDtypeStruct((), float)

    def own_multipliers(system: System, q: Array, v: Array, t: Array, h: Array) -> Array | None:
        return integrator.observe(integrator.init(system, q, v, t, h)).multipliers

    def whose() -> str:
        flat, leaves = of_leaves(own_multipliers, system, x, x, t, t)
        with for_scalar_programs():  # as it will be traced again
            return "node" if jax.eval_shape(flat, *leaves) is None else "method"

    module = system.lagrangian.__module__ or ""
    name = systems.name_of(module)
    known = name and _catalogue_structure(module) == structure
    return stored.word(("multipliers", system, integrator), whose), name if known else ""


@functools.cache
def _catalogue_structure(module: str) -> jax.tree_util.PyTreeDef:
    return jax.tree.structure(importlib.import_module(module).system())
