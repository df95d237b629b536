"""The exact "generating function" of the nonholonomic flow, LMS section 3, by quadrature.

    S^h(q0, q1) = int_0^h L(q(t), v(t)) dt       along the motion with q(0) = q0, q(h) = q1

With F = mu^T lam + force along the motion (LMS: -Lambda~), every variation of a motion satisfies

    p1 . dq1 - p0 . dq0 = dS^h + int_0^h F . dq(t) dt                                             LMS (12)

Motions on the constraint join only the pairs (q0, q1) of a set of codimension m, so the partial derivatives
of LMS (13) need S^h off that set. As in LMS, p0 = p0(q0, q1, h) is solved from all momenta: the vector field
`System.acceleration` is defined for all velocities, and its flow, which keeps the value of phi, joins every
near pair. Then

    p0 = -D1 S^h - int_0^h F . dq/dq0 dt,      p1 = D2 S^h + int_0^h F . dq/dq1 dt                LMS (13)

hold as they stand, where q(t; q0, q1) is that motion; pairs on the constraint have Psi(q0, p0) = 0, LMS (14);
and consecutive pairs of one motion satisfy D2 S^h + D1 S^h + both integrals = 0, LMS (15). The pairs on the
constraint are the exact discrete constraint distribution D_d^E of JS remark 5.4, a submanifold of Q x Q of
dimension 2n - m: the zeros of `exact_discrete_constraint`.

Without constraints and forces S^h generates the canonical flow, p0 = -D1 S^h and p1 = D2 S^h (LMS proposition
1.2); it is the L_d that JS (56) approximates. `exact` and `approximate` are S^h and S_alpha^h with their
forces as a `DiscreteLagrangian`, with maps, determinants (19) and compositions (20).

The flow is one interval of Gauss collocation with 14 nodes, iterated to its end, which is exact to round-off
for steps well below the time scale of the motion, and whose nodes give the integrals; derivatives are
automatic. A step that is too long for it is refused.
"""

from __future__ import annotations

import functools

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax
from numpy.polynomial import legendre
from numpy.typing import ArrayLike

from noslip.engine.kept import jitted
from noslip.geometry.discrete_lagrangian import DiscreteLagrangian, root, with_jacobian
from noslip.numerics.linear import inverse, solve
from noslip.numerics.pytrees import pytree
from noslip.numerics.tracing import Real
from noslip.system import System

NODES = 14
SWEEPS = 40  # of the collocation; each gains about a power of h
NEWTON_STEPS = 20
REACHED = 1e-13  # relative change below which an iteration has come to its end


@pytree
class Arc:
    """A motion over the time h: at its Gauss nodes, at its end, its action, and how well it is solved."""

    t: Array
    q: Array
    v: Array
    force: Array
    weights: Array
    q1: Array
    v1: Array
    action: Array
    change: Array


@pytree
class Terms:
    """All terms of LMS (13): S^h, its partial derivatives, and the integrals of F . dq/dq0 and F . dq/dq1."""

    q1: Array
    v1: Array
    p0: Array
    p1: Array
    S: Array
    D1: Array
    D2: Array
    force0: Array
    force1: Array


def arc(system: System, q0: ArrayLike, v0: ArrayLike, h: float, t: float = 0.0) -> Arc:
    """The motion from (q0, v0) at time t over the time h; v0 need not satisfy the constraint."""
    result = arc_of(system, *_arrays(q0, v0, h, t))
    if not isinstance(result.change, jax.core.Tracer) and not float(result.change) <= REACHED:
        raise ValueError(
            f"`h` must be well below the time scale of the motion, but with h = {h} "
            f"the flow is known only to {float(result.change):.1e}"
        )
    return result


def terms(system: System, q0: ArrayLike, v0: ArrayLike, h: float, t: float = 0.0) -> Terms:
    """The terms of LMS (13) for the pair (q0, q1) that the motion from (q0, v0) joins in the time h."""
    arc(system, q0, v0, h, t)  # refuses a step that is too long
    return _terms(system, *_arrays(q0, v0, h, t))


