"""Steps that follow the motion: time-reversible step density control of Hairer, Soderlind 2005.

The density rho of the steps, dt = h / rho, follows a rate R of the motion as a variable of its own. With
G = d ln R / dt along the motion and Phi_dt the base method, a step from (y, rho) to (y', rho') is

    rho~ = rho + (h / 2) G(y),      y' = Phi_{h / rho~}(y),      rho' = rho~ + (h / 2) G(y')

which is explicit in rho and self-adjoint if the base is: nothing is lost that the base keeps, as happens with
a step that is chosen from the last error. R is how fast the motion changes, as `families/step_lengths.py` has
it. `step_size` is the first step; with a `tolerance` steps are step_size * tolerance^(1 / order) / R instead,
so that step_size 1 asks for about that relative error in a time 1 / R.

A base that is not self-adjoint has no reversibility to lose. For it there is control="local", by the error of
a step, which is the distance d of Phi_dt from Phi_{dt/2} o Phi_{dt/2}, in parts of the size of the state:

    y' = Phi_{dt/2} o Phi_{dt/2}(y),      rho' = rho / min(2, max(1/5, 0.9 (tolerance / d)^(1 / (order + 1))))

No step is repeated, so that what lies within one, an event or a gradient, is that of this step; the next one
is shorter where it was too long. The first is chosen by R.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from typing import Literal

import jax.numpy as jnp
from jax import Array

from noslip.integrators.base import Integrator, Observation, Solve, replaced
from noslip.integrators.families.step_lengths import along, log_rate, time_of
from noslip.integrators.families.varying_steps import DensityState, Varying
from noslip.integrators.semi_implicit_dla import SemiImplicitDLA
from noslip.integrators.solve import Status
from noslip.system import System


@dataclass(frozen=True)
class VariableStep(Varying):
    """Time-reversible variable steps: the base method where the motion is slow and where it is fast."""

    base: Integrator = field(default_factory=SemiImplicitDLA)  #: the method that takes the steps
    tolerance: float | None = None  #: a relative error to aim at; step_size is then a factor
    control: Literal["density", "local"] = "density"  #: by a rate of the motion, or by the error of a step

    reference = "Hairer, Soderlind 2005"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.control == "local" and self.tolerance is None:
            raise ValueError("`control='local'` needs a `tolerance`, but none was provided")

    @property
    def preserves(self) -> frozenset[str]:
        kept = {"constraint", "energy", "first_integrals", "holonomic"}
        return self.base.preserves & (kept | {"reversible"} if self.control == "density" else kept)

    def slope(self, system: System, T: Array, seen: Observation) -> Array:
        """G = d ln R / dt."""
        if self.control == "local":
            return jnp.zeros(())
        return along(partial(log_rate, system, T), system, seen.q, seen.v, seen.t)

    def init(self, system: System, q: Array, v: Array, t: Array, h: Array) -> DensityState:
        T, rho = time_of(system, q, v, t, h), jnp.ones(())
        if self.tolerance is not None:
            rho = jnp.exp(log_rate(system, T, q, v, t)) / self.tolerance ** (1 / self.order)
        base = self.base.init(system, q, v, t, h / rho)
        slope = self.slope(system, T, self.base.observe(base))
        return DensityState(base.t, base.q, base, rho, slope, h / rho, T)

    def advance(self, system: System, state: DensityState, h: Array) -> tuple[DensityState, Solve]:
        start = replaced(state.base, t=state.t, q=state.q)
        if self.control == "local":
            return self.measured(system, start, state, h)
        rho = state.rho + h / 2 * state.slope
        positive = rho > 0
        dt = h / jnp.where(positive, rho, 1.0)
        base, record = self.moved(system, start, state.dt, dt)
        slope = self.slope(system, state.T, self.base.observe(base))
        status = jnp.where(positive, record.status, int(Status.NOT_CONVERGED))
        new = replaced(state, t=base.t, q=base.q, base=base, rho=rho + h / 2 * slope, slope=slope, dt=dt)
        return new, replaced(record, status=status)
