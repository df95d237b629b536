"""What a model consists of, as values that can be compared: bodies, contacts, edges, loops, springs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jax import Array

from noslip.bodies.axes import Axes
from noslip.bodies.joints import Joint
from noslip.bodies.shapes import RollingShape
from noslip.bodies.surfaces import RollingSurface
from noslip.bodies.values import Number, Vector, of
from noslip.numerics.tracing import Values
from noslip.system.derived import Parameters

GROUND_NAME = "ground"
Point = tuple[str, Vector]  # of a body, in its axes


@dataclass(frozen=True)
class RigidBody:
    """With its mass centre in its own axes; `slots` are the places of the joint's coordinates. A body without
    a mass is nothing but axes."""

    name: str
    on: str
    joint: Joint
    mass: Number | None
    inertia: tuple[Vector, Vector, Vector]
    centre: Vector
    shape: RollingShape | None
    slots: tuple[int, ...] = ()

    @property
    def turns_unseen(self) -> bool:
        """Whether the last turn of the joint leaves the body as it was: its energy is then written in axes
        that do not spin with it."""
        axis, entries = self.joint.last_axis, (*self.inertia, self.centre, self.joint.own)
        if axis is None or any(isinstance(x, str) for row in entries for x in row):
            return False
        J, arm = np.array(self.inertia, float), np.array(self.centre, float) - np.array(self.joint.own, float)
        cross = np.cross(np.eye(3), np.array(axis))
        size = np.max(np.abs(J), initial=0.0)
        return bool(
            np.all(np.abs(J @ cross - cross @ J) <= 1e-15 * size)
            and np.all(np.abs(np.cross(arm, axis)) <= 1e-15 * np.max(np.abs(arm), initial=0.0))
        )

    def energies(self, axes: Axes, gravity: Values, p: Parameters) -> tuple[Array, Array]:
        """Kinetic and potential."""
        mass, centre = of(self.mass, p), of(self.centre, p)
        v = axes.velocity(centre)
        turning = jnp.dot(axes.w, of(self.inertia, p) @ axes.w)
        return 0.5 * (mass * jnp.dot(v, v) + turning), -mass * jnp.dot(gravity, axes.place(centre))


class Touch(NamedTuple):
    """A contact at some state: the gap, and what slips along two directions and about the normal; the
    point, the normal and the directions in space."""

    gap: Array
    slip: Values
    spin: Array
    point: Values
    normal: Values
    along: Values
    sideways: Values


@dataclass(frozen=True)
class RollingContact:
    """A body's shape on a surface of another body."""

    name: str
    body: str
    shape: RollingShape
    middle: Vector
    surface: RollingSurface
    of_body: str
    rubber: bool

    @property
    def directions(self) -> tuple[str, ...]:
        """What its velocity constraints are."""
        return ("along", "sideways", "spin") if self.rubber else ("along", "sideways")

    def touch(self, body: Axes, ground: Axes, p: Parameters) -> Touch:
        """`ground` are the axes of the surface."""
        middle = body.place(of(self.middle, p))
        seen = ground.seen(middle)
        own_normal = self.surface.normal(seen, p)
        n = ground.A @ own_normal
        arm = self.shape.arm(body, n, p)
        point = middle + arm
        gap = self.surface.distance(seen, p) + jnp.dot(n, arm)
        own = self.shape.directions(body, n)
        along, sideways = own or tuple(ground.A @ e for e in self.surface.tangents(own_normal))
        slip = body.velocity_there(point) - ground.velocity_there(point)
        spin = jnp.dot(n, body.spin - ground.spin)
        return Touch(gap, slip, spin, point, n, along, sideways)


@dataclass(frozen=True)
class Edge:
    """A blade: its point does not move along its normal, both in the axes of the body."""

    name: str
    body: str
    at: Vector
    normal: tuple[float, float, float]

    directions = ("sideways",)


@dataclass(frozen=True)
class Closure:
    """Two points of two bodies are one; with an axis the bodies turn about it only, as a hinge. The axis is
    in the axes of both."""

    name: str
    first: Point
    second: Point
    axis: tuple[float, float, float] | None


@dataclass(frozen=True)
class PointSpring:
    """Between two points: potential k (distance - length)^2 / 2, and a force against its rate."""

    first: Point
    second: Point
    stiffness: Number
    length: Number
    damping: Number


@dataclass(frozen=True)
class JointSpring:
    """At a coordinate: potential k (q - rest)^2 / 2, and a force against its rate."""

    coordinate: str
    stiffness: Number
    rest: Number
    damping: Number


@dataclass(frozen=True)
class Motor:
    """An input that is the force, or torque, at a coordinate."""

    coordinate: str
    input: str


@dataclass(frozen=True)
class Push:
    """An input that is a force on a point of a body, along a direction of space, or of the body."""

    input: str
    point: Point
    along: tuple[float, float, float]
    turns: bool
