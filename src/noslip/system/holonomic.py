"""What a system can say and do about its holonomic constraints g(q) = 0; see `system.positions`."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from noslip.system.derived import Parameters, derived
from noslip.system.positions import nearest_position

Vector = Any


class Placed:
    """A system whose positions may have to satisfy equations."""

    n: Any
    m: int
    k: int
    kind: Any
    holonomic: Any
    parameters: Mapping[str, Any]

    @functools.cached_property
    def rows(self) -> int:
        """Number of rows of mu, phi and the multipliers: m velocity constraints, then k holonomic ones."""
        return self.m + self.k

    @property
    def constraints(self) -> str:
        """How many there are and of which kind, in words."""
        found = [f"{self.m}, {self.kind}"] if self.m else []
        return " and ".join([*found, f"{self.k}, holonomic"] if self.k else found) or "none"

    def need_free_positions(self, what: str) -> None:
        """Refuse holonomic constraints where something is made for systems without them."""
        if self.k:
            raise ValueError(
                f"{what} needs a system without holonomic constraints, but this one has {self.k}"
            )

    @derived
    def g(self, q: Vector, t: Vector = None, *, parameters: Parameters | None = None) -> Array:
        """Value of the holonomic constraints, shape (k,)."""
        return jnp.zeros(0) if self.holonomic is None else jnp.asarray(self.holonomic(q, self.parameters))

    @derived
    def G(self, q: Vector, t: Vector = None, *, parameters: Parameters | None = None) -> Array:
        """dg/dq, shape (k, n)."""
        return jax.jacfwd(self.g)(q) if self.k else jnp.zeros((0, self.n))

    def project_position(
        self, q: Vector, fixed: Iterable[str] = (), t: Vector = None, *, parameters: Parameters | None = None
    ) -> np.ndarray:
        """A position near q with g = 0, by Newton's method in the kinetic metric; the coordinates in `fixed`
        keep their values. Says what cannot be."""
        system: Any = self
        system = system if parameters is None else system.with_parameters(parameters)
        return nearest_position(system if t is None else system.at(float(t)), np.array(q, float), fixed)