def initial_velocity(system: System, q0: ArrayLike, q1: ArrayLike, h: float, t: float = 0.0) -> Array:
    """The velocity v0 whose motion goes from q0 to q1 in the time h, near (q1 - q0) / h."""
    q0, q1, h_, t_ = _arrays(q0, q1, h, t)
    v0 = (q1 - q0) / h_
    for _ in range(NEWTON_STEPS):
        step = _shot(system, q0, v0, q1, h_, t_)
        v0 = v0 - step
        if float(jnp.max(jnp.abs(step))) <= REACHED * (1 + float(jnp.max(jnp.abs(v0)))):
            return v0
    raise ValueError(f"no motion from q0 = {q0} to q1 = {q1} in the time {h} was found near the straight one")


def generating_function(system: System, q0: ArrayLike, q1: ArrayLike, h: float, t: float = 0.0) -> Array:
    """S^h(q0, q1), on the constraint or off it."""
    return arc(system, q0, initial_velocity(system, q0, q1, h, t), h, t).action


def exact_discrete_constraint(system: System, q0: ArrayLike, q1: ArrayLike, h: Real, t: Real = 0.0) -> Array:
    """phi(q0, v0) of the motion from q0 to q1: m functions whose zeros are D_d^E, JS remark 5.4; also the
    phi^a(q0, q1, h) of LMS section 3. NaN where no motion is found near the straight one."""
    q0, q1, h, t = _arrays(q0, q1, h, t)
    return system.phi(q0, _joining(system, q0, q1, h, t))


def exact(system: System, h: Real, t: Real = 0.0) -> DiscreteLagrangian:
    """S^h with the integrals of LMS (13) as its one-form: alpha0 = -int F . dq/dq0, alpha1 likewise."""
    h_, t_ = _arrays(h, t)

    def made(q0: Array, q1: Array) -> Terms:
        return _terms(system, q0, _joining(system, q0, q1, h_, t_), h_, t_)

    @jax.custom_jvp
    def S(q0: Array, q1: Array) -> Array:
        return arc_of(system, q0, _joining(system, q0, q1, h_, t_), h_, t_).action

    @S.defjvp
    def _(at: tuple[Array, Array], d: tuple[Array, Array]) -> tuple[Array, Array]:  # spares half the work
        found = made(*at)
        return found.S, jnp.dot(found.D1, d[0]) + jnp.dot(found.D2, d[1])

    if not system.m and system.force is None:
        return DiscreteLagrangian(S)
    return DiscreteLagrangian(S, lambda q0, q1: -made(q0, q1).force0, lambda q0, q1: -made(q0, q1).force1)


def approximate(system: System, h: Real, alpha: float = 0.5, t: Real = 0.0) -> DiscreteLagrangian:
    """S_alpha^h of LMS (25) with the forces of section 4: alpha0 = -(1 - alpha) h F, alpha1 = -alpha h F."""
    h_, t_ = _arrays(h, t)

    def node(q0: Array, q1: Array) -> tuple[Array, Array]:
        return (1 - alpha) * q0 + alpha * q1, (q1 - q0) / h_

    def F(q0: Array, q1: Array) -> Array:
        return _force(system, *node(q0, q1), t_ + alpha * h_)

    return DiscreteLagrangian(
        lambda q0, q1: h_ * system.lagrangian(*node(q0, q1), system.parameters),
        lambda q0, q1: -(1 - alpha) * h_ * F(q0, q1),
        lambda q0, q1: -alpha * h_ * F(q0, q1),
    )


def approximate_constraint(
    system: System, q0: ArrayLike, q1: ArrayLike, h: float, alpha: float, t: float = 0.0
) -> Array:
    """phi~(q0, q1, h) of LMS (18) for S_alpha^h: Psi at the momentum -D1 S - (1 - alpha) h F of the pair."""
    q0, q1, h_, t_ = _arrays(q0, q1, h, t)
    node, w = (1 - alpha) * q0 + alpha * q1, (q1 - q0) / h_
    f = system.dL_dq(node, w) + _force(system, node, w, t_ + alpha * h_)
    p0 = system.momentum(node, w) - (1 - alpha) * h_ * f
    return system.phi(q0, system.velocity(q0, p0))


