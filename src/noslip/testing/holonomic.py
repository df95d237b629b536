"""Systems with holonomic constraints on which the claims of methods are checked: none has a frame.

One has everything but a rotation: a varying mass matrix, terms of L linear in v, a velocity constraint, two
holonomic ones, a force; an ellipsoid that rolls has a rotation. Another has only a curve. Parameters are no
round numbers.
"""

from __future__ import annotations

import functools
from collections.abc import Callable

import jax.numpy as jnp
import numpy as np
from jax import Array

from noslip import rotations
from noslip.system import Parameters, System

Start = tuple[System, np.ndarray, np.ndarray]


@functools.cache
def pendulum() -> Start:
    """A spherical pendulum in Cartesian coordinates: m = 0."""

    def lagrangian(q: Array, v: Array, p: Parameters) -> Array:
        return 0.5 * p["mass"] * jnp.dot(v, v) - p["mass"] * p["gravity"] * q[2]

    def holonomic(q: Array, p: Parameters) -> Array:
        return (jnp.dot(q, q) - p["length"] ** 2)[None] / 2

    parameters = {"mass": 1.3, "gravity": 0.9, "length": 1.1}
    system = System(lagrangian, holonomic=holonomic, coordinates=("x", "y", "z"), parameters=parameters)
    return started(system, [0.5, 0.3, -0.9], [0.9, 0.4, 0.3])


@functools.cache
def bead() -> Start:
    """A bead on a quartic curve whose third coordinate follows a velocity constraint, with a varying mass."""

    def lagrangian(q: Array, v: Array, p: Parameters) -> Array:
        kinetic = 0.5 * (1 + 0.2 * q[0] ** 2) * jnp.dot(v, v)
        return kinetic - p["gravity"] * q[1] - 0.5 * q[2] ** 2 - 0.3 * q[0] * q[2]

    def one_forms(q: Array, p: Parameters) -> Array:
        return jnp.array([[-0.3 * q[2], 0.2 * q[0], 1.0]])

    def holonomic(q: Array, p: Parameters) -> Array:
        return (q[1] - q[0] ** 4 + q[0] ** 2)[None]

    system = System(
        lagrangian,
        one_forms=one_forms,
        holonomic=holonomic,
        coordinates=("x", "y", "z"),
        parameters={"gravity": 1.9},
    )
    return started(system, [0.9, 0.9**4 - 0.81, 0.1], [0.7, 0.0, 0.2])


@functools.cache
def linkage() -> Start:
    """A four-bar linkage of two points: three holonomic constraints on four coordinates."""

    def lagrangian(q: Array, v: Array, p: Parameters) -> Array:
        kinetic = 0.5 * jnp.dot(v[:2], v[:2]) + 0.5 * p["mass"] * jnp.dot(v[2:], v[2:])
        return kinetic - p["gravity"] * (q[1] + p["mass"] * q[3])

    def holonomic(q: Array, p: Parameters) -> Array:
        A, B = q[:2], q[2:]
        rods = (A, B - A, B - jnp.array([2.0, 0.0]))
        return jnp.stack([jnp.dot(rod, rod) for rod in rods]) / 2 - p["lengths"] ** 2 / 2

    parameters = {"mass": 0.8, "gravity": 0.4, "lengths": np.array([1.0, 2.1, 1.6])}
    names = ("x1", "y1", "x2", "y2")
    system = System(lagrangian, holonomic=holonomic, coordinates=names, parameters=parameters)
    return started(system, [0.36, 0.93, 2.2, 1.4], [0.6, -0.3, 0.3, 0.15])


@functools.cache
def everything(force: bool = True) -> Start:
    """Two holonomic constraints and one of velocities on six coordinates, a magnetic field and a force."""

    def lagrangian(q: Array, v: Array, p: Parameters) -> Array:
        kinetic = 0.5 * (1 + 0.3 * jnp.sin(q[0])) * jnp.dot(v, v) + 0.2 * jnp.cos(q[1]) * v[0] * v[3]
        magnetic = p["field"] * (q[0] ** 2 * v[1] - jnp.sin(q[1]) * v[2] + 0.5 * q[2] * v[3])
        return kinetic + magnetic - 0.5 * jnp.dot(q, q) - 0.25 * q[0] ** 4

    def one_forms(q: Array, p: Parameters) -> Array:
        return jnp.array([[jnp.sin(q[1]), 0.3 * q[2], 1.0, 0.0, 0.1 * q[4], 0.0]])

    def holonomic(q: Array, p: Parameters) -> Array:
        return jnp.stack([q[4] - jnp.sin(q[0]) * q[1], jnp.dot(q[3:], q[3:]) - p["radius"] ** 2])

    def push(q: Array, v: Array, t: Array, p: Parameters) -> Array:
        return jnp.stack([0.3 * jnp.cos(t), -0.1 * v[1], 0.2 * q[0], 0.0, 0.1 * jnp.sin(2 * t), -0.05 * v[5]])

    system = System(
        lagrangian,
        one_forms=one_forms,
        holonomic=holonomic,
        coordinates=("x", "y", "z", "a", "b", "c"),
        parameters={"field": 0.4, "radius": 0.9},
        force=push if force else None,
    )
    return started(system, [0.4, -0.7, 0.5, 0.2, -0.27, 0.8], [0.8, 0.3, -0.2, 0.5, 0.1, 0.2])


