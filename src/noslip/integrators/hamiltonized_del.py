"""HDEL: discrete Euler-Lagrange equations of the Hamiltonized Lagrangian, in the time tau (FBO section 4.1).

    D1 Ld(r_i, r_{i+1}) + D2 Ld(r_{i-1}, r_i) = 0,     Ld from Lc(r, r') = l_c(r, f r')      (32), (33)

with the step h in tau, dtau = f dt. Physical time is the integral (34) of F = 1/f, by the trapezoidal rule
(35) or by Simpson's, with the midpoint taken from the cubic that fits r and r' at both ends. The symplectic
form dr ^ dP on T*M is kept. Where f has a zero, tau ends: the solve fails there, and the record says why.
"""

from __future__ import annotations

from dataclasses import dataclass

from jax import Array

from noslip.integrators.base import replaced, require_one_of
from noslip.integrators.families.chaplygin import HamiltonizedState, OnHamiltonizedBase
from noslip.system import System

TIME_RULES = ("trapezoid", "simpson")


@dataclass(frozen=True)
class HamiltonizedDEL(OnHamiltonizedBase):
    """Variational integrator of the Hamiltonized system; `step_size` and `steps` are in tau."""

    time_rule: str = "trapezoid"  #: the quadrature of physical time from tau

    reference = "FBO (33), (35)"

    def __post_init__(self) -> None:
        super().__post_init__()
        require_one_of("time_rule", self.time_rule, TIME_RULES)

    @property
    def own_time(self) -> bool:
        return True

    @classmethod
    def variants(cls) -> tuple[HamiltonizedDEL, ...]:
        return cls(), cls(epsilon=0.2, time_rule="simpson"), cls(group="planar")

    def momenta(self, system: System, state: HamiltonizedState, d: Array, h: Array) -> tuple[Array, Array]:
        reduced = self.reduced(system)

        def lagrangian(r: Array, slope: Array) -> Array:
            return reduced.constrained_lagrangian(r, self.multiplier(system, state, r) * slope)

        return self.discrete_momenta(lagrangian, state.q.value[reduced.base_index], d, h)

    def update(self, system: System, state: HamiltonizedState, d: Array, h: Array) -> HamiltonizedState:
        moved = super().update(system, state, d, h)
        base = self.reduced(system).base_index
        f, f1 = self.multiplier_here(system, state), self.multiplier_here(system, moved)
        rates = 1 / f + 1 / f1
        if self.time_rule == "trapezoid":
            return replaced(moved, t=state.t.plus(h / 2 * rates))
        bend = state.v[base] / f - moved.v[base] / f1
        middle = state.q.value[base] + d / 2 + h / 8 * bend
        rates = rates + 4 / self.multiplier(system, state, middle)
        return replaced(moved, t=state.t.plus(h / 6 * rates))

    def passes_zero(
        self, system: System, state: HamiltonizedState, moved: HamiltonizedState, met: Array
    ) -> Array:
        """The time 1/f has a pole there."""
        f, f1 = self.multiplier_here(system, state), self.multiplier_here(system, moved)
        return ~(f * f1 > 0) | met
