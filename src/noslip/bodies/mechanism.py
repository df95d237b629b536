"""The functions of a model's system: Lagrangian, one-forms, holonomic constraints and forces.

Velocities go up the tree from joint to joint; nothing is differentiated for them. The velocity constraints
are what slips, linear in v with what moves by itself: mu v + b, mu being its derivative by v. A row that the
joints satisfy by themselves, or that follows from others at every position, is left out; `kept` are
the others.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from noslip.bodies.axes import GROUND, Axes
from noslip.bodies.parts import (
    GROUND_NAME,
    Closure,
    Edge,
    JointSpring,
    Motor,
    Point,
    PointSpring,
    Push,
    RigidBody,
    RollingContact,
    Touch,
)
from noslip.bodies.shapes import Triple
from noslip.bodies.values import Number, OfTime, of
from noslip.numerics.tracing import Real, Values
from noslip.system.derived import Parameters


@dataclass(frozen=True)
class Mechanism:
    """All parts of a model, with the coordinates in order. Rows are named (part, direction)."""

    coordinates: tuple[str, ...]
    bodies: tuple[RigidBody, ...]
    contacts: tuple[RollingContact, ...]
    edges: tuple[Edge, ...]
    closures: tuple[Closure, ...]
    springs: tuple[PointSpring, ...]
    joint_springs: tuple[JointSpring, ...]
    motors: tuple[Motor, ...]
    pushes: tuple[Push, ...]
    gravity: Number
    down: tuple[float, float, float]
    kept_positions: tuple[int, ...] | None = None
    kept_velocities: tuple[int, ...] | None = None

    @functools.cached_property
    def _hash(self) -> int:
        return hash(tuple(getattr(self, name) for name in self.__dataclass_fields__))

    def __hash__(self) -> int:
        return self._hash

    # ---- the tree ---------------------------------------------------------------------------------
    def motion(self, q: Values, v: Values, t: Real, p: Parameters) -> Motion:
        """All axes at a state."""
        return Motion(self, q, v, t, p)

    @property
    def driven(self) -> bool:
        """Whether joints are moved by functions of time."""
        return any(body.joint.driven is not None for body in self.bodies)

    def functions(self) -> dict[str, Callable[..., Any]]:
        """What was given as functions: of time by joints, of place by surfaces."""
        joints = {f"the joint of '{body.name}'": body.joint.driven for body in self.bodies}
        surfaces = {
            f"the surface under '{contact.name}'": contact.surface.shaped_by for contact in self.contacts
        }
        return {name: function for name, function in (joints | surfaces).items() if function is not None}

    # ---- the system -------------------------------------------------------------------------------
    def lagrangian(self, q: Values, v: Values, t: Real, p: Parameters) -> Array:
        """Kinetic energy less that of gravity and springs."""
        motion, total = self.motion(q, v, t, p), jnp.zeros(())
        gravity = of(self.gravity, p) * np.array(self.down)
        for body in self.bodies:
            if body.mass is not None:
                axes = motion.axes(body.name, body.joint.last_axis if body.turns_unseen else None)
                kinetic, potential = body.energies(axes, gravity, p)
                total = total + kinetic - potential
        for spring in self.springs:
            if spring.stiffness:
                total = total - 0.5 * of(spring.stiffness, p) * motion.stretch_squared(spring)
        for hinge in self.joint_springs:
            away = q[self.coordinates.index(hinge.coordinate)] - of(hinge.rest, p)
            total = total - 0.5 * of(hinge.stiffness, p) * away**2
        return total

    @property
    def position_rows(self) -> tuple[tuple[str, str], ...]:
        """The names of all holonomic constraints."""
        rows = [(contact.name, "normal") for contact in self.contacts]
        for closure in self.closures:
            rows += [(closure.name, x) for x in "xyz"]
            rows += [(closure.name, f"turn {k}") for k in (1, 2)] if closure.axis else []
        return tuple(rows)

    @property
    def velocity_rows(self) -> tuple[tuple[str, str], ...]:
        """The names of all velocity constraints."""
        parts: tuple[RollingContact | Edge, ...] = (*self.contacts, *self.edges)
        return tuple((part.name, x) for part in parts for x in part.directions)

    def gaps(self, q: Values, t: Real, p: Parameters) -> Array:
        """The values of all holonomic constraints."""
        motion = self.motion(q, jnp.zeros(len(self.coordinates)), t, p)
        rows = [motion.touch(contact).gap for contact in self.contacts]
        for closure in self.closures:
            rows += list(motion.place(closure.first) - motion.place(closure.second))
            rows += motion.misalignment(closure) if closure.axis else []
        return jnp.stack(rows)

    def slips(self, q: Values, v: Values, t: Real, p: Parameters) -> Array:
        """The values of all velocity constraints."""
        motion, rows = self.motion(q, v, t, p), []
        for contact in self.contacts:
            touch = motion.touch(contact)
            rows += [jnp.dot(touch.along, touch.slip), jnp.dot(touch.sideways, touch.slip)]
            rows += [touch.spin] if contact.rubber else []
        for edge in self.edges:
            axes = motion.axes(edge.body)
            rows.append(jnp.dot(axes.A @ np.array(edge.normal), axes.velocity(of(edge.at, p))))
        return jnp.stack(rows)

    def holonomic(self, q: Values, t: Real, p: Parameters) -> Array:
        """The holonomic constraints that are kept."""
        return _chosen(self.gaps(q, t, p), self.kept_positions)

    def one_forms(self, q: Values, t: Real, p: Parameters) -> Array:
        """The velocity constraints that are kept, by v."""
        rest = jnp.zeros(len(self.coordinates))
        return jax.jacfwd(lambda v: _chosen(self.slips(q, v, t, p), self.kept_velocities))(rest)

    def drift(self, q: Values, t: Real, p: Parameters) -> Array:
        """What slips while the coordinates rest."""
        rest = jnp.zeros(len(self.coordinates))
        return _chosen(self.slips(q, rest, t, p), self.kept_velocities)

    def force(self, q: Values, v: Values, t: Real, p: Parameters) -> Array:
        """Of motors, pushes and dampers."""
        total = jnp.zeros(len(self.coordinates))
        for motor in self.motors:
            total = total.at[self.coordinates.index(motor.coordinate)].add(p[motor.input])
        for hinge in self.joint_springs:
            k = self.coordinates.index(hinge.coordinate)
            total = total.at[k].add(-of(hinge.damping, p) * v[k])
        for push in self.pushes:
            total = total + self._pushed(push, q, t, p)
        for spring in self.springs:
            if spring.damping:
                total = total + self._damped(spring, q, v, t, p)
        return total

    @property
    def forced(self) -> bool:
        """Whether there are any forces."""
        dampers: list[PointSpring | JointSpring] = [*self.springs, *self.joint_springs]
        return bool(self.motors or self.pushes or any(part.damping for part in dampers))

    @property
    def inputs(self) -> tuple[str, ...]:
        """Of motors and pushes."""
        return (*(part.input for part in self.motors), *(part.input for part in self.pushes))

    def _pushed(self, push: Push, q: Values, t: Real, p: Parameters) -> Array:
        def power(v: Array) -> Array:
            motion = self.motion(q, v, t, p)
            along = np.array(push.along)
            force = motion.axes(push.point[0]).A @ along if push.turns else along
            return p[push.input] * jnp.dot(force, motion.velocity(push.point))

        return jax.grad(power)(jnp.zeros(len(self.coordinates)))

    def _damped(self, spring: PointSpring, q: Values, v: Values, t: Real, p: Parameters) -> Array:
        def rate(v: Array) -> Array:
            motion = self.motion(q, v, t, p)
            away = motion.place(spring.first) - motion.place(spring.second)
            speed = jnp.dot(away, motion.velocity(spring.first) - motion.velocity(spring.second))
            return speed / jnp.sqrt(jnp.dot(away, away))

        speed, slopes = jax.value_and_grad(rate)(v)
        return -of(spring.damping, p) * speed * slopes

    def keeping(self, positions: tuple[int, ...], velocities: tuple[int, ...]) -> Mechanism:
        """The same with the rows that are not left out."""
        return replace(self, kept_positions=positions, kept_velocities=velocities)


class Motion:
    """A mechanism at one state: the axes of its bodies, made when they are asked for."""

    def __init__(self, mechanism: Mechanism, q: Values, v: Values, t: Real, p: Parameters):
        self.bodies = {body.name: body for body in mechanism.bodies}
        self.q, self.v, self.t, self.p = q, v, t, p
        self._made: dict[tuple[str, bool], Axes] = {}

    def axes(self, name: str, symmetry: Triple | None = None) -> Axes:
        """Those of a body; without its last turn if that is about an axis of `symmetry`."""
        if name == GROUND_NAME:
            return GROUND
        body = self.bodies[name]
        last = body.joint.last_axis
        spun = (
            symmetry is None or last is None or not np.allclose(np.abs(np.dot(symmetry, last)), 1, 0, 1e-15)
        )
        if (name, spun) not in self._made:
            x, dx = self._values(body)
            self._made[name, spun] = body.joint.move(self.axes(body.on), x, dx, self.p, spun)
        return self._made[name, spun]

    def _values(self, body: RigidBody) -> tuple[Sequence[Real], Sequence[Real]]:
        """The joint's coordinates and their rates."""
        if body.joint.driven is None:
            return [self.q[k] for k in body.slots], [self.v[k] for k in body.slots]
        value, rate = driven(body.joint.driven, self.t, self.p)
        return [value], [rate]

    def place(self, point: Point) -> Values:
        """Of a point of a body."""
        return self.axes(point[0]).place(of(point[1], self.p))

    def velocity(self, point: Point) -> Values:
        """Of a point of a body."""
        return self.axes(point[0]).velocity(of(point[1], self.p))

    def stretch_squared(self, spring: PointSpring) -> Array:
        """The square of how much longer a spring is than at rest."""
        away = self.place(spring.first) - self.place(spring.second)
        square = jnp.dot(away, away)
        return square if spring.length == 0.0 else (jnp.sqrt(square) - of(spring.length, self.p)) ** 2

    def touch(self, contact: RollingContact) -> Touch:
        """A contact, in axes that do not spin with a wheel or with a turntable."""
        wheel = contact.shape.own_axis
        table = contact.surface.up if contact.surface.flat else None
        return contact.touch(self.axes(contact.body, wheel), self.axes(contact.of_body, table), self.p)

    def misalignment(self, closure: Closure) -> list[Array]:
        """How the axis of one body leans in the other."""
        first, second = (self.axes(name).A for name, _ in (closure.first, closure.second))
        axis = np.array(closure.axis)
        leaning = first.T @ (second @ axis)
        k = int(np.argmin(np.abs(axis)))
        across = np.cross(axis, np.eye(3)[k])
        return [jnp.dot(across, leaning), jnp.dot(np.cross(axis, across), leaning)]


def driven(function: OfTime, t: Real, p: Parameters) -> tuple[Array, Array]:
    """The value of a function of time, and its rate."""
    takes_p = len(inspect.signature(function).parameters) > 1

    def value(s: Array) -> Array:
        return jnp.asarray(function(s, p) if takes_p else function(s), float)

    t = jnp.asarray(t, float)
    return jax.jvp(value, (t,), (jnp.ones_like(t),))


def _chosen(rows: Array, kept: tuple[int, ...] | None) -> Array:
    return rows if kept is None or len(kept) == len(rows) else rows[np.array(kept, int)]
