"""The discrete Lagrange-d'Alembert-Chaplygin equations of PP, with the sign that they need.

Split the coordinates x = (x^u, x^ubar) into fibre and base, solve the constraints phi(x, y) = 0 for the
fibre velocities, y^u = C^u(x, y^ubar), and let L_d(z_0, z_1) = h L(z_0, (z_1 - z_0) / h). The sequence is

    x^u_{i+1} = x^u_i + h C^u(x_i, (x^ubar_{i+1} - x^ubar_i) / h)                             PP (3.1)
    EL_i      = D1 L_d(x_i, x_{i+1}) + D2 L_d(x_{i-1}, x_i)                                    PP (2.6)
    EL_{i,ubar} + C^u_ubar EL_{i,u} = 0,      C^u_ubar = dC^u / dy^ubar                        PP (3.2)

with + where PP prints - (errata, item 30), and the slope C^u_ubar at the previous pair (x_{i-1}, x_i),
PP (3.3), or at the next one, (x_i, x_{i+1}). `noslip.geometry.discrete_chaplygin` has this form.

Here it is written without a fibre: differentiating phi(x, C, y^ubar) = 0 shows that the virtual
displacements dx^u = C^u_ubar dx^ubar are the kernel of mu = dphi/dy, and EL_i vanishes on it if and only if
EL_i + h mu^T lam = 0 for some lam. So every fibre that can be solved for gives the same sequence, and it
need not be named. With v_i = (x_{i+1} - x_i) / h the step (x_i, v_i) -> (x_{i+1}, v_{i+1}) is

    q1 = q + h v
    dL/dv(q1, v1) - dL/dv(q, v) = h (dL/dq(q1, v1) + force(q1, v1)) + h mu^T lam,     phi(q1, v1) = 0
    mu at (q, v) for slope="previous", at (q1, v1) for slope="next"

The velocity saved with x_i is that of the step which leaves it, so phi(x_i, v_i) = 0 at every row; the
initial state is read as the first pair, x_1 = x_0 + h v_0. The force that lam measures joins the steps
before and after x_{i+1}, and is dated there: at the new row, whatever the slope. For linear constraints
slope="next" is `VelocityNonholonomic(0)`.

paper -> code: x_{i-1} -> q, x_i -> q1, y -> v, EL_i = h (dL/dq + force) - the change of dL/dv.
"""

from __future__ import annotations

from dataclasses import dataclass

import jax.numpy as jnp
from jax import Array

from noslip.integrators.families.lagrange_dalembert import LagrangeDAlembert
from noslip.integrators.families.states import Unknown, VelocityState
from noslip.system import System

SLOPES = ("previous", "next")


@dataclass(frozen=True)
class LagrangeDAlembertChaplygin(LagrangeDAlembert):
    """PP (3.2) for linear, affine and nonlinear constraints: stays on the constraint, order 1."""

    slope: str = "previous"  #: at which pair of points the slope of the constraint is taken

    order = 1
    multiplier_order = 1
    reference = "PP (3.1)-(3.3), with the sign corrected"

    def __post_init__(self) -> None:
        if self.slope not in SLOPES:
            raise ValueError(f"`slope` must be 'previous' or 'next', but {self.slope!r} was provided")

    @property
    def preserves(self) -> frozenset[str]:
        # the slope of the next pair is taken at its first node, where the displacements of D are
        kept = frozenset({"constraint"})
        return kept | {"momentum_equation"} if self.slope == "next" else kept

    @classmethod
    def variants(cls) -> tuple[LagrangeDAlembertChaplygin, ...]:
        return cls("previous"), cls("next")

    def displacement(self, v: Array, v1: Array, h: Array) -> Array:
        return h * v

    def multiplier_delay(self, h: Array) -> Array:
        return jnp.zeros_like(h)

    def discrete_lagrangian(self, system: System, q: Array, q1: Array, h: Array) -> Array:
        return h * system.lagrangian(q, (q1 - q) / h, system.parameters)

    def residual(self, system: System, state: VelocityState, x: Unknown, h: Array) -> Unknown:
        q, v = state.q.value, state.v.value
        q1, v1 = q + h * v, v + x.d
        now, end = system.at(state.t.value), system.at(state.t.value + h)
        mu = now.mu(q, v) if self.slope == "previous" else end.mu(q1, v1)
        f = end.dL_dq(q1, v1) + end.applied_force(q1, v1, state.t.value + h)
        balance = end.momentum(q1, v1) - now.momentum(q, v) - h * (f + mu.T @ x.lam)
        return Unknown(balance, end.phi(q1, v1))
