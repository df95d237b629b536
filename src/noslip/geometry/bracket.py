"""The nonholonomic bracket on D*: the triple (D*, Pi, H) of CFHM section 2.2 for any linear constraints.

With a frame X(q), v = X y and p = dL/dv, the coordinates of D* are z = (q, rho), rho = X^T p (16b), and

    y = (X^T M X)^-1 (rho - X^T a),   p = M X y + a (16a),   H = (rho - X^T a) . y / 2 + V
    dH/drho = y,   dH/dq = -d/dq L(q, X(q) y) at fixed y                                      (18)
    Pi(q, rho) = [[0, X], [-X^T, B]],   B_ab = -[X_a, X_b] . p                                (8), (17)

(18) in this form is the envelope theorem: H is the Legendre transform of l(q, y) = L(q, X y), so that no
inverse is differentiated. With K_ab = (derivative of X_a along X_b) . p the block B is K - K^T, skew to
the last bit. The motion with an external force is dz/dt = Pi dH + (0, X^T force).

paper -> code: zeta -> z, g_ab -> G, C_ab^c -> structure_functions, P* and i_D* -> momentum and rho.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar, Protocol

import jax
import jax.numpy as jnp
from jax import Array

from noslip.geometry.frames import Frame
from noslip.numerics.discrete_gradients import Energy, Step, simpson
from noslip.numerics.linear import spd_solve
from noslip.system import System
from noslip.system.inputs import STANDS_STILL


def refusal(system: System) -> str | None:
    """One sentence where there is no bracket on D*."""
    if system.moving:
        return f"the bracket on D* needs {STANDS_STILL}"
    if system.kind == "linear":
        return None
    return f"the bracket on D* needs linear constraints mu(q) v = 0, but these are {system.kind}"


class MiddlePoint(Protocol):
    """What a step asks of the point in its middle."""

    @property
    def q(self) -> Array: ...
    @property
    def v(self) -> Array: ...
    def gradient(self) -> Array: ...
    def apply(self, g: Array) -> Array: ...
    def force(self, t: Array) -> Array: ...
    def lift(self, rho: Array) -> Array: ...


class AnyPoint(MiddlePoint, Protocol):
    """What it asks of the others. `start` is what the `bend` of a step needs to know where it begins."""

    @property
    def rho(self) -> Array: ...
    def energy(self) -> Array: ...
    def start(self) -> Array: ...


class Chart(Energy, Protocol):
    """D* around a step, with or without a frame: points z and the motion there. Discrete gradients are
    corrected along `dual`, projections go along `vector`; `moving` says that all
    this is seen from the middle of one step, to which `begin` takes the (q, rho) of a state."""

    @property
    def moving(self) -> bool: ...
    def begin(self, z: Array) -> Array: ...
    def joined(self, z: Array, shift: Array, there: Array, d: Array) -> Array: ...
    def at(self, z: Array) -> AnyPoint: ...
    def middle(self, z: Array) -> MiddlePoint: ...
    def field(self, z: Array) -> Array: ...
    def vector(self, g: Array) -> Array: ...


@dataclass(frozen=True)
class Point:
    """A point z = (q, rho) with what is needed there: frame, quasi-velocities, momentum."""

    frame: Frame
    q: Array
    rho: Array
    X: Array
    y: Array
    p: Array
    a: Array
    G: Array | None  # X^T M X, None for the identity

    @property
    def v(self) -> Array:
        """The admissible velocity X y."""
        return self.X @ self.y

    def lift(self, rho: Array) -> Array:
        """X G^-1 rho: how much the velocity changes with rho."""
        return self.X @ (rho if self.G is None else spd_solve(self.G, rho))

    def energy(self) -> Array:
        """H(q, rho)."""
        system = self.frame.system
        potential = -system.lagrangian(self.q, jnp.zeros_like(self.q), system.parameters)
        return jnp.dot(self.rho - self.X.T @ self.a, self.y) / 2 + potential

    def _with_dq(self) -> Callable[[Array], Array]:
        """A function of q with the same derivative as H at fixed rho, here and nowhere else."""
        X, system, rest = self.frame.around(self.q), self.frame.system, jnp.zeros_like(self.q)
        if self.G is not None:
            return lambda x: -system.lagrangian(x, X(x) @ self.y, system.parameters)  # -l(x, y)

        def energy(x: Array) -> Array:  # X^T M X = I, so that without a(q) only V depends on q
            y = self.rho - X(x).T @ system.momentum(x, rest)
            return jnp.dot(y, y) / 2 - system.lagrangian(x, rest, system.parameters)

        return energy

    def gradient(self) -> Array:
        """(dH/dq, dH/drho), CFHM (18)."""
        return jnp.concatenate([jax.grad(self._with_dq())(self.q), self.y])

    def start(self) -> Array:
        """What `bend` needs to know where a step begins."""
        return self.gradient()

    def slope(self, d: Array) -> Array:
        """dH . d, without the whole gradient."""
        n = self.q.size
        return jnp.dot(self.y, d[n:]) + jax.jvp(self._with_dq(), (self.q,), (d[:n],))[1]

    def apply(self, g: Array) -> Array:
        """Pi g, without forming Pi."""
        n = self.q.size
        X = self.frame.around(self.q)
        w = g[n:]
        u = self.X @ w
        pull = jax.grad(lambda x: jnp.dot(self.p, X(x) @ w))(self.q)
        turn = jax.jvp(lambda x: X(x).T @ self.p, (self.q,), (u,))[1]
        return jnp.concatenate([u, turn - self.X.T @ (g[:n] + pull)])

    def force(self, t: Array) -> Array:
        """(0, X^T force), what an external force adds to Pi dH."""
        f = self.X.T @ self.frame.system.applied_force(self.q, self.v, t)
        return jnp.concatenate([jnp.zeros_like(self.q), f])

    def matrix(self) -> Array:
        """Pi(q, rho), exactly skew in floating point."""
        X = self.frame.around(self.q)
        D = jax.jacfwd(lambda x: X(x).T @ self.p)(self.q)
        K = D @ self.X
        n = self.q.size
        return jnp.block([[jnp.zeros((n, n)), self.X], [-self.X.T, K - K.T]])


class ByPoints:
    """What a chart of D* has from its points."""

    def at(self, z: Array) -> AnyPoint:
        raise NotImplementedError(f"{type(self).__name__} must define at")

    def energy(self, z: Array) -> Array:
        """H(z)."""
        return self.at(z).energy()

    def gradient(self, z: Array) -> Array:
        """The gradient of the point, with which Pi makes the motion."""
        return self.at(z).gradient()

    def energy_and_slope(self, z: Array, d: Array) -> tuple[Array, Array]:
        """H(z) and dH(z) . d."""
        return jax.jvp(self.energy, (z,), (d,))

    def field(self, z: Array) -> Array:
        """Pi dH, the motion without external forces."""
        point = self.at(z)
        return point.apply(point.gradient())


@dataclass(frozen=True)
class Bracket(ByPoints):
    """Points of D* and the maps to (q, v) and (q, p)."""

    frame: Frame
    moving: ClassVar[bool] = False

    @property
    def n(self) -> int:
        return self.frame.system.n

    def at(self, z: Array) -> Point:
        """The point of coordinates z = (q, rho)."""
        system, q, rho = self.frame.system, z[: self.n], z[self.n :]
        X, M = self.frame(q), system.mass_matrix(q)
        a = system.momentum(q, jnp.zeros_like(q))
        free = rho - X.T @ a
        G = None if self.frame.orthonormal else X.T @ (M @ X)
        y = free if G is None else spd_solve(G, free)
        return Point(self.frame, q, rho, X, y, M @ (X @ y) + a, a, G)

    def from_momentum(self, q: Array, p: Array) -> Array:
        """z of (q, p), CFHM (16b)."""
        return jnp.concatenate([q, self.frame(q).T @ p])

    def from_velocity(self, q: Array, v: Array) -> Array:
        """z of (q, v), v admissible."""
        return self.from_momentum(q, self.frame.system.momentum(q, v))

    def energy_and_slope(self, z: Array, d: Array) -> tuple[Array, Array]:
        """H(z) and dH(z) . d."""
        point = self.at(z)
        return point.energy(), point.slope(d)

    def begin(self, z: Array) -> Array:
        """The coordinates of the point of a state: its own."""
        return z

    def joined(self, z: Array, shift: Array, there: Array, d: Array) -> Array:
        """The increment that leads to d beyond `there`, the point at z + shift."""
        return shift + d

    def middle(self, z: Array) -> Point:
        """The point in the middle of a step."""
        return self.at(z)

    def dual(self, d: Array) -> Array:
        """The covector along which a discrete gradient is corrected: d itself, CFHM (12)."""
        return d

    def vector(self, g: Array) -> Array:
        """The displacement along a covector: itself."""
        return g

    def bend(self, step: Step, middle: Array) -> tuple[Array, Array, Array]:
        """g . d of the gradient g in the middle, H(z + d), and the third-order part of H(z + d) - H(z)
        - g . d; `step.g0` is dH(z)."""
        return simpson(self, step, middle)

    def matrix(self, z: Array) -> Array:
        """Pi(z), CFHM (8)."""
        return self.at(z).matrix()


def lie_brackets(frame: Frame, q: Array) -> Array:
    """[X_a, X_b] as an array (r, r, n), exactly skew in a, b."""
    X = frame.around(q)
    derivative = jax.jacfwd(X)(q)  # (n, r, n): of X_a^j by q^i at [j, a, i]
    along = jnp.einsum("jbi,ia->abj", derivative, frame(q))  # X_b along X_a
    return along - along.transpose(1, 0, 2)


def structure_functions(frame: Frame, q: Array) -> Array:
    """C_ab^c at [a, b, c]: the part of [X_a, X_b] in D, CFHM section 2.1.2."""
    X = frame(q)
    MX = frame.system.mass_matrix(q) @ X
    r = X.shape[1]
    inside = lie_brackets(frame, q).reshape(r * r, -1) @ MX
    return spd_solve(X.T @ MX, inside.T).T.reshape(r, r, r)
