"""Velocity nonholonomic integrators of the finite-difference maps rho^beta.

With q_k the original nodes and q~_{k+1} = (1 - beta) q_k + beta q_{k+1}, v_{k+1} = (q_{k+1} - q_k) / h
the redefined ones, JS definition 5.6 with L_d = h L o rho^beta (64) gives, for (q, v) -> (q1, v1):

    qm = q + (1 - beta) h v                                   (the original node q_k)
    q1 = qm + beta h v1
    dL/dv(q1, v1) - dL/dv(q, v)
        = h ((1 - beta) dL/dq(q1, v1) + beta dL/dq(q, v)) + h mu(qm)^T lam
    phi(q1, v1) = 0

beta = 0 is JS (71)-(72), beta = 1/2 is JS (76) with the factor h that (76c) lacks, and the I-DLA of
CFHM section 4. External forces take the weights of dL/dq. For nonlinear constraints mu is dphi/dv at
qm and the mean velocity, which keeps beta adjoint to 1 - beta.

paper -> code: eps -> h, q~_k -> q, q~_{k+1} -> q1, lambda_{k+1} -> lam (a force, dated at qm).
"""

from __future__ import annotations

from dataclasses import dataclass

from jax import Array

from noslip.integrators._base import require_interval
from noslip.integrators._lagrange_dalembert import LagrangeDAlembert, Unknown, VelocityState
from noslip.system import System


@dataclass(frozen=True)
class VelocityNonholonomic(LagrangeDAlembert):
    """JS definition 5.6 at redefined nodes: stays on D; order 2 for beta = 1/2, else 1."""

    beta: float = 0.5

    reference = "JS def. 5.6, (64), (71)-(72), (76)"

    def __post_init__(self) -> None:
        require_interval("beta", self.beta, 0.0, 1.0)

    @property
    def order(self) -> int:
        return 2 if self.beta == 0.5 else 1

    @property
    def preserves(self) -> frozenset[str]:
        return frozenset({"constraint", "reversible"} if self.beta == 0.5 else {"constraint"})

    @classmethod
    def variants(cls) -> tuple[VelocityNonholonomic, ...]:
        return cls(0.5), cls(0.0), cls(0.3), cls(1.0)

    def drift(self, v: Array, v1: Array, h: Array) -> Array:
        return h * ((1 - self.beta) * v + self.beta * v1)

    def multiplier_delay(self, h: Array) -> Array:
        return self.beta * h

    def residual(self, system: System, state: VelocityState, x: Unknown, h: Array) -> Unknown:
        beta, t = self.beta, state.t.value
        q, v = state.q.value, state.v.value
        v1 = v + x.d
        qm = q + (1 - beta) * h * v
        q1 = qm + beta * h * v1
        f0 = system.dL_dq(q, v) + system.applied_force(q, v, t)
        f1 = system.dL_dq(q1, v1) + system.applied_force(q1, v1, t + h)
        reaction = system.mu(qm, (v + v1) / 2).T @ x.lam
        balance = (
            system.momentum(q1, v1) - system.momentum(q, v) - h * ((1 - beta) * f1 + beta * f0 + reaction)
        )
        return Unknown(balance, system.phi(q1, v1))
