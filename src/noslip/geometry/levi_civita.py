"""The motion by covariant derivatives, LMS section 5: L = g(v, v) / 2 - V, constraints mu v = 0, g = M(q).

    nabla_v v = -grad V + lambda(v),      v in D,  lambda in D^perp                                LMS (26)
    lambda = -C_ab (mu^a (-Gamma(v, v) - grad V) + d mu^a(v) v) Z^b,    Z^b = M^-1 mu^b            (27)
    P nabla_v v = -P grad V                                                                        (28)
    nablabar_v v = -P grad V,      nablabar_X Y = nabla_X Y + (nabla_X Q)(Y)                        after (28)

with the Levi-Civita connection nabla of g and the g-orthogonal projectors P onto D and Q = 1 - P. (27) is
printed without its minus (errata, item 11). nablabar takes sections Y of D to sections of D, since there
nabla_X (Q Y) = 0 gives (nabla_X Q) Y = -Q nabla_X Y and so nablabar_X Y = P nabla_X Y.
"""

from __future__ import annotations

from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from numpy.typing import ArrayLike

from noslip.engine.kept import jitted
from noslip.numerics.linear import spd_solve
from noslip.numerics.tracing import is_traced
from noslip.system import System

Field = Callable[[Array], Array]


def require_mechanical(system: System) -> None:
    """Refuse what LMS section 5 is not about."""
    if system.kind != "linear":
        raise ValueError(f"LMS section 5 needs linear constraints mu(q) v = 0, but these are {system.kind}")
    if system.force is not None:
        raise ValueError("LMS section 5 has no external force, but the system has one")


def christoffel(system: System, q: ArrayLike) -> Array:
    """Gamma^i_jk of the kinetic metric at [i, j, k]."""
    return _christoffel(system, jnp.asarray(q, dtype=float))


@jitted
def _christoffel(system: System, q: Array) -> Array:
    slopes = jax.jacfwd(system.mass_matrix)(q)  # dM_ij/dq^k at [i, j, k]
    first = slopes + slopes.transpose(0, 2, 1) - slopes.transpose(2, 0, 1)
    n = system.n
    return spd_solve(system.mass_matrix(q), first.reshape(n, n * n)).reshape(n, n, n) / 2


def covariant_derivative(system: System, q: ArrayLike, x: ArrayLike, Y: Field) -> Array:
    """nabla_x Y at q for a vector x and a vector field Y."""
    q, x = jnp.asarray(q, dtype=float), jnp.asarray(x, dtype=float)
    return jax.jvp(Y, (q,), (x,))[1] + jnp.einsum("ijk,j,k", christoffel(system, q), x, Y(q))


def projector_derivative(system: System, q: ArrayLike, x: ArrayLike) -> Array:
    """nabla_x Q at q as a matrix: (nabla_x Q)(Y) = nabla_x (Q Y) - Q nabla_x Y."""
    return _projector_derivative(system, jnp.asarray(q, dtype=float), jnp.asarray(x, dtype=float))


@jitted
def _projector_derivative(system: System, q: Array, x: Array) -> Array:
    Q, dQ = jax.jvp(lambda a: system.projectors(a)[1], (q,), (x,))
    turn = jnp.einsum("ijk,j->ik", christoffel(system, q), x)
    return dQ + turn @ Q - Q @ turn


def constrained_derivative(system: System, q: ArrayLike, x: ArrayLike, Y: Field) -> Array:
    """nablabar_x Y at q, after LMS (28)."""
    require_mechanical(system)
    q = jnp.asarray(q, dtype=float)
    return covariant_derivative(system, q, x, Y) + projector_derivative(system, q, x) @ Y(q)


def gradient_of_potential(system: System, q: ArrayLike) -> Array:
    """grad V = M^-1 dV/dq, V(q) = -L(q, 0). L must have no term linear in v at q."""
    q = jnp.asarray(q, dtype=float)
    _refuse_linear_terms(system, q)
    return _gradient_of_potential(system, q)


@jitted
def _gradient_of_potential(system: System, q: Array) -> Array:
    return -spd_solve(system.mass_matrix(q), system.potential_force(q))


def _refuse_linear_terms(system: System, q: Array) -> None:
    rest = system.momentum(q, np.zeros(system.n))
    if not is_traced(rest) and np.any(rest):
        raise ValueError(
            f"LMS section 5 needs L = v^T M v / 2 - V, but at q = {np.asarray(q)} dL/dv at rest is {rest}"
        )


def reaction(system: System, q: ArrayLike, v: ArrayLike) -> Array:
    """lambda of LMS (26), a vector of D^perp, by (27) with its sign corrected."""
    require_mechanical(system)
    q, v = jnp.asarray(q, dtype=float), jnp.asarray(v, dtype=float)
    _refuse_linear_terms(system, q)
    return _reaction(system, q, v)


@jitted
def _reaction(system: System, q: Array, v: Array) -> Array:
    mu = system.mu(q, v)
    Z = spd_solve(system.mass_matrix(q), mu.T)
    free = -jnp.einsum("ijk,j,k", christoffel(system, q), v, v) - _gradient_of_potential(system, q)
    along = jax.jvp(lambda x: system.mu(x, v) @ v, (q,), (v,))[1]
    return -Z @ spd_solve(mu @ Z, mu @ free + along)


def acceleration(system: System, q: ArrayLike, v: ArrayLike) -> Array:
    """dv/dt at a v of D from nablabar_v v = -P grad V: a second way to `System.acceleration`."""
    require_mechanical(system)
    q, v = jnp.asarray(q, dtype=float), jnp.asarray(v, dtype=float)
    _refuse_linear_terms(system, q)
    return _acceleration(system, q, v)


@jitted
def _acceleration(system: System, q: Array, v: Array) -> Array:
    P, _ = system.projectors(q)
    turn = jnp.einsum("ijk,j,k", christoffel(system, q), v, v)
    return -P @ _gradient_of_potential(system, q) - turn - projector_derivative(system, q, v) @ v
