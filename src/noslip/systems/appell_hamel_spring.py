"""Appell-Hamel particle on a spring: a nonlinear constraint with a motion that no method meets exactly.

Coordinates x, y, z. The particle of `appell_hamel` with a spring to the z axis, uneven so that nothing is
symmetric:

    L = m (xdot^2 + ydot^2 + zdot^2) / 2 - k (x^2 + 2 y^2) / 2 - m g z
    zdot - c sqrt(xdot^2 + ydot^2) = 0

Without the spring the path is straight and the acceleration constant, and every consistent method of
order 2 is exact; with it the horizontal velocity turns. The energy is conserved; no other first integral
is known. Singular where the particle stops.
"""

from __future__ import annotations

import math

import jax.numpy as jnp
from jax import Array

from noslip.scenes import GREY, ORANGE, Cylinder, Mark, Scene, Solid, Sphere, Spring, along
from noslip.system import Parameters, System
from noslip.systems import appell_hamel


def lagrangian(q: Array, v: Array, p: Parameters) -> Array:
    return appell_hamel.lagrangian(q, v, p) - 0.5 * p["k"] * (q[0] ** 2 + 2 * q[1] ** 2)


def system(m: float = 1.0, g: float = 0.2, c: float = -0.5, k: float = 0.8) -> System:
    return System(
        lagrangian,
        constraint=appell_hamel.constraint,
        coordinates=("x", "y", "z"),
        parameters={"m": m, "g": g, "c": c, "k": k},
        fibre=("z",),
        scene=scene,
    )


def scene(q: Array, p: Parameters) -> Scene:
    """The particle, and the spring that leads to the axis at its height."""
    foot = jnp.stack([jnp.zeros(()), jnp.zeros(()), q[2]])
    rotation, length = along(foot, q)
    return Scene(
        bodies=(
            Solid(Sphere(0.07), q, name="particle", colour=ORANGE),
            Solid(Spring(length, 0.05), foot, rotation, name="spring", colour=GREY),
            Solid(Cylinder(0.02, 1.2), foot, name="axis", colour=GREY),
        ),
        marks=(Mark(q, name="path"),),
        axes=("x", "y", "z"),
    )


def typical_state() -> tuple[Array, Array]:
    """Far enough from a radial swing that the particle never stops."""
    vx, vy = 0.4, 1.1
    return jnp.array([0.9, -0.3, 0.5]), jnp.array([vx, vy, -0.5 * math.sqrt(vx**2 + vy**2)])
