"""D-adapted coordinates: dependent velocities solved from the constraints (JS section 3.1).

Split the coordinates into base (a) and fibre (alpha), as many fibre coordinates as constraints, such
that the constraints determine the fibre velocities. For linear constraints mu = (mu_a, mu_alpha):

    v_alpha = -A(q) v_a,   A = mu_alpha^-1 mu_a                       the Ehresmann connection
    psi(q, v_a) = (q, v)                                             JS (27)
    its derivative, of shape (2n, 2n - m)                            JS (28)
    the left inverse (q, v) -> (q, v_a)                              JS (29)
    dq/dt = v,  dv_a/dt = the base part of the acceleration          JS (46)

Affine constraints add -mu_alpha^-1 b; nonlinear ones are solved by Newton's method, from the velocity
`near`, which also chooses the branch. The fibre is named by the user or the system, or chosen by
pivoting: the columns of mu that are best conditioned at the given state.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax
from scipy.linalg import qr

from noslip.numerics.linear import solve
from noslip.system import System

NEWTON_STEPS = 30


@dataclass(frozen=True)
class AdaptedCoordinates:
    """The coordinates (q, v_a) on the constraint manifold of a system."""

    system: System
    fibre: tuple[str, ...]

    @property
    def fibre_index(self) -> np.ndarray:
        """Positions of the fibre coordinates."""
        return np.array([self.system.index(name) for name in self.fibre], dtype=int)

    @property
    def base_index(self) -> np.ndarray:
        """Positions of the base coordinates."""
        return np.array([i for i, name in enumerate(self.system.coordinates) if name not in self.fibre])

    def connection(self, q: Array, v: Array | None = None) -> Array:
        """A(q) of shape (m, n - m); for nonlinear constraints -d v_alpha / d v_a at v."""
        mu = self.system.mu(q, jnp.zeros(self.system.n) if v is None else v)
        return solve(mu[:, self.fibre_index], mu[:, self.base_index])

    def psi(self, q: Array, base_velocity: Array, near: Array | None = None) -> Array:
        """The admissible velocity with that base part, JS (27)."""
        guess = jnp.zeros(self.system.n) if near is None else jnp.asarray(near, dtype=float)
        v = guess.at[self.base_index].set(base_velocity)

        def newton(_: Any, v: Array) -> Array:
            mu = self.system.mu(q, v)[:, self.fibre_index]
            return v.at[self.fibre_index].add(-solve(mu, self.system.phi(q, v)))

        if self.system.kind != "nonlinear":
            return newton(0, v)
        return lax.fori_loop(0, NEWTON_STEPS, newton, v)

    def base_velocity(self, v: Array) -> Array:
        """The left inverse of psi, JS (29)."""
        return jnp.asarray(v)[self.base_index]

    def psi_derivative(self, q: Array, base_velocity: Array, near: Array | None = None) -> Array:
        """d(q, v)/d(q, v_a) of shape (2n, 2n - m), JS (28)."""

        def full(q: Array, w: Array) -> Array:
            return jnp.concatenate([q, self.psi(q, w, near)])

        return jnp.hstack(jax.jacfwd(full, (0, 1))(jnp.asarray(q, dtype=float), jnp.asarray(base_velocity)))

    def vector_field(
        self, q: Array, base_velocity: Array, t: Array | float = 0.0, near: Array | None = None
    ) -> tuple[Array, Array]:
        """The reduced ODE, JS (46): dq/dt and dv_a/dt."""
        v = self.psi(q, base_velocity, near)
        return v, self.system.acceleration(q, v, t)[self.base_index]


def adapted_coordinates(
    system: System, q: Any, v: Any = None, *, fibre: tuple[str, ...] | None = None
) -> AdaptedCoordinates:
    """Coordinates on D near a state; the fibre is the one given, else the system's, else by pivoting."""
    system.need_free_positions("a fibre")
    v = np.zeros(system.n) if v is None else v
    mu = np.asarray(system.mu(q, v))
    names = fibre or system.fibre or choose_fibre(system, mu)
    if len(names) != system.m:
        raise ValueError(f"`fibre` must name {system.m} coordinates, but {tuple(names)} was provided")
    coordinates = AdaptedCoordinates(system, tuple(names))
    values = np.linalg.svd(mu[:, coordinates.fibre_index], compute_uv=False)
    if system.m and not values[-1] > 1e-10 * np.linalg.norm(mu):
        raise ValueError(
            f"the constraints must determine the velocities of the fibre {coordinates.fibre}, but at "
            f"q = {np.asarray(q)} their matrix has singular values {values}; name other coordinates"
        )
    return coordinates


def choose_fibre(system: System, mu: np.ndarray) -> tuple[str, ...]:
    """The m coordinates whose columns of mu are the most independent (QR with column pivoting)."""
    if not system.m:
        return ()
    _, _, order = qr(mu, mode="economic", pivoting=True)
    return tuple(system.coordinates[i] for i in sorted(order[: system.m]))
