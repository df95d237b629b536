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

from collections.abc import Callable
from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax
from numpy.typing import ArrayLike
from scipy.linalg import qr

from noslip.engine.kept import jitted
from noslip.numerics.linear import solve
from noslip.numerics.tracing import is_traced
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
        q, v = _arrays(q, np.zeros(self.system.n) if v is None else v)
        return _connection(self.system, q, v, fibre=self.fibre)

    def psi(self, q: Array, base_velocity: Array, near: Array | None = None) -> Array:
        """The admissible velocity with that base part, JS (27)."""
        arrays = _arrays(q, base_velocity, np.zeros(self.system.n) if near is None else near)
        return _psi(self.system, *arrays, fibre=self.fibre)

    def base_velocity(self, v: Array) -> Array:
        """The left inverse of psi, JS (29)."""
        if is_traced(v):
            return jnp.asarray(v)[self.base_index]
        return jnp.asarray(np.asarray(v)[self.base_index])  # NumPy has nothing to compile

    def psi_derivative(self, q: Array, base_velocity: Array, near: Array | None = None) -> Array:
        """d(q, v)/d(q, v_a) of shape (2n, 2n - m), JS (28)."""
        arrays = _arrays(q, base_velocity, np.zeros(self.system.n) if near is None else near)
        return _psi_derivative(self.system, *arrays, fibre=self.fibre)

    def vector_field(
        self, q: Array, base_velocity: Array, t: Array | float = 0.0, near: Array | None = None
    ) -> tuple[Array, Array]:
        """The reduced ODE, JS (46): dq/dt and dv_a/dt."""
        v = self.psi(q, base_velocity, near)
        return v, self.base_velocity(self.system.acceleration(q, v, t))


def _arrays(*values: ArrayLike) -> list[Array]:
    return [jnp.asarray(x, dtype=float) for x in values]


def _compiled(function: Callable[..., Array]) -> Callable[..., Array]:
    return jitted(function, static=("fibre",))


@_compiled
def _connection(system: System, q: Array, v: Array, fibre: tuple[str, ...]) -> Array:
    at, mu = AdaptedCoordinates(system, fibre), system.mu(q, v)
    return solve(mu[:, at.fibre_index], mu[:, at.base_index])


@_compiled
def _psi(system: System, q: Array, base_velocity: Array, guess: Array, fibre: tuple[str, ...]) -> Array:
    at = AdaptedCoordinates(system, fibre)
    v = guess.at[at.base_index].set(base_velocity)

    def newton(_: int | Array, v: Array) -> Array:
        mu = system.mu(q, v)[:, at.fibre_index]
        return v.at[at.fibre_index].add(-solve(mu, system.phi(q, v)))

    if system.kind != "nonlinear":
        return newton(0, v)
    return lax.fori_loop(0, NEWTON_STEPS, newton, v)


@_compiled
def _psi_derivative(
    system: System, q: Array, base_velocity: Array, guess: Array, fibre: tuple[str, ...]
) -> Array:
    def full(q: Array, w: Array) -> Array:
        return jnp.concatenate([q, _psi(system, q, w, guess, fibre=fibre)])

    return jnp.hstack(jax.jacfwd(full, (0, 1))(q, base_velocity))


def adapted_coordinates(
    system: System, q: ArrayLike, v: ArrayLike | None = None, *, fibre: tuple[str, ...] | None = None
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
