"""What a model refuses, each in one sentence."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from noslip.bodies.parts import JointSpring, Motor, RigidBody
from noslip.bodies.shapes import RollingShape
from noslip.bodies.surfaces import RollingSurface
from noslip.bodies.values import names_in, of
from noslip.errors import shown, unknown_name
from noslip.system.derived import Parameters

ROUND_OFF = 1e-12  # of the inertia


def refuse_bad_name(kind: str, name: object, taken: Iterable[str]) -> None:
    """Names are words that nothing else has."""
    if not isinstance(name, str) or not name:
        raise ValueError(f"the name of {kind} must be a word, but {shown(name)} was given")
    if name in taken:
        raise ValueError(f"the name of {kind} must be new, but there is a '{name}' already")


def refuse_unknown_parameters(what: str, part: object, parameters: Parameters) -> None:
    """A word in the place of a number must be a parameter of the model."""
    for name in names_in(part):
        if name not in parameters:
            raise ValueError(f"{what} uses an {unknown_name('parameter', name, parameters)}")


def refuse_impossible_masses(body: RigidBody, parameters: Parameters) -> None:
    """Masses are positive, and no moment of inertia is greater than the sum of the others."""
    J = np.asarray(of(body.inertia, parameters), float)
    if body.mass is None:
        if np.any(J):
            raise ValueError(f"'{body.name}' must have a mass where it has an inertia, but none was given")
        return
    mass = float(of(body.mass, parameters))
    if not mass > 0:
        raise ValueError(f"the mass of '{body.name}' must be positive, but {mass:g} was given")
    moments = np.linalg.eigvalsh(J)
    if moments[0] < -ROUND_OFF * moments[-1] or moments[2] > (moments[0] + moments[1]) * (1 + ROUND_OFF):
        raise ValueError(
            f"the inertia of '{body.name}' must be that of a body, no principal moment above the sum of the "
            f"others, but they are {', '.join(f'{x:g}' for x in moments)}"
        )


def refuse_bad_shape(body: str, shape: object) -> None:
    """A shape is one of `shapes`."""
    if shape is not None and not isinstance(shape, RollingShape):
        raise TypeError(
            f"the shape of '{body}' must be made by sphere, disk, ellipsoid or torus, but {shown(shape)} was "
            "given"
        )


def refuse_bad_contact(body: str, other: str, shape: RollingShape | None, surface: object) -> None:
    """Something with a shape rolls on something else, and where that is curved it is a sphere."""
    if not isinstance(surface, RollingSurface):
        raise TypeError(
            f"'{body}' must roll on a surface such as plane(), but {shown(surface)} was given; the body that "
            "has the surface is named by `of`"
        )
    if body == other:
        raise ValueError(f"'{body}' must roll on the ground or on another body, but it rolls on itself")
    if shape is None:
        raise ValueError(f"'{body}' must have a `shape` to roll, but none was given")
    if not surface.flat and not hasattr(shape, "radius"):
        raise ValueError(f"only spheres can roll on curved surfaces, but '{body}' is an ellipsoid")
    if not surface.flat and shape.own_axis is not None:
        raise ValueError(f"only spheres can roll on curved surfaces, but '{body}' is a disk or a torus")


def refuse_bad_sizes(
    what: str, parts: Iterable[RollingShape | RollingSurface], parameters: Parameters
) -> None:
    """Radii are positive."""
    for part in parts:
        for name in part.sizes:
            value = np.asarray(of(getattr(part, name), parameters), float)
            if not np.all(value > 0):
                raise ValueError(
                    f"`{name}` of {what} must be positive, but {shown(value.tolist())} was given"
                )


def refuse_bad_coordinates(coordinates: tuple[str, ...], users: Iterable[JointSpring | Motor]) -> None:
    """Coordinates have different names, and what acts on one names it."""
    if not coordinates:
        raise ValueError("a model must have a body that can move, but it has none")
    for name in coordinates:
        if coordinates.count(name) > 1:
            raise ValueError(f"coordinates must have different names, but two joints have '{name}'")
    for user in users:
        if user.coordinate not in coordinates:
            raise ValueError(unknown_name("coordinate", user.coordinate, coordinates))
