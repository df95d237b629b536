"""What a model looks like: shapes where its bodies are, bars where a body has none, springs, surfaces, and
the forces of contacts and edges. In space z is up, whatever the model's `down` is."""

from __future__ import annotations

from dataclasses import dataclass

import jax.numpy as jnp
import numpy as np
from jax import Array

from noslip.bodies.axes import Axes
from noslip.bodies.mechanism import Mechanism, Motion, Parameters
from noslip.bodies.parts import RigidBody
from noslip.bodies.values import of
from noslip.numerics.tracing import Values
from noslip.rotations import compose, from_matrix, matrix
from noslip.scenes import (
    BLUE,
    GREEN,
    GREY,
    ORANGE,
    SKY,
    Arrow,
    Cylinder,
    Mark,
    Scene,
    Shape,
    Solid,
    Sphere,
    Spring,
    along,
)

BAR, BALL = 0.03, 0.07  # radii, in lengths of the bars of a body
COLOURS = (SKY, ORANGE)  # of bars, of shapes


@dataclass(frozen=True)
class ModelScene:
    """The scene of a mechanism; equal for equal mechanisms."""

    mechanism: Mechanism

    def __call__(self, q: Array, t: Array, p: Parameters) -> Scene:
        rest = jnp.zeros(len(self.mechanism.coordinates))
        drawing = _Drawing(self.mechanism, self.mechanism.motion(q, rest, t, p), p)
        parts = [part for body in self.mechanism.bodies for part in drawing.body(body)]
        return Scene(
            bodies=(*parts, *drawing.springs(), *drawing.surfaces()),
            marks=tuple(drawing.marks()),
            arrows=tuple(drawing.arrows()),
        )


class _Drawing:
    """A mechanism at one state, turned so that what is down in it is down."""

    def __init__(self, mechanism: Mechanism, motion: Motion, p: Parameters):
        self.mechanism, self.motion, self.p = mechanism, motion, p
        x, y, z = mechanism.down
        turn, _ = along((0.0, 0.0, 1.0), (0.0, 0.0, 1.0))
        if (x, y, z) != (0.0, 0.0, -1.0):
            away, _ = along((0.0, 0.0, 0.0), (-x, -y, -z))  # brings z up; its inverse brings up to z
            turn = away * np.array([1.0, -1.0, -1.0, -1.0])
        self.turn, self.B = turn, matrix(turn)

    def solid(
        self, shape: Shape, place: Values, turned: Values, name: str, colour: str, see: float = 1.0
    ) -> Solid:
        pattern = "sectors" if colour == ORANGE else "plain"
        rotation = compose(self.turn, turned)
        return Solid(shape, self.B @ place, rotation, name=name, colour=colour, pattern=pattern, opacity=see)

    def bar(self, start: Values, end: Values, name: str) -> tuple[Solid, Values]:
        rotation, length = along(start, end)
        shape = Cylinder(BAR * length, length)
        return self.solid(shape, (start + end) / 2, rotation, name, SKY), length

    def body(self, body: RigidBody) -> list[Solid]:
        """Its shape; or bars from its joint to its mass centre, to the joints of what it carries and to where
        its loops close."""
        axes = self.motion.axes(body.name)
        if body.shape is not None:
            shape, axis = body.shape.drawn(self.p)
            at = of(body.centre if body.shape.at is None else body.shape.at, self.p)
            turned, _ = along((0.0, 0.0, 0.0), axis)
            return [self.solid(shape, axes.place(at), compose(_attitude(axes), turned), body.name, ORANGE)]
        start = axes.place(of(body.joint.own, self.p))
        carried = [x.joint.at for x in self.mechanism.bodies if x.on == body.name]
        closed = [x for loop in self.mechanism.closures for x in (loop.first, loop.second)]
        carried += [place for name, place in closed if name == body.name]
        ends = [axes.place(of(x, self.p)) for x in carried]
        ends += [] if body.mass is None else [axes.place(of(body.centre, self.p))]
        bars = [self.bar(start, end, body.name) for end in ends]
        size = sum((length for _, length in bars), jnp.zeros(()))
        parts = [solid for solid, _ in bars]
        if body.mass is not None:
            parts.append(self.solid(Sphere(BALL * size), ends[-1], _attitude(axes), body.name, SKY))
        return parts

    def springs(self) -> list[Solid]:
        found = []
        for spring in self.mechanism.springs:
            start, end = self.motion.place(spring.first), self.motion.place(spring.second)
            rotation, length = along(start, end)
            found.append(self.solid(Spring(length, 0.1 * length), start, rotation, "spring", GREY))
        return found

    def surfaces(self) -> list[Solid]:
        """Each once, though many may roll on it."""
        found = []
        for surface, carrier in dict.fromkeys((x.surface, x.of_body) for x in self.mechanism.contacts):
            drawn = surface.drawn(self.p)
            if drawn is not None:
                shape, axis = drawn
                axes = self.motion.axes(carrier)
                turned, _ = along((0.0, 0.0, 0.0), axis)
                place, see = axes.place(of(surface.point, self.p)), 1.0 if surface.flat else 0.25
                rotation = compose(_attitude(axes), turned)
                found.append(self.solid(shape, place, rotation, "surface", GREY, see))
        return found

    def marks(self) -> list[Mark]:
        points = [(x.name, self.motion.touch(x).point) for x in self.mechanism.contacts]
        points += [(x.name, self.motion.place((x.body, x.at))) for x in self.mechanism.edges]
        free = [x for x in self.mechanism.bodies if x.mass is not None] if not points else []
        points += [(x.name, self.motion.place((x.name, x.centre))) for x in free[-1:]]
        return [Mark(self.B @ point, name=name, colour=BLUE) for name, point in points]

    def arrows(self) -> list[Arrow]:
        """The forces of contacts and edges, by the rows that are kept of each."""
        rows = self._rows()
        found = []
        for contact in self.mechanism.contacts:
            touch = self.motion.touch(contact)
            ways = {"along": touch.along, "sideways": touch.sideways, "normal": touch.normal}
            found.append(self._arrow(contact.name, touch.point, ways, rows))
        for edge in self.mechanism.edges:
            ways = {"sideways": self.motion.axes(edge.body).A @ np.array(edge.normal)}
            found.append(self._arrow(edge.name, self.motion.place((edge.body, edge.at)), ways, rows))
        return found

    def _arrow(self, name: str, place: Values, ways: dict[str, Values], rows: list[tuple[str, str]]) -> Arrow:
        zero = jnp.zeros(3)
        directions = [self.B @ ways[way] if part == name and way in ways else zero for part, way in rows]
        forces = jnp.stack(directions) if rows else np.zeros((0, 3))
        return Arrow(self.B @ place, forces, name=name, colour=GREEN)

    def _rows(self) -> list[tuple[str, str]]:
        """The names of the multipliers: those of velocities, then of positions."""
        plain = self.mechanism
        named = ((plain.velocity_rows, plain.kept_velocities), (plain.position_rows, plain.kept_positions))
        return [row for rows, kept in named for k, row in enumerate(rows) if kept is None or k in kept]


def _attitude(axes: Axes) -> Array:
    return from_matrix(axes.A)
