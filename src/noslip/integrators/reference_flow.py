"""The motion itself, to round-off: dq/dt = v, dv/dt = acceleration(q, v, t), JS (22).

An adaptive Taylor method (heyoka, Biscani, Izzo 2021) lands on t0 + k h; without heyoka, SciPy's DOP853 at
its tightest tolerance stands in, good to about 1e-12. `run.backend` says which. Driven by the host, so it
can be neither traced nor composed; h only sets the times at which the motion is observed. What is shown there
is put back on the constraints and, where the motion conserves it and the system declares no other first
integral, on the energy, which the flow leaves by round-off. So with a looser `tolerance`, which costs less,
the constraints are still kept to round-off.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass

from jax import Array

from noslip.integrators.base import Integrator, Observation, Sum
from noslip.integrators.runge_kutta4 import PhaseState
from noslip.system import System

EPS = sys.float_info.epsilon
LOOSEST = 1e-3


@dataclass(frozen=True)
class ReferenceFlow(Integrator):
    """The exact flow to round-off: the yardstick of all other methods."""

    tolerance: float | None = None  #: of the error of its own steps, relative to the state

    order = 16
    reference = "JS (22); Biscani, Izzo 2021"
    exact = True
    host_driven = True

    def __post_init__(self) -> None:
        if self.tolerance is not None and not EPS <= self.tolerance <= LOOSEST:
            raise ValueError(
                f"`tolerance` must be between {EPS:.1e} and {LOOSEST:g}, but {self.tolerance!r} was provided"
            )

    @property
    def preserves(self) -> frozenset[str]:
        kept = frozenset({"constraint", "holonomic"})
        return kept | {"energy", "first_integrals", "reversible"} if self.flow_tolerance == EPS else kept

    @property
    def flow_tolerance(self) -> float:
        return EPS if self.tolerance is None else float(self.tolerance)

    def init(self, system: System, q: Array, v: Array, t: Array, h: Array) -> PhaseState:
        return PhaseState(Sum.start(t), Sum.start(q), Sum.start(v))

    def step(self, system: System, state: PhaseState, h: Array) -> PhaseState:
        raise ValueError("ReferenceFlow runs on the host: it cannot be differentiated, jitted or composed")

    def observe(self, state: PhaseState) -> Observation:
        return Observation(state.t.value, state.q.value, state.v.value, None, state.t.value)
