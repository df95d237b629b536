"""A model of bodies, joints and contacts, and the system that it stands for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import Array
from numpy.typing import ArrayLike

from noslip.bodies import checks
from noslip.bodies.assembled import mechanism_of, system_of, with_coordinates
from noslip.bodies.joints import Joint
from noslip.bodies.mechanism import Mechanism, Parameters
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
)
from noslip.bodies.reactions import Reaction, reactions
from noslip.bodies.shapes import RollingShape
from noslip.bodies.starts import found_start, gaps_at
from noslip.bodies.surfaces import RollingSurface
from noslip.bodies.values import (
    AxisLike,
    Number,
    NumberLike,
    PointLike,
    TensorLike,
    Vector,
    VectorLike,
    axis,
    number,
    tensor,
    vector,
)
from noslip.engine.backends.numpy_rows import evaluate_anyhow
from noslip.errors import shown, unknown_name
from noslip.numerics.tracing import Real, Values
from noslip.system import System
from noslip.system.values import as_parameter

Start = tuple[np.ndarray, np.ndarray]


class Model:
    """Bodies in a tree of joints, with what rolls, slides, pulls and drives among them.

    `gravity` is the acceleration of free fall, along `down`. Wherever a number stands, the name of one of the
    `parameters` may stand instead; these are the parameters of the system.
    """

    def __init__(self, *, gravity: NumberLike, down: AxisLike = "-z", parameters: Parameters | None = None):
        if not isinstance(parameters, Mapping | None):
            raise TypeError(f"`parameters` must be a mapping of names, but {shown(parameters)} was given")
        self.parameters = {name: as_parameter(name, x) for name, x in (parameters or {}).items()}
        self.gravity, self.down = number("`gravity`", gravity), axis("`down`", down)
        checks.refuse_unknown_parameters("gravity", self.gravity, self.parameters)
        self._bodies: dict[str, RigidBody] = {}
        self._contacts: list[RollingContact] = []
        self._edges: list[Edge] = []
        self._closures: list[Closure] = []
        self._springs: list[PointSpring] = []
        self._joint_springs: list[JointSpring] = []
        self._motors: list[Motor] = []
        self._pushes: list[Push] = []
        self._made: tuple[Mechanism, System] | None = None

    # ---- what a model is made of ------------------------------------------------------------------
    def body(
        self,
        name: str,
        *,
        joint: Joint,
        on: str = GROUND_NAME,
        mass: NumberLike | None = None,
        inertia: TensorLike = 0.0,
        centre: VectorLike | None = None,
        shape: RollingShape | None = None,
    ) -> None:
        """A body with its mass centre at `centre`, by default the joint's own point, and its inertia about
        that, in its own axes: one moment, three, or a matrix. Its joint is to the ground, or to the body `on`
        which it is. Without a mass it is nothing but axes for others."""
        checks.refuse_bad_name("a body", name, {GROUND_NAME, *self._bodies})
        self._known(on)
        if not isinstance(joint, Joint):
            raise TypeError(
                f"the joint of '{name}' must be made by free, planar, revolute, prismatic or fixed, but "
                f"{shown(joint)} was given"
            )
        checks.refuse_bad_shape(name, shape)
        made = RigidBody(
            name,
            on,
            joint,
            None if mass is None else number(f"the mass of '{name}'", mass),
            tensor(f"the inertia of '{name}'", inertia),
            joint.own if centre is None else vector(f"the centre of '{name}'", centre),
            shape,
        )
        checks.refuse_unknown_parameters(f"'{name}'", made, self.parameters)
        checks.refuse_impossible_masses(made, self.parameters)
        self._bodies[name] = made

    def rolls_on(
        self,
        body: str,
        surface: RollingSurface,
        *,
        of: str = GROUND_NAME,
        shape: RollingShape | None = None,
        rubber: bool = False,
        name: str | None = None,
    ) -> None:
        """A body's shape, or another one, touches a surface of the ground, or of the body `of` which it is,
        and does not slip; of rubber, it does not spin about the normal either."""
        self._known(body)
        self._known(of)
        checks.refuse_bad_shape(body, shape)
        rolling = shape or (self._bodies[body].shape if body != GROUND_NAME else None)
        checks.refuse_bad_contact(body, of, rolling, surface)
        assert rolling is not None
        middle = rolling.at if rolling.at is not None else self._bodies[body].centre
        name = name or body
        checks.refuse_bad_name("a contact", name, self._parts())
        made = RollingContact(name, body, rolling, middle, surface, of, bool(rubber))
        checks.refuse_unknown_parameters(f"contact '{name}'", made, self.parameters)
        checks.refuse_bad_sizes(f"contact '{name}'", (rolling, surface), self.parameters)
        self._contacts.append(made)

    def knife_edge(
        self, body: str, *, at: VectorLike | None = None, normal: AxisLike = "y", name: str | None = None
    ) -> None:
        """A blade, or a wheel whose turn does not matter: the point `at` of the body, by default its mass
        centre, does not move along `normal`, in the axes of the body."""
        self._known(body, ground=False)
        name = name or f"{body} edge"
        checks.refuse_bad_name("a knife edge", name, self._parts())
        place = self._bodies[body].centre if at is None else vector("`at`", at)
        self._edges.append(Edge(name, body, place, axis("`normal`", normal)))
        checks.refuse_unknown_parameters(f"knife edge '{name}'", place, self.parameters)

    def loop(
        self, first: PointLike, second: PointLike, *, hinge: AxisLike | None = None, name: str | None = None
    ) -> None:
        """Closes a loop: the point (body, place) is the other one; with the axis of a
        `hinge`, the same in both bodies, they only turn about it."""
        points = self._point("`first`", first), self._point("`second`", second)
        if points[0][0] == points[1][0]:
            raise ValueError(f"a loop must join two bodies, but both points are of '{points[0][0]}'")
        name = name or f"{points[0][0]}-{points[1][0]}"
        checks.refuse_bad_name("a loop", name, self._parts())
        self._closures.append(Closure(name, *points, None if hinge is None else axis("`hinge`", hinge)))

    def spring(
        self,
        first: PointLike,
        second: PointLike,
        *,
        stiffness: NumberLike = 0.0,
        length: NumberLike = 0.0,
        damping: NumberLike = 0.0,
    ) -> None:
        """Between two points (body, place): a spring of a length at rest, and a damper along it."""
        points = self._point("`first`", first), self._point("`second`", second)
        made = PointSpring(*points, *_springy(stiffness, length, damping, "length"))
        checks.refuse_unknown_parameters("a spring", made, self.parameters)
        self._springs.append(made)

    def joint_spring(
        self,
        coordinate: str,
        *,
        stiffness: NumberLike = 0.0,
        rest: NumberLike = 0.0,
        damping: NumberLike = 0.0,
    ) -> None:
        """At the coordinate of a joint: a spring, and a damper."""
        made = JointSpring(str(coordinate), *_springy(stiffness, rest, damping, "rest"))
        checks.refuse_unknown_parameters("a spring", made, self.parameters)
        self._joint_springs.append(made)

    def motor(self, coordinate: str, input: str) -> None:
        """The input of that name is the torque, or the force, at the coordinate of a joint."""
        checks.refuse_bad_name("an input", input, {*self._inputs(), *self.parameters})
        self._motors.append(Motor(str(coordinate), input))

    def push(self, input: str, point: PointLike, *, along: AxisLike, turns: bool = False) -> None:
        """The input of that name is the force on a point (body, place), along a direction of space; one that
        `turns` is a direction of the body."""
        checks.refuse_bad_name("an input", input, {*self._inputs(), *self.parameters})
        self._pushes.append(Push(input, self._point("`point`", point), axis("`along`", along), bool(turns)))

    # ---- what comes out ---------------------------------------------------------------------------
    def system(self) -> System:
        """The system of this model as it is now."""
        mechanism = self._mechanism()
        if self._made is None or self._made[0] != mechanism:
            self._made = mechanism, system_of(mechanism, self.parameters)
        return self._made[1]

    def start(
        self,
        positions: Mapping[str, ArrayLike] | None = None,
        rates: Mapping[str, ArrayLike] | None = None,
        *,
        near: Mapping[str, ArrayLike] | None = None,
        t: float = 0.0,
    ) -> Start:
        """(q, v) at which all contacts touch, all loops are closed and nothing slips. `positions` are kept,
        the others are found near 0, or `near` others; a rotation has four numbers. `rates` are kept,
        the others make the kinetic energy least; the rate of a rotation is its angular velocity in
        the body's axes."""
        return found_start(self.system(), self.mechanism, positions or {}, rates or {}, near or {}, t)

    @property
    def mechanism(self) -> Mechanism:
        """All parts as one value, with the constraints that are kept."""
        return mechanism_of(self.system())

    def poses(
        self, q: Sequence[float] | Values, p: Parameters | None = None, t: Real = 0.0
    ) -> dict[str, tuple[Array, Values]]:
        """Of each body the matrix from its axes to space, and where the origin of these axes is."""
        motion = self.mechanism.motion(jnp.asarray(q), jnp.zeros(len(q)), t, self._values(p))
        axes = {name: motion.axes(name) for name in self._bodies}
        return {name: (jnp.asarray(there.A), there.place(np.zeros(3))) for name, there in axes.items()}

    def contact_points(
        self, q: Sequence[float] | Values, p: Parameters | None = None, t: Real = 0.0
    ) -> dict[str, Values]:
        """Where the bodies touch, in space."""
        motion = self.mechanism.motion(jnp.asarray(q), jnp.zeros(len(q)), t, self._values(p))
        return {contact.name: motion.touch(contact).point for contact in self._contacts}

    @property
    def shapes(self) -> dict[str, tuple[RollingShape, Vector]]:
        """The shapes of the bodies that have one, each with its middle in the axes of the body."""
        found = {name: body for name, body in self._bodies.items() if body.shape is not None}
        return {
            name: (body.shape, body.centre if body.shape.at is None else body.shape.at)  # type: ignore[union-attr,misc]
            for name, body in found.items()
        }

    def gaps(
        self, q: Sequence[float] | Values, p: Parameters | None = None, t: Real = 0.0
    ) -> dict[tuple[str, str], float]:
        """How far from closed each contact and loop is, by name and direction."""
        rows = self.mechanism.position_rows
        if not rows:
            return {}
        at = np.asarray(q, float)[None], np.array([float(t)])
        values = evaluate_anyhow(gaps_at, self.mechanism, self._values(p), *at)[0]
        return dict(zip(rows, map(float, values), strict=True))

    def reactions(self, run: Any) -> dict[str, Reaction]:
        """Normal force and friction of each contact, the forces of loops and edges, along a run of this
        model's system. Warns where a normal force pulls: there the body lifts off, and the run
        should have ended."""
        return reactions(self.system(), self.mechanism, run)

    # ---- how ---------------------------------------------------------------------------------------
    def _known(self, name: str, ground: bool = True) -> None:
        known = [GROUND_NAME, *self._bodies] if ground else list(self._bodies)
        if name not in known:
            raise ValueError(unknown_name("body", name, known))

    def _point(self, what: str, given: object) -> Point:
        if not isinstance(given, tuple | list) or len(given) != 2 or not isinstance(given[0], str):
            raise ValueError(f"{what} must be a pair of a body and a place, but {shown(given)} was given")
        self._known(given[0])
        place = vector(f"the place of {what}", given[1])
        checks.refuse_unknown_parameters(f"a point of '{given[0]}'", place, self.parameters)
        return given[0], place

    def _parts(self) -> set[str]:
        parts: list[RollingContact | Edge | Closure] = [*self._contacts, *self._edges, *self._closures]
        return {part.name for part in parts}

    def _inputs(self) -> list[str]:
        return [*(part.input for part in self._motors), *(part.input for part in self._pushes)]

    def _values(self, p: Parameters | None) -> dict[str, Any]:
        return {**self.parameters, **dict.fromkeys(self._inputs(), 0.0), **(p or {})}

    def _mechanism(self) -> Mechanism:
        coordinates, bodies = with_coordinates(tuple(self._bodies.values()))
        checks.refuse_bad_coordinates(coordinates, (*self._joint_springs, *self._motors))
        return Mechanism(
            coordinates,
            bodies,
            tuple(self._contacts),
            tuple(self._edges),
            tuple(self._closures),
            tuple(self._springs),
            tuple(self._joint_springs),
            tuple(self._motors),
            tuple(self._pushes),
            self.gravity,
            self.down,
        )


def _springy(
    stiffness: NumberLike, rest: NumberLike, damping: NumberLike, word: str
) -> tuple[Number, Number, Number]:
    values = number("`stiffness`", stiffness), number(f"`{word}`", rest), number("`damping`", damping)
    if not values[0] and not values[2]:
        raise ValueError("a spring must have a `stiffness` or a `damping`, but neither was given")
    for what, value in (("stiffness", values[0]), ("damping", values[2])):
        if isinstance(value, float) and value < 0:
            raise ValueError(f"`{what}` must not be negative, but {value} was given")
    return values
