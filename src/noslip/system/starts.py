"""Where a run may start: the velocity of least kinetic energy with chosen speeds that is admissible.

The conditions are g(v) = 0: the constraints phi(q, v) = 0, and for each chosen speed f(q, v) - value, f being
the velocity of a coordinate or a function of the user. At the solution M v = J^T nu with J = dg/dv. For
conditions that are linear in v it is v - M^-1 J^T (J M^-1 J^T)^+ g(v) from any v; others are solved by
Newton's method for (v, nu) from several starts, and the slowest solution found is taken.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

if TYPE_CHECKING:
    from noslip.system import System

TRIES, ITERATIONS = 16, 60
ROUND_OFF = 1e-12  # of the terms of a condition
DEPENDENT = 1e-10  # of singular values


def consistent_velocity(system: System, q: np.ndarray, fixed: Mapping[str, Any]) -> np.ndarray:
    """See `System.consistent_velocity`; the system is at its time."""
    chosen = {name: _condition(system, name, given) for name, given in fixed.items()}
    if (v := _least(system, q, list(chosen.values()))) is not None:
        return v
    names = list(chosen)
    for k in range(1, len(names)):  # one after the other, so that the first that fails is named
        if _least(system, q, [chosen[name] for name in names[:k]]) is None:
            raise ValueError(_refusal(system, names[:k], fixed))
    raise ValueError(_refusal(system, names, fixed))


Condition = tuple[Callable[[Array, Array], Array], float]


def _condition(system: System, name: str, given: Any) -> Condition:
    """f(q, v) and the value that it shall have."""
    if isinstance(given, tuple) and len(given) == 2 and callable(given[0]):
        function, value = given
        return lambda q, v: jnp.asarray(function(q, v, system.parameters), float), float(value)
    index = system.index(name)
    if isinstance(given, bool) or np.ndim(given) != 0 or not np.isfinite(np.asarray(given, float)):
        raise ValueError(
            f"`fixed['{name}']` must be a speed, or a pair of a function f(q, v, p) and its value, "
            f"but {given!r} was provided"
        )
    return lambda q, v: v[index], float(given)


def _least(system: System, q: np.ndarray, chosen: list[Condition]) -> np.ndarray | None:
    """The velocity, or None where none is found."""
    M, n = np.asarray(system.mass_matrix(q)), system.n
    functions, values = [f for f, _ in chosen], np.array([value for _, value in chosen])

    @jax.jit
    def conditions(v: Array) -> Array:
        speeds = [f(jnp.asarray(q), v) for f in functions]
        return jnp.concatenate([system.phi(q, v), jnp.array(speeds) - values])

    slope = jax.jit(jax.jacfwd(conditions))
    curvature = jax.jit(jax.jacfwd(jax.jacrev(conditions)))
    speed = float(np.max(np.abs(values), initial=0.0)) or 1.0
    rng, found = np.random.default_rng(0), []
    for k in range(TRIES):
        start = np.zeros(n) if k == 0 else speed * rng.normal(size=n)
        if (v := _solved(M, start, conditions, slope, curvature)) is not None:
            found.append(v)
        if _is_linear(curvature, np.ones(n), np.arange(n) + 1.0):
            break  # one solution, or none
    return min(found, key=lambda v: float(v @ M @ v)) if found else None


def _is_linear(curvature: Any, *at: np.ndarray) -> bool:
    return all(not np.any(np.asarray(curvature(v))) for v in at)


def _solved(M: np.ndarray, v: np.ndarray, g: Any, slope: Any, curvature: Any) -> np.ndarray | None:
    """Newton's method for M v = J^T nu, g(v) = 0; dependent conditions are met by least squares."""
    n, nu = len(v), np.zeros(len(np.asarray(g(v))))
    for _ in range(ITERATIONS):
        J, values, bends = (np.asarray(f(v)) for f in (slope, g, curvature))
        if not all(np.all(np.isfinite(x)) for x in (v, J, values, bends)):
            return None
        bend = np.tensordot(nu, bends, 1)
        matrix = np.block([[M - bend, -J.T], [J, np.zeros((len(nu), len(nu)))]])
        right = -np.concatenate([M @ v - J.T @ nu, values])
        step = np.linalg.lstsq(matrix, right, rcond=DEPENDENT)[0]
        v, nu = v + step[:n], nu + step[n:]
        if np.max(np.abs(step[:n])) <= ROUND_OFF * np.max(np.abs(v), initial=1e-300):
            break
    J, values = np.asarray(slope(v)), np.abs(np.asarray(g(v)))
    force = np.max(np.abs(M @ v - J.T @ np.linalg.lstsq(J.T, M @ v, rcond=None)[0]), initial=0.0)
    size = np.abs(J) @ np.abs(v) + np.max(np.abs(v), initial=0.0)
    good = np.all(values <= 1e3 * ROUND_OFF * size) and force <= 1e-6 * np.max(np.abs(M @ v), initial=1e-300)
    return v if good else None


def _refusal(system: System, names: list[str], fixed: Mapping[str, Any]) -> str:
    def shown(name: str) -> str:
        given = fixed[name]
        return f"'{name}' = {given[1] if isinstance(given, tuple) else given}"

    if not names:
        return f"the constraints must be satisfied by some velocity, but at time {system.time} none was found"
    *before, last = map(shown, names)
    others = "".join(f" and {x}" for x in before)
    return (
        f"`fixed` must leave a velocity possible, but {last} cannot be together with the constraints{others}"
    )
