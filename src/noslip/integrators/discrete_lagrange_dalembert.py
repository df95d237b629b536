"""The discrete Lagrange-d'Alembert equations at the original nodes.

    D1 L_d(q_k, q_{k+1}) + D2 L_d(q_{k-1}, q_k) + h mu(q_k)^T lam = 0,     phi_d(q_k, q_{k+1}) = 0

JS (59) with L_d = h L o rho and phi_d = phi o rho, where rho is rho^beta (64) or any map given as `rho`;
`symmetrized` averages rho and its adjoint (beta and 1 - beta) in both, FBO (13)-(16). The velocity is
v = (q_{k+1} - q_k) / h dated at q_{k+1}, as in JS (87), so phi is not zero at the saved states; what is
zero is the deformed constraint phi_d(q - h v, q) = phi(q - (1 - beta) h v, v), JS (88) for the particle.

The state carries p = D2 L_d(q_{k-1}, q_k), also at the start, so that the first step is one like all others
and its multiplier as good as the rest: p = p_0 - (h/2) mu(q_0)^T lam(q_0, v_0), the discrete Legendre
transform, where rho is its own adjoint; else that of the pair (q_0 - h w, q_0) with the velocity
w = v_0 - (1 - beta) h a_0 which the motion has at the node of this pair.
"""

from __future__ import annotations

from dataclasses import dataclass

from jax import Array

from noslip.geometry.finite_difference_map import FiniteDifferenceMap
from noslip.integrators.base import Sum
from noslip.integrators.families.finite_difference_maps import MapMethod
from noslip.integrators.families.states import Unknown
from noslip.integrators.families.two_points import TwoPoints, TwoPointState
from noslip.numerics.sums import average
from noslip.system import System


@dataclass(frozen=True)
class DiscreteLagrangeDAlembert(MapMethod, TwoPoints):
    """JS (59) at the original nodes: q of order 2 if beta = 1/2 or symmetrized, v of order 1."""

    beta: float = 0.5  #: where in the step L is taken: 0 at its start, 1 at its end
    symmetrized: bool = False  #: average beta and 1 - beta
    rho: FiniteDifferenceMap | None = None  #: a finite-difference map in the place of that of beta

    order = 1
    multiplier_order = 1
    preserves = frozenset({"deformed_constraint", "momentum_equation"})
    reference = "JS (59), (87)-(88); FBO (13)-(16)"

    @classmethod
    def variants(cls) -> tuple[DiscreteLagrangeDAlembert, ...]:
        return cls(0.5), cls(0.2), cls(0.3, symmetrized=True)

    def _maps(self) -> list[FiniteDifferenceMap]:
        """The maps over which L_d and phi_d are averaged."""
        return [self.map, self.map.adjoint()] if self.symmetrized else [self.map]

    def _momenta(self, system: System, state: TwoPointState, v1: Array, h: Array) -> tuple[Array, Array]:
        """-D1 L_d and D2 L_d of the pair (q_k, q_k + h v1)."""
        q, t = state.q.value, state.t.value
        pairs = [rho.momenta(system, q, v1, h, t + rho.fraction(q) * h) for rho in self._maps()]
        return average([minus_d1 for minus_d1, _ in pairs]), average([d2 for _, d2 in pairs])

    def _phi(self, system: System, q: Array, v: Array, t: Array, h: Array) -> Array:
        """phi_d of the pair (q, q + h v), the first at t."""
        return average([system.phi(*rho.node(q, v, h), t + rho.fraction(q) * h) for rho in self._maps()])

    def init(self, system: System, q: Array, v: Array, t: Array, h: Array) -> TwoPointState:
        lam = system.multipliers(q, v, t)
        if self.symmetrized or self.map.symmetric:
            p = system.momentum(q, v, t) - h / 2 * system.mu(q, v, t).T @ lam
        else:
            ago = (1 - self.map.fraction(q)) * h  # since the node of the pair
            w = v - ago * system.acceleration(q, v, t)
            _, p = self.map.momenta(system, q - h * w, w, h, t - ago)
        return TwoPointState(Sum.start(t), Sum.start(q), p, v, lam, t)

    def residual(self, system: System, state: TwoPointState, x: Unknown, h: Array) -> Unknown:
        q, v1 = state.q.value, state.v + x.d
        minus_d1, _ = self._momenta(system, state, v1, h)
        reaction = system.mu(q, (state.v + v1) / 2, state.t.value).T @ x.lam
        balance = minus_d1 - state.p - h * reaction
        return Unknown(balance, self._phi(system, q, v1, state.t.value, h))

    def update(self, system: System, state: TwoPointState, x: Unknown, h: Array) -> TwoPointState:
        v1 = state.v + x.d
        _, p = self._momenta(system, state, v1, h)
        return TwoPointState(state.t.plus(h), state.q.plus(h * v1), p, v1, x.lam, state.t.value)

    def discrete_lagrangian(self, system: System, q: Array, q1: Array, h: Array) -> Array:
        return average([rho.discrete_lagrangian(system, q, q1, h) for rho in self._maps()])

    def deformed_constraint(self, system: System, q: Array, v: Array, h: Array) -> Array:
        """phi_d(q_{k-1}, q_k) with q_{k-1} = q - h v: JS (88)."""
        return self._phi(system, q - h * v, v, system.time - h, h)
