"""From a mechanism to a `System`, and back."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import jax
import numpy as np
from jax import Array

from noslip import rotations
from noslip.bodies.mechanism import Mechanism, Parameters
from noslip.bodies.parts import RigidBody
from noslip.bodies.redundant import without_redundant_rows
from noslip.bodies.seen import ModelScene
from noslip.engine.backends.numpy_rows import evaluate_anyhow
from noslip.engine.translate import depends_on
from noslip.system import System
from noslip.system.captured import Calls

MASSLESS = 1e-14  # of the greatest eigenvalue of the mass matrix


@dataclass(frozen=True)
class _Of(Calls):
    """A function of a mechanism as a `System` takes it; equal for equal mechanisms."""

    mechanism: Mechanism
    name: str

    def called(self) -> dict[str, Callable[..., Any]]:
        """What the user gave as functions of time and place."""
        return self.mechanism.functions()


class _OfPosition(_Of):
    def __call__(self, q: Array, p: Parameters) -> Array:
        return getattr(self.mechanism, self.name)(q, 0.0, p)


class _OfPositionAndTime(_Of):
    def __call__(self, q: Array, t: Array, p: Parameters) -> Array:
        return getattr(self.mechanism, self.name)(q, t, p)


class _OfState(_Of):
    def __call__(self, q: Array, v: Array, p: Parameters) -> Array:
        return getattr(self.mechanism, self.name)(q, v, 0.0, p)


class _OfStateAndTime(_Of):
    def __call__(self, q: Array, v: Array, t: Array, p: Parameters) -> Array:
        return getattr(self.mechanism, self.name)(q, v, t, p)


def with_coordinates(bodies: tuple[RigidBody, ...]) -> tuple[tuple[str, ...], tuple[RigidBody, ...]]:
    """The names of all coordinates, and the bodies that know the places of theirs. Usual names carry that of
    the body where two bodies would have them."""
    plain = [body for body in bodies if not body.joint.names and body.joint.driven is None]
    usual: list[str] = [name for body in plain for name in body.joint.usual]
    names, placed = list[str](), list[RigidBody]()
    for body in bodies:
        own = body.joint.names
        if body in plain:
            own = tuple(_usual(body.name, x, usual.count(x)) for x in body.joint.usual)
        if body.joint.quaternion:
            own = (*own[:-1], *rotations.names(own[-1]))
        placed.append(replace(body, slots=tuple(range(len(names), len(names) + len(own)))))
        names += own
    return tuple(names), tuple(placed)


def _usual(body: str, name: str, count: int) -> str:
    if not name:
        return body
    return f"{body}_{name}" if count > 1 else name


def mechanism_of(system: System) -> Mechanism:
    """The mechanism of a system that was made from one."""
    function: Any = system.lagrangian
    while not isinstance(function, _Of):
        function = function.__wrapped__
    return function.mechanism


def system_of(plain: Mechanism, parameters: Parameters) -> System:
    """The system of a mechanism, without the constraints that hold by themselves."""
    inputs = dict.fromkeys(plain.inputs, 0.0)
    p = {**parameters, **inputs}
    turning = [body.slots[-4:] for body in plain.bodies if body.joint.quaternion]
    mechanism = without_redundant_rows(plain, [slice(u[0], u[3] + 1) for u in turning], p)
    parts: dict[str, Any] = {}
    if mechanism.kept_velocities:
        parts["one_forms"] = _of_position(mechanism, "one_forms", p)
        if mechanism.driven:
            parts["drift"] = _of_position(mechanism, "drift", p)
    if mechanism.kept_positions:
        parts["holonomic"] = _of_position(mechanism, "holonomic", p)
    if mechanism.forced:
        parts["force"] = _OfStateAndTime(mechanism, "force")
    system = System(
        _of_state(mechanism, "lagrangian", p),
        coordinates=plain.coordinates,
        parameters=dict(parameters),
        inputs=inputs,
        angles=_angles(plain),
        rotations=tuple(plain.coordinates[u[0]][:-1] for u in turning),
        scene=ModelScene(mechanism),
        **parts,
    )
    _refuse_massless(system)
    return system


def _refuse_massless(system: System) -> None:
    """Every coordinate moves some mass."""
    q = np.random.default_rng(1).uniform(-0.7, 0.7, (3, system.n))
    for M in evaluate_anyhow(_mass, None, system, q):
        values, vectors = np.linalg.eigh(M) if np.all(np.isfinite(M)) else (np.ones(1), np.ones((1, 1)))
        if not values[0] > MASSLESS * values[-1]:
            name = system.coordinates[int(np.argmax(np.abs(vectors[:, 0])))]
            raise ValueError(
                f"every coordinate must move some mass, but '{name}' can change while nothing with a mass or "
                "an inertia moves"
            )


def _mass(_: None, system: System, q: Array) -> Array:
    return system.mass_matrix(q)


def _angles(mechanism: Mechanism) -> tuple[str, ...]:
    """The coordinates that a full turn leaves as they were: no spring tells its turns apart."""
    held = {spring.coordinate for spring in mechanism.joint_springs if spring.stiffness}
    places = [
        k
        for body in mechanism.bodies
        if not body.joint.quaternion and body.slots
        for k in body.slots[len(body.slots) - len(body.joint.turns) :]
    ]
    return tuple(x for x in (mechanism.coordinates[k] for k in places) if x not in held)


def _of_position(mechanism: Mechanism, name: str, p: Parameters) -> Callable[..., Array]:
    q, t = _state(mechanism)
    timed = _OfPositionAndTime(mechanism, name)
    moved = mechanism.driven and depends_on(timed, 1, q, t, dict(p))
    return timed if moved else _OfPosition(mechanism, name)


def _of_state(mechanism: Mechanism, name: str, p: Parameters) -> Callable[..., Array]:
    q, t = _state(mechanism)
    timed = _OfStateAndTime(mechanism, name)
    moved = mechanism.driven and depends_on(timed, 2, q, q, t, dict(p))
    return timed if moved else _OfState(mechanism, name)


def _state(mechanism: Mechanism) -> tuple[jax.ShapeDtypeStruct, jax.ShapeDtypeStruct]:
    n = len(mechanism.coordinates)
    return jax.ShapeDtypeStruct((n,), float), jax.ShapeDtypeStruct((), float)
