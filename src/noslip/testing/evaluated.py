"""What the checks of a system ask, as few programs for XLA: to compile one takes longer than to run it."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from noslip.engine.kept import jitted
from noslip.system import System


@jitted
def _evaluated(system: System, q: Array, v: Array) -> dict[str, Array]:
    found = {"phi": system.phi(q, v), "mass matrix": system.mass_matrix(q), "mu": system.mu(q, v)}
    if system.frame is not None:
        found["frame"] = system.frame(q, system.parameters)
    return found


def at_state(system: System, q: Any, v: Any) -> dict[str, np.ndarray]:
    """What a system is made of."""
    found = _evaluated(system, np.asarray(q, float), np.asarray(v, float))
    return {name: np.asarray(x) for name, x in found.items()}


@functools.partial(jitted, static=("with_time",))
def forms_and_slopes(system: System, x: Array, with_time: bool) -> tuple[Array, Array]:
    """The one-forms on space, or on space and time, and their derivatives."""
    rest = jnp.zeros(system.n)

    def forms(x: Array) -> Array:
        q, now = x[: system.n], system.at(x[-1]) if with_time else system
        mu = now.mu(q, rest)
        return jnp.column_stack([mu, now.phi(q, rest)]) if with_time else mu

    return forms(x), jax.jacfwd(forms)(x)


@functools.partial(jitted, static=("multiplier",))
def measure_defect(system: System, multiplier: Callable[..., Array], q: Array, v: Array) -> Array:
    """Divergence of the reduced vector field in (r, rdot) against the density f^(d-1) det(G)."""
    fibre = system.fibre or system.coordinates[-system.m :]
    dependent = np.array([system.index(name) for name in fibre])
    base = np.setdiff1d(np.arange(system.n), dependent)

    def lift(q: Array, u: Array) -> Array:
        mu = system.mu(q, v)
        velocity = jnp.zeros_like(q).at[base].set(u)
        return velocity.at[dependent].set(-jnp.linalg.solve(mu[:, dependent], mu[:, base] @ u))

    def flux(r: Array, u: Array) -> tuple[Array, Array]:
        point = q.at[base].set(r)
        lifts = jax.vmap(lift, (None, 0))(point, jnp.eye(len(base)))
        metric = lifts @ system.mass_matrix(point) @ lifts.T
        f = multiplier(point, system.parameters)
        density = f ** (len(base) - 1) * jnp.linalg.det(metric)
        return density * u, density * system.acceleration(point, lift(point, u))[base]

    r, u = q[base], v[base]
    along_r = jax.jacfwd(lambda r: flux(r, u)[0])(r)
    along_u = jax.jacfwd(lambda u: flux(r, u)[1])(u)
    return jnp.trace(along_r) + jnp.trace(along_u)


@jitted
def field(system: System, t: Array, y: Array) -> Array:
    """Right-hand side for (q, v, work)."""
    q, v = y[: system.n], y[system.n : -1]
    return jnp.concatenate([v, system.acceleration(q, v, t), system.power(q, v, t)[None]])


@jitted
def along(system: System, t: Array, q: Array, v: Array) -> dict[str, Any]:
    """Along a motion: the defects of its equations, and all that is asked of its states. Of the first
    integrals also the slopes at the first state, by q and by v."""

    def integrals(q: Array, v: Array, t: Array) -> dict[str, Array]:
        p = system.at(t).parameters
        return {name: f(q, v, p) for name, f in system.first_integrals.items()}

    def at(t: Array, q: Array, v: Array) -> dict[str, Any]:
        a, lam, mu = system.acceleration(q, v, t), system.multipliers(q, v, t), system.mu(q, v, t)
        force, onward = system.applied_force(q, v, t), (v, a, jnp.ones_like(t))
        inertia = jax.jvp(system.momentum, (q, v, t), onward)[1]
        slope, reaction = system.dL_dq(q, v, t), mu.T @ lam
        dphi = jax.jvp(system.phi, (q, v, t), onward)[1]
        dE = jax.jvp(system.energy, (q, v, t), onward)[1]
        size = 1 + sum(jnp.max(jnp.abs(x)) for x in (inertia, slope, reaction, force))
        speed = 1 + jnp.max(jnp.abs(v))
        dL_dt = jax.grad(lambda s: system.lagrangian(q, v, system.at(s).parameters))(t)
        power = jnp.dot(reaction + force, v) - dL_dt
        return {
            "motion": (inertia - slope - force - reaction) / size,
            "constraint": dphi / (jnp.max(jnp.abs(mu), initial=0.0) * (1 + jnp.max(jnp.abs(a)) + speed**2)),
            "power": (dE - power) / (size * speed),
            "multipliers": lam,
            "phi": system.phi(q, v, t),
            "energy": system.energy(q, v, t),
            "energy scale": system.energy_scale(q, v, t),
            "first integrals": integrals(q, v, t),
        }

    slopes = jax.jacrev(integrals, (0, 1))(q[0], v[0], t[0]) if system.first_integrals else {}
    return jax.vmap(at)(t, q, v) | {"slopes": slopes}
