"""The bracket on D* without a frame: that of the frame X(q) = P(q) B, of which B drops out.

P(q) is the M-orthogonal projection onto D_q and B any basis of D at the middle qm of a step; quantities there
have the index m. A point of D* near qm is (q, pi), pi a kinetic momentum modulo mu_m^T, rho = B^T pi:

    N = mu M^-1 mu_m^T,    N lam = -mu M^-1 pi,    p = pi + mu_m^T lam,    v = M^-1 p,    H = p . v / 2 + V
    N^T s = -mu_m v,    e = M^-1 mu^T s,    b = v + e = B dH/drho
    dH/dq = -d/dx [(T - V)(x, v) + e . M(x) v - s . mu(x) v]

and Pi (g, b) = (u, k) with, C = mu M^-1 mu^T,

    C s = mu b,    e = M^-1 mu^T s,    u = b - e = P b
    f = -g - d/dx [e . M(x) v - s . mu(x) v] + d/dx (a . u) - Da u
    k = f + mu^T C^-1 (mu M^-1 (DM[u] v - f) - Dmu[u] v)

In the middle itself v = b = P_m M_m^-1 pi, dH/dq = -d/dx (T - V)(x, b), and Pi (g, b) = (b, -g + da(b, .)):
the brackets of the vector fields P B_a vanish there, since P DP P = 0. a(q), the part of dL/dv without v, is
left out of p; what it does is da(u, .). See "Exact energy and constraint without a frame" in the mathematics.

text -> code: qm -> Plane.q, p^# = P M^-1 p -> Plane.sharp, (M_m dq / h^2, dp^#) -> FreeBracket.dual.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import jax
import jax.numpy as jnp
from jax import Array

from noslip.engine.translate.rounding import rounding
from noslip.geometry.bracket import ByPoints
from noslip.numerics.discrete_gradients import Step, sixth
from noslip.numerics.linear import WRITTEN_OUT, solve, spd_solve
from noslip.system import System
from noslip.system.derived import lagrangian_by, momentum_along, value

LONG = 4  # steps: a time in which lengths of q and p are compared by projections


@dataclass(frozen=True)
class Plane:
    """D at q with its metric: M, mu, `lift` M^-1 mu^T and C = mu M^-1 mu^T."""

    q: Array
    M: Array
    mu: Array
    lift: Array
    C: Array

    @classmethod
    def at(cls, system: System, q: Array) -> Plane:
        M, mu = system.mass_matrix(q), system.mu(q, jnp.zeros_like(q))
        lift = spd_solve(M, mu.T)
        return cls(q, M, mu, lift, mu @ lift)

    def part(self, p: Array) -> Array:
        """P^T p, of a momentum modulo mu^T: without what the reaction balances."""
        return p - self.mu.T @ spd_solve(self.C, self.lift.T @ p)

    def sharp(self, p: Array) -> Array:
        """P M^-1 p: the velocity in D that belongs to a momentum modulo mu^T."""
        return spd_solve(self.M, self.part(p))


@dataclass(frozen=True)
class FreePoint:
    """A point (q, pi) of D* seen from the middle of a step."""

    system: System
    middle: Plane
    plane: Plane
    N: Array
    lam: Array
    p: Array
    v: Array

    @property
    def q(self) -> Array:
        return self.plane.q

    @property
    def rho(self) -> Array:
        """What a state carries: p = M v."""
        return self.p

    def start(self) -> Array:
        """(dV, v): what `bend` needs to know where a step begins."""
        return jnp.concatenate([jax.grad(potential, 1)(self.system, self.q), self.v])

    def energy(self) -> Array:
        """H(q, pi)."""
        return jnp.dot(self.p, self.v) / 2 + potential(self.system, self.q)

    def gradient(self) -> Array:
        """(dH/dq, b)."""
        s = -oblique_solve(self.N, self.plane.C, self.middle.mu @ self.v, transposed=True)
        e = self.plane.lift @ s

        def bent(x: Array) -> Array:
            return without_drift(self.system, x, self.v) + self._turned(x, e, s)

        return jnp.concatenate([-jax.grad(bent)(self.q), self.v + e])

    def apply(self, g: Array) -> Array:
        """Pi g."""
        n, system, v = self.q.size, self.system, self.v
        s = spd_solve(self.plane.C, self.plane.mu @ g[n:])
        e = self.plane.lift @ s
        u = g[n:] - e
        f = -g[:n] - jax.grad(self._turned)(self.q, e, s) + magnetic(system, self.q, u)

        def carried(x: Array) -> tuple[Array, Array]:
            return kinetic_momentum(system, x, v), system.phi(x, v)

        along = jax.jvp(carried, (self.q,), (u,))[1]
        lam = spd_solve(self.plane.C, self.plane.lift.T @ (along[0] - f) - along[1])
        return jnp.concatenate([u, f + self.plane.mu.T @ lam])

    def force(self, t: Array) -> Array:
        """(0, P^T force)."""
        f = self.system.applied_force(self.q, self.v, t)
        inside = f - self.plane.mu.T @ spd_solve(self.plane.C, self.plane.lift.T @ f)
        return jnp.concatenate([jnp.zeros_like(self.q), inside])

    def lift(self, pi: Array) -> Array:
        """How much the velocity changes with pi, up to what changes between here and the middle."""
        return self.middle.sharp(pi)

    def _turned(self, x: Array, e: Array, s: Array) -> Array:
        """e . M(x) v - s . mu(x) v, whose derivative is that of p . P(x) b."""
        system, rest = self.system, jnp.zeros_like(x)
        pulled = momentum_along(system, x, self.v, e) - momentum_along(system, x, rest, e)
        return pulled - jnp.dot(s, system.phi(x, self.v))


@dataclass(frozen=True)
class Middle:
    """The point in the middle of a step, at which the structure functions vanish."""

    system: System
    plane: Plane
    v: Array

    @property
    def q(self) -> Array:
        return self.plane.q

    def gradient(self) -> Array:
        """(dH/dq, b), here b = v."""
        return jnp.concatenate([-jax.grad(without_drift, 1)(self.system, self.q, self.v), self.v])

    def apply(self, g: Array) -> Array:
        """Pi g, modulo mu_m^T."""
        n = self.q.size
        return jnp.concatenate([g[n:], magnetic(self.system, self.q, g[n:]) - g[:n]])

    def force(self, t: Array) -> Array:
        """(0, force), modulo mu_m^T."""
        return jnp.concatenate([jnp.zeros_like(self.q), self.system.applied_force(self.q, self.v, t)])

    def lift(self, pi: Array) -> Array:
        """How much the velocity changes with pi."""
        return self.plane.sharp(pi)


@dataclass(frozen=True)
class FreeBracket(ByPoints):
    """Points of D* seen from the middle of a step of h."""

    system: System
    plane: Plane
    h: Array
    moving: ClassVar[bool] = True

    @classmethod
    def around(cls, system: System, q: Array, h: Array) -> FreeBracket:
        """Of a step of h with middle q."""
        return cls(system, Plane.at(system, q), h)

    def begin(self, z: Array) -> Array:
        """The coordinates of the point (q, p): pi = p."""
        return z

    def landed(self, z: Array, d: Array) -> tuple[Array, Array]:
        """The increment of (q, p) that d means, and the velocity there."""
        end = self.at(z + d)
        return d.at[self.system.n :].add(self.plane.mu.T @ end.lam), end.v

    def joined(self, z: Array, shift: Array, there: Array, d: Array) -> Array:
        """The increment that leads to d beyond `there`, the point at z + shift; modulo mu_m^T."""
        return shift + d

    def at(self, z: Array) -> FreePoint:
        """The point (q, pi)."""
        n = self.system.n
        plane, pi = Plane.at(self.system, z[:n]), z[n:]
        N = plane.lift.T @ self.plane.mu.T
        lam = -oblique_solve(N, plane.C, plane.lift.T @ pi)
        p = pi + self.plane.mu.T @ lam
        return FreePoint(self.system, self.plane, plane, N, lam, p, spd_solve(plane.M, p))

    def middle(self, z: Array) -> Middle:
        """The point (qm, pi)."""
        return Middle(self.system, self.plane, self.plane.sharp(z[self.system.n :]))

    def dual(self, d: Array) -> Array:
        """The covector of d in the metric dq . M_m dq / h^2 + dp . dp^#, which has the unit of an energy."""
        n = self.system.n
        return jnp.concatenate([self.plane.M @ d[:n] / self.h**2, self.plane.sharp(d[n:])])

    def vector(self, g: Array) -> Array:
        """The displacement along a covector in the same metric, but over LONG steps; modulo mu_m^T."""
        n, time = self.system.n, LONG * self.h
        return jnp.concatenate([time**2 * spd_solve(self.plane.M, g[:n]), self.plane.M @ g[n:]])

    def bend(self, step: Step, middle: Array) -> tuple[Array, Array, Array]:
        """g . d of the gradient g in the middle, H(z + d), and the third-order part of H(z + d) - H(z)
        - g . d. Simpson's rule is for the potential; kinetic energies have all their digits. `step.g0` is
        (dV, v)."""
        n, d = self.system.n, step.d
        end, lift = self.at(step.x + d), self.plane.part(d[n:])  # not d: b . mu^T lam is round-off of lam
        along = [jax.jvp(lambda x: potential(self.system, x), (q,), (d[:n],)) for q in (end.q, self.plane.q)]
        (V, end_slope), (_, middle_slope) = along
        before, after = jnp.dot(step.x[n:], step.g0[n:]) / 2, jnp.dot(end.p, end.v) / 2
        slope = jnp.dot(middle[:n], d[:n]) + jnp.dot(middle[n:], lift)
        of_potential = sixth(jnp.dot(step.g0[:n], d[:n]) + end_slope - 2 * middle_slope)
        return slope, after + V, (after - before) - (slope - middle_slope) + of_potential


