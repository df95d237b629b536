"""The free nonholonomic particle in the form of FBO section 5.1.

Coordinates x, y, z, unit mass:

    L = (xdot^2 + ydot^2 + zdot^2) / 2
    zdot + x ydot = 0

Hamiltonizable with Chaplygin's multiplier (1 + x^2)^(-1/2). First integrals are xdot and, from the
constraint's symmetry under translations of y and z, ydot sqrt(1 + x^2); so x is linear in time and y an
inverse hyperbolic sine of it, FBO (53), here from any initial state.
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


def lagrangian(q: Array, v: Array, p: Parameters) -> Array:
    return 0.5 * jnp.dot(v, v)


def one_forms(q: Array, p: Parameters) -> Array:
    return jnp.array([[0.0, q[0], 1.0]])


def frame(q: Array, p: Parameters) -> Array:
    return jnp.array([[1.0, 0.0], [0.0, 1.0], [0.0, -q[0]]])


def multiplier(q: Array, p: Parameters) -> Array:
    return (1 + q[0] ** 2) ** -0.5


def x_velocity(q: Array, v: Array, p: Parameters) -> Array:
    return v[0]


def y_momentum(q: Array, v: Array, p: Parameters) -> Array:
    return v[1] * jnp.sqrt(1 + q[0] ** 2)


def system() -> System:
    return System(
        lagrangian,
        one_forms=one_forms,
        coordinates=("x", "y", "z"),
        frame=frame,
        first_integrals={"x_velocity": x_velocity, "y_momentum": y_momentum},
        fibre=("z",),
        multiplier=multiplier,
        scene=scene,
    )


def scene(q: Array, p: Parameters) -> Scene:
    """The particle, the plane of its velocities, and the reaction."""
    return _looks.particle(q, one_forms(q, p))


def typical_state() -> tuple[Array, Array]:
    x, ydot = -0.7, 0.9
    return jnp.array([x, 0.3, 0.2]), jnp.array([0.6, ydot, -x * ydot])


def exact(t: ArrayLike, q0: ArrayLike, v0: ArrayLike) -> tuple[Floats, Floats, Floats]:
    """FBO (53) from any admissible state: q, v and the multiplier -xdot ydot / (1 + x^2)."""
    t = np.asarray(t, dtype=float)
    (x, y, z), (vx, vy, _) = np.asarray(q0, dtype=float), np.asarray(v0, dtype=float)
    end, s, along, aside = hyperbolic_glide(t, x, vx)
    c = vy * np.sqrt(1 + x**2)
    q = np.stack([end, y + c * along, z - c * aside], axis=-1)
    v = np.stack([np.full_like(t, vx), c / s, -c * end / s], axis=-1)
    return q, v, (-c * vx / s**3)[:, None]
