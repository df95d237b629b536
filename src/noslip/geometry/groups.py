"""The symmetry groups of Chaplygin systems, acting on the fibre coordinates by left multiplication.

With g the group element and xi = g^-1 gdot its velocity in the body, the coordinates s of g move by

    sdot = E(s) xi                      left-invariant fields, the columns of E, E(identity) = 1
    [e_b, e_c] = C_bc^a e_a             structure constants at [a, b, c]
    f = exp(h xi) approximately         a retraction with retract(-xi) = retract(xi)^-1

- "translations": R^i x T^(k-i), s' = s + a, on any coordinates.
- "planar": SE(2) on (x, y, angle). The retraction moves along the mean heading: by R(angle / 2) (u, w).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import jax.numpy as jnp
import numpy as np
from jax import Array

from noslip.geometry.lie_algebra import SE2


@dataclass(frozen=True)
class Translations:
    """The abelian group of the coordinates `fibre`."""

    fibre: tuple[str, ...]

    name: ClassVar[str] = "translations"

    @property
    def dimension(self) -> int:
        return len(self.fibre)

    @property
    def structure_constants(self) -> np.ndarray:
        return np.zeros(3 * (self.dimension,))

    def body_fields(self, s: Array) -> Array:
        """E(s), whose columns are the left-invariant fields."""
        return jnp.eye(self.dimension)

    def space_fields(self, s: Array) -> Array:
        """The right-invariant fields, which generate the action, as columns."""
        return jnp.eye(self.dimension)

    def retract(self, xi: Array) -> Array:
        """The group element reached with the constant velocity xi in unit time."""
        return xi

    def unretract(self, f: Array) -> Array:
        """The inverse of `retract`."""
        return f

    def displacement(self, s: Array, f: Array) -> Array:
        """s(g f) - s(g)."""
        return f

    def relative(self, s: Array, s1: Array) -> Array:
        """f = g^-1 g1."""
        return s1 - s


@dataclass(frozen=True)
class Planar:
    """SE(2): rigid motions of the plane; `fibre` names x, y and the heading."""

    fibre: tuple[str, ...]

    name: ClassVar[str] = "planar"
    dimension: ClassVar[int] = 3
    structure_constants: ClassVar[np.ndarray] = SE2.transpose(2, 0, 1)

    def body_fields(self, s: Array) -> Array:
        """E(s), whose columns are the left-invariant fields."""
        c, n = jnp.cos(s[2]), jnp.sin(s[2])
        return jnp.array([[c, -n, 0.0], [n, c, 0.0], [0.0, 0.0, 1.0]])

    def space_fields(self, s: Array) -> Array:
        """The right-invariant fields, which generate the action, as columns."""
        return jnp.array([[1.0, 0.0, -s[1]], [0.0, 1.0, s[0]], [0.0, 0.0, 1.0]])

    def retract(self, xi: Array) -> Array:
        """The group element reached with about the constant velocity xi in unit time."""
        return self.body_fields(xi / 2) @ xi

    def unretract(self, f: Array) -> Array:
        """The inverse of `retract`."""
        return self.body_fields(-f / 2) @ f

    def displacement(self, s: Array, f: Array) -> Array:
        """s(g f) - s(g)."""
        return self.body_fields(s) @ f

    def relative(self, s: Array, s1: Array) -> Array:
        """f = g^-1 g1."""
        return self.body_fields(-s) @ (s1 - s)


Group = Translations | Planar
GROUPS: dict[str, type[Translations] | type[Planar]] = {"translations": Translations, "planar": Planar}
