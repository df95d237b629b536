"""Holonomic constraints g(q) = 0 of a system, and positions that satisfy them.

With G = dg/dq their rows join those of mu, after the m rows of the velocity constraints: phi is then
(phi, G v), and the reaction mu^T lam is that of both. So whatever is derived from phi and mu respects them;
what keeps g itself at zero is the work of a method.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax

from noslip.engine.backends.numpy_rows import evaluate_anyhow
from noslip.errors import shown
from noslip.numerics.linear import solve, spd_solve

if TYPE_CHECKING:
    from noslip.system import System

ITERATIONS = 60
ROUND_OFF = 64 * float(np.finfo(float).eps)  # of the terms of g
TURNS = 3  # of all angles at random
SETTLED = 1e-13  # of the largest coordinate: the last increment
PUT_BACK = 4  # Newton steps from an error of the size of a local one


def lifted(system: System, q: Array) -> Array:
    """N = M^-1 G^T, the directions along which a position is put back."""
    return spd_solve(system.mass_matrix(q), system.G(q).T)


def put_back(system: System, q: Array, iterations: int = PUT_BACK) -> Array:
    """The position q + N(q) nu with g = 0; q itself where there are no holonomic constraints."""
    if not system.k:
        return q
    N, x = lifted(system, q), q
    for _ in range(iterations):
        g, slopes = jax.linearize(system.g, x)
        x = x - N @ solve(jax.vmap(slopes, 1, 1)(N), g)
    return x


def nearest_position(system: System, q: np.ndarray, fixed: Iterable[str]) -> np.ndarray:
    """See `System.project_position`; the system is at its time."""
    if isinstance(fixed, str):
        raise TypeError(f"`fixed` must be a tuple of names, but the string '{fixed}' was provided")
    names = tuple(fixed)
    held = np.array([system.index(name) for name in names], int)
    if q.shape != (system.n,) or not np.all(np.isfinite(q)):
        raise ValueError(f"`q` must be {system.n} finite numbers, but {shown(q)} was provided")
    free = np.setdiff1d(np.arange(system.n), held)
    x, M = q.copy(), _here(system, q)[2][np.ix_(free, free)]
    for _ in range(ITERATIONS):
        g, G, _ = _here(system, x)
        if not (np.all(np.isfinite(g)) and np.all(np.isfinite(G))):
            break
        lift = np.linalg.solve(M, G[:, free].T)
        step = lift @ np.linalg.lstsq(G[:, free] @ lift, g, rcond=1e-12)[0]
        x[free] -= step
        if np.all(np.abs(step) <= 1e-15 * (np.abs(x[free]) + np.max(np.abs(x)))):
            break
    g, terms = (values[0] for values in evaluate_anyhow(_with_size, None, system, x[None]))
    if not np.all(np.abs(g) <= ROUND_OFF * (terms + np.max(terms, initial=0.0))):
        held_ones = f" with {', '.join(names)} fixed" if names else ""
        raise ValueError(f"no position with g(q) = 0 was found near q = {q}{held_ones}: g = {g} is left")
    return x


def placed(system: System, free: Array, q: Array) -> Array:
    """What `nearest_position` finds, as a function of JAX: `free` is 1 for coordinates that may move, 0 for
    others. A rotation has length 1 and u0 >= 0 then; NaN where nothing is found."""
    if not system.k:
        return q
    M = free[:, None] * system.mass_matrix(q) * free + jnp.diag(1 - free)

    def again(_: int, carry: tuple[Array, Array]) -> tuple[Array, Array]:
        x = carry[0]
        G = system.G(x) * free
        lift = spd_solve(M, G.T) * free[:, None]
        step = lift @ solve(G @ lift, system.g(x))
        return x - step, jnp.max(jnp.abs(step))

    x, moved = lax.fori_loop(0, ITERATIONS, again, (q, jnp.array(jnp.inf)))
    x, _ = system.shown(x, jnp.zeros(system.n))
    for block in system.blocks if system.rotations else ():
        place = jnp.array(block)
        x = x.at[place].set(jnp.where(x[place[0]] < 0, -x[place], x[place]))
    return jnp.where(moved <= SETTLED * jnp.max(jnp.abs(x)), x, jnp.nan)


def _here(system: System, q: np.ndarray) -> tuple[np.ndarray, ...]:
    """g, G and M."""
    return tuple(values[0] for values in evaluate_anyhow(_slopes, None, system, q[None]))


def _slopes(_: None, system: System, q: Array) -> tuple[Array, Array, Array]:
    return system.g(q), system.G(q), system.mass_matrix(q)


def _with_size(_: None, system: System, q: Array) -> tuple[Array, Array]:
    return system.g(q), holonomic_size(system, q)


def holonomic_size(system: System, q: Array) -> Array:
    """The sizes of the terms that g is the sum of, as far as its slopes tell: |dg/dq| |q| + |dg/dp| |p|; and
    how much it changes with angles, which tells the lengths that are written into it."""
    size = jnp.abs(system.G(q)) @ jnp.abs(q)
    turning = system.angle_mask.copy()
    turning[[k for block in system.blocks for k in block]] = True
    for away in np.random.default_rng(0).uniform(-1, 1, (TURNS, system.n)) * turning if turning.any() else ():
        size = size + jnp.nan_to_num(jnp.abs(system.g(q + away) - system.g(q))) / TURNS
    leaves, structure = jax.tree.flatten(system)
    for k, leaf in enumerate(leaves):

        def g(x: Array, k: int = k) -> Array:
            return jax.tree.unflatten(structure, [*leaves[:k], x, *leaves[k + 1 :]]).g(q)

        leaf = jnp.asarray(leaf, float)
        by_leaf = jnp.abs(jax.jacfwd(g)(leaf)).reshape(system.k, leaf.size)
        size = size + by_leaf @ jnp.abs(leaf).ravel()
    return size


def placement(_: None, system: System, q: Array) -> tuple[Array, Array]:
    """g, and what of it is allowed: 1e-9 of its terms, or what the rounding of q makes of it."""
    rounding = jnp.sum(jnp.abs(system.G(q)), axis=1) * jnp.max(jnp.abs(q))
    return system.g(q), 1e-9 * holonomic_size(system, q) + 1e-15 * rounding


def row_names(system: System) -> list[str]:
    """What the rows of mu are, for messages."""
    own = "constraint" if system.constraint is not None else "one_forms"
    rows = [f"{own}[{a}]" for a in range(system.m)] + [f"holonomic[{b}]" for b in range(system.k)]
    return rows + [f"the length of {name}" for name in system.rotations]


def dependent_rows(system: System, mu: np.ndarray) -> str:
    """Which row is a combination of those before it, to be added to a message; nothing without g."""
    if system.rows == system.m or not np.all(np.isfinite(mu)):
        return ""
    names = row_names(system)
    for a in range(len(mu)):
        size = np.linalg.norm(mu[a])
        weights = np.linalg.lstsq(mu[:a].T, mu[a], rcond=None)[0] if a else np.empty(0)
        if np.linalg.norm(mu[a] - weights @ mu[:a]) <= 1e-10 * size or not size:
            parts = [names[b] for b in range(a) if abs(weights[b]) * np.linalg.norm(mu[b]) > 1e-8 * size]
            return f": {names[a]} repeats {' and '.join(parts)}" if parts else f": {names[a]} vanishes"
    return ""


def rate_of(system: System, function: Callable[[System, Array], Array], q: Array, v: Array) -> Array:
    """d/dt of function(system, q) along q' = v, at the time of the system."""
    if not system.moving:
        return jax.jvp(lambda x: function(system, x), (q,), (v,))[1]
    t = jnp.asarray(system.time, float)
    return jax.jvp(lambda x, s: function(system.at(s), x), (q, t), (v, jnp.ones_like(t)))[1]
