"""What the methods from LMS's generating functions share: S_alpha^h, its two momenta, and the state.

    S_alpha^h(q0, q1) = h L(node, w),   node = q0 + alpha h w,   w = (q1 - q0) / h             LMS (25)
    p0 = -D1 S - (1 - alpha) h F(node, w) = dL/dv(node, w) - (1 - alpha) h (dL/dq + F)(node, w)
    p1 =  D2 S +      alpha  h F(node, w) = dL/dv(node, w) +      alpha  h (dL/dq + F)(node, w)   (17)

F is the force that acts along the arc (LMS: F = -Lambda~); with several alphas all terms are averaged,
remark 4.1. The two-point equations say that p1 of one step is, up to a projection, p0 of the next, so a
method is a map of (q, v) with v = M^-1 (p - a), the discrete Legendre velocity. Its unknown is d = w - v.

Holonomic constraints, and the lengths of quaternions, are kept as RATTLE does, Jay 1996: with B the rows of
these, p0 has a further h/2 B(q0)^T Lam such that g(q1) = 0, and p1 an impulse along B(q1)^T that puts v into
the kernel of B. Lam is the second part of the unknown. F has the reaction of the other constraints alone.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import jax.numpy as jnp
from jax import Array

from noslip.geometry.holonomic import kept_rates
from noslip.integrators.base import Integrator, Observation, Sum, inside
from noslip.integrators.families.states import Unknown, VelocityState, kinetic_grain, kinetic_scale
from noslip.numerics.linear import spd_solve
from noslip.numerics.pytrees import PyTree
from noslip.numerics.sums import average

if TYPE_CHECKING:
    from noslip.system import System


class Generating(Integrator):
    """Common parts; a method adds `force`, `departing` and `update`."""

    alpha: float

    @property
    def alphas(self) -> tuple[float, ...]:
        """The nodes over which S is averaged."""
        return (self.alpha,)

    def force(self, system: System, node: Array, w: Array, t: Array) -> Array:
        """F, the force that acts along the arc."""
        raise NotImplementedError(f"{type(self).__name__} must define force")

    def departing(self, system: System, state: VelocityState, h: Array) -> Array:
        """p0, the momentum with which the step leaves its node."""
        raise NotImplementedError(f"{type(self).__name__} must define departing")

    def momenta(self, system: System, q: Array, w: Array, t: Array, h: Array) -> tuple[Array, Array]:
        """p0 and p1 of (17) for the arc from q to q + h w."""
        p0, p1 = [], []
        for alpha in self.alphas:
            node = q + alpha * h * w
            now = inside(t, h, alpha)
            f = system.dL_dq(node, w, now) + self.force(system, node, w, now)
            p = system.momentum(node, w, t + alpha * h)
            p0.append(p - (1 - alpha) * h * f)
            p1.append(p + alpha * h * f)
        return average(p0), average(p1)

    def discrete_lagrangian(self, system: System, q: Array, q1: Array, h: Array) -> Array:
        """S of (25)."""
        w = (q1 - q) / h
        return average([h * system.lagrangian(q + a * h * w, w, system.parameters) for a in self.alphas])

    def init(self, system: System, q: Array, v: Array, t: Array, h: Array) -> VelocityState:
        return VelocityState.start(system, q, v, t)

    def guess(self, system: System, state: VelocityState, h: Array) -> PyTree:
        q, v, t = state.q.value, state.v.value, state.t.value
        d = h / 2 * system.acceleration(q, v, t)
        return d if system.rows == system.m else Unknown(d, system.multipliers(q, v, t)[system.m :])

    def scale(self, system: System, state: VelocityState, guess: PyTree, h: Array) -> PyTree:
        d, _ = parted(guess)
        one = kinetic_scale(system.at(state.t.value), state.q.value, state.v.value, d, h)
        return one.d if system.rows == system.m else Unknown(one.d, one.lam[system.m :])

    def grain(self, system: System, state: VelocityState, guess: PyTree, h: Array) -> PyTree:
        one = kinetic_grain(system, state, state.v.value, h)
        return one.d if system.rows == system.m else Unknown(one.d, one.lam[system.m :])

    def residual(self, system: System, state: VelocityState, x: PyTree, h: Array) -> PyTree:
        (d, Lam), q, t = parted(x), state.q.value, state.t.value
        w = state.v.value + d
        p0, _ = self.momenta(system, q, w, t, h)
        balance = p0 - self.departing(system, state, h)
        if Lam is None:
            return balance
        B = system.at(t).further_forms(q)
        return Unknown(balance - h / 2 * B.T @ Lam, kept_rates(system, q, w, t, h))

    def arrival(self, system: System, state: VelocityState, x: PyTree, h: Array) -> tuple[Sum, Array]:
        """The new node, and the increment of velocity up to v1 = M^-1 (p1 - a) there."""
        w = state.v.value + parted(x)[0]
        q = state.q.plus(h * w)
        _, p1 = self.momenta(system, state.q.value, w, state.t.value, h)
        end = system.at(state.t.value + h)
        return q, spd_solve(end.mass_matrix(q.value), p1 - end.momentum(q.value, state.v.value))

    def observe(self, state: VelocityState) -> Observation:
        return Observation(state.t.value, state.q.value, state.v.value, state.lam, state.lam_t)


def parted(x: PyTree) -> tuple[Array, Array | None]:
    """d, and Lam where there are constraints that it keeps."""
    return (x.d, x.lam) if isinstance(x, Unknown) else (x, None)


def placed(system: System, q: Array, v: Sum, t: Array) -> Sum:
    """M-orthogonally onto the kernel of B, that is dg/dt = 0, at q."""
    if system.rows == system.m:
        return v
    end = system.at(t)
    B = end.further_forms(q)
    lift = spd_solve(end.mass_matrix(q), B.T)
    return v.plus(-lift @ spd_solve(B @ lift, end.further_phi(q, v.value)))


def reactions(system: System, lam: Array, q: Array, v: Array, t: Array) -> Array:
    """lam with the multipliers of g as the motion has them: the impulses of both sides of a node miss them by
    O(h) with opposite signs."""
    if system.rows == system.m:
        return lam
    return jnp.concatenate([lam[: system.m], system.multipliers(q, v, t)[system.m :]])


def project(system: System, q: Array, v: Sum, t: Array) -> Sum:
    """P of LMS section 5: M-orthogonally onto the constraint at q."""
    return v.plus(system.project_velocity(q, v.value, t) - v.value)


def needs_projectors(system: System) -> str | None:
    """The reason why P cannot be used, if there is one."""
    if system.kind != "nonlinear":
        return None
    return "P of LMS section 5 needs linear or affine constraints, but these are nonlinear"
