"""Constraints as a splitting of base and fibre velocities, and the motion that it gives (PP section 2).

With coordinates x = (x^u, x^ubar), fibre and base, and velocities y, a constraint is a map

    y^u = C^u(x, y^ubar),      C^u_ubar = dC^u / dy^ubar                                       PP (2.4)

linear, affine or nonlinear in y^ubar. Virtual displacements are dx^u = C^u_ubar dx^ubar, so that the
Lagrange-d'Alembert-Chaplygin equations, with E = d/dt dL/dy - dL/dx - force, are

    E_ubar + C^u_ubar E_u = 0                                        PP (2.2), printed with -: see errata 30

A `Splitting` is made from any `System` whose constraints determine the chosen fibre velocities
(`splitting`), and a `System` from a Lagrangian and C (`system_from_splitting`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax
from numpy.typing import ArrayLike

from noslip.errors import unknown_name
from noslip.geometry.connection import AdaptedCoordinates, adapted_coordinates
from noslip.numerics.linear import solve
from noslip.numerics.tracing import Real
from noslip.system import Parameters, System

SplittingMap = Callable[[Array, Array, Parameters], Array]
"""C(q, base_velocity, parameters) of shape (m,)."""

KINDS = ("linear", "affine", "nonlinear")
SAMPLES = 4
TOLERANCE = 1e-8


@dataclass(frozen=True, eq=False)
class Splitting:
    """The fibre velocities of a system as functions of position and base velocity.

    `near` is a velocity from which nonlinear constraints are solved; it chooses the branch.
    """

    coordinates: AdaptedCoordinates
    near: Array

    @property
    def system(self) -> System:
        return self.coordinates.system

    @property
    def fibre(self) -> tuple[str, ...]:
        return self.coordinates.fibre

    @property
    def base_index(self) -> np.ndarray:
        """Positions of the base coordinates x^ubar."""
        return self.coordinates.base_index

    @property
    def fibre_index(self) -> np.ndarray:
        """Positions of the fibre coordinates x^u."""
        return self.coordinates.fibre_index

    def join(self, fibre: Array, base: Array) -> Array:
        """The point or vector with those parts."""
        out = jnp.zeros(self.system.n).at[self.base_index].set(base)
        return out.at[self.fibre_index].set(fibre)

    def C(self, q: ArrayLike, base_velocity: ArrayLike, near: Array | None = None) -> Array:
        """C^u(x, y^ubar) of shape (m,), PP (2.4); differentiable in both arguments, up to three times."""
        q, w = jnp.asarray(q, dtype=float), jnp.asarray(base_velocity, dtype=float)
        near = self.near if near is None else near
        v = self.coordinates.psi(q, w, near)
        if self.system.kind == "nonlinear":
            # Each Newton step from the root, held fixed, doubles the order to which its expansion in
            # (q, w) is right: the implicit function theorem, without differentiating the iteration.
            v = self.join(lax.stop_gradient(v)[self.fibre_index], w)
            for _ in range(2):
                mu = self.system.mu(q, v)[:, self.fibre_index]
                v = v.at[self.fibre_index].add(-solve(mu, self.system.phi(q, v)))
        return v[self.fibre_index]

    def velocity(self, q: ArrayLike, base_velocity: ArrayLike, near: Array | None = None) -> Array:
        """The admissible velocity with that base part."""
        return self.join(self.C(q, base_velocity, near), jnp.asarray(base_velocity, dtype=float))

    def slope(self, q: ArrayLike, v: ArrayLike) -> Array:
        """C^u_ubar at an admissible velocity, shape (m, n - m)."""
        return -self.coordinates.connection(jnp.asarray(q, dtype=float), jnp.asarray(v, dtype=float))

    def position_derivative(self, q: ArrayLike, v: ArrayLike) -> Array:
        """dC^u/dx at an admissible velocity, shape (m, n), by the implicit function theorem."""
        q, v = jnp.asarray(q, dtype=float), jnp.asarray(v, dtype=float)
        dphi = jax.jacfwd(self.system.phi, 0)(q, v)
        return -solve(self.system.mu(q, v)[:, self.fibre_index], dphi)

    def displacements(self, q: ArrayLike, v: ArrayLike, sign: float = 1.0) -> Array:
        """Columns dx = (sign C^u_ubar, 1) of shape (n, n - m); for sign = 1 the kernel of dphi/dv."""
        X = jnp.zeros((self.system.n, self.system.n - self.system.m))
        X = X.at[self.base_index].set(jnp.eye(self.system.n - self.system.m))
        return X.at[self.fibre_index].set(sign * self.slope(q, v))

    def constrained_lagrangian(
        self, q: ArrayLike, base_velocity: ArrayLike, near: Array | None = None
    ) -> Array:
        """L_c = L o C, PP (2.3)."""
        q = jnp.asarray(q, dtype=float)
        return self.system.lagrangian(q, self.velocity(q, base_velocity, near), self.system.parameters)

    def acceleration(self, q: ArrayLike, v: ArrayLike, t: Real = 0.0, *, sign: float = 1.0) -> Array:
        """dv/dt from PP (2.2): with a = X a_base + (dC/dx v, 0) the projected equation
        X_sign^T (M a - f) = 0 is solved for a_base. sign = -1 is the equation as printed, which is not
        that of the motion; it serves to reproduce the paper."""
        system, q, v = self.system, jnp.asarray(q, dtype=float), jnp.asarray(v, dtype=float)
        X, S = self.displacements(q, v), self.displacements(q, v, sign)
        zero = jnp.zeros(len(self.base_index))
        along = self.join(self.position_derivative(q, v) @ v, zero)
        dp = jax.jvp(lambda x: system.momentum(x, v), (q,), (v,))[1]
        f = system.dL_dq(q, v) - dp + system.applied_force(q, v, t)
        M = system.mass_matrix(q)
        return X @ solve(S.T @ M @ X, S.T @ (f - M @ along)) + along


def splitting(
    system: System, q: ArrayLike, v: ArrayLike | None = None, *, fibre: tuple[str, ...] | None = None
) -> Splitting:
    """Put the constraints of a system into the form y^u = C^u(x, y^ubar) near a state.

    The fibre is the one given, else the system's, else chosen by pivoting; a fibre whose velocities the
    constraints do not determine there is refused. `v` also chooses the branch of nonlinear constraints.
    """
    near = jnp.zeros(system.n) if v is None else jnp.asarray(v, dtype=float)
    return Splitting(adapted_coordinates(system, q, near, fibre=fibre), near)


@dataclass(frozen=True)
class _Constraint:
    """phi = v_fibre - C(q, v_base, p); a value, so that equal ones make systems that share compiled code."""

    C: SplittingMap
    fibre: tuple[int, ...]
    base: tuple[int, ...]

    def __call__(self, q: Array, v: Array, p: Parameters) -> Array:
        return v[np.array(self.fibre)] - jnp.asarray(self.C(q, v[np.array(self.base)], p))


@dataclass(frozen=True)
class _OneForms:
    phi: _Constraint

    def __call__(self, q: Array, p: Parameters) -> Array:
        return jax.jacfwd(self.phi, 1)(q, jnp.zeros_like(q), p)


@dataclass(frozen=True)
class _Drift:
    phi: _Constraint

    def __call__(self, q: Array, p: Parameters) -> Array:
        return self.phi(q, jnp.zeros_like(q), p)


def system_from_splitting(
    lagrangian: Callable[[Array, Array, Parameters], Array],
    C: SplittingMap,
    *,
    coordinates: tuple[str, ...],
    fibre: tuple[str, ...],
    kind: str = "nonlinear",
    parameters: Parameters | None = None,
    **options: Any,
) -> System:
    """The system with constraints phi = v_fibre - C(q, v_base, p).

    Base velocities come in the order of `coordinates`, the values of C in that of `fibre`. With
    kind="linear" or "affine" the constraints are handed on as one-forms (and drift), so that methods for
    those apply. `options` are those of `System`.
    """
    if kind not in KINDS:
        raise ValueError(unknown_name("kind", kind, KINDS))
    for name in fibre:
        if name not in coordinates:
            raise ValueError(unknown_name("coordinate in `fibre`", name, coordinates))
    at = tuple(coordinates.index(name) for name in fibre)
    phi = _Constraint(C, at, tuple(i for i in range(len(coordinates)) if i not in at))
    given: dict[str, Any] = {"constraint": phi}
    if kind != "nonlinear":
        given = {"one_forms": _OneForms(phi)} | ({"drift": _Drift(phi)} if kind == "affine" else {})
    system = System(
        lagrangian, coordinates=coordinates, fibre=fibre, parameters=parameters or {}, **given, **options
    )
    _check_kind(system, phi, kind)
    return system


def _check_kind(system: System, phi: _Constraint, kind: str) -> None:
    """Refuse a C that is not of the kind declared, at sample points."""
    if kind == "nonlinear":
        return
    q, v = np.random.default_rng(0).uniform(-1.0, 1.0, (2, SAMPLES, system.n))
    for one, velocity in zip(q, v, strict=True):
        value = np.asarray(phi(jnp.asarray(one), jnp.asarray(velocity), system.parameters))
        defect = np.max(np.abs(value - np.asarray(system.phi(one, velocity))))
        if defect > TOLERANCE * (1 + np.max(np.abs(value))):
            raise ValueError(f"`C` was declared {kind} in the base velocities, but it is not")
