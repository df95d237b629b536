"""Discrete derivatives of holonomic constraints: rows Gbar with Gbar d = g(q + d) - g(q).

A step by dq in the kernel of such rows keeps g as the step of a discrete gradient keeps the energy. With G*
the mean of G along dq by Gauss's rule, and the metric M_m in the middle, which no unit disturbs,

    Gbar = G* + (g(q + dq) - g_0 - G* dq) (M_m dq)^T / (dq . M_m dq)

g_0 is what g ought to be before the step, zero but for a projection, so that no error adds up. With G in the
middle for G* the quotient would be noise where a step is small and the reaction is not. Of a polynomial with
slopes x_j at Gauss's nodes c_j with weights b_j and Lagrange polynomials l_j

    Gbar_j = (1 / b_j) int l_j G,      sum_j b_j Gbar_j x_j = g(q + dq) - g_0

the integrals by Gauss's rule, and their defect spread over the stages as that of the energy. Differences of g
have no digits where a step is small, so they are means of slopes, by Gauss's rule, and of what that leaves
over a soft threshold cuts off the noise. See "Holonomic constraints and rotations"
in the mathematics.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import jax
import jax.numpy as jnp
from jax import Array

from noslip.geometry.frame_free import Plane
from noslip.numerics.collocation import GaussCollocation
from noslip.numerics.discrete_gradients import NOISE, gauss, mean, soft
from noslip.numerics.linear import solve, spd_solve
from noslip.numerics.tracing import Real
from noslip.system import System
from noslip.system.turning import stretch

GAUSS = 3  # nodes of the rule for mean slopes


def level(G: Array, q: Array, d: Real) -> Array:
    """Below which a difference of g is noise."""
    return NOISE * (jnp.abs(G) @ (jnp.abs(q) + jnp.abs(d)))


def across(system: System, plane: Plane, dq: Array, g0: Array) -> Plane:
    """The plane in the middle of a step by dq with Gbar in the place of G."""
    q, m = plane.q, system.m
    G, dual = plane.mu[m : m + system.k], plane.M @ dq
    square = jnp.dot(dq, dual)
    Gbar = G
    for c, b in zip(*gauss(GAUSS), strict=True):
        Gbar = Gbar + b * (system.G(q + c * dq) - G)
    rest = soft(system.g(q + dq / 2) - g0 - Gbar @ dq, level(G, q, dq))
    Gbar = Gbar + jnp.outer(rest, dual) / jnp.where(square > 0, square, 1.0)
    mu = jnp.concatenate([plane.mu[:m], Gbar, plane.mu[m + system.k :]])
    lift = spd_solve(plane.M, mu.T)
    return replace(plane, mu=mu, lift=lift, C=mu @ lift)


def stage_rows(bracket: Any, rule: GaussCollocation, q: Array, x: Array, g0: Array) -> Array:
    """Gbar_j, shape (stages, k, n): discrete derivatives of the holonomic constraints along the polynomial
    from q with slopes x_j, of which those of the momenta have no part."""
    system, plane, x = bracket.system, bracket.plane, x[:, : q.size]
    G = jax.vmap(lambda u: system.G(u).ravel())(q + rule.between @ x)
    G = jax.vmap(mean, (0, None))(rule.weights, G).reshape(len(x), system.k, system.n)
    dual, d = x @ plane.M, rule.b @ x
    square = rule.b @ jnp.sum(x * dual, axis=1)
    rest = system.g(q + d) - g0 - jnp.einsum("j,jan,jn->a", rule.b, G, x)
    rest = soft(rest, level(G[0], q, d)) / jnp.where(square > 0, square, 1.0)
    return G + rest[:, None] * dual[:, None, :]


def applied(point: Any, g: Array, t: Array, Gbar: Array | None) -> Array:
    """Pi g and the force at a point. With `Gbar`, at a `FreePoint`: Pi g with S P in the place of P, and
    (S P)^T force: S = 1 - N (Gbar N)^-1 Gbar leads into the kernel of Gbar along N, the directions of G in
    that of mu. It is as skew as Pi."""
    if Gbar is None:
        return point.apply(g) + point.force(t)
    system, n = point.system, point.q.size
    rows = jnp.eye(system.rows)[:, system.m : system.m + system.k]
    N = point.plane.lift @ spd_solve(point.plane.C, rows)
    inner = Gbar @ N
    pulled = g[:n] - system.applied_force(point.q, point.v, t)
    pulled = pulled - Gbar.T @ solve(inner.T, N.T @ pulled)
    d = point.apply(jnp.concatenate([pulled, g[n:]]))
    return jnp.concatenate([d[:n] - N @ solve(inner, Gbar @ d[:n]), d[n:]])


def quotient(system: System, q: Array, w: Array, t: Array, h: Array) -> Array:
    """(g(q + h w, t + h) - g(q, t)) / h where g(q, t) = 0: the mean of dg/dt along the way by Gauss's rule,
    which has all its digits, and the rest where it is more than noise."""

    def along(s: Array) -> Array:
        return system.at(t + s * h).g(q + s * h * w)

    nodes, weights = gauss(GAUSS)
    slopes = [jax.jvp(along, (jnp.asarray(0.5 + c),), (jnp.ones(()),))[1] / h for c in nodes]
    rate = sum((b * x for b, x in zip(weights, slopes, strict=True)), jnp.zeros(system.k))
    G = system.at(t).G(q)
    return rate + soft(along(jnp.ones(())) - h * rate, level(G, q, h * w)) / h


def kept_rates(system: System, q: Array, w: Array, t: Array, h: Array) -> Array:
    """What must vanish for q + h w to have g = 0 and quaternions of the length before: `quotient`, and
    (|u'|^2 - |u|^2) / 2 h over the square of their mean."""
    rates = [quotient(system, q, w, t, h)] if system.k else []
    return jnp.concatenate([*rates, stretch(system.blocks, q + h / 2 * w, w)] if system.rotations else rates)


def at_stages(system: System, q: Array, W: Array, t: Array, h: Array, c: Any, rows: Any) -> Array:
    """Rows of constraints at the stages q + c_i h W_i, g / (c_i h) in the place of the holonomic ones."""
    if not system.k:
        return rows
    found = jax.vmap(lambda w, c: quotient(system, q, w, t, c * h))(W, jnp.asarray(c))
    return rows.at[:, system.m : system.m + system.k].set(found)
