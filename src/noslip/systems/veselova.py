"""Veselova's problem: a rigid body that may not rotate about the vertical, in a field that turns it.

Coordinates phi, theta, psi, the Euler angles of the convention z-x-z (R = Rz(phi) Rx(theta) Rz(psi)). With
principal moments I1, I2, I3 about the fixed point, gamma = (sin theta sin psi, sin theta cos psi, cos theta)
the vertical seen from the body, omega the angular velocity there (see `suslov`) and I = diag(I1, I2, I3):

    L = (omega, I omega) / 2 - k (gamma, I gamma) / 2
    (omega, gamma) = phidot + cos(theta) psidot = 0

The potential is that of the gradient of gravity across a large satellite. The reaction is a torque
about the vertical. Suslov's problem forbids a rotation about an axis of the body; here the axis is fixed in
space and phi does not appear, so with phi as the group this is a Chaplygin system. On (theta, psi) it is
Hamiltonian in the time dtau = f dt with f = (gamma, I^-1 gamma)^(-1/2), the density of an invariant measure
f dr dp (Veselov, Veselova 1988). Besides the energy

    |I omega|^2 - (I omega, gamma)^2 - k I1 I2 I3 (gamma, I^-1 gamma)

is constant. With k = 0 it is the square of the horizontal angular momentum, whose two components in space
are then constant too. The coordinates are singular at sin(theta) = 0; from `typical_state` theta stays
between 0.91 and 2.24.
"""

from __future__ import annotations

import math

import jax.numpy as jnp
from jax import Array

from noslip.rotations import from_euler
from noslip.scenes import Scene
from noslip.system import Parameters, System
from noslip.systems import _looks
from noslip.systems.suslov import body_rates


def vertical(q: Array) -> Array:
    """gamma, the unit vector upwards in the axes of the body."""
    _, theta, psi = q
    aside = jnp.sin(theta)
    return jnp.stack([aside * jnp.sin(psi), aside * jnp.cos(psi), jnp.cos(theta)])


def moments(p: Parameters) -> Array:
    return jnp.stack([p["I1"], p["I2"], p["I3"]])


def lagrangian(q: Array, v: Array, p: Parameters) -> Array:
    return 0.5 * jnp.dot(moments(p), body_rates(q, v) ** 2 - p["k"] * vertical(q) ** 2)


def one_forms(q: Array, p: Parameters) -> Array:
    return jnp.array([[1.0, 0.0, jnp.cos(q[1])]])


def frame(q: Array, p: Parameters) -> Array:
    """Tilting, and spinning with the precession that undoes the turn about the vertical."""
    return jnp.array([[0.0, -jnp.cos(q[1])], [1.0, 0.0], [0.0, 1.0]])


def multiplier(q: Array, p: Parameters) -> Array:
    return jnp.dot(vertical(q) ** 2, 1 / moments(p)) ** -0.5


def horizontal_momentum(q: Array, v: Array, p: Parameters) -> Array:
    """|I omega|^2 - (I omega, gamma)^2 - k I1 I2 I3 (gamma, I^-1 gamma)."""
    gamma, I = vertical(q), moments(p)
    momentum = I * body_rates(q, v)
    aside = jnp.dot(momentum, momentum) - jnp.dot(momentum, gamma) ** 2
    return aside - p["k"] * jnp.prod(I) * jnp.dot(gamma**2, 1 / I)


def system(I1: float = 1.0, I2: float = 1.5, I3: float = 2.2, k: float = 0.6) -> System:
    return System(
        lagrangian,
        one_forms=one_forms,
        coordinates=("phi", "theta", "psi"),
        parameters={"I1": I1, "I2": I2, "I3": I3, "k": k},
        angles=("phi", "psi"),
        frame=frame,
        first_integrals={"horizontal_momentum": horizontal_momentum},
        fibre=("phi",),
        multiplier=multiplier,
        scene=scene,
    )


def scene(q: Array, p: Parameters) -> Scene:
    """The body, and the torque about the vertical."""
    return _looks.about_a_point(from_euler("zxz", q), moments(p), jnp.array([0.0, 0.0, 1.0]), "torque")


def typical_state() -> tuple[Array, Array]:
    theta, spin = 1.1, 0.9
    return jnp.array([0.2, theta, 0.7]), jnp.array([-math.cos(theta) * spin, -0.3, spin])
