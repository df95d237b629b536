"""Systems that declare no frame of D, on which methods that would use one are held to their claims.

Each function gives a system with an admissible state.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable
from types import ModuleType

import jax.numpy as jnp
import numpy as np
from jax import Array

from noslip.engine.backends.numpy_rows import evaluate_anyhow
from noslip.integrators.base import Integrator
from noslip.system import Parameters, System

Start = tuple[System, Array, Array]


@functools.cache
def bent_blade() -> Start:
    """A blade whose constraint is bent along x, coupled inertia, a potential: it turns many times."""

    def lagrangian(q: Array, v: Array, p: Parameters) -> Array:
        kinetic = v[0] ** 2 + 1.5 * v[1] ** 2 + 0.7 * v[2] ** 2 + 0.3 * v[0] * v[2]
        return 0.5 * kinetic - 0.3 * jnp.cos(q[0]) * jnp.cos(q[1])

    def one_forms(q: Array, p: Parameters) -> Array:
        return jnp.array([[jnp.sin(q[2]), -jnp.cos(q[2]), 0.1 * jnp.sin(q[0])]])

    system = System(lagrangian, one_forms=one_forms, coordinates=("x", "y", "phi"), angles=("phi",))
    return _admissible(system, [0.4, -0.2, 0.3], [0.6, 0.3, 1.0])


@functools.cache
def charged_pair() -> Start:
    """Two constraints, a mass matrix that varies, and a magnetic field: terms of L linear in v."""

    def lagrangian(q: Array, v: Array, p: Parameters) -> Array:
        kinetic = 0.5 * (1 + 0.3 * jnp.sin(q[0])) * jnp.dot(v, v) + 0.2 * jnp.cos(q[1]) * v[0] * v[3]
        magnetic = 0.4 * (q[0] ** 2 * v[1] - jnp.sin(q[1]) * v[2] + 0.5 * q[2] * v[3])
        return kinetic + magnetic - 0.5 * jnp.dot(q, q) - 0.25 * q[0] ** 4

    def one_forms(q: Array, p: Parameters) -> Array:
        return jnp.array([[jnp.sin(q[1]), 0.3 * q[2], 1.0, 0.0], [0.2 * q[3], jnp.cos(q[0]), 0.0, 1.0]])

    system = System(lagrangian, one_forms=one_forms, coordinates=("x", "y", "z", "w"))
    return _admissible(system, [0.4, -0.7, 0.5, 0.2], [0.8, 0.3, -0.2, 0.5])


@functools.cache
def ball_in_quaternions() -> Start:
    """Chaplygin's sphere with its attitude as a quaternion u: rolling in two directions, and u . du = 0."""

    def lagrangian(q: Array, v: Array, p: Parameters) -> Array:
        spin, _ = _spins(q[2:], v[2:])
        inertia = jnp.array([0.5, 0.8, 1.1])
        stretch = 2 * jnp.dot(q[2:], v[2:])  # makes the mass matrix definite, and is kept at zero
        return 0.5 * (jnp.dot(v[:2], v[:2]) + jnp.dot(inertia, spin**2) + stretch**2)

    def one_forms(q: Array, p: Parameters) -> Array:
        columns = jnp.stack([_spins(q[2:], e)[1] for e in jnp.eye(4)], axis=1)  # of the spin in space
        rolling = jnp.concatenate([jnp.eye(2), jnp.stack([-columns[1], columns[0]])], axis=1)
        return jnp.concatenate([rolling, jnp.concatenate([jnp.zeros(2), q[2:]])[None]])

    names = ("x", "y", "u0", "u1", "u2", "u3")
    system = System(lagrangian, one_forms=one_forms, coordinates=names)
    return _admissible(system, [0.0, 0.0, 0.8, 0.0, 0.6, 0.0], [0.3, -0.4, 0.1, 0.4, -0.2, 0.5])


def without_frame(module: ModuleType) -> Start:
    """A system of the catalogue that says nothing of its frame."""
    return dataclasses.replace(module.system(), frame=None), *module.typical_state()


def telling(integrator: Integrator) -> dict[str, Start]:
    """Those on which the claims of a method are checked by default: if it would use a frame."""
    if not integrator.uses_frame:
        return {}
    systems: tuple[Callable[[], Start], ...] = (bent_blade, charged_pair)
    return {make.__name__: make() for make in systems}


def _spins(u: Array, du: Array) -> tuple[Array, Array]:
    """The angular velocity of a quaternion u with velocity du, in the body and in space."""
    (a, x), (b, y) = (u[0], u[1:]), (du[0], du[1:])
    even, odd = a * y - b * x, jnp.cross(x, y)
    return 2 * (even - odd), 2 * (even + odd)


def _admissible(system: System, q: list[float], v: list[float]) -> Start:
    return system, jnp.array(q), admissible(system, q, v)


def admissible(system: System, q: list[float], v: list[float]) -> Array:
    """The velocity put on the constraint; for one state XLA would be slow."""
    return jnp.asarray(evaluate_anyhow(_projected, None, system, np.array([q]), np.array([v]))[0])


def _projected(_: None, system: System, q: Array, v: Array) -> Array:
    return system.project_velocity(q, v)
