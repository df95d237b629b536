"""Holonomic constraints in the methods whose state is (midpoint, velocity) of a pair of nodes.

The nodes are Q = q - h v / 2 and Q1 = q + h v / 2, and g = 0 holds there: in the equations of a step from q
by v to v1 the rows G v1 of phi(q1, v1) become the difference quotient of g between the nodes q + h v / 2 and
q + h v / 2 + h v1. What is shown of such a state has g = 0 itself and an admissible velocity,

    q' = q - N(q) nu,   g(q') = 0,   N = M^-1 G^T,      v' = P(q') v

with P the M-orthogonal projection onto D. Neither contains h, and the nodes are the same for -h, so a method
stays self-adjoint in what it shows. `begun` is the inverse.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import jax.numpy as jnp
from jax import Array, lax

from noslip.geometry.holonomic import quotient
from noslip.integrators.families.states import VelocityState
from noslip.numerics.linear import solve, spd_solve, value_and_jacobian
from noslip.numerics.pytrees import pytree
from noslip.numerics.sums import Sum
from noslip.system.positions import put_back

if TYPE_CHECKING:
    from noslip.system import System

NEWTON = 8  # from an error of the size h^2; each doubles the digits


@pytree
class InnerState(VelocityState):
    """(q, v) with g = 0 at its nodes, and what is shown of it: q + shift and `seen`."""

    shift: Array
    seen: Array

    @property
    def shown(self) -> tuple[Array, Array]:
        return self.q.value + self.shift, self.seen


def phi(system: System, node: Array, q1: Array, v1: Array, t: Array, h: Array) -> Array:
    """phi(q1, v1) at t + h; holonomic rows between the node, at t + h / 2, and the next."""
    own = system.phi(q1, v1, t + h)
    if not system.k:
        return own
    m, end = system.m, system.m + system.k
    return jnp.concatenate([own[:m], quotient(system, node, v1, t + h / 2, h), own[end:]])


def begun(system: System, state: VelocityState, h: Array) -> VelocityState:
    """The state that shows (q, v)."""
    if not system.k:
        return state
    (q, v), t, (n, k) = state.shown, state.t.value, (system.n, system.k)
    here, before, after = (system.at(s) for s in (t, t - h / 2, t + h / 2))
    lift = spd_solve(here.mass_matrix(q), here.mu(q, v).T)

    def equations(y: Array) -> Array:
        shift, nu, w = y[:n], y[n : n + k], v + lift @ y[n + k :]
        a = q + shift
        low, high = before.g(a - h / 2 * w), after.g(a + h / 2 * w)
        rest = here.phi(a, w)
        along = here.mass_matrix(a) @ shift - here.G(a).T @ nu
        return jnp.concatenate(
            [along, (high + low) / 2, (high - low) / h, rest[: system.m], rest[system.m + k :]]
        )

    def newton(_: int, y: Array) -> Array:
        value, slope = value_and_jacobian(equations, y)
        return y - solve(slope, value)

    y = lax.fori_loop(0, NEWTON, newton, jnp.zeros(n + k + system.rows))
    shift = y[:n]
    return InnerState(
        state.t, Sum.start(q + shift), Sum.start(v + lift @ y[n + k :]), state.lam, state.lam_t, -shift, v
    )


def shown(system: System, state: VelocityState) -> VelocityState:
    """The state with what is shown of it."""
    if not system.k:
        return state
    q, here = state.q.value, system.at(state.t.value)
    seen = put_back(here, q)
    v = here.project_velocity(seen, state.v.value)
    return InnerState(state.t, state.q, state.v, state.lam, state.lam_t, seen - q, v)
