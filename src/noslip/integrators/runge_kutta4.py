"""The classical Runge-Kutta method of order 4 on the vector field of JS (22): the baseline.

    dq/dt = v,   dv/dt = acceleration(q, v, t)

It knows nothing of the constraint or the energy, and both drift. Only where there are holonomic constraints
g(q) = 0, without which the motion is soon lost, are q and v put back at the end of a step: q along M^-1 G^T,
v by the M-orthogonal projection.
"""

from __future__ import annotations

from dataclasses import dataclass

from jax import Array

from noslip.integrators.base import Integrator, Observation, Sum, inside, pytree
from noslip.system import System
from noslip.system.positions import put_back


@pytree
class PhaseState:
    """Time, position and velocity."""

    t: Sum
    q: Sum
    v: Sum


@dataclass(frozen=True)
class RungeKutta4(Integrator):
    """Kutta's method of order 4: what a careful user without structure would take."""

    order = 4
    preserves = frozenset({"holonomic"})
    reference = "Kutta 1901"

    def init(self, system: System, q: Array, v: Array, t: Array, h: Array) -> PhaseState:
        return PhaseState(Sum.start(t), Sum.start(q), Sum.start(v))

    def step(self, system: System, state: PhaseState, h: Array) -> PhaseState:
        t, q, v = state.t.value, state.q.value, state.v.value
        k1 = system.acceleration(q, v, inside(t, h, 0))
        v2 = v + h / 2 * k1
        k2 = system.acceleration(q + h / 2 * v, v2, t + h / 2)
        v3 = v + h / 2 * k2
        k3 = system.acceleration(q + h / 2 * v2, v3, t + h / 2)
        v4 = v + h * k3
        k4 = system.acceleration(q + h * v3, v4, inside(t, h, 1))
        end = PhaseState(
            state.t.plus(h),
            state.q.plus(h / 6 * (v + 2 * v2 + 2 * v3 + v4)),
            state.v.plus(h / 6 * (k1 + 2 * k2 + 2 * k3 + k4)),
        )
        if not system.k:
            return end
        q1 = put_back(system.at(end.t.value), end.q.value)
        return PhaseState(
            end.t, Sum.start(q1), Sum.start(system.project_velocity(q1, end.v.value, end.t.value))
        )

    def observe(self, state: PhaseState) -> Observation:
        return Observation(state.t.value, state.q.value, state.v.value, None, state.t.value)
