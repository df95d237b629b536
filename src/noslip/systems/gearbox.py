"""Continuous gearbox driven by an asymmetric pendulum (CFHM (24)).

Coordinates q1, q2 (two oscillators) and q3 (the angle of a pendulum), unit masses:

    L = (q1dot^2 + q2dot^2 + q3dot^2) / 2 - (q1^2 + q2^2) / 2 - cos q3 + epsilon sin(2 q3)
    q1dot + sin(q3) q2dot = 0

CFHM has epsilon = 1/5 and, by a slip of the pen, the wrong sign of the potential. The constraint does no
work on the pendulum, so that the energies of the pendulum and of the oscillators are constant one by one:
the pendulum drives the gear ratio sin(q3), not the oscillators. For epsilon = 0 it is symmetric.
"""

from __future__ import annotations

import math

import jax.numpy as jnp
from jax import Array

from noslip.rotations import compose, from_axis
from noslip.scenes import (
    BLACK,
    GREEN,
    GREY,
    ORANGE,
    SKY,
    VERMILION,
    Arrow,
    Camera,
    Cylinder,
    Mark,
    Scene,
    Solid,
    Sphere,
    along,
    heading,
)
from noslip.system import Parameters, System

R = 0.5  # of the wheel, in the picture


def lagrangian(q: Array, v: Array, p: Parameters) -> Array:
    return 0.5 * jnp.dot(v, v) - 0.5 * (q[0] ** 2 + q[1] ** 2) - _pendulum_potential(q, p)


def one_forms(q: Array, p: Parameters) -> Array:
    return jnp.array([[1.0, jnp.sin(q[2]), 0.0]])


def frame(q: Array, p: Parameters) -> Array:
    return jnp.array([[-jnp.sin(q[2]), 0.0], [1.0, 0.0], [0.0, 1.0]])


def oscillator_energy(q: Array, v: Array, p: Parameters) -> Array:
    return 0.5 * (v[0] ** 2 + v[1] ** 2 + q[0] ** 2 + q[1] ** 2)


def pendulum_energy(q: Array, v: Array, p: Parameters) -> Array:
    return 0.5 * v[2] ** 2 + _pendulum_potential(q, p)


def system(epsilon: float = 0.2) -> System:
    return System(
        lagrangian,
        one_forms=one_forms,
        coordinates=("q1", "q2", "q3"),
        parameters={"epsilon": epsilon},
        angles=("q3",),
        frame=frame,
        first_integrals={"oscillator_energy": oscillator_energy, "pendulum_energy": pendulum_energy},
        fibre=("q1",),
        scene=scene,
    )


def scene(q: Array, p: Parameters) -> Scene:
    """A wheel, turned by q1, rolls on a disk that is turned by q2, at R sin(q3) from its middle: there the
    bob of a pendulum of length R holds it."""
    place, top = R * jnp.sin(q[2]), 3.6 * R
    hub, contact = jnp.stack([place, jnp.zeros(()), jnp.asarray(R)]), jnp.stack([place, 0.0, 0.0])
    pivot = jnp.array([0.0, 0.0, top])
    bob = jnp.stack([place, jnp.zeros(()), top + R * jnp.cos(q[2])])
    turned = compose(from_axis((1.0, 0.0, 0.0), -q[0]), from_axis((0.0, 1.0, 0.0), 0.5 * jnp.pi))
    axle, _ = along((0.0, 0.0, 0.0), (1.0, 0.0, 0.0))
    (arm, length), (link, gap) = along(pivot, bob), along(hub, bob)
    return Scene(
        bodies=(
            Solid(Cylinder(1.25 * R, 0.1 * R), (0.0, 0.0, -0.05 * R), heading(q[1]), name="disk", colour=SKY,
                  pattern="sectors"),
            Solid(Cylinder(R, 0.08 * R), hub, turned, name="wheel", colour=ORANGE, pattern="sectors"),
            Solid(Cylinder(0.04 * R, 3.2 * R), (0.0, 0.0, R), axle, name="axle", colour=GREY),
            Solid(Cylinder(0.04 * R, length), (pivot + bob) / 2, arm, name="pendulum", colour=BLACK),
            Solid(Cylinder(0.02 * R, gap), (hub + bob) / 2, link, name="link", colour=GREY),
            Solid(Sphere(0.12 * R), bob, name="bob", colour=VERMILION),
        ),
        marks=(Mark(pivot, name="pivot", colour=BLACK, trail=False), Mark(bob, name="bob")),
        arrows=(Arrow(contact, ((0.0, -1 / R, 0.0),), name="on the wheel", colour=GREEN),),
        camera=Camera(azimuth=-55.0, elevation=22.0, follow=False),
    )  # fmt: skip


def typical_state() -> tuple[Array, Array]:
    """The pendulum rotates, which is where the energy error of some methods grows without bound."""
    return jnp.array([0.5, -0.3, 0.2]), jnp.array([-0.4 * math.sin(0.2), 0.4, 2.0])


def _pendulum_potential(q: Array, p: Parameters) -> Array:
    return jnp.cos(q[2]) - p["epsilon"] * jnp.sin(2 * q[2])
