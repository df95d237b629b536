"""The Hamiltonian side, LMS section 2: nonholonomic equations on T*Q for any kind of constraints.

With H(q, p) = p v - L(q, v) and Psi(q, p) = phi(q, v), where v = dH/dp is the velocity of momentum p:

    dq/dt = dH/dp,    dp/dt = -dH/dq + mu^T lam + force                                        LMS (5), (9)
    mu = (dPsi/dp) (d2H/dp2)^-1 = dphi/dv                                                      after (5)
    C  = (dPsi/dp) (d2H/dp2)^-1 (dPsi/dp)^T = mu M^-1 mu^T, regular                            (7), (8)
    lam = -C^-1 (X_H(Psi) + (dPsi/dp) force)                                                   after (8)

so that dPsi/dt = 0, on the constraint and off it. lam is the package's multiplier. LMS (5) has -lam in its
place; printed is -C^-1 X_H(Psi) for that too, which must be +C^-1 X_H(Psi) (see the errata). Everything here
is by differentiation of H and Psi: a second way to `System.acceleration` and `System.multipliers`.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from numpy.typing import ArrayLike

from noslip.engine.kept import jitted
from noslip.numerics.linear import spd_solve
from noslip.numerics.pytrees import pytree
from noslip.numerics.tracing import Real
from noslip.system import System

SINGULAR = 1e-13  # ratio of singular values below which C counts as singular


def hamiltonian(system: System, q: ArrayLike, p: ArrayLike) -> Array:
    """H = E o Leg^-1."""
    q, p = _arrays(system, q, p)
    v = system.velocity(q, p)
    return jnp.dot(p, v) - system.lagrangian(q, v, system.parameters)


def constraint(system: System, q: ArrayLike, p: ArrayLike) -> Array:
    """Psi = phi o Leg^-1, shape (m,)."""
    q, p = _arrays(system, q, p)
    return system.phi(q, system.velocity(q, p))


def hamiltonian_field(system: System, q: ArrayLike, p: ArrayLike) -> tuple[Array, Array]:
    """X_H = (dH/dp, -dH/dq), the motion without constraints."""
    return _derive(system, *_arrays(system, q, p)).X_H


def derivative_along_hamiltonian_field(system: System, q: ArrayLike, p: ArrayLike) -> Array:
    """X_H(Psi): how fast the motion without reaction leaves the constraint."""
    return _derive(system, *_arrays(system, q, p)).X_H_Psi


def reaction_directions(system: System, q: ArrayLike, p: ArrayLike) -> Array:
    """The one-forms that span F^o, (dPsi/dp) (d2H/dp2)^-1, shape (m, n); equal to dphi/dv."""
    return _derive(system, *_arrays(system, q, p)).mu


def compatibility_matrix(system: System, q: ArrayLike, p: ArrayLike) -> Array:
    """C of LMS (7), by (8) equal to mu M^-1 mu^T; an error where it is singular.

    Under a JAX transformation, where values are not known, it is returned as it is.
    """
    q, p = _arrays(system, q, p)
    return _regular(_derive(system, q, p).C, q, p)


def multipliers(system: System, q: ArrayLike, p: ArrayLike, t: Real = 0.0) -> Array:
    """lam with the reaction +mu^T lam; equal to System.multipliers at the velocity of p."""
    q, p = _arrays(system, q, p)
    made = _derive(system, q, p)
    slope = made.X_H_Psi + made.dPsi_dp @ system.applied_force(q, made.X_H[0], t)
    return -spd_solve(_regular(made.C, q, p), slope)


def vector_field(system: System, q: ArrayLike, p: ArrayLike, t: Real = 0.0) -> tuple[Array, Array]:
    """(dq/dt, dp/dt) of the nonholonomic motion, LMS (9) with the right sign."""
    q, p = _arrays(system, q, p)
    made = _derive(system, q, p)
    dq, dp = made.X_H
    return dq, dp + made.mu.T @ multipliers(system, q, p, t) + system.applied_force(q, dq, t)


@pytree
class _Derived:
    """What the equations are made of, by differentiation of H and Psi."""

    X_H: tuple[Array, Array]
    X_H_Psi: Array
    dPsi_dp: Array
    mu: Array
    C: Array


@jitted
def _derive(system: System, q: Array, p: Array) -> _Derived:
    dH_dq, dH_dp = jax.grad(lambda z: hamiltonian(system, *z))((q, p))
    X_H = (dH_dp, -dH_dq)
    inverse_mass = jax.jacfwd(jax.grad(lambda p: hamiltonian(system, q, p)))(p)  # d2H/dp2
    dPsi_dp = jax.jacfwd(lambda p: constraint(system, q, p))(p)
    X_H_Psi = jax.jvp(lambda q, p: constraint(system, q, p), (q, p), X_H)[1]
    mu = spd_solve(inverse_mass, dPsi_dp.T).T
    return _Derived(X_H, X_H_Psi, dPsi_dp, mu, dPsi_dp @ mu.T)


def _regular(C: Array, q: Array, p: Array) -> Array:
    if isinstance(C, jax.core.Tracer):
        return C
    values = np.linalg.svd(np.nan_to_num(C), compute_uv=False)
    if not (np.all(np.isfinite(C)) and values[-1] > SINGULAR * values[0]):
        raise ValueError(
            f"the compatibility matrix of LMS (7) must be regular, but at "
            f"q = {np.asarray(q)}, p = {np.asarray(p)} its singular values are {values}"
        )
    return C


def _arrays(system: System, q: ArrayLike, p: ArrayLike) -> tuple[Array, Array]:
    q, p = jnp.asarray(q, dtype=float), jnp.asarray(p, dtype=float)
    for name, array in (("q", q), ("p", p)):
        if array.shape != (system.n,):
            raise ValueError(f"`{name}` must have shape {(system.n,)}, but {array.shape} was provided")
    return q, p
