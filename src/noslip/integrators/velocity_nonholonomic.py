"""Velocity nonholonomic integrators of finite-difference maps: rho o (discrete flow) o rho^-1.

With q_k the original nodes and q~_{k+1} = (1 - beta) q_k + beta q_{k+1}, v_{k+1} = (q_{k+1} - q_k) / h
the redefined ones, JS definition 5.6 with L_d = h L o rho^beta (64) gives, for (q, v) -> (q1, v1):

    qm = q + (1 - beta) h v                                   (the original node q_k)
    q1 = qm + beta h v1
    dL/dv(q1, v1) - dL/dv(q, v)
        = h ((1 - beta) dL/dq(q1, v1) + beta dL/dq(q, v)) + h mu(qm)^T lam
    phi(q1, v1) = 0

beta = 0 is JS (71)-(72), explicit if the mass matrix is constant; beta = 1/2 is JS (76) with the factor h
that (76c) lacks, and the I-DLA of CFHM section 4. `rho` takes the place of rho^beta. External forces take
the weights of dL/dq. For nonlinear constraints mu is dphi/dv at qm and the mean velocity, which keeps the
method of a map adjoint to that of the adjoint map. Where L or phi contain t, q, qm and q1 are at t,
t + (1 - beta) h and t + h. Holonomic constraints hold at the original nodes of beta = 1/2; see
`families.inner_nodes`.

paper -> code: eps -> h, q~_k -> q, q~_{k+1} -> q1, lambda_{k+1} -> lam (a force, dated at qm).
"""

from __future__ import annotations

from dataclasses import dataclass

import jax.numpy as jnp
from jax import Array

from noslip.geometry.finite_difference_map import FiniteDifferenceMap
from noslip.integrators.base import OwnState, inside
from noslip.integrators.families import inner_nodes
from noslip.integrators.families.finite_difference_maps import RedefinedNodes, mapped_residual
from noslip.integrators.families.lagrange_dalembert import forces_ignore_velocity
from noslip.integrators.families.states import Unknown, VelocityState
from noslip.numerics.linear import spd_solve
from noslip.system import System


@dataclass(frozen=True)
class VelocityNonholonomic(RedefinedNodes):
    """JS definition 5.6 at redefined nodes: stays on D; order 2 for beta = 1/2, else 1."""

    beta: float = 0.5  #: where in the step the redefined nodes are: 0 at its start, 1 at its end
    rho: FiniteDifferenceMap | None = None  #: a finite-difference map in the place of that of beta

    reference = "JS def. 5.6, (64), (71)-(72), (76)"

    @property
    def order(self) -> int:
        return 2 if self.map.symmetric else 1

    @property
    def preserves(self) -> frozenset[str]:
        kept = frozenset({"constraint", "momentum_equation"})
        kept = kept | {"reversible"} if self.map.symmetric else kept
        return kept | {"holonomic"} if self.beta == 0.5 and self.rho is None else kept

    @classmethod
    def variants(cls) -> tuple[VelocityNonholonomic, ...]:
        return cls(0.5), cls(0.0), cls(0.3), cls(1.0)

    def displacement(self, v: Array, v1: Array, h: Array) -> Array:
        return h * ((1 - self.beta) * v + self.beta * v1)

    def multiplier_delay(self, h: Array) -> Array:
        return self.beta * h

    def residual(self, system: System, state: OwnState, x: Unknown, h: Array) -> Unknown:
        if self.rho is not None:
            return mapped_residual(self.rho, system, state, x, h)
        beta, t = self.beta, state.t.value
        q, v = state.q.value, state.v.value
        v1 = v + x.d
        qm = q + (1 - beta) * h * v
        q1 = qm + beta * h * v1
        now, end = inside(t, h, 0), inside(t, h, 1)
        f0 = system.dL_dq(q, v, now) + system.applied_force(q, v, now)
        f1 = system.dL_dq(q1, v1, end) + system.applied_force(q1, v1, end)
        reaction = system.mu(qm, (v + v1) / 2, t + (1 - beta) * h).T @ x.lam
        change = system.momentum(q1, v1, t + h) - system.momentum(q, v, t)
        balance = change - h * ((1 - beta) * f1 + beta * f0 + reaction)
        return Unknown(balance, inner_nodes.phi(system, qm, q1, v1, t, h))

    def is_explicit(self, system: System) -> bool:
        linear = system.kind != "nonlinear" and self.beta == 0 and self.rho is None
        return linear and not system.moving and forces_ignore_velocity(system)

    def step(self, system: System, state: VelocityState, h: Array) -> VelocityState:
        """JS (71)-(72): beta = 0 where dL/dq(q1, v1) does not contain v1."""
        v, t1 = state.v.value, inside(state.t.value, h, 1)
        q1 = state.q.value + h * v
        mu = system.mu(q1, v)
        f1 = system.dL_dq(q1, v) + system.applied_force(q1, v, t1)
        solved = spd_solve(system.mass_matrix(q1), jnp.column_stack([f1, mu.T]))  # M^-1 f1, M^-1 mu^T
        lam = -spd_solve(mu @ solved[:, 1:], system.phi(q1, v + h * solved[:, 0])) / h
        return self.update(system, state, Unknown(h * (solved[:, 0] + solved[:, 1:] @ lam), lam), h)
