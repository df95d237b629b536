"""Shapes that roll. Each says where it touches a plane with the normal n: at the point farthest along -n.

With c the middle of the shape, a the axis of a wheel and A from the body's axes to space, the point is seen
from c at

    sphere      -r n                            disk (its rim)   -r e,   e = (n - a (a . n)) / |n - a (a . n)|
    ellipsoid   -A D gamma / sqrt(gamma . D gamma),  gamma = A^T n,  D = the squares of the half axes
    torus       -R e - r n

A disk or a torus has directions of its own on the plane: a x n, along which it rolls while it turns about
a, and n x (a x n), sideways.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import jax.numpy as jnp
import numpy as np
from jax import Array

from noslip.bodies.axes import Axes, cross
from noslip.bodies.values import AxisLike, Number, NumberLike, Vector, VectorLike, axis, number, of, vector
from noslip.numerics.tracing import Values
from noslip.scenes import Cylinder, Ellipsoid, Shape, Sphere, Torus
from noslip.system.derived import Parameters

Triple = tuple[float, float, float]
UPWARDS = (0.0, 0.0, 1.0)


@dataclass(frozen=True)
class RollingShape:
    """`at` is its middle in the axes of the body; None is the body's mass centre."""

    at: Vector | None

    sizes: ClassVar[tuple[str, ...]] = ()  # the names of the fields that must be positive

    @property
    def own_axis(self) -> Triple | None:
        """That of a wheel; None for other shapes."""
        return None

    def arm(self, axes: Axes, n: Values, p: Parameters) -> Array:
        """From the middle to the point that touches, in space."""
        raise NotImplementedError

    def drawn(self, p: Parameters) -> tuple[Shape, Triple]:
        """What it looks like, and the axis of the body that is the third of that."""
        raise NotImplementedError

    def directions(self, axes: Axes, n: Values) -> tuple[Values, Values] | None:
        """Along and sideways, unit vectors in space; None for a shape without an axis."""
        return None


@dataclass(frozen=True)
class _Round(RollingShape):
    radius: Number = 1.0

    sizes: ClassVar[tuple[str, ...]] = ("radius",)

    def arm(self, axes: Axes, n: Values, p: Parameters) -> Array:
        return -of(self.radius, p) * n

    def drawn(self, p: Parameters) -> tuple[Shape, Triple]:
        return Sphere(of(self.radius, p)), UPWARDS


@dataclass(frozen=True)
class _Egg(RollingShape):
    half_axes: Vector = (1.0, 1.0, 1.0)

    sizes: ClassVar[tuple[str, ...]] = ("half_axes",)

    def arm(self, axes: Axes, n: Values, p: Parameters) -> Array:
        gamma, squares = axes.A.T @ n, of(self.half_axes, p) ** 2
        return axes.A @ (-squares * gamma / jnp.sqrt(jnp.dot(gamma, squares * gamma)))

    def drawn(self, p: Parameters) -> tuple[Shape, Triple]:
        a, b, c = of(self.half_axes, p)
        return Ellipsoid(a, b, c), UPWARDS


@dataclass(frozen=True)
class _Wheel(RollingShape):
    """A disk of which the rim touches, or a torus, where the tube is thick."""

    radius: Number = 1.0
    axis: Triple = (0.0, 1.0, 0.0)
    tube: Number = 0.0

    sizes: ClassVar[tuple[str, ...]] = ("radius",)

    @property
    def own_axis(self) -> Triple | None:
        return self.axis

    def _parts(self, axes: Axes, n: Values) -> tuple[Values, Values, Array]:
        a = axes.A @ np.array(self.axis)
        across = n - a * jnp.dot(a, n)
        return a, across, jnp.sqrt(jnp.dot(across, across))

    def arm(self, axes: Axes, n: Values, p: Parameters) -> Array:
        _, across, size = self._parts(axes, n)
        arm = -of(self.radius, p) * across / size
        return arm - of(self.tube, p) * n if self.tube else arm

    def drawn(self, p: Parameters) -> tuple[Shape, Triple]:
        radius, tube = of(self.radius, p), of(self.tube, p)
        return (Torus(radius, tube) if self.tube else Cylinder(radius, 0.06 * radius)), self.axis

    def directions(self, axes: Axes, n: Values) -> tuple[Values, Values]:
        a, _, size = self._parts(axes, n)
        along = cross(a, n) / size
        return along, cross(n, along)


def sphere(radius: NumberLike, *, at: VectorLike | None = None) -> RollingShape:
    """A ball."""
    return _Round(_place(at), number("`radius`", radius))


def ellipsoid(half_axes: VectorLike, *, at: VectorLike | None = None) -> RollingShape:
    """An ellipsoid with three half axes along the axes of the body."""
    return _Egg(_place(at), vector("`half_axes`", half_axes))


def disk(radius: NumberLike, about: AxisLike, *, at: VectorLike | None = None) -> RollingShape:
    """A thin disk that turns about an axis and touches with its rim."""
    return _Wheel(_place(at), number("`radius`", radius), axis("the axis of a disk", about))


def torus(
    radius: NumberLike, tube: NumberLike, about: AxisLike, *, at: VectorLike | None = None
) -> RollingShape:
    """A tyre: circles of the radius `tube` whose middles are at `radius` from the axis."""
    own = axis("the axis of a torus", about)
    return _Wheel(_place(at), number("`radius`", radius), own, number("`tube`", tube))


def _place(at: VectorLike | None) -> Vector | None:
    return None if at is None else vector("`at`", at)
