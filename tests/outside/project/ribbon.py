# ribbon.py
"""A bead on a ribbon that twists: zdot = sin(pitch x) ydot, with a spring towards the axis."""

import jax.numpy as jnp

from noslip import System


def lagrangian(q, v, p):
    return jnp.dot(v, v) / 2 - p["k"] * (q[0] ** 2 + q[1] ** 2) / 2


def one_forms(q, p):
    return jnp.array([[0.0, -jnp.sin(p["pitch"] * q[0]), 1.0]])


def system(k=1.0, pitch=0.7):
    return System(
        lagrangian,
        one_forms=one_forms,
        coordinates=("x", "y", "z"),
        parameters={"k": k, "pitch": pitch},
    )


def typical_state():
    q0 = jnp.array([0.4, 0.3, 0.0])
    return q0, system().project_velocity(q0, jnp.array([0.5, -0.2, 0.1]))
