"""The shapes of bodies, each in axes of its own; a size is a number, or a JAX expression of q and parameters.

A shape has at most three sizes, in the order of its fields. Those with `points` have fixed points, and the
sizes x, y, z stretch them.
"""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from noslip.errors import shown
from noslip.numerics.tracing import Either

Number = Either  # a float, or what JAX makes of one


@dataclass(frozen=True, eq=False)
class Shape:
    """What all shapes have: a kind, sizes, and perhaps points."""

    @classmethod
    def kind(cls) -> str:
        """The word for it in JSON."""
        return cls.__name__.lower()

    @classmethod
    def size_names(cls) -> tuple[str, ...]:
        """The fields that are sizes."""
        return tuple(f.name for f in fields(cls) if f.name != "points")

    @property
    def sizes(self) -> tuple[Number, ...]:
        """Their values, in that order."""
        return tuple(getattr(self, name) for name in self.size_names())

    def __post_init__(self) -> None:
        for name in self.size_names():
            if np.shape(getattr(self, name)) != ():
                given = shown(getattr(self, name))
                raise ValueError(f"`{name}` of a {self.kind()} must be one number, but {given} was provided")


@dataclass(frozen=True, eq=False)
class Pointed(Shape):
    """A shape with fixed points; the last axis of `points` is x, y, z, or x, y for a plate."""

    points: Any = field(kw_only=True)
    layout = "(n, 3)"

    def __post_init__(self) -> None:
        super().__post_init__()
        needed = f"`points` of a {self.kind()} must be fixed finite numbers of shape {self.layout}"
        try:
            points = np.asarray(self.points, dtype=float)
        except (TypeError, ValueError):  # so are values that JAX traces
            raise ValueError(f"{needed}, but {shown(self.points)} was provided") from None
        fits = points.ndim == self.layout.count(",") + 1 and points.shape[-1] == int(self.layout[-2])
        if not fits or min(points.shape) < 2 or not np.all(np.isfinite(points)):
            raise ValueError(f"{needed}, but {points.shape} was provided")
        object.__setattr__(self, "points", points)


@dataclass(frozen=True, eq=False)
class Sphere(Shape):
    """A ball about the origin."""

    radius: Number


@dataclass(frozen=True, eq=False)
class Ellipsoid(Shape):
    """Half axes along x, y, z."""

    a: Number
    b: Number
    c: Number


@dataclass(frozen=True, eq=False)
class Cylinder(Shape):
    """About the z axis, its middle at the origin: a disk, a wheel, a coin, a rod."""

    radius: Number
    length: Number


@dataclass(frozen=True, eq=False)
class Cone(Shape):
    """About the z axis: the base, a disk, at z = 0, the tip at z = length."""

    radius: Number
    length: Number


@dataclass(frozen=True, eq=False)
class Torus(Shape):
    """About the z axis; `radius` is that of the circle inside the tube."""

    radius: Number
    tube: Number


@dataclass(frozen=True, eq=False)
class Cuboid(Shape):
    """Edges along x, y, z, the middle at the origin."""

    x: Number
    y: Number
    z: Number


@dataclass(frozen=True, eq=False)
class Plate(Pointed):
    """The polygon of `points` (n, 2), stretched by x and y, from z = -thickness / 2 to thickness / 2."""

    x: Number = 1.0
    y: Number = 1.0
    thickness: Number = 0.0
    layout = "(n, 2)"


@dataclass(frozen=True, eq=False)
class Blade(Shape):
    """A skate or knife along x: the edge on z = 0, from -length / 2 to length / 2, the back at z = height."""

    length: Number
    height: Number
    thickness: Number


@dataclass(frozen=True, eq=False)
class Spring(Shape):
    """A coil about the z axis, from z = 0 to z = length."""

    length: Number
    radius: Number


@dataclass(frozen=True, eq=False)
class Line(Pointed):
    """The curve through `points` (n, 3), stretched by x, y, z."""

    x: Number = 1.0
    y: Number = 1.0
    z: Number = 1.0


@dataclass(frozen=True, eq=False)
class Surface(Pointed):
    """A sheet through a net of `points` (n, m, 3), stretched by x, y, z: a bowl, an open tube, a hill."""

    x: Number = 1.0
    y: Number = 1.0
    z: Number = 1.0
    layout = "(n, m, 3)"


@dataclass(frozen=True, eq=False)
class Floor(Shape):
    """The plane z = 0, as far as one can see: whoever draws it makes it as large as the motion needs."""


def turned_sheet(profile: ArrayLike, count: int = 24) -> np.ndarray:
    """Points for a `Surface`: a curve of (radius, z), turned about the z axis."""
    radius, z = np.asarray(profile, float).T
    angle = np.linspace(0.0, 2 * np.pi, count + 1)
    x, y = np.multiply.outer(radius, np.cos(angle)), np.multiply.outer(radius, np.sin(angle))
    return np.stack([x, y, np.broadcast_to(z[:, None], x.shape)], axis=-1)


SHAPES: dict[str, type[Shape]] = {
    shape.kind(): shape
    for base in (Shape, Pointed)
    for shape in base.__subclasses__()
    if shape is not Pointed
}
