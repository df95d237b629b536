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
from numpy.typing import ArrayLike

from noslip.engine.backends.numpy_rows import evaluate_anyhow
from noslip.errors import shown

if TYPE_CHECKING:
    from noslip.system import System

TRIES, ITERATIONS = 16, 60
ROUND_OFF = 1e-12  # of the terms of a condition
DEPENDENT = 1e-10  # of singular values


def consistent_velocity(system: System, q: np.ndarray, fixed: Mapping[str, ArrayLike]) -> np.ndarray:
    """See `System.consistent_velocity`; the system is at its time."""
    if not isinstance(fixed, Mapping):
        raise TypeError(f"`fixed` must map names of coordinates to speeds, but {shown(fixed)} was provided")
    chosen = {name: _condition(system, name, given) for name, given in fixed.items()}
    if (v := _least(system, q, list(chosen.values()))) is not None:
        return v
    names = list(chosen)
    for k in range(1, len(names)):  # one after the other, so that the first that fails is named
        if _least(system, q, [chosen[name] for name in names[:k]]) is None:
            raise ValueError(_refusal(system, names[:k], fixed))
    raise ValueError(_refusal(system, names, fixed))


Speed = int | Callable[..., Any]  # of a coordinate, by its number, or a function of (q, v, p)
Condition = tuple[Speed, float]


def _condition(system: System, name: str, given: Any) -> Condition:
    """The speed and the value that it shall have."""
    if isinstance(given, tuple) and len(given) == 2 and callable(given[0]):
        return given[0], float(given[1])
    index = system.index(name)
    if isinstance(given, bool) or np.ndim(given) != 0 or not np.isfinite(np.asarray(given, float)):
        raise ValueError(
            f"`fixed['{name}']` must be a speed, or a pair of a function f(q, v, p) and its value, "
            f"but {given!r} was provided"
        )
    return index, float(given)


def _least(system: System, q: np.ndarray, chosen: list[Condition]) -> np.ndarray | None:
    """The velocity, or None where none is found."""
    (M,), n = evaluate_anyhow(_mass, None, system, q[None]), system.n
    speeds, values = tuple(speed for speed, _ in chosen), np.array([value for _, value in chosen])

    def conditions(v: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        g, J, bends = (x[0] for x in evaluate_anyhow(_derivatives, speeds, system, q[None], v[None]))
        g[len(g) - len(values) :] -= values
        return g, J, bends

    speed = float(np.max(np.abs(values), initial=0.0)) or 1.0
    rng, found = np.random.default_rng(0), []
    linear = all(not np.any(conditions(v)[2]) for v in (np.ones(n), np.arange(n) + 1.0))
    for k in range(1 if linear else TRIES):  # of linear conditions there is one solution, or none
        start = np.zeros(n) if k == 0 else speed * rng.normal(size=n)
        if (v := _solved(M, start, conditions)) is not None:
            found.append(v)
    return min(found, key=lambda v: float(v @ M @ v)) if found else None


def _mass(_: None, system: System, q: Array) -> Array:
    return system.mass_matrix(q)


def _derivatives(speeds: tuple[Speed, ...], system: System, q: Array, v: Array) -> tuple[Array, Array, Array]:
    """phi and the speeds, with first and second derivatives by v."""

    def conditions(v: Array) -> Array:
        found = [v[f] if isinstance(f, int) else f(q, v, system.parameters) for f in speeds]
        return jnp.concatenate([system.phi(q, v), jnp.array([jnp.asarray(x, float) for x in found])])

    slope = jax.jacfwd(conditions)
    return conditions(v), slope(v), jax.jacfwd(slope)(v)


Conditions = Callable[[np.ndarray], tuple[np.ndarray, np.ndarray, np.ndarray]]


def _solved(M: np.ndarray, v: np.ndarray, conditions: Conditions) -> np.ndarray | None:
    """Newton's method for M v = J^T nu, g(v) = 0; dependent conditions are met by least squares."""
    n, nu = len(v), np.zeros(len(conditions(v)[0]))
    for _ in range(ITERATIONS):
        values, J, bends = conditions(v)
        if not all(np.all(np.isfinite(x)) for x in (v, J, values, bends)):
            return None
        bend = np.tensordot(nu, bends, 1)
        matrix = np.block([[M - bend, -J.T], [J, np.zeros((len(nu), len(nu)))]])
        right = -np.concatenate([M @ v - J.T @ nu, values])
        step = np.linalg.lstsq(matrix, right, rcond=DEPENDENT)[0]
        v, nu = v + step[:n], nu + step[n:]
        if np.max(np.abs(step[:n])) <= ROUND_OFF * np.max(np.abs(v), initial=1e-300):
            break
    values, J, _ = conditions(v)
    force = np.max(np.abs(M @ v - J.T @ np.linalg.lstsq(J.T, M @ v, rcond=None)[0]), initial=0.0)
    size = np.abs(J) @ np.abs(v) + np.max(np.abs(v), initial=0.0)
    good = np.all(np.abs(values) <= 1e3 * ROUND_OFF * size)
    good = good and force <= 1e-6 * np.max(np.abs(M @ v), initial=1e-300)
    return v if good else None


def _refusal(system: System, names: list[str], fixed: Mapping[str, ArrayLike]) -> str:
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