@jitted
def arc_of(system: System, q0: Array, v0: Array, h: Array, t: Array) -> Arc:
    """`arc` of arrays, to be differentiated; how far the flow is known is in its `change`."""
    c, b, A = _gauss()
    times = t + h * c

    def motion(a: Array) -> tuple[Array, Array]:
        return q0 + h * c[:, None] * v0 + h**2 * A @ (A @ a), v0 + h * A @ a

    def sweep(a: Array, _: None) -> tuple[Array, Array]:
        new = jax.vmap(system.acceleration)(*motion(a), times)
        return new, jnp.max(jnp.abs(new - a)) / (1 + jnp.max(jnp.abs(new)))

    start = jnp.broadcast_to(system.acceleration(q0, v0, t), (NODES, system.n))
    a, changes = lax.scan(sweep, start, None, length=SWEEPS)
    q, v = motion(a)
    lagrangian = jax.vmap(lambda q, v: system.lagrangian(q, v, system.parameters))(q, v)
    force = jax.vmap(lambda q, v, t: _force(system, q, v, t))(q, v, times)
    q1, v1 = q0 + h * v0 + h**2 * b @ (A @ a), v0 + h * b @ a
    # round-off of the last sweep counts only with the weight of the accelerations in the motion
    change = lax.stop_gradient(h * changes[-1])
    return Arc(times, q, v, force, h * b, q1, v1, h * b @ lagrangian, change)


@jitted
def _terms(system: System, q0: Array, v0: Array, h: Array, t: Array) -> Terms:
    n = system.n
    slopes, made = with_jacobian(lambda z: arc_of(system, z[:n], z[n:], h, t), jnp.concatenate([q0, v0]))
    by_q, by_v = jax.tree.map(lambda x: x[..., :n], slopes), jax.tree.map(lambda x: x[..., n:], slopes)
    dv_dq1 = inverse(by_v.q1)
    dv_dq0 = -dv_dq1 @ by_q.q1
    forces = made.weights[:, None] * made.force
    return Terms(
        q1=made.q1,
        v1=made.v1,
        p0=system.momentum(q0, v0),
        p1=system.momentum(made.q1, made.v1),
        S=made.action,
        D1=by_q.action + by_v.action @ dv_dq0,
        D2=by_v.action @ dv_dq1,
        force0=jnp.einsum("si,sij->j", forces, by_q.q + by_v.q @ dv_dq0),
        force1=jnp.einsum("si,sij->j", forces, by_v.q @ dv_dq1),
    )


@jitted
def _shot(system: System, q0: Array, v0: Array, q1: Array, h: Array, t: Array) -> Array:
    """Newton's increment of v0."""
    slope, end = with_jacobian(lambda v: arc_of(system, q0, v, h, t).q1, v0)
    return solve(slope, end - q1)


def _joining(system: System, q0: Array, q1: Array, h: Array, t: Array) -> Array:
    """`initial_velocity` as a function that can be differentiated."""

    def miss(v: Array, at: tuple[Array, Array]) -> Array:
        return (arc_of(system, at[0], v, h, t).q1 - at[1]) / h

    return root(miss, (q1 - q0) / h, (q0, q1))


def _force(system: System, q: Array, v: Array, t: Array) -> Array:
    return system.mu(q, v).T @ system.multipliers(q, v, t) + system.applied_force(q, v, t)


@functools.cache
def _gauss() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Nodes, weights and matrix of Gauss collocation on [0, 1]."""
    x, w = legendre.leggauss(NODES)
    values = legendre.legvander(x, NODES)
    integrals = np.empty((NODES, NODES))
    integrals[:, 0] = x + 1
    for k in range(1, NODES):  # int_-1^x P_k = (P_{k+1} - P_{k-1}) / (2 k + 1)
        integrals[:, k] = (values[:, k + 1] - values[:, k - 1]) / (2 * k + 1)
    # coefficients of P_k in the interpolant: (2 k + 1) / 2 sum_j w_j P_k(x_j) f_j, exact below degree 2 NODES
    coefficients = (np.arange(NODES)[:, None] + 0.5) * values[:, :NODES].T * w
    return (x + 1) / 2, w / 2, integrals @ coefficients / 2


def _arrays(*values: ArrayLike) -> tuple[Array, ...]:
    return tuple(jnp.asarray(value, dtype=float) for value in values)
