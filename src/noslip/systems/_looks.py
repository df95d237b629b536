"""What scenes of the catalogue share: a particle with the plane that it may move in, wheels, a slope, a body
about a fixed point."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
from jax import Array

from noslip.numerics.tracing import Real
from noslip.rotations import Contact, compose, from_axis, matrix
from noslip.scenes import (
    BLACK,
    BLUE,
    GREEN,
    GREY,
    ORANGE,
    SKY,
    VERMILION,
    Arrow,
    Camera,
    Cylinder,
    Ellipsoid,
    Floor,
    Line,
    Mark,
    Plate,
    Scene,
    Shape,
    Solid,
    Sphere,
    along,
    heading,
    wheel,
)
from noslip.system import Parameters

FLOOR = Solid(Floor(), name="floor", colour=GREY)
SQUARE = np.array([[-1.0, -1.0], [1.0, -1.0], [1.0, 1.0], [-1.0, 1.0]])
_ANGLES = np.linspace(0.0, 2 * np.pi, 49)
CIRCLE = np.stack([np.cos(_ANGLES), np.sin(_ANGLES), np.zeros(49)], axis=1)
INWARDS = np.eye(3)


def particle(q: Array, forms: Array) -> Scene:
    """A particle at q, the plane of the velocities that the one-form allows, and the reaction across it."""
    rotation, _ = along(jnp.zeros(3), forms[0])
    return Scene(
        bodies=(
            Solid(Sphere(0.05), q, name="particle", colour=ORANGE),
            Solid(Plate(x=0.25, y=0.25, points=SQUARE), q, rotation, name="plane", colour=SKY, opacity=0.45),
        ),
        marks=(Mark(q, name="path"),),
        arrows=(Arrow(q, forms, name="reaction", colour=GREEN),),
        axes=("x", "y", "z"),
    )


def slope(alpha: Real) -> Array:
    """The rotation of a plane that goes down along its x axis."""
    return from_axis((0.0, 1.0, 0.0), alpha)


def rolling_wheel(q: Array, p: Parameters, ground: Array) -> Scene:
    """A disk that stands on (x, y) of a plane turned by `ground`, with heading and spin after them."""
    r, A = p["r"], matrix(ground)
    contact, centre = A @ jnp.array([q[0], q[1], 0.0]), A @ jnp.stack([q[0], q[1], r])
    return Scene(
        bodies=(
            Solid(
                Cylinder(r, 0.08 * r), centre, compose(ground, wheel(q[2], q[3])), name="disk", colour=ORANGE,
                pattern="sectors",
            ),
            Solid(Floor(), (0.0, 0.0, 0.0), ground, name="floor", colour=GREY),
        ),
        marks=(Mark(contact, name="contact"),),
        arrows=(Arrow(contact, A.T[:2], name="friction", colour=GREEN),),
    )  # fmt: skip


def about_a_point(attitude: Array, inertia: Array, arrow: Array, name: str) -> Scene:
    """A body with these moments of inertia about the fixed origin, as an ellipsoid of unit mass; the reaction
    is a torque along `arrow`, which stands on the body."""
    squares = 2.5 * (jnp.sum(inertia) - 2 * inertia)  # of the half axes, where the body can exist
    half = jnp.sqrt(jnp.maximum(squares, 0.05 * jnp.sum(inertia)))
    A, out = matrix(attitude), 1.2 * jnp.max(half)
    axes = [
        Solid(Cylinder(0.02 * out, 2 * out), (0.0, 0.0, 0.0), _axis(attitude, k), colour=BLACK)
        for k in range(3)
    ]
    return Scene(
        bodies=(
            Solid(
                Ellipsoid(half[0], half[1], half[2]), (0.0, 0.0, 0.0), attitude, name="body", colour=ORANGE,
                pattern="sectors",
            ),
            *axes,
        ),
        marks=tuple(
            Mark(out * A[:, k], name=f"axis {k + 1}", colour=colour)
            for k, colour in ((0, VERMILION), (2, BLUE))
        ),
        arrows=(Arrow(out * arrow, arrow[None, :], name=name, colour=GREEN),),
        camera=Camera(follow=False),
    )  # fmt: skip


def _axis(attitude: Array, k: int) -> Array:
    """The rotation that brings the z axis of a cylinder into axis k of the body."""
    turned, _ = along(jnp.zeros(3), jnp.asarray(INWARDS[k]))
    return compose(attitude, turned)


def ring(radius: Real, height: Real, name: str, colour: str = GREY) -> Solid:
    """A level circle about the vertical axis."""
    return Solid(Line(x=radius, y=radius, points=CIRCLE), (0.0, 0.0, height), name=name, colour=colour)


def rolls(shape: Shape, middle: Array, rotation: Array, contact: Array, rows: int = 3) -> Scene:
    """A body that rolls on the floor; its reactions are along x, y and, where it has a third row, z."""
    return Scene(
        bodies=(Solid(shape, middle, rotation, name="body", colour=ORANGE, pattern="sectors"), FLOOR),
        marks=(Mark(contact, name="contact"),),
        arrows=(Arrow(contact, np.eye(3)[:rows], name="reaction", colour=GREEN),),
    )


def touches(q: Array, contact: Contact) -> Array:
    """Where a body with its mass centre and quaternion in q touches the floor."""
    A = matrix(q[3:])
    return q[:3] + A @ contact(A[2])


def in_vessel(q: Array, radius: Real, contact: Array, forces: Array, vessel: Solid) -> Scene:
    """A ball, its middle and quaternion in q, that rolls inside a vessel."""
    return Scene(
        bodies=(
            Solid(Sphere(radius), q[:3], q[3:], name="ball", colour=ORANGE, pattern="sectors"),
            vessel,
        ),
        marks=(Mark(contact, name="contact"),),
        arrows=(Arrow(contact, forces, name="reaction", colour=GREEN),),
        camera=Camera(elevation=35.0, follow=False),
    )


def on_table(q: Array, attitude: Array, radius: Real, angle: Real) -> Scene:
    """A ball that rolls on a table, which has turned by an angle."""
    contact = jnp.array([q[0], q[1], 0.0])
    return Scene(
        bodies=(
            Solid(Sphere(radius), jnp.stack([q[0], q[1], radius]), attitude, name="ball", colour=ORANGE,
                  pattern="sectors"),
            Solid(Cylinder(3 * radius, 0.2 * radius), jnp.stack([0.0, 0.0, -0.1 * radius]), heading(angle),
                  name="table", colour=SKY, pattern="sectors"),
        ),
        marks=(Mark(contact, name="contact"),),
        arrows=(Arrow(contact, np.eye(3)[:2], name="friction", colour=GREEN),),
        camera=Camera(elevation=35.0, follow=False),
    )  # fmt: skip


def rod(start: Array, end: Array, radius: Real, name: str, colour: str) -> Solid:
    """A bar between two points."""
    start, end = jnp.asarray(start, float), jnp.asarray(end, float)
    rotation, length = along(start, end)
    return Solid(Cylinder(radius, length), (start + end) / 2, rotation, name=name, colour=colour)


def ahead(angle: Real) -> Array:
    """The level direction of a heading."""
    return jnp.array([jnp.cos(angle), jnp.sin(angle), 0.0])


def wheels_across(at: Array, angle: Real, half: Real, radius: Real) -> list[Solid]:
    """Two wheels, of which only the heading is known, at the ends of an axle."""
    up, left = jnp.array([0.0, 0.0, 1.0]) * radius, ahead(angle + 0.5 * jnp.pi)
    return [
        Solid(Cylinder(radius, 0.5 * radius), at + up + side * half * left, wheel(angle, 0.0), name="wheel",
              colour=GREY)
        for side in (1.0, -1.0)
    ]  # fmt: skip


def across(at: Array, angle: Real, row: int, rows: int) -> Arrow:
    """The reaction of wheels against being pushed sideways."""
    directions = jnp.zeros((rows, 3)).at[row].set(ahead(angle + 0.5 * jnp.pi))
    return Arrow(at, directions, name=f"axle {row + 1}", colour=GREEN)
