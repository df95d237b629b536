"""Suslov's problem: a rigid body that may not rotate about one of its own axes (CFHM section 4.3).

CFHM states it on the Lie algebra so(3); here it is a system in true coordinates, the Euler angles phi,
theta, psi of the convention z-x-z (R = Rz(phi) Rx(theta) Rz(psi)). The angular velocity in the body is

    omega1 = phidot sin(theta) sin(psi) + thetadot cos(psi)
    omega2 = phidot sin(theta) cos(psi) - thetadot sin(psi)
    omega3 = phidot cos(theta) + psidot

    L = (I11 omega1^2 + I22 omega2^2 + I33 omega3^2) / 2 + I13 omega1 omega3 + I23 omega2 omega3
    omega3 = 0

The body axes are turned so that I12 = 0. The angular velocity obeys CFHM's reduced equations
I11 omega1dot = -k omega2, I22 omega2dot = k omega1 with k = I13 omega1 + I23 omega2: on the ellipse of the
energy every motion runs from one steady rotation, I13 omega1 + I23 omega2 = 0, to the opposite one. If
I13 = I23 = 0 both omega1 and omega2 are constant. For the attitude no further single-valued integral is
known, and none is declared. The coordinates are singular at sin(theta) = 0.
"""

from __future__ import annotations

import math

import jax.numpy as jnp
from jax import Array

from noslip.rotations import from_euler, matrix
from noslip.scenes import Scene
from noslip.system import Parameters, System
from noslip.systems import _looks


def body_rates(q: Array, v: Array) -> Array:
    """omega1, omega2, omega3."""
    (_, theta, psi), (dphi, dtheta, dpsi) = q, v
    aside = dphi * jnp.sin(theta)
    return jnp.stack(
        [
            aside * jnp.sin(psi) + dtheta * jnp.cos(psi),
            aside * jnp.cos(psi) - dtheta * jnp.sin(psi),
            dphi * jnp.cos(theta) + dpsi,
        ]
    )


def lagrangian(q: Array, v: Array, p: Parameters) -> Array:
    w1, w2, w3 = body_rates(q, v)
    diagonal = 0.5 * (p["I11"] * w1**2 + p["I22"] * w2**2 + p["I33"] * w3**2)
    return diagonal + (p["I13"] * w1 + p["I23"] * w2) * w3


def one_forms(q: Array, p: Parameters) -> Array:
    return jnp.array([[jnp.cos(q[1]), 0.0, 1.0]])


def frame(q: Array, p: Parameters) -> Array:
    """Rotations about the first and second body axes, CFHM's X1 and X2 carried to the attitude."""
    s, c = jnp.sin(q[2]), jnp.cos(q[2])
    sine, cotangent = jnp.sin(q[1]), jnp.cos(q[1]) / jnp.sin(q[1])
    return jnp.array([[s / sine, c / sine], [c, -s], [-s * cotangent, -c * cotangent]])


def system(
    I11: float = 1.2, I22: float = 1.6, I33: float = 2.0, I13: float = 0.3, I23: float = -0.2
) -> System:
    return System(
        lagrangian,
        one_forms=one_forms,
        coordinates=("phi", "theta", "psi"),
        parameters={"I11": I11, "I22": I22, "I33": I33, "I13": I13, "I23": I23},
        angles=("phi", "theta", "psi"),
        frame=frame,
        fibre=("psi",),
        scene=scene,
    )


def scene(q: Array, p: Parameters) -> Scene:
    """The body, and the torque about the axis that it may not turn about."""
    attitude = from_euler("zxz", q)
    inertia = jnp.stack([p["I11"], p["I22"], p["I33"]])
    return _looks.about_a_point(attitude, inertia, matrix(attitude)[:, 2], "torque")


def typical_state() -> tuple[Array, Array]:
    theta, dphi = 1.3, 0.5
    return jnp.array([0.4, theta, -0.6]), jnp.array([dphi, 0.3, -dphi * math.cos(theta)])
