"""SI-DLA, the semi-implicit discrete Lagrange-d'Alembert method of McLachlan, Perlmutter 2006.

L_d(q0, q1) = (h/2) (L(q0, w) + L(q1, w)) with w = (q1 - q0) / h, constraint at the midpoint; the state
is (midpoint, w). In these variables, for (q, v) -> (q1, v1):

    qm = q + (h/2) v,      q1 = qm + (h/2) v1,      qb = qm - h v,      qf = qm + h v1
    (dL/dv(qm, v1) + dL/dv(qf, v1) - dL/dv(qb, v) - dL/dv(qm, v)) / 2
        = (h/2) (dL/dq(qm, v) + dL/dq(qm, v1)) + h mu(qm)^T lam
    phi(q1, v1) = 0

Where L or phi contain t, q and q1 are at t and t + h, qb, qm and qf at t - h/2, t + h/2 and t + 3h/2. For
constant M: v1 = v + h M^-1 (F(qm) + mu(qm)^T lam), so that only the constraint is implicit.
CFHM section 4.1.3 compares with this method as SI-DLA. The unknowns are d = v1 - v and lam, which is a
force and acts at qm, half a step before q1. Holonomic constraints hold at the nodes qb, qm, qf; see
`families.inner_nodes`.
"""

from __future__ import annotations

from dataclasses import dataclass

from jax import Array

from noslip.integrators.base import Integrator, Observation, Sum
from noslip.integrators.families import inner_nodes
from noslip.integrators.families.states import Unknown, VelocityState, kinetic_grain, kinetic_scale
from noslip.system import System


@dataclass(frozen=True)
class SemiImplicitDLA(Integrator):
    """McLachlan-Perlmutter's SI-DLA at the midpoints: stays on D, order 2, self-adjoint."""

    order = 2
    multiplier_order = 2
    preserves = frozenset({"constraint", "holonomic", "reversible", "momentum_equation"})
    reference = "McLachlan, Perlmutter 2006; CFHM section 4.1.3"

    def init(self, system: System, q: Array, v: Array, t: Array, h: Array) -> VelocityState:
        lam = system.multipliers(q, v, t)
        state = VelocityState(Sum.start(t), Sum.start(q), Sum.start(v), lam, lam_t=t)
        return inner_nodes.begun(system, state, h)

    def guess(self, system: System, state: VelocityState, h: Array) -> Unknown:
        q, v, t = state.q.value, state.v.value, state.t.value
        return Unknown(d=h * system.acceleration(q, v, t), lam=system.multipliers(q, v, t))

    def scale(self, system: System, state: VelocityState, guess: Unknown, h: Array) -> Unknown:
        return kinetic_scale(system.at(state.t.value), state.q.value, state.v.value, guess.d, h)

    def grain(self, system: System, state: VelocityState, guess: Unknown, h: Array) -> Unknown:
        return kinetic_grain(system, state, state.v.value, h)

    def residual(self, system: System, state: VelocityState, x: Unknown, h: Array) -> Unknown:
        q, v, t = state.q.value, state.v.value, state.t.value
        v1 = v + x.d
        qm = q + h / 2 * v
        q1, qb, qf = qm + h / 2 * v1, qm - h * v, qm + h * v1
        tb, tm, tf = t - h / 2, t + h / 2, t + 3 * h / 2
        p = (system.momentum(qb, v, tb) + system.momentum(qm, v, tm)) / 2
        p1 = (system.momentum(qm, v1, tm) + system.momentum(qf, v1, tf)) / 2
        f0 = system.dL_dq(qm, v, tm) + system.applied_force(qm, v, tm)
        f1 = system.dL_dq(qm, v1, tm) + system.applied_force(qm, v1, tm)
        reaction = system.mu(qm, (v + v1) / 2, tm).T @ x.lam
        phi = inner_nodes.phi(system, qm, q1, v1, t, h)
        return Unknown(p1 - p - h * ((f0 + f1) / 2 + reaction), phi)

    def update(self, system: System, state: VelocityState, x: Unknown, h: Array) -> VelocityState:
        t, v = state.t.plus(h), state.v.plus(x.d)
        q = state.q.plus(h / 2 * (state.v.value + v.value))
        return inner_nodes.shown(system, VelocityState(t, q, v, x.lam, lam_t=t.value - h / 2))

    def discrete_lagrangian(self, system: System, q: Array, q1: Array, h: Array) -> Array:
        ends = [system.lagrangian(x, (q1 - q) / h, system.parameters) for x in (q, q1)]
        return h / 2 * (ends[0] + ends[1])

    def node(self, q: Array, v: Array, h: Array) -> Array:
        return q + h / 2 * v

    def observe(self, state: VelocityState) -> Observation:
        return Observation(state.t.value, *state.shown, state.lam, state.lam_t)
