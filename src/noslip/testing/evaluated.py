"""What the checks of a system ask, by NumPy or in machine code: XLA would take longest to compile it."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from numpy.typing import ArrayLike

from noslip.engine.backends.numpy_rows import evaluate_anyhow
from noslip.engine.kept import kept
from noslip.numerics.linear import solve
from noslip.numerics.pytrees import anatomy
from noslip.run.flow_code import numbers_of
from noslip.run.of_states import OfStates
from noslip.run.programs import Shapes
from noslip.system import System


def _evaluated(_: None, system: System, q: Array, v: Array) -> dict[str, Array]:
    found = {"phi": system.phi(q, v), "mass matrix": system.mass_matrix(q), "mu": system.mu(q, v)}
    if system.frame is not None:
        found["frame"] = system.frame(q, system.parameters)
    return found


def at_state(system: System, q: ArrayLike, v: ArrayLike) -> dict[str, np.ndarray]:
    """What a system is made of."""
    return _at_one(_evaluated, None, system, q, v)


def forms_and_slopes(system: System, x: ArrayLike, with_time: bool) -> tuple[np.ndarray, np.ndarray]:
    """The one-forms on space, or on space and time, and their derivatives."""
    return _at_one(_forms_and_slopes, with_time, system, x)


def _forms_and_slopes(with_time: bool, system: System, x: Array) -> tuple[Array, Array]:
    rest = jnp.zeros(system.n)

    def forms(x: Array) -> Array:
        q, now = x[: system.n], system.at(x[-1]) if with_time else system
        mu = now.mu(q, rest)
        return jnp.column_stack([mu, now.phi(q, rest)]) if with_time else mu

    return forms(x), jax.jacfwd(forms)(x)


def measure_defect(system: System, multiplier: Callable[..., Array], q: ArrayLike, v: ArrayLike) -> float:
    """Divergence of the reduced vector field in (r, rdot) against the density f^(d-1) det(G)."""
    f, df, G, dG, slopes = _at_one(_parts_of_measure, multiplier, system, q, v)
    d, volume = len(G), np.linalg.det(G)
    along_r = ((d - 1) * f ** (d - 2) * df + f ** (d - 1) * np.trace(np.linalg.solve(G, dG))) * volume
    return float(along_r + f ** (d - 1) * volume * np.trace(slopes))


def _parts_of_measure(
    multiplier: Callable[..., Array], system: System, q: Array, v: Array
) -> tuple[Array, ...]:
    """f and G, how they change along the motion, and the derivative of the acceleration by rdot."""
    fibre = system.fibre or system.coordinates[-system.m :]
    dependent = np.array([system.index(name) for name in fibre])
    base = np.setdiff1d(np.arange(system.n), dependent)

    def lift(q: Array) -> Array:
        mu, unit = system.mu(q, v), jnp.eye(system.n)[:, base]
        return unit.at[dependent].set(-solve(mu[:, dependent], mu[:, base]))

    def of_base(r: Array) -> tuple[Array, Array]:
        point = q.at[base].set(r)
        X = lift(point)
        return jnp.asarray(multiplier(point, system.parameters)), X.T @ system.mass_matrix(point) @ X

    (f, G), (df, dG) = jax.jvp(of_base, (q[base],), (v[base],))
    slopes = jax.jacfwd(lambda u: system.acceleration(q, lift(q) @ u)[base])(v[base])
    return f, df, G, dG, slopes


def field(system: System) -> Callable[[float, np.ndarray], np.ndarray]:
    """Right-hand side for (q, v, work), in machine code: a motion asks it some thousand times."""
    _, structure, shapes = anatomy(system)
    code, fixed = _field(structure, shapes), numbers_of(system)
    return lambda t, y: code(fixed, y[None], np.array([t]))[:, 0]


@kept
def _field(structure: jax.tree_util.PyTreeDef, shapes: Shapes) -> OfStates:
    system = jax.tree.unflatten(structure, [jax.ShapeDtypeStruct(s, float) for s in shapes])
    return OfStates(_rates, (system,), ((2 * system.n + 1,), ()), many=False)


def _rates(fixed: tuple[System], y: Array, t: Array) -> Array:
    (system,) = fixed
    q, v = y[: system.n], y[system.n : -1]
    return jnp.concatenate([v, system.acceleration(q, v, t), system.power(q, v, t)[None]])


def along(system: System, t: np.ndarray, q: np.ndarray, v: np.ndarray) -> dict[str, Any]:
    """Along a motion: the defects of its equations, and all that is asked of its states. Of the first
    integrals also the slopes, by q and by v."""
    found: dict[str, Any] = evaluate_anyhow(_along, None, system, t, q, v)
    return found


def _along(_: None, system: System, t: Array, q: Array, v: Array) -> dict[str, Any]:
    def integrals(q: Array, v: Array) -> dict[str, Array]:
        p = system.at(t).parameters
        return {name: jnp.asarray(f(q, v, p), float) for name, f in system.first_integrals.items()}

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
        "first integrals": integrals(q, v),
        "slopes": jax.jacrev(integrals, (0, 1))(q, v) if system.first_integrals else {},
    }


def _at_one(function: Callable[..., Any], static: Hashable, system: System, *arrays: ArrayLike) -> Any:
    rows = (np.asarray(x, float)[None] for x in arrays)
    return jax.tree.map(lambda x: x[0], evaluate_anyhow(function, static, system, *rows))
