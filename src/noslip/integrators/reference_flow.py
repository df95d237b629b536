"""The motion itself, to round-off: dq/dt = v, dv/dt = acceleration(q, v, t), JS (22).

An adaptive Taylor method (heyoka, Biscani, Izzo 2021) lands on t0 + k h; without heyoka, SciPy's DOP853 at
its tightest tolerance stands in, good to about 1e-12. `run.backend` says which. Driven by the host, so it
can be neither traced nor composed; h only sets the times at which the motion is observed.
"""

from __future__ import annotations

from dataclasses import dataclass

from jax import Array

from noslip.integrators.base import Integrator, Observation, Sum
from noslip.integrators.runge_kutta4 import PhaseState
from noslip.system import System


@dataclass(frozen=True)
class ReferenceFlow(Integrator):
    """The exact flow to round-off: the yardstick of all other methods."""

    order = 16
    preserves = frozenset({"constraint", "energy", "first_integrals", "holonomic", "reversible"})
    reference = "JS (22); Biscani, Izzo 2021"
    exact = True
    host_driven = True

    def init(self, system: System, q: Array, v: Array, t: Array, h: Array) -> PhaseState:
        return PhaseState(Sum.start(t), Sum.start(q), Sum.start(v))

    def step(self, system: System, state: PhaseState, h: Array) -> PhaseState:
        raise ValueError("ReferenceFlow runs on the host: it cannot be differentiated, jitted or composed")

    def observe(self, state: PhaseState) -> Observation:
        return Observation(state.t.value, state.q.value, state.v.value, None, state.t.value)
