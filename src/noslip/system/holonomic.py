"""What a system can say and do about its holonomic constraints g(q) = 0; see `system.positions`."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable
from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import Array

from noslip.system.derived import Parameters, Vector, derived, holonomic_by
from noslip.system.positions import nearest_position, rate_of
from noslip.system.turning import Turned, stretch


class Placed(Turned):
    """A system whose positions may have to satisfy equations."""

    n: Any
    m: int
    k: int
    kind: Any
    holonomic: Callable[[Array, Parameters], Array] | None
    parameters: Parameters

    @functools.cached_property
    def rows(self) -> int:
        """Number of rows of mu, phi and the multipliers: m velocity constraints, then k holonomic ones, then
        one for each rotation."""
        return self.m + self.k + len(self.rotations)

    @property
    def constraints(self) -> str:
        """How many there are and of which kind, in words."""
        found = [f"{self.m}, {self.kind}"] if self.m else []
        return " and ".join([*found, f"{self.k}, holonomic"] if self.k else found) or "none"

    def further_forms(self, q: Array) -> Array:
        """The rows of mu after the first m: G, and those of the rotations."""
        rows, place = jnp.concatenate([self.G(q), jnp.zeros((len(self.rotations), self.n))]), self.k
        for block in self.blocks:
            u = q[jnp.array(block)]
            rows = rows.at[place, jnp.array(block)].set(u / jnp.dot(u, u))
            place += 1
        return rows

    def further_phi(self, q: Array, v: Array) -> Array:
        """The values of phi after the first m: dg/dt, and u . du / |u|^2."""
        system: Any = self
        found = [rate_of(system, type(system).g, q, v)] if self.k else []
        return jnp.concatenate([*found, stretch(self.blocks, q, v)] if self.rotations else found)

    def need_free_positions(self, what: str) -> None:
        """Refuse holonomic constraints and rotations where something is made for systems without them."""
        if self.k or self.rotations:
            found = f"{self.k} holonomic constraints" if self.k else f"rotations {', '.join(self.rotations)}"
            raise ValueError(f"{what} needs positions that are free coordinates, but this system has {found}")

    @derived
    def g(self, q: Vector, t: Vector = None, *, parameters: Parameters | None = None) -> Array:
        """Value of the holonomic constraints, shape (k,)."""
        system: Any = self
        return holonomic_by(system, "", q) if self.k else jnp.zeros(0)

    @derived
    def G(self, q: Vector, t: Vector = None, *, parameters: Parameters | None = None) -> Array:
        """dg/dq, shape (k, n)."""
        system: Any = self
        return holonomic_by(system, "q", q) if self.k else jnp.zeros((0, self.n))

    def project_position(
        self,
        q: Vector,
        fixed: Iterable[str] = (),
        t: Vector = None,
        *,
        parameters: Parameters | None = None,
    ) -> np.ndarray:
        """A position near q with g = 0, by Newton's method in the kinetic metric; the coordinates in `fixed`
        keep their values. Says what cannot be."""
        system: Any = self
        system = system if parameters is None else system.with_parameters(parameters)
        return nearest_position(system if t is None else system.at(float(t)), np.array(q, float), fixed)
