"""What is to be seen at one state: bodies with shape and pose, marks that leave trails, arrows of forces.

Lengths are those of the system, z points up. Numbers may be JAX expressions of q, t and the parameters, so
that one function `scene(q, p)` describes every state; names, colours and kinds are fixed. `Scene.data` is
plain data, as JSON has it, and `Scene.of_data` reads it back.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any, Self

import jax.numpy as jnp
import numpy as np
from jax import Array

from noslip.errors import shown, unknown_name
from noslip.numerics.tracing import has_tracers
from noslip.scenes.shapes import SHAPES, Pointed, Shape

BLUE, VERMILION, GREEN, PURPLE = "#0072B2", "#D55E00", "#009E73", "#CC79A7"  # of Okabe and Ito
ORANGE, SKY, BLACK, GREY = "#E69F00", "#56B4E9", "#000000", "#999999"
PATTERNS = ("plain", "sectors")
FORMAT = 1
ORIGIN, UPRIGHT = (0.0, 0.0, 0.0), (1.0, 0.0, 0.0, 0.0)


def _numbers(what: str, value: Any, shape: tuple[int | None, ...]) -> Any:
    """As an array of that shape; None stands for any length."""
    try:
        array = jnp.asarray(value, float) if has_tracers(value) else np.asarray(value, float)
    except (TypeError, ValueError):
        raise ValueError(f"`{what}` must be numbers, but {shown(value)} was provided") from None
    if len(array.shape) != len(shape) or any(
        n is not None and n != m for n, m in zip(shape, array.shape, strict=True)
    ):
        wanted = ", ".join("rows" if n is None else str(n) for n in shape) + ("," if len(shape) == 1 else "")
        raise ValueError(f"`{what}` must have shape ({wanted}), but {array.shape} was provided")
    return array


@dataclass(frozen=True, eq=False)
class _Part:
    """Something with a name and a colour."""

    name: str = field(default="", kw_only=True)
    colour: str = field(default=BLUE, kw_only=True)

    def __post_init__(self) -> None:
        if not isinstance(self.name, str):
            raise ValueError(f"`name` must be a text, but {shown(self.name)} was provided")
        if not isinstance(self.colour, str) or not re.fullmatch("#[0-9A-Fa-f]{6}", self.colour):
            raise ValueError(f"`colour` must be written as '#0072B2', but {shown(self.colour)} was provided")

    def _set(self, name: str, shape: tuple[int | None, ...]) -> None:
        object.__setattr__(self, name, _numbers(name, getattr(self, name), shape))


@dataclass(frozen=True, eq=False)
class Solid(_Part):
    """A body, or what does not move: the point r of the shape is seen at position + A r, with A the matrix of
    `rotation`.

    The quaternion `rotation`, scalar first, may have any length but zero. With the `pattern` "sectors" every
    second quadrant about the z axis of the body is lighter (of spheres and ellipsoids every second octant),
    so that one sees it turn.
    """

    shape: Shape
    position: Any = ORIGIN
    rotation: Any = UPRIGHT
    pattern: str = field(default="plain", kw_only=True)
    opacity: float = field(default=1.0, kw_only=True)

    def __post_init__(self) -> None:
        super().__post_init__()
        if type(self.shape) not in SHAPES.values():
            raise ValueError(f"`shape` must be one of noslip.scenes, but {shown(self.shape)} was provided")
        if self.pattern not in PATTERNS:
            raise ValueError(unknown_name("pattern", self.pattern, PATTERNS))
        if not isinstance(self.opacity, int | float) or not 0 < self.opacity <= 1:
            raise ValueError(f"`opacity` must be in (0, 1], but {shown(self.opacity)} was provided")
        self._set("position", (3,))
        self._set("rotation", (4,))

    @property
    def pose(self) -> Array:
        """Position and unit quaternion, seven numbers."""
        return jnp.concatenate(
            [self.position, self.rotation / jnp.sqrt(jnp.dot(self.rotation, self.rotation))]
        )

    @property
    def sizes(self) -> Array:
        """Of the shape, filled up with zeros to three."""
        sizes = [jnp.asarray(x, float) for x in self.shape.sizes]
        return jnp.stack([*sizes, *[jnp.zeros(())] * (3 - len(sizes))])


@dataclass(frozen=True, eq=False)
class Mark(_Part):
    """A point to look at, say of contact, with a `trail` behind it."""

    position: Any
    trail: bool = field(default=True, kw_only=True)

    def __post_init__(self) -> None:
        super().__post_init__()
        self._set("position", (3,))


@dataclass(frozen=True, eq=False)
class Arrow(_Part):
    """The force multipliers @ directions at a point: `directions` has a row for each constraint, those of
    velocities first, then the holonomic ones. Whoever draws it chooses the length of a unit of force."""

    position: Any
    directions: Any

    def __post_init__(self) -> None:
        super().__post_init__()
        self._set("position", (3,))
        if not len(self.directions):  # JSON has no shape for no rows
            object.__setattr__(self, "directions", np.zeros((0, 3)))
        self._set("directions", (None, 3))


@dataclass(frozen=True)
class Camera:
    """Where one looks from, in degrees: azimuth 0 is from +x, -90 from -y; elevation 90 from above. A view
    that may `follow` moves with the bodies where their path is much wider than they are."""

    azimuth: float = -60.0
    elevation: float = 25.0
    follow: bool = True

    def __post_init__(self) -> None:
        for angle in (self.azimuth, self.elevation):
            if not isinstance(angle, int | float) or not abs(angle) <= 360:
                raise ValueError(
                    f"a camera's angle must be within 360 degrees, but {shown(angle)} was provided"
                )


@dataclass(frozen=True, eq=False)
class Scene:
    """All there is to see at one state. `axes` are names for the three directions, where these are no lengths
    in space but coordinates; they are then drawn."""

    bodies: tuple[Solid, ...] = ()
    marks: tuple[Mark, ...] = ()
    arrows: tuple[Arrow, ...] = ()
    camera: Camera = field(default_factory=Camera)
    axes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for name, kind in (("bodies", Solid), ("marks", Mark), ("arrows", Arrow)):
            parts = tuple(getattr(self, name))
            if not all(isinstance(part, kind) for part in parts):
                raise ValueError(
                    f"`{name}` must be a tuple of {kind.__name__}, but {shown(parts)} was provided"
                )
            object.__setattr__(self, name, parts)
        object.__setattr__(self, "axes", tuple(self.axes))
        if len(self.axes) not in (0, 3) or not all(isinstance(name, str) for name in self.axes):
            raise ValueError(f"`axes` must be three names, but {shown(self.axes)} was provided")

    def without_numbers(self) -> Self:
        """The same parts at no particular place, with sizes of one; what is fixed stays."""
        ones = [dict.fromkeys(body.shape.size_names(), 1.0) for body in self.bodies]
        shapes = [replace(body.shape, **sizes) for body, sizes in zip(self.bodies, ones, strict=True)]
        return replace(
            self,
            bodies=tuple(
                replace(body, shape=shape, position=ORIGIN, rotation=UPRIGHT)
                for body, shape in zip(self.bodies, shapes, strict=True)
            ),
            marks=tuple(replace(mark, position=ORIGIN) for mark in self.marks),
            arrows=tuple(replace(x, position=ORIGIN, directions=np.zeros((0, 3))) for x in self.arrows),
        )

    def data(self) -> dict[str, object]:
        """Plain data, the same for the same scene."""
        return {
            "format": FORMAT,
            "bodies": [_body_data(body) for body in self.bodies],
            "marks": [
                {"name": x.name, "colour": x.colour, "trail": bool(x.trail), "position": _plain(x.position)}
                for x in self.marks
            ],
            "arrows": [
                {"name": x.name, "colour": x.colour, "position": _plain(x.position)}
                | {"directions": _plain(x.directions)}
                for x in self.arrows
            ],
            "camera": {f.name: getattr(self.camera, f.name) for f in fields(Camera)},
            "axes": list(self.axes),
        }

    @classmethod
    def of_data(cls, data: Mapping[str, Any]) -> Self:
        """The scene whose `data` this is; what is none is refused."""
        if not isinstance(data, Mapping) or data.get("format") != FORMAT:
            raise ValueError(f"a scene must be data of the format {FORMAT}, but {shown(data)} was provided")
        try:
            return cls(
                tuple(_body_of(x) for x in data["bodies"]),
                tuple(Mark(**x) for x in data["marks"]),
                tuple(Arrow(**x) for x in data["arrows"]),
                Camera(**data["camera"]),
                tuple(data["axes"]),
            )
        except (KeyError, TypeError) as error:
            raise ValueError(f"a scene lacks a part, or has one that none has: {error}") from None


def _body_data(body: Solid) -> dict[str, object]:
    shape = body.shape
    data = {"name": body.name, "kind": shape.kind(), "sizes": _plain(body.sizes)[: len(shape.sizes)]}
    data |= {"points": shape.points.tolist()} if isinstance(shape, Pointed) else {}
    looks = {"colour": body.colour, "pattern": body.pattern, "opacity": float(body.opacity)}
    return data | looks | {"pose": _plain(body.pose)}


def _body_of(data: Mapping[str, Any]) -> Solid:
    rest = dict(data)
    kind, sizes, pose = rest.pop("kind"), rest.pop("sizes"), _numbers("pose", rest.pop("pose"), (7,))
    if kind not in SHAPES:
        raise ValueError(unknown_name("shape", kind, SHAPES))
    shape = SHAPES[kind]
    sizes = dict(zip(shape.size_names(), sizes, strict=True))
    points = {"points": rest.pop("points")} if "points" in rest else {}
    return Solid(shape(**sizes, **points), pose[:3], pose[3:], **rest)


def _plain(value: Any) -> Any:
    return np.asarray(value, dtype=float).tolist()
