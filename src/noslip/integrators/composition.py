"""Symmetric compositions of a self-adjoint method: order 4, 6 or 8 out of order 2.

A step of h is a sequence of steps gamma_i h of the base, sum gamma_i = 1, gamma_i = gamma_{s+1-i}. What each
step keeps, the composition keeps; it is self-adjoint again, so its order is even.

- suzuki4: 5 steps, gamma = 1 / (4 - 4^(1/3)), twice on each side of 1 - 4 gamma.
- kahan_li6, kahan_li8: 9 and 17 steps, Kahan and Li, Math. Comp. 66 (1997).

A base that extrapolates its guess from earlier steps does so from those at the same place of the sequence.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax

from noslip.integrators.base import Integrator, Observation, Sum, require_one_of
from noslip.integrators.discrete_gradient import DiscreteGradient
from noslip.integrators.solve import Solve
from noslip.numerics.compositions import SCHEMES, coefficients
from noslip.numerics.pytrees import replaced
from noslip.system import System


@dataclass(frozen=True)
class Composition(Integrator):
    """Suzuki's and Kahan and Li's compositions of a self-adjoint method: order 4, 6 or 8."""

    base: Integrator = field(default_factory=DiscreteGradient)
    scheme: str = "suzuki4"

    reference = "Suzuki 1990; Kahan, Li 1997"

    def __post_init__(self) -> None:
        require_one_of("scheme", self.scheme, SCHEMES)
        if "reversible" not in self.base.preserves or self.base.order != 2:
            raise ValueError(f"`base` must be self-adjoint and of order 2, but {self.base} is not")

    @property
    def order(self) -> int:
        return int(self.scheme[-1])

    @property
    def preserves(self) -> frozenset[str]:
        return self.base.preserves - {"deformed_constraint"}

    @property
    def gammas(self) -> np.ndarray:
        return coefficients(self.scheme)

    @property
    def own_time(self) -> bool:
        return self.base.own_time

    @property
    def remembers_start(self) -> bool:
        return self.base.remembers_start

    def applies_to(self, system: System) -> str | None:
        return self.base.applies_to(system)

    def init(self, system: System, q: Array, v: Array, t: Array, h: Array) -> Any:
        state = self.base.init(system, q, v, t, h)
        if not hasattr(state, "past"):
            return state
        pasts = jax.vmap(lambda g: self.base.init(system, q, v, t, g * h).past)(jnp.asarray(self.gammas))
        return replaced(state, past=pasts)

    def advance(self, system: System, state: Any, h: Array) -> tuple[Any, Solve]:
        remembers = hasattr(state, "past")

        def part(state: Any, x: tuple[Array, Any]) -> tuple[Any, tuple[Any, Solve]]:
            gamma, past = x
            if remembers:
                state = replaced(state, past=past)
            elif not self.base.remembers_start:  # a state may depend on the step: begin anew where it ended
                seen = self.base.observe(state)
                fresh = self.base.init(system, seen.q, seen.v, state.t.value, gamma * h)
                state = replaced(fresh, t=state.t, q=Sum(fresh.q.value, state.q.low))
            state, record = self.base.advance(system, state, gamma * h)
            return state, (state.past if remembers else None, record)

        pasts = state.past if remembers else None
        first = replaced(state, past=state.past[0]) if remembers else state
        last, (pasts, records) = lax.scan(part, first, (jnp.asarray(self.gammas), pasts))
        worst = [jnp.max(x) for x in (records.increment, records.residual, records.status)]
        return replaced(last, past=pasts) if remembers else last, Solve(jnp.sum(records.iterations), *worst)

    def observe(self, state: Any) -> Observation:
        return self.base.observe(state)
