"""States of the methods on D* that use no frame: (q, p) with p = M v, v in D.

A step of d = (dq, dp), dp modulo mu_m^T, ends at p + dp + mu_m^T lam with the lam that puts v' = M^-1 p'
into D; that of the isometric form, where dp is an increment of pi, at the p' of pi'. `gradient` is (dV, v).
Sizes are those of the kinetic metric, so that no unit matters: with K twice the kinetic energy, p_i can be
sqrt(K M_ii) and q_i can move by h sqrt(K (M^-1)_ii).
"""

from __future__ import annotations

from dataclasses import replace

import jax
import jax.numpy as jnp
from jax import Array

from noslip.geometry.frame_free import FreeBracket, Plane, potential
from noslip.geometry.holonomic import across
from noslip.geometry.polar import PolarBracket
from noslip.integrators.families.bracket_state import PAST, BracketState, energy_size, followed
from noslip.numerics.discrete_gradients import noise
from noslip.numerics.linear import spd_solve
from noslip.numerics.sums import Sum
from noslip.system import System

Form = type[FreeBracket] | type[PolarBracket]


def first(
    form: Form, system: System, q: Array, v: Array, t: Array, h: Array, stage_shape: tuple[int, ...]
) -> BracketState:
    """The state at (q, v), v admissible."""
    bracket, p = form.around(system, q, h), system.mass_matrix(q) @ v
    z = bracket.begin(jnp.concatenate([q, p]))
    point = bracket.at(z) if stage_shape else bracket.middle(z)
    d = h * point.apply(point.gradient()) + h * point.force(t)
    past = jnp.broadcast_to(d, (PAST, *stage_shape, d.size))
    energy = Sum.start(jnp.dot(p, v) / 2 + potential(system, q))
    sums, g = (Sum.start(t), Sum.start(q), Sum.start(p)), jnp.zeros(system.k) if system.k else None
    net = Plane.at(system, q).part(d[system.n :])
    return _at(system, *sums, v, energy, d, net, past, jnp.ones(system.m), h, g)


def around(form: Form, system: System, state: BracketState, d: Array, h: Array) -> FreeBracket | PolarBracket:
    """D* around a step from the state by d; holonomic constraints by their discrete derivative."""
    dq = d[: system.n]
    bracket = form.around(system, state.q.value + dq / 2, h)
    if state.g is None:
        return bracket
    return replace(bracket, plane=across(system, bracket.plane, dq, state.g))


def landed(form: Form, system: System, state: BracketState, d: Array, h: Array) -> tuple[Array, Array]:
    """The increment of (q, p) that d means, and the velocity there."""
    return around(form, system, state, d, h).landed(state.z, d)


def moved(
    form: Form, system: System, state: BracketState, d: Array, past: Array, energy: Sum, h: Array
) -> BracketState:
    """The state after the increment d, with the energy that it ought to have."""
    n, (whole, v) = system.n, landed(form, system, state, d, h)
    q, p = state.q.plus(whole[:n]), state.rho.plus(whole[n:])
    return _at(system, state.t.plus(h), q, p, v, energy, d, whole[n:], past, state.signs, h, state.g)


def _at(
    system: System, t: Sum, q: Sum, p: Sum, v: Array, E: Sum, d: Array, net: Array, past: Array, signs: Array,
    h: Array, g: Array | None,
) -> BracketState:  # fmt: skip
    """The state at (q, v), reached by d, by which p changed by `net`, with what is evaluated there once per
    step. What the reaction balances of d moves nothing."""
    n, M = system.n, system.mass_matrix(q.value)
    inverse = spd_solve(M, jnp.eye(n))
    dV = jax.grad(potential, 1)(system, q.value)
    twice, change = jnp.dot(p.value, v), jnp.dot(d[n:], inverse @ d[n:])
    S = energy_size(system, q.value, E, twice)
    level = noise(S, twice + jnp.dot(net, inverse @ net))
    if system.force is not None:
        E = followed(E, twice / 2 + potential(system, q.value), S, level)
    reach = jnp.abs(h) * jnp.sqrt((twice + change) * jnp.diagonal(inverse))
    sizes = jnp.concatenate([jnp.abs(q.value) + reach, jnp.sqrt((twice + change) * jnp.diagonal(M))])
    return BracketState(t, q, p, v, E, jnp.concatenate([dV, v]), level, sizes, past, signs, g)
