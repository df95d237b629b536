"""Ball that rolls without slipping on a turntable: affine constraints, an energy that is not conserved.

Coordinates x, y (centre, from the axis of the table) and the Euler angles phi, theta, psi of the ball
(z-x-z, R = Rz(phi) Rx(theta) Rz(psi)). Mass m, radius r, moment of inertia I about every diameter; the table
turns at the rate Omega about the vertical. With omega the angular velocity in space,

    omega_x = thetadot cos(phi) + psidot sin(theta) sin(phi)
    omega_y = thetadot sin(phi) - psidot sin(theta) cos(phi)
    omega_z = phidot + psidot cos(theta)

    L = m (xdot^2 + ydot^2) / 2 + I |omega|^2 / 2
    xdot - r omega_y + Omega y = 0,      ydot + r omega_x - Omega x = 0

A classical result: whatever its start, the centre runs on a circle with the angular velocity
k = Omega I / (I + m r^2), that is 2/7 Omega for a homogeneous ball. First integrals are the spin omega_z,
the circle's centre, through k x - ydot and k y + xdot, and the moving energy E - Omega m (x ydot - y xdot).
The attitude has no elementary form, hence no `exact`. The coordinates are singular at sin(theta) = 0.
"""

from __future__ import annotations

import math

import jax.numpy as jnp
from jax import Array

from noslip.rotations import from_euler
from noslip.scenes import Scene
from noslip.system import Parameters, System
from noslip.systems import _looks


def lagrangian(q: Array, v: Array, p: Parameters) -> Array:
    dphi, dtheta, dpsi = v[2:]
    omega2 = dphi**2 + dtheta**2 + dpsi**2 + 2 * dphi * dpsi * jnp.cos(q[3])
    return 0.5 * (p["m"] * (v[0] ** 2 + v[1] ** 2) + p["I"] * omega2)


def one_forms(q: Array, p: Parameters) -> Array:
    r, s, c, sine = p["r"], jnp.sin(q[2]), jnp.cos(q[2]), jnp.sin(q[3])
    return jnp.array([[1.0, 0.0, 0.0, -r * s, r * sine * c], [0.0, 1.0, 0.0, r * c, r * sine * s]])


def drift(q: Array, p: Parameters) -> Array:
    return p["Omega"] * jnp.array([q[1], -q[0]])


def frame(q: Array, p: Parameters) -> Array:
    """One column for each Euler angle, with the rolling that it implies on a table at rest."""
    r, s, c, sine = p["r"], jnp.sin(q[2]), jnp.cos(q[2]), jnp.sin(q[3])
    rolling = jnp.array([[0.0, r * s, -r * sine * c], [0.0, -r * c, -r * sine * s]])
    return jnp.concatenate([rolling, jnp.eye(3)])


def circle_rate(p: Parameters) -> Array:
    """Angular velocity of the centre on its circle."""
    return p["Omega"] * p["I"] / (p["I"] + p["m"] * p["r"] ** 2)


def spin(q: Array, v: Array, p: Parameters) -> Array:
    return v[2] + v[4] * jnp.cos(q[3])


def centre_x(q: Array, v: Array, p: Parameters) -> Array:
    """k times the abscissa of the circle's centre."""
    return circle_rate(p) * q[0] - v[1]


def centre_y(q: Array, v: Array, p: Parameters) -> Array:
    """k times the ordinate of the circle's centre."""
    return circle_rate(p) * q[1] + v[0]


def moving_energy(q: Array, v: Array, p: Parameters) -> Array:
    # L is purely kinetic, so that it is the energy itself
    return lagrangian(q, v, p) - p["Omega"] * p["m"] * (q[0] * v[1] - q[1] * v[0])


def system(m: float = 1.0, r: float = 1.0, I: float = 0.4, Omega: float = 0.7) -> System:
    return System(
        lagrangian,
        one_forms=one_forms,
        drift=drift,
        coordinates=("x", "y", "phi", "theta", "psi"),
        parameters={"m": m, "r": r, "I": I, "Omega": Omega},
        angles=("phi", "theta", "psi"),
        frame=frame,
        first_integrals={
            "spin": spin,
            "centre_x": centre_x,
            "centre_y": centre_y,
            "moving_energy": moving_energy,
        },
        fibre=("x", "y"),
        scene=scene,
    )


def scene(q: Array, t: Array, p: Parameters) -> Scene:
    """The ball on the table as it turns, and the force of the table."""
    return _looks.on_table(q, from_euler("zxz", q[2:]), p["r"], p["Omega"] * t)


def typical_state() -> tuple[Array, Array]:
    """For the default parameters: spinning on a circle about a point near the axis of the table.

    In the frame that turns with the centre the axis of rotation is then almost steady and almost vertical,
    which keeps the Euler angles away from their singularity.
    """
    x, y, phi, theta, dx, dy, spin, Omega = 0.5, -0.3, 0.4, 1.3, 0.08, 0.07, 1.1, 0.7
    omega_x, omega_y = Omega * x - dy, Omega * y + dx
    dtheta = omega_x * math.cos(phi) + omega_y * math.sin(phi)
    dpsi = (omega_x * math.sin(phi) - omega_y * math.cos(phi)) / math.sin(theta)
    dphi = spin - dpsi * math.cos(theta)
    return jnp.array([x, y, phi, theta, -0.6]), jnp.array([dx, dy, dphi, dtheta, dpsi])
