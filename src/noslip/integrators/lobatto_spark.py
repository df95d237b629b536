"""SPARK with Lobatto IIIA for the positions and IIIB for the momenta (Jay 2003), s = 2, 3 or 4 stages.

With nodes c, weights b, matrices A of IIIA and B of IIIB, P_i = dL/dv(Q_i, V_i) and forces
F_j = dL/dq(Q_j, V_j) + mu(Q_j)^T lam_j + force:

    Q_i = q + h sum_j A_ij V_j,                 q' = Q_s
    P_i = p + h sum_j B_ij F_j,                 p' = p + h sum_j b_j F_j,      v' from p' at q'
    sum_j b_j c_j^(i-1) phi(Q_j, V_j) = 0,      i = 1 .. s - 1
    phi(q', v') = 0

CFHM section 4.1.3 compares with s = 2. The order is 2 s - 2 in q and v; the constraint holds, the energy does
not. The multiplier reported is lam_s, which acts at q'. Holonomic constraints take g(Q_i) = 0, i = 2 .. s, in
the place of the weighted sums, as in Jay 1996; for s = 2 that is RATTLE.
"""

from __future__ import annotations

from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from noslip.geometry.holonomic import at_stages
from noslip.integrators.base import Integrator, Observation, inside, require_one_of
from noslip.integrators.families.states import Stages, VelocityState, kinetic_grain, kinetic_scale
from noslip.numerics.collocation import Lobatto, lobatto
from noslip.system import System


@dataclass(frozen=True)
class LobattoSpark(Integrator):
    """Jay's SPARK for index 2: Lobatto IIIA-IIIB; keeps the constraint at order 2 s - 2."""

    stages: int = 2  #: their number s; the order is 2 s - 2

    preserves = frozenset({"constraint", "holonomic", "reversible"})
    reference = "Jay 2003; Jay 1996; CFHM section 4.1.3"

    def __post_init__(self) -> None:
        require_one_of("stages", self.stages, (2, 3, 4))

    @property
    def order(self) -> int:
        return 2 * self.stages - 2

    @property
    def multiplier_order(self) -> int:
        return self.stages - 1

    @classmethod
    def variants(cls) -> tuple[LobattoSpark, ...]:
        return cls(2), cls(3)

    @property
    def rule(self) -> Lobatto:
        return lobatto(self.stages)

    def init(self, system: System, q: Array, v: Array, t: Array, h: Array) -> VelocityState:
        return VelocityState.start(system, q, v, t)

    def guess(self, system: System, state: VelocityState, h: Array) -> Stages:
        q, v, t = state.q.value, state.v.value, state.t.value
        dv = h * system.acceleration(q, v, t)
        lam = jnp.broadcast_to(system.multipliers(q, v, t), (self.stages, system.rows))
        return Stages(jnp.outer(self.rule.c, dv), lam, dv)

    def scale(self, system: System, state: VelocityState, guess: Stages, h: Array) -> Stages:
        one = kinetic_scale(system.at(state.t.value), state.q.value, state.v.value, guess.d, h)
        return Stages.alike(one, self.stages)

    def grain(self, system: System, state: VelocityState, guess: Stages, h: Array) -> Stages:
        return Stages.alike(kinetic_grain(system, state, state.v.value, h), self.stages)

    def residual(self, system: System, state: VelocityState, x: Stages, h: Array) -> Stages:
        rule, q, v, t = self.rule, state.q.value, state.v.value, state.t.value
        V, v1, Q = v + x.V, v + x.d, q + h * (rule.A @ (v + x.V))

        def at(Q: Array, V: Array, lam: Array, c: Array) -> tuple[Array, Array, Array]:
            tc = inside(t, h, c)
            reaction = system.mu(Q, V, tc).T @ lam
            force = system.dL_dq(Q, V, tc) + reaction + system.applied_force(Q, V, tc)
            return system.momentum(Q, V, t + c * h), force, system.phi(Q, V, t + c * h)

        P, F, phi = jax.vmap(at)(Q, V, x.lam, jnp.asarray(rule.c))
        end = system.at(t + h)
        powers = rule.b * np.vander(rule.c, self.stages - 1, increasing=True).T
        means = rule.A[1:] @ V / rule.c[1:, None]
        inner = at_stages(system, q, means, t, h, rule.c[1:], powers @ phi)
        constraint = jnp.concatenate([inner, end.phi(Q[-1], v1)[None]])
        p, p1 = system.momentum(q, v, t), end.momentum(Q[-1], v1)
        return Stages(P - p - h * (rule.B @ F), constraint, p1 - p - h * (rule.b @ F))

    def update(self, system: System, state: VelocityState, x: Stages, h: Array) -> VelocityState:
        q = state.q.plus(h * (self.rule.b @ (state.v.value + x.V)))
        return VelocityState(t := state.t.plus(h), q, state.v.plus(x.d), x.lam[-1], t.value)

    def observe(self, state: VelocityState) -> Observation:
        return Observation(state.t.value, state.q.value, state.v.value, state.lam, state.lam_t)
