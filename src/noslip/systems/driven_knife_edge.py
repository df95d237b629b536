"""Knife edge in a well, whose heading is turned by an asymmetric pendulum.

Coordinates x, y (the blade), phi (its direction). With mass m, moment of inertia J and stiffness k,

    L = (m (xdot^2 + ydot^2) + J phidot^2 - k (x^2 + y^2)) / 2 - cos(phi) + epsilon sin(2 phi)
    xdot sin(phi) - ydot cos(phi) = 0

The constraint does no work on phi, which moves as a pendulum by itself: its energy and that of the blade are
constant one by one. Along a given phi(t) the rest is linear: with u the speed along the blade and
w = sqrt(k / m), the vector (w x, w y, u) turns without changing its length,

    (w x)' = w u cos(phi),      (w y)' = w u sin(phi),      u' = -w (w x cos(phi) + w y sin(phi))

so that over one period of phi it is turned by a fixed rotation: the motion is on tori, as in the gearbox.
A method that keeps this fibration over phi and is reversible has bounded energy errors where a reversal takes
each torus to itself (Modin, Verdier 2020). Velocities reversed do that while phi swings; while it goes round
and round they do not, and then phi -> -phi is needed besides, a symmetry only for epsilon = 0. So epsilon
makes an integrable system that is not reversible, and the energy of self-adjoint methods drifts in it. The
construction is theirs; this system and the statements about it are ours.
"""

from __future__ import annotations

import math

import jax.numpy as jnp
from jax import Array

from noslip.scenes import BLACK, GREEN, VERMILION, Arrow, Blade, Camera, Mark, Scene, Solid, Sphere, heading
from noslip.system import Parameters, System
from noslip.systems import _looks

ABOVE = 0.8  # the pendulum stands over the blade, in the picture


def lagrangian(q: Array, v: Array, p: Parameters) -> Array:
    blade = p["m"] * (v[0] ** 2 + v[1] ** 2) - p["k"] * (q[0] ** 2 + q[1] ** 2)
    return 0.5 * (blade + p["J"] * v[2] ** 2) - _potential(q, p)


def one_forms(q: Array, p: Parameters) -> Array:
    return jnp.array([[jnp.sin(q[2]), -jnp.cos(q[2]), 0.0]])


def frame(q: Array, p: Parameters) -> Array:
    return jnp.array([[jnp.cos(q[2]), 0.0], [jnp.sin(q[2]), 0.0], [0.0, 1.0]])


def blade_energy(q: Array, v: Array, p: Parameters) -> Array:
    return 0.5 * (p["m"] * (v[0] ** 2 + v[1] ** 2) + p["k"] * (q[0] ** 2 + q[1] ** 2))


def pendulum_energy(q: Array, v: Array, p: Parameters) -> Array:
    return 0.5 * p["J"] * v[2] ** 2 + _potential(q, p)


def system(m: float = 1.0, J: float = 1.0, k: float = 1.0, epsilon: float = 0.2) -> System:
    return System(
        lagrangian,
        one_forms=one_forms,
        coordinates=("x", "y", "phi"),
        parameters={"m": m, "J": J, "k": k, "epsilon": epsilon},
        angles=("phi",),
        frame=frame,
        first_integrals={"blade_energy": blade_energy, "pendulum_energy": pendulum_energy},
        fibre=("y",),
        scene=scene,
    )


def scene(q: Array, p: Parameters) -> Scene:
    """The blade, the bob that turns with it, the spring to the middle, and the force across the blade."""
    contact, ahead = jnp.array([q[0], q[1], 0.0]), jnp.array([jnp.cos(q[2]), jnp.sin(q[2]), 0.0])
    top = contact + jnp.array([0.0, 0.0, ABOVE])
    bob = top + 0.3 * ahead
    return Scene(
        bodies=(
            Solid(Blade(0.5, 0.12, 0.04), contact, heading(q[2]), name="blade", colour=VERMILION),
            _looks.rod(contact, top, 0.015, "mast", BLACK),
            _looks.rod(top, bob, 0.015, "arm", BLACK),
            Solid(Sphere(0.06), bob, name="bob", colour=VERMILION),
            _looks.FLOOR,
        ),
        marks=(
            Mark(contact, name="contact"),
            Mark(jnp.zeros(3), name="middle", colour=BLACK, trail=False),
        ),
        arrows=(Arrow(contact, one_forms(q, p), name="reaction", colour=GREEN),),
        camera=Camera(follow=False),
    )


def typical_state() -> tuple[Array, Array]:
    """The pendulum goes round and round."""
    phi, u = 0.2, 0.4
    return jnp.array([0.5, -0.3, phi]), jnp.array([u * math.cos(phi), u * math.sin(phi), 2.0])


def _potential(q: Array, p: Parameters) -> Array:
    return jnp.cos(q[2]) - p["epsilon"] * jnp.sin(2 * q[2])
