"""Symmetric compositions of a self-adjoint method: order 4, 6 or 8 out of order 2.

A step of h is a sequence of steps gamma_i h of the base, sum gamma_i = 1, gamma_i = gamma_{s+1-i}. What each
step keeps, the composition keeps; it is self-adjoint again, so its order is even.

- suzuki4: 5 steps, gamma = 1 / (4 - 4^(1/3)), twice on each side of 1 - 4 gamma, Suzuki 1990.
- kahan_li6, kahan_li8: 9 and 17 steps, Kahan, Li 1997.

A base that extrapolates its guess from earlier steps does so from those at the same place of the sequence.
One that is not smooth loses orders: Gonzalez's gradient where a motion of one degree of freedom turns round,
where order 3 was measured; with the mean value it was 6.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax

from noslip.integrators.base import Integrator, OwnState, Solve, require_one_of
from noslip.integrators.discrete_gradient import DiscreteGradient
from noslip.integrators.families.built_on import BuiltOn
from noslip.numerics.compositions import SCHEMES, coefficients
from noslip.numerics.pytrees import PyTree
from noslip.system import System


@dataclass(frozen=True)
class Composition(BuiltOn):
    """Suzuki's and Kahan and Li's compositions of a self-adjoint method: order 4, 6 or 8."""

    base: Integrator = field(
        default_factory=DiscreteGradient
    )  #: the self-adjoint method that takes the steps
    scheme: str = "suzuki4"  #: the sequence of steps, and with it the order

    reference = "Suzuki 1990; Kahan, Li 1997"

    def __post_init__(self) -> None:
        require_one_of("scheme", self.scheme, SCHEMES)
        if "reversible" not in self.base.preserves or self.base.order != 2 or self.base.remembers_reaction:
            raise ValueError(
                "`base` must be self-adjoint and of order 2, and must not remember its reaction, but that is "
                f"not so of {self.base}"
            )

    @property
    def order(self) -> int:
        return int(self.scheme[-1])

    @property
    def preserves(self) -> frozenset[str]:
        return self.base.preserves - {"deformed_constraint", "momentum_equation"}

    @property
    def gammas(self) -> np.ndarray:
        return coefficients(self.scheme)

    def init(self, system: System, q: Array, v: Array, t: Array, h: Array) -> OwnState:
        def history(gamma: Array) -> PyTree:
            return self.base.history(self.base.init(system, q, v, t, gamma * h))

        state = self.base.init(system, q, v, t, h)
        if self.base.history(state) is None:
            return state
        return self.base.with_history(state, jax.vmap(history)(jnp.asarray(self.gammas)))

    def advance(self, system: System, state: OwnState, h: Array) -> tuple[OwnState, Solve]:
        def part(state: OwnState, x: tuple[Array, PyTree]) -> tuple[OwnState, tuple[PyTree, Solve]]:
            gamma, history = x
            state = self.base.with_history(self.base.for_step(system, state, gamma * h), history)
            state, record = self.base.advance(system, state, gamma * h)
            return state, (self.base.history(state), record)

        histories = self.base.history(state)
        first = self.base.with_history(state, jax.tree.map(lambda x: x[0], histories))
        last, (histories, records) = lax.scan(part, first, (jnp.asarray(self.gammas), histories))
        worst = [jnp.max(x) for x in (records.increment, records.residual, records.status)]
        return self.base.with_history(last, histories), Solve(jnp.sum(records.iterations), *worst)