def oblique_solve(N: Array, C: Array, r: Array, transposed: bool = False) -> Array:
    """N^-1 r, or N^-T r. N is not symmetric, but S = N^T C^-1 N is, positive definite, in the middle equal to
    C, and indifferent to the choice of the one-forms at q: no pivoting is needed. It is full where N is not,
    so that many one-forms are better served by N itself."""
    if N.shape[0] == 1:
        return r / N[0, 0]
    if N.shape[0] > WRITTEN_OUT:
        return solve(N.T if transposed else N, r)
    Z = spd_solve(C, N)
    S = N.T @ Z
    return Z @ spd_solve(S, r) if transposed else spd_solve(S, Z.T @ r)


def potential(system: System, q: Array) -> Array:
    """V = -L(q, 0)."""
    return -lagrangian_by(system, "", q, jnp.zeros_like(q))


def rounding_of_potential(system: System, q: Array) -> Array:
    """What the roundings in V(q) add up to, in parts of that of 1: not small where terms of V cancel."""
    return rounding(lambda q: value(system, "lagrangian", q, jnp.zeros_like(q)), q)


def drift_momentum(system: System, q: Array) -> Array:
    """a = dL/dv at v = 0."""
    return system.momentum(q, jnp.zeros_like(q))


def kinetic_momentum(system: System, q: Array, v: Array) -> Array:
    """M v = dL/dv - a."""
    return system.momentum(q, v) - drift_momentum(system, q)


def kinetic_momenta(system: System, q: Array, V: Array) -> Array:
    """M V, column by column."""
    return jax.vmap(lambda v: kinetic_momentum(system, q, v), 1, 1)(V)


def without_drift(system: System, q: Array, v: Array) -> Array:
    """T - V = L - a . v."""
    return lagrangian_by(system, "", q, v) - momentum_along(system, q, jnp.zeros_like(v), v)


def magnetic(system: System, q: Array, u: Array) -> Array:
    """da(u, .) = d/dx (a . u) - Da u, the gyroscopic force; orthogonal to u."""
    pulled = jax.grad(lambda x: momentum_along(system, x, jnp.zeros_like(u), u))(q)
    return pulled - jax.jvp(lambda x: drift_momentum(system, x), (q,), (u,))[1]