def everything_free() -> Start:
    """The same without the force, so that its energy stays."""
    return everything(force=False)


@functools.cache
def ellipsoid(force: bool = True) -> Start:
    """An ellipsoid that rolls on a plane without slipping, its mass centre off the middle and held by a
    spring, its attitude a quaternion; the force is drag, and a torque that varies in time."""
    squares, offset = np.array([0.81, 0.49, 0.36]), np.array([0.07, -0.05, 0.11])

    def contact(gamma: Array) -> Array:
        return jnp.asarray(offset) - squares * gamma / jnp.sqrt(jnp.dot(squares, gamma**2))

    def lagrangian(q: Array, v: Array, p: Parameters) -> Array:
        w = rotations.body_rates(q[3:], v[3:])
        kinetic = 0.5 * p["mass"] * jnp.dot(v[:3], v[:3]) + 0.5 * jnp.dot(p["inertia"] * w, w)
        spring = 0.5 * p["spring"] * (q[0] ** 2 + 1.7 * q[1] ** 2)
        return kinetic - p["mass"] * p["gravity"] * q[2] - spring

    def one_forms(q: Array, p: Parameters) -> Array:
        return jnp.concatenate([jnp.eye(3), rotations.rolling(contact)(q[3:])], axis=1)[:2]

    def holonomic(q: Array, p: Parameters) -> Array:
        return (q[2] - rotations.height(contact)(q[3:]))[None]

    def push(q: Array, v: Array, t: Array, p: Parameters) -> Array:
        torque = jnp.array([0.0, 0.2 * jnp.cos(t), 0.1]) - 0.15 * rotations.body_rates(q[3:], v[3:])
        turned = 4 * rotations.frame("body")(q[3:]) @ torque
        return jnp.concatenate([-0.1 * v[:3] * jnp.sqrt(1 + jnp.dot(v[:3], v[:3])), turned])

    system = System(
        lagrangian,
        one_forms=one_forms,
        holonomic=holonomic,
        coordinates=("x", "y", "z", *rotations.names("u")),
        rotations=("u",),
        parameters={
            "mass": 1.3,
            "gravity": 0.9,
            "spring": 0.7,
            "inertia": np.array([0.21, 0.34, 0.43]),
        },
        force=push if force else None,
    )
    u = rotations.from_euler("zxz", [0.3, 0.8, -0.4])
    du = rotations.from_rates(u, [0.5, -0.8, 0.6])
    q = np.array([0.2, -0.3, rotations.height(contact)(u), *u])
    return system, _fixed(q), _fixed(np.array([*(-rotations.rolling(contact)(u) @ du), *du]))


def ellipsoid_free() -> Start:
    """The same without the force, so that its energy stays."""
    return ellipsoid(force=False)


@functools.cache
def suslov() -> Start:
    """A heavy body about a fixed point that may not turn about an axis partly of its own, partly of space: a
    rotation without holonomic constraints, for all methods."""
    inertia = np.array([[1.2, 0.1, 0.3], [0.1, 1.6, -0.2], [0.3, -0.2, 2.0]])

    def lagrangian(q: Array, v: Array, p: Parameters) -> Array:
        w, A = rotations.body_rates(q, v), rotations.matrix(q)
        return 0.5 * jnp.dot(w, inertia @ w) - p["weight"] * A[2, 0] - 0.2 * A[2, 2] ** 2

    def one_forms(q: Array, p: Parameters) -> Array:
        own, space = (4 * rotations.frame(axes)(q).T for axes in ("body", "space"))
        return own[2:] + p["share"] * space[:1]

    system = System(
        lagrangian,
        one_forms=one_forms,
        coordinates=rotations.names("u"),
        rotations=("u",),
        parameters={"weight": 0.7, "share": 0.3},
    )
    u = np.asarray(rotations.from_euler("zxz", [0.4, 1.3, -0.6]))
    return system, u, np.asarray(system.project_velocity(u, rotations.from_rates(u, [0.5, -0.7, 0.2])))


SYSTEMS: tuple[Callable[[], Start], ...] = (
    pendulum,
    bead,
    linkage,
    everything,
    everything_free,
    ellipsoid,
    ellipsoid_free,
)


def started(system: System, q: list[float], v: list[float]) -> Start:
    """The nearest admissible state."""
    position = system.project_position(q)
    return system, _fixed(position), np.asarray(system.project_velocity(position, v))


def _fixed(state: np.ndarray) -> np.ndarray:
    """An array that all may have, since nobody can change it."""
    state.flags.writeable = False
    return state
