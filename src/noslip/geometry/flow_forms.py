"""What the nonholonomic flow does to the canonical forms, LMS (10) and (11).

On the states z = (q, v) let theta = p . dq, p = dL/dv, and omega = -d theta. With F = mu^T lam + force along
the motion (LMS: -Lambda) every state and its variations satisfy

    F_h* theta - theta = d int_0^h L dt + int_0^h F . dq(t)                                            (10)
    F_h* omega - omega = -d int_0^h F . dq(t)                                                          (11)

so that the flow is canonical where there are neither constraints nor forces, and in general is not. LMS write
them on the constraint; the vector field `System.acceleration` is defined for all velocities, and for its flow
they hold everywhere. Forms are arrays in the coordinates (q, v): of shape (2n,) and skew of (2n, 2n).
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jax import Array
from numpy.typing import ArrayLike

from noslip.engine.kept import jitted
from noslip.geometry.discrete_lagrangian import with_jacobian
from noslip.geometry.exact_generating_function import Arc, arc, arc_of
from noslip.numerics.pytrees import pytree
from noslip.system import System


@pytree
class FlowForms:
    """The terms of (10), then those of (11)."""

    theta_change: Array
    action_differential: Array
    work: Array
    omega_change: Array
    work_differential: Array


def flow_forms(system: System, q0: ArrayLike, v0: ArrayLike, h: float, t: float = 0.0) -> FlowForms:
    """All terms at the state (q0, v0): theta_change = action_differential + work, and
    omega_change = -work_differential."""
    arc(system, q0, v0, h, t)  # refuses a step that is too long
    z = jnp.concatenate([jnp.asarray(q0, dtype=float), jnp.asarray(v0, dtype=float)])
    return _forms(system, z, jnp.asarray(h, dtype=float), jnp.asarray(t, dtype=float))


@jitted
def _forms(system: System, z: Array, h: Array, t: Array) -> FlowForms:
    n = system.n

    def theta(z: Array) -> Array:
        return jnp.concatenate([system.momentum(z[:n], z[n:]), jnp.zeros(n)])

    def work(z: Array) -> tuple[Array, tuple[Array, Arc, Arc]]:
        """And the arc with its derivatives, which need not be found again."""
        slopes, made = with_jacobian(lambda z: arc_of(system, z[:n], z[n:], h, t), z)
        found = jnp.einsum("s,si,sij->j", made.weights, made.force, slopes.q)
        return found, (found, slopes, made)

    work_slopes, (found, slopes, made) = jax.jacfwd(work, has_aux=True)(z)
    S, end = jnp.concatenate([slopes.q1, slopes.v1]), jnp.concatenate([made.q1, made.v1])
    (d_end, theta_end), (d_here, theta_here) = (with_jacobian(theta, at) for at in (end, z))
    return FlowForms(
        theta_change=S.T @ theta_end - theta_here,
        action_differential=slopes.action,
        work=found,
        omega_change=S.T @ (-_differential(d_end)) @ S + _differential(d_here),
        work_differential=_differential(work_slopes),
    )


def _differential(slopes: Array) -> Array:
    """d of a one-form with those derivatives: its entry i, j is d_i form_j - d_j form_i."""
    return slopes.T - slopes
