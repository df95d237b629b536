"""Mass matrices that are positive on the admissible velocities only, JS (7i).

JS theorem 2.1 asks for <M z, z> > 0 only for z != 0 with mu z = 0: a wheel without inertia of its own, say,
or a coordinate that no kinetic energy knows. The methods of this package, and the derived quantities of
`System`, solve with M itself. Both are served by the Lagrangian

    L + (stiffness / 2) phi . phi,        phi = mu v (+ b)

whose mass matrix M + stiffness mu^T mu is positive definite for every large enough stiffness just if (7i)
holds (Finsler's lemma). Along phi = 0 the new term, its value, its momentum and its force vanish, so motions,
multipliers and energies on the constraint are those of L, whatever the stiffness; methods that keep the
constraint at the points where they evaluate L do not see it either, others by the order of their error.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields

import jax.numpy as jnp
import numpy as np
from jax import Array
from numpy.typing import ArrayLike

from noslip.system import Parameters, System


@dataclass(frozen=True)
class _Stiffened:
    """A value, so that equal ones make systems that share compiled code."""

    lagrangian: Callable[[Array, Array, Parameters], Array]
    one_forms: Callable[[Array, Parameters], Array]
    drift: Callable[[Array, Parameters], Array] | None
    stiffness: float

    def __call__(self, q: Array, v: Array, p: Parameters) -> Array:
        phi = jnp.asarray(self.one_forms(q, p)) @ v
        if self.drift is not None:
            phi = phi + jnp.asarray(self.drift(q, p))
        return self.lagrangian(q, v, p) + self.stiffness / 2 * jnp.dot(phi, phi)


def least_on_constraint(system: System, q: ArrayLike, v: ArrayLike | None = None) -> float:
    """The least of <M z, z> over the z with mu z = 0, |z| = 1: JS (7i) holds where it is positive."""
    mu = np.asarray(system.mu(q, np.zeros(system.n) if v is None else v))
    X = np.linalg.svd(mu, full_matrices=True)[2][system.m :].T
    return float(np.linalg.eigvalsh(X.T @ np.asarray(system.mass_matrix(q)) @ X)[0])


def positive_system(system: System, q: ArrayLike, *, stiffness: float | None = None) -> System:
    """The system with a mass matrix that is positive definite at q and around, and the same motions.

    Without `stiffness` one is chosen by which the new term weighs about as much as M does. For linear and
    affine constraints; refused where (7i) does not hold at q.
    """
    if system.one_forms is None:
        kind = "nonlinear" if system.m else "none"
        raise ValueError(f"`positive_system` needs linear or affine constraints, but these are {kind}")
    if not (least := least_on_constraint(system, q)) > 0:
        raise ValueError(
            f"M must be positive on the admissible velocities, JS (7i), but at q = {np.asarray(q)} "
            f"its least value there is {least:.1e}"
        )
    M, mu = np.asarray(system.mass_matrix(q)), np.asarray(system.mu(q, np.zeros(system.n)))
    if stiffness is None:
        stiffness = _enough(M, mu)
    made = M + stiffness * mu.T @ mu
    if not (lowest := np.linalg.eigvalsh(made)[0]) > 0:
        raise ValueError(
            f"`stiffness` must make M + stiffness mu^T mu positive definite, but with {stiffness!r} "
            f"its least eigenvalue is {lowest:.1e}"
        )
    given = {field.name: getattr(system, field.name) for field in fields(System) if field.init}
    given["lagrangian"] = _Stiffened(system.lagrangian, system.one_forms, system.drift, float(stiffness))
    return System(**given)


def _enough(M: np.ndarray, mu: np.ndarray) -> float:
    """The size of M over that of mu^T mu, doubled until the sum is well positive."""
    stiffness = float(np.linalg.norm(M) / np.linalg.norm(mu) ** 2)
    while True:
        values = np.linalg.eigvalsh(M + stiffness * mu.T @ mu)
        again = np.linalg.eigvalsh(M + 2 * stiffness * mu.T @ mu)
        if values[0] > 0 and again[0] < 1.5 * values[0]:
            return stiffness
        stiffness *= 2
