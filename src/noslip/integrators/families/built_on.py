"""What the methods made of another method leave to it: compositions, projections."""

from __future__ import annotations

from typing import TYPE_CHECKING

from noslip.integrators.base import CanonicalChart, Integrator, Observation, OwnState
from noslip.numerics.pytrees import PyTree

if TYPE_CHECKING:
    import numpy as np

    from noslip.geometry.groups import Group
    from noslip.system import System


class BuiltOn(Integrator):
    """A method with the field `base`, on whose states it works."""

    base: Integrator

    @property
    def multiplier_order(self) -> int | None:
        return self.base.multiplier_order

    @property
    def own_time(self) -> bool:
        return self.base.own_time

    @property
    def remembers_start(self) -> bool:
        return self.base.remembers_start

    @property
    def remembers_inputs(self) -> bool:
        return self.base.remembers_inputs

    @property
    def symmetry(self) -> str | Group | None:
        return self.base.symmetry

    @property
    def uses_frame(self) -> bool:
        return self.base.uses_frame

    @property
    def canonical(self) -> CanonicalChart | None:
        return self.base.canonical

    def applies_to(self, system: System) -> str | None:
        return self.base.applies_to(system)

    def applies_around(self, system: System, q: np.ndarray, v: np.ndarray) -> str | None:
        if reason := self.base.applies_around(system, q, v):
            return reason
        return self.applies_to(system) if self.base.applies_to(system) is None else None

    def history(self, state: OwnState) -> PyTree:
        return self.base.history(state)

    def with_history(self, state: OwnState, history: PyTree) -> OwnState:
        return self.base.with_history(state, history)

    def observe(self, state: OwnState) -> Observation:
        return self.base.observe(state)
