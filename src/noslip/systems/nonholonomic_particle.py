"""Nonholonomic particle in the plane of LMS example 4.2; free (k = 0) it is that of JS section 6.4.

Coordinates x, y, z, unit mass, potential k (x^2 + y^2):

    L = (xdot^2 + ydot^2 + zdot^2) / 2 - k (x^2 + y^2)
    zdot - y xdot = 0

The constraint does not act on y, so y oscillates by itself and its own energy is a first integral.
Symmetric under translations of z and Hamiltonizable with Chaplygin's multiplier (1 + y^2)^(-1/2).
For k = 0 (JS (79)-(80)) y is linear in time, xdot sqrt(1 + y^2) is constant and the motion elementary.
"""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
from jax import Array
from numpy.typing import ArrayLike

from noslip.scenes import Scene
from noslip.system import Parameters, System
from noslip.systems import _looks
from noslip.systems._closed_forms import Floats, hyperbolic_glide

EXACT_PARAMETERS = {"k": 0.0}


def lagrangian(q: Array, v: Array, p: Parameters) -> Array:
    return 0.5 * jnp.dot(v, v) - p["k"] * (q[0] ** 2 + q[1] ** 2)


def one_forms(q: Array, p: Parameters) -> Array:
    return jnp.array([[-q[1], 0.0, 1.0]])


def frame(q: Array, p: Parameters) -> Array:
    return jnp.array([[1.0, 0.0], [0.0, 1.0], [q[1], 0.0]])


def multiplier(q: Array, p: Parameters) -> Array:
    return (1 + q[1] ** 2) ** -0.5


def y_energy(q: Array, v: Array, p: Parameters) -> Array:
    return 0.5 * v[1] ** 2 + p["k"] * q[1] ** 2


def system(k: float = 1.0) -> System:
    return System(
        lagrangian,
        one_forms=one_forms,
        coordinates=("x", "y", "z"),
        parameters={"k": k},
        frame=frame,
        first_integrals={"y_energy": y_energy},
        fibre=("z",),
        multiplier=multiplier,
        scene=scene,
    )


def scene(q: Array, p: Parameters) -> Scene:
    """The particle, the plane of its velocities, and the reaction."""
    return _looks.particle(q, one_forms(q, p))


def typical_state() -> tuple[Array, Array]:
    return jnp.array([0.2, 0.5, -0.1]), jnp.array([0.8, 0.6, 0.4])


def exact(t: ArrayLike, q0: ArrayLike, v0: ArrayLike) -> tuple[Floats, Floats, Floats]:
    """The free motion, k = 0, from any admissible state: q, v and the multiplier xdot ydot / (1 + y^2)."""
    t = np.asarray(t, dtype=float)
    (x, y, z), (vx, vy, _) = np.asarray(q0, dtype=float), np.asarray(v0, dtype=float)
    end, s, along, aside = hyperbolic_glide(t, y, vy)
    c = vx * np.sqrt(1 + y**2)
    q = np.stack([x + c * along, end, z + c * aside], axis=-1)
    v = np.stack([c / s, np.full_like(t, vy), c * end / s], axis=-1)
    return q, v, (c * vy / s**3)[:, None]
