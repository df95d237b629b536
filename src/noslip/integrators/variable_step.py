"""Steps that follow the motion: time-reversible step density control of Hairer, Soderlind 2005.

The density rho of the steps, dt = h / rho, follows a rate R of the motion as a variable of its own. With
G = d ln R / dt along the motion and Phi_dt the base method, a step from (y, rho) to (y', rho') is

    rho~ = rho + (h / 2) G(y),      y' = Phi_{h / rho~}(y),      rho' = rho~ + (h / 2) G(y')

which is explicit in rho and self-adjoint if the base is: nothing is lost that the base keeps, as happens with
a step that is chosen from the last error. R is how fast the motion changes, in the kinetic metric,

    R^2 = (|a|^2 + T^2 |j|^2) / (|v|^2 + T^2 |a|^2) + (FREE / T)^2,      a = dv/dt,      j = da/dt

with T the time in which it changes at the start: the frequency of an oscillator wherever it is, about
r^(-3/2) near a centre, the same at all amplitudes, and bounded where the motion is free. `step_size` is
the first step; with a `tolerance` steps are step_size * tolerance^(1 / order) / R instead, so that step_size
1 asks for about that relative error in a time 1 / R.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
from jax import Array

from noslip.integrators.base import Integrator, Observation, Solve, Sum, pytree, replaced
from noslip.integrators.families.built_on import BuiltOn
from noslip.integrators.semi_implicit_dla import SemiImplicitDLA
from noslip.integrators.solve import Status
from noslip.system import System

LEAST = 1e-140  # for states of rest
FREE = 0.01  # steps become at most so many times longer than T asks for, where nothing happens


@pytree
class DensityState:
    """The state of the base, the density and its slope there, the last step, and T of the start."""

    t: Sum
    q: Sum
    base: Any
    rho: Array
    slope: Array
    dt: Array
    T: Array


@dataclass(frozen=True)
class VariableStep(BuiltOn):
    """Time-reversible variable steps: the base method where the motion is slow and where it is fast."""

    base: Integrator = field(default_factory=SemiImplicitDLA)
    tolerance: float | None = None

    reference = "Hairer, Soderlind 2005"
    own_time = True
    remembers_start = True

    def __post_init__(self) -> None:
        unfit = self.base.own_time or self.base.host_driven or self.base.remembers_reaction
        if unfit or "deformed_constraint" in self.base.preserves:
            raise ValueError(
                f"`base` must have steps in t that can change their length, but {self.base} has not"
            )
        if self.tolerance is not None and not 0 < self.tolerance < 1:
            raise ValueError(f"`tolerance` must be between 0 and 1, but {self.tolerance!r} was provided")

    @property
    def order(self) -> int:
        return self.base.order

    @property
    def preserves(self) -> frozenset[str]:
        return self.base.preserves & {"constraint", "energy", "first_integrals", "holonomic", "reversible"}

    def log_rate(self, system: System, T: Array, q: Array, v: Array, t: Array) -> Array:
        """ln R."""
        M, a = system.mass_matrix(q), system.acceleration(q, v, t)
        v2, a2, j2 = (x @ M @ x for x in (v, a, _along(system.acceleration, system, q, v, t)))
        return jnp.log((a2 + T**2 * j2) / (v2 + T**2 * a2 + LEAST) + (FREE / T) ** 2) / 2

    def slope(self, system: System, T: Array, seen: Observation) -> Array:
        """G = d ln R / dt."""
        return _along(partial(self.log_rate, system, T), system, seen.q, seen.v, seen.t)

    def init(self, system: System, q: Array, v: Array, t: Array, h: Array) -> DensityState:
        T, rho = _time_of(system, q, v, t, h), jnp.ones(())
        if self.tolerance is not None:
            rho = jnp.exp(self.log_rate(system, T, q, v, t)) / self.tolerance ** (1 / self.order)
        base = self.base.init(system, q, v, t, h / rho)
        slope = self.slope(system, T, self.base.observe(base))
        return DensityState(base.t, base.q, base, rho, slope, h / rho, T)

    def advance(self, system: System, state: DensityState, h: Array) -> tuple[DensityState, Solve]:
        rho = state.rho + h / 2 * state.slope
        positive = rho > 0
        dt = h / jnp.where(positive, rho, 1.0)
        base = self.base.for_step(system, replaced(state.base, t=state.t, q=state.q), dt)
        if (history := self.base.history(base)) is not None:
            ratio = dt / state.dt
            base = self.base.with_history(base, jax.tree.map(lambda x: ratio * x, history))
        base, record = self.base.advance(system, base, dt)
        slope = self.slope(system, state.T, self.base.observe(base))
        status = jnp.where(positive, record.status, int(Status.NOT_CONVERGED))
        new = replaced(state, t=base.t, q=base.q, base=base, rho=rho + h / 2 * slope, slope=slope, dt=dt)
        return new, replaced(record, status=status)

    def history(self, state: DensityState) -> None:
        return None

    def observe(self, state: DensityState) -> Observation:
        return self.base.observe(replaced(state.base, t=state.t, q=state.q))


def _along(f: Callable[..., Array], system: System, q: Array, v: Array, t: Array) -> Array:
    """df/dt along the motion."""
    a = system.acceleration(q, v, t)
    return jax.jvp(f, (q, v, t), (v, a, jnp.ones_like(t)))[1]


def _time_of(system: System, q: Array, v: Array, t: Array, h: Array) -> Array:
    """T = (|v| / |j|)^(1/2), or (|a| / |s|)^(1/2), s = dj/dt, at rest; bounded by 10^6 h,
    for motions that never change."""

    def jerk(q: Array, v: Array, t: Array) -> Array:
        return _along(system.acceleration, system, q, v, t)

    M, a = system.mass_matrix(q), system.acceleration(q, v, t)
    vectors = (v, a, jerk(q, v, t), _along(jerk, system, q, v, t))
    v2, a2, j2, s2 = (x @ M @ x for x in vectors)
    theta = jnp.sqrt((a2 + LEAST) / (s2 + LEAST))  # the square of a time
    rate = jnp.sqrt(jnp.sqrt((j2 + theta * s2) / (v2 + theta * a2 + LEAST)))
    return 1 / jnp.maximum(rate, 1e-6 / jnp.abs(h))
