"""The bracket on D* without a frame, isometric: X(q) = P(q) B W, W = (B^T M P B)^(-1/2), X^T M X = I.

B is an M_m-orthonormal basis of D at the middle qm of a step; another one turns X and rho alike and changes
no step. X is the orthogonal factor of P : D_m -> D_q. A point of D* is (q, pi), rho = B^T pi, and

    H = |rho|^2 / 2 + V,    v = X rho,    dH = (dV, b),    b = B rho = pi^#
    Pi (g, b) = (u, M_m B k),    u = X w,    w = B^T M_m b
    k = d/dt X^T p along u - X^T (g + d/dx p . X(x) w - da(u, .))

In the middle X = B, DW = -B^T DM B / 2, and Pi (g, b) = (b, -g + (d/dx v . M(x) b - DM[b] v) / 2 + da(b, .)).
H has no mixed terms, so that the discrete gradients are those of V alone and the rest is the midpoint rule.
A state carries p = M v, which is pi in the middle only: `begin` and `landed` go there and back.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import jax
import jax.numpy as jnp
from jax import Array

from noslip.geometry.bracket import ByPoints
from noslip.geometry.frame_free import LONG, Plane, kinetic_momenta, kinetic_momentum, magnetic, potential
from noslip.geometry.frames import null_basis, orthonormalized
from noslip.numerics.discrete_gradients import Step, sixth
from noslip.numerics.linear import spd_solve
from noslip.numerics.roots import inverse_root, sylvester
from noslip.system import System


@dataclass(frozen=True)
class Factors:
    """What X = P B W is made of at a point: P B, s = C^-1 mu B (so that B - P B = M^-1 mu^T s), and W."""

    plane: Plane
    inside: Array
    s: Array
    W: Array

    @property
    def X(self) -> Array:
        return self.inside @ self.W


@dataclass(frozen=True)
class PolarPoint:
    """A point (q, pi) of D* seen from the middle of a step."""

    bracket: PolarBracket
    q: Array
    coordinates: Array  # B^T pi, the rho of CFHM

    @cached_property
    def factors(self) -> Factors:
        return self.bracket.factors(self.q)

    @property
    def v(self) -> Array:
        return self.factors.X @ self.coordinates

    @property
    def rho(self) -> Array:
        """What a state carries: p = M v."""
        return self.factors.plane.M @ self.v

    def start(self) -> Array:
        """(dV, v): what `bend` needs to know where a step begins."""
        return jnp.concatenate([jax.grad(potential, 1)(self.bracket.system, self.q), self.v])

    def energy(self) -> Array:
        """H(q, pi)."""
        return jnp.dot(self.coordinates, self.coordinates) / 2 + potential(self.bracket.system, self.q)

    def gradient(self) -> Array:
        """(dV, b)."""
        dV = jax.grad(potential, 1)(self.bracket.system, self.q)
        return jnp.concatenate([dV, self.bracket.basis @ self.coordinates])

    def apply(self, g: Array) -> Array:
        """Pi g. With K = M(x) P B and Y = mu(x) P B, P B held, and E = B - P B, all derivatives are

        D(B^T M P B) = K'^T P B + E^T K' + K'^T E - s^T Y' - Y'^T s,    DW by Sylvester's equation
        d/dx p . X(x) w = <A, dK> + <a, dY>
        """
        n, bracket, made = self.q.size, self.bracket, self.factors
        plane, V, s, W, X = made.plane, made.inside, made.s, made.W, made.X
        B, w = bracket.basis, g[n:] @ bracket.weights
        E, u, beta, gamma = B - V, X @ w, W @ w, W @ self.coordinates
        R, c = (B.T @ (plane.M @ V)) @ W, B.T @ self.rho  # G^(1/2), B^T p

        def carried(x: Array) -> tuple[Array, Array]:
            return kinetic_momenta(bracket.system, x, V), bracket.system.mu(x, u) @ V

        _, pulled = jax.vjp(carried, self.q)
        S = W @ sylvester(R, (jnp.outer(c, w) + jnp.outer(w, c)) / 2) @ W
        pull = pulled((jnp.outer(E @ beta, gamma) - (V + 2 * E) @ S, 2 * s @ S - jnp.outer(s @ beta, gamma)))[
            0
        ]
        dK, dY = jax.jvp(carried, (self.q,), (u,))[1]
        half = V.T @ dK / 2 + E.T @ dK - s.T @ dY
        dW = -sylvester(R, W @ (half + half.T) @ W)
        turned = plane.mu.T @ spd_solve(plane.C, plane.lift.T @ (dK @ gamma) - dY @ gamma)  # DP[u]^T p
        f = g[:n] + pull - magnetic(bracket.system, self.q, u)
        k = dW @ c + W @ (B.T @ turned) - X.T @ f
        return jnp.concatenate([u, bracket.weights @ k])

    def force(self, t: Array) -> Array:
        """(0, M_m B X^T force)."""
        f = self.bracket.system.applied_force(self.q, self.v, t) @ self.factors.X
        return jnp.concatenate([jnp.zeros_like(self.q), self.bracket.weights @ f])

    def lift(self, pi: Array) -> Array:
        """How much the velocity changes with pi, up to what changes between here and the middle."""
        return self.bracket.basis @ (pi @ self.bracket.basis)


@dataclass(frozen=True)
class PolarMiddle:
    """The point in the middle of a step, where X = B."""

    bracket: PolarBracket
    v: Array

    @property
    def q(self) -> Array:
        return self.bracket.plane.q

    def gradient(self) -> Array:
        """(dV, b), here b = v."""
        return jnp.concatenate([jax.grad(potential, 1)(self.bracket.system, self.q), self.v])

    def apply(self, g: Array) -> Array:
        """Pi g, modulo mu_m^T."""
        n, system, v, b = self.q.size, self.bracket.system, self.v, g[self.q.size :]
        pull = jax.grad(lambda x: jnp.dot(b, kinetic_momentum(system, x, v)))(self.q)
        turn = jax.jvp(lambda x: kinetic_momentum(system, x, v), (self.q,), (b,))[1]
        return jnp.concatenate([b, (pull - turn) / 2 + magnetic(system, self.q, b) - g[:n]])

    def force(self, t: Array) -> Array:
        """(0, force), modulo mu_m^T."""
        f = self.bracket.system.applied_force(self.q, self.v, t)
        return jnp.concatenate([jnp.zeros_like(self.q), f])

    def lift(self, pi: Array) -> Array:
        """How much the velocity changes with pi."""
        return self.bracket.basis @ (pi @ self.bracket.basis)


@dataclass(frozen=True)
class PolarBracket(ByPoints):
    """Points of D* seen from the middle of a step of h; `basis` is B, `weights` M_m B."""

    system: System
    plane: Plane
    h: Array
    basis: Array
    weights: Array
    moving: ClassVar[bool] = True

    @classmethod
    def around(cls, system: System, q: Array, h: Array) -> PolarBracket:
        """Of a step of h with middle q."""
        plane = Plane.at(system, q)
        B = orthonormalized(null_basis(plane.mu), plane.M)
        return cls(system, plane, h, B, plane.M @ B)

    def factors(self, q: Array) -> Factors:
        """Of X(q)."""
        plane = Plane.at(self.system, q)
        s = spd_solve(plane.C, plane.mu @ self.basis)
        inside = self.basis - plane.lift @ s
        return Factors(plane, inside, s, inverse_root(self.basis.T @ (plane.M @ inside)))

    def begin(self, z: Array) -> Array:
        """The coordinates (q, pi) of the point (q, p): pi = p + M_m B (W - I) B^T p."""
        n, p = self.system.n, z[self.system.n :]
        c = p @ self.basis
        return jnp.concatenate([z[:n], p + self.weights @ (self.factors(z[:n]).W @ c - c)])

    def landed(self, z: Array, d: Array) -> tuple[Array, Array]:
        """The increment of (q, p) that the increment d of (q, pi) means, and the velocity there."""
        n, end = self.system.n, self.at(self.begin(z) + d)
        return jnp.concatenate([d[:n], end.rho - z[n:]]), end.v

    def joined(self, z: Array, shift: Array, there: Array, d: Array) -> Array:
        """The increment of (q, pi) that leads to d beyond `there`, the point (q, p) at z + shift."""
        return self.begin(there + d) - z

    def at(self, z: Array) -> PolarPoint:
        """The point (q, pi)."""
        n = self.system.n
        return PolarPoint(self, z[:n], z[n:] @ self.basis)

    def middle(self, z: Array) -> PolarMiddle:
        """The point (qm, pi)."""
        return PolarMiddle(self, self.basis @ (z[self.system.n :] @ self.basis))

    def dual(self, d: Array) -> Array:
        """(M_m dq / h^2, 0): only the gradient of V is corrected, in the kinetic metric."""
        n = self.system.n
        return jnp.concatenate([self.plane.M @ d[:n] / self.h**2, jnp.zeros_like(d[n:])])

    def vector(self, g: Array) -> Array:
        """The displacement along a covector, as that of `FreeBracket`."""
        n, time = self.system.n, LONG * self.h
        return jnp.concatenate([time**2 * spd_solve(self.plane.M, g[:n]), self.plane.M @ g[n:]])

    def bend(self, step: Step, middle: Array) -> tuple[Array, Array, Array]:
        """g . d of the gradient g in the middle, H(z + d), and by Simpson's rule the third-order part of
        H(z + d) - H(z) - g . d: of the potential alone, the kinetic one is zero. `step.g0` is (dV, v)."""
        n, end, dq = self.system.n, self.at(step.x + step.d), step.d[: self.system.n]
        slopes = [jax.jvp(lambda x: potential(self.system, x), (q,), (dq,))[1] for q in (end.q, self.plane.q)]
        third = sixth(jnp.dot(step.g0[:n], dq) + slopes[0] - 2 * slopes[1])
        return jnp.dot(middle, step.d), end.energy(), third
