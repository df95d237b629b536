"""The discrete Lagrange-d'Alembert equations at the original nodes.

    D1 L_d(q_k, q_{k+1}) + D2 L_d(q_{k-1}, q_k) + h mu(q_k)^T lam = 0,     phi_d(q_k, q_{k+1}) = 0

JS (59) with L_d = h L o rho^beta and phi_d = phi o rho^beta; `symmetrized` averages beta and 1 - beta
in both, FBO (13)-(16). The velocity is v = (q_{k+1} - q_k) / h dated at q_{k+1}, as in JS (87), so
phi is not zero at the saved states; what is zero is the deformed constraint phi(q - (1 - beta) h v, v),
JS (88) for the particle.

The state carries p = D2 L_d(q_{k-1}, q_k). The first step is the discrete Legendre transform with
the reaction of half a step, p_0 + D1 L_d(q_0, q_1) + (h/2) mu(q_0)^T lam = 0: the same equation,
with `weight` 1/2 in the place of 1.
"""

from __future__ import annotations

from dataclasses import dataclass

import jax.numpy as jnp
from jax import Array

from noslip._pytree import pytree
from noslip.integrators._base import Integrator, Observation, Sum, require_interval
from noslip.integrators._lagrange_dalembert import Unknown, kinetic_scale
from noslip.system import System


@pytree
class TwoPointState:
    """The last node, the momentum that arrives there, and the last difference quotient."""

    t: Sum
    q: Sum
    p: Array
    v: Array
    lam: Array
    lam_t: Array
    weight: Array


@dataclass(frozen=True)
class DiscreteLagrangeDAlembert(Integrator):
    """JS (59) at the original nodes: q of order 2 if beta = 1/2 or symmetrized, v of order 1."""

    beta: float = 0.5
    symmetrized: bool = False

    order = 1
    preserves = frozenset({"deformed_constraint"})
    reference = "JS (59), (87)-(88); FBO (13)-(16)"

    def __post_init__(self) -> None:
        require_interval("beta", self.beta, 0.0, 1.0)

    @classmethod
    def variants(cls) -> tuple[DiscreteLagrangeDAlembert, ...]:
        return cls(0.5), cls(0.0), cls(0.8), cls(0.3, symmetrized=True)

    def _nodes(self, q: Array, v: Array, h: Array) -> list[tuple[float, Array]]:
        """(beta, (1 - beta) q_k + beta q_{k+1}) for each term of L_d."""
        betas = (self.beta, 1 - self.beta) if self.symmetrized else (self.beta,)
        return [(beta, q + beta * h * v) for beta in betas]

    def _phi(self, system: System, q: Array, v: Array, h: Array) -> Array:
        return _mean([system.phi(node, v) for _, node in self._nodes(q, v, h)])

    def init(self, system: System, q: Array, v: Array, t: Array, h: Array) -> TwoPointState:
        lam, half = system.multipliers(q, v, t), jnp.full_like(t, 0.5)
        return TwoPointState(Sum.start(t), Sum.start(q), system.momentum(q, v), v, lam, t, half)

    def guess(self, system: System, state: TwoPointState, h: Array) -> Unknown:
        q, v, t = state.q.value, state.v, state.t.value
        return Unknown(h * state.weight * system.acceleration(q, v, t), system.multipliers(q, v, t))

    def scale(self, system: System, state: TwoPointState, guess: Unknown, h: Array) -> Unknown:
        return kinetic_scale(system, state.q.value, state.v, guess.d, h)

    def residual(self, system: System, state: TwoPointState, x: Unknown, h: Array) -> Unknown:
        q, v1 = state.q.value, state.v + x.d
        minus_d1 = []
        for beta, node in self._nodes(q, v1, h):
            f = system.dL_dq(node, v1) + system.applied_force(node, v1, state.t.value + beta * h)
            minus_d1.append(system.momentum(node, v1) - h * (1 - beta) * f)
        reaction = system.mu(q, (state.v + v1) / 2).T @ x.lam
        balance = _mean(minus_d1) - state.p - state.weight * h * reaction
        return Unknown(balance, self._phi(system, q, v1, h))

    def update(self, system: System, state: TwoPointState, x: Unknown, h: Array) -> TwoPointState:
        q, v1 = state.q.value, state.v + x.d
        d2 = []
        for beta, node in self._nodes(q, v1, h):
            f = system.dL_dq(node, v1) + system.applied_force(node, v1, state.t.value + beta * h)
            d2.append(system.momentum(node, v1) + h * beta * f)
        return TwoPointState(
            t=state.t.plus(h),
            q=state.q.plus(h * v1),
            p=_mean(d2),
            v=v1,
            lam=x.lam,
            lam_t=state.t.value,
            weight=jnp.ones_like(state.weight),
        )

    def observe(self, state: TwoPointState) -> Observation:
        return Observation(state.t.value, state.q.value, state.v, state.lam, state.lam_t)

    def deformed_constraint(self, system: System, q: Array, v: Array, h: Array) -> Array:
        """phi_d(q_{k-1}, q_k) with q_{k-1} = q - h v: JS (88)."""
        return self._phi(system, q - h * v, v, h)


def _mean(values: list[Array]) -> Array:
    return sum(values[1:], values[0]) / len(values)
