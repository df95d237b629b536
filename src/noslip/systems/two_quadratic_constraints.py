"""Five coordinates under two constraints with quadratic one-forms: a system in general position.

Coordinates x, y, w, u, z with masses 1, 1, 1, m, m in a quartic well:

    L = (xdot^2 + ydot^2 + wdot^2 + m (udot^2 + zdot^2)) / 2 - k |q|^2 / 2 - c (x^2 u^2 + y^2 z^2 + w^4) / 2
    udot - a (y^2 + w z) xdot - b x y wdot = 0
    zdot - b (x^2 - u w) ydot - a y w xdot = 0

The one-forms are quadratic in q, depend on the fibre (u, z) too, and are not affine along any motion, so
that methods which keep the constraints only for affine one-forms lose them here: the second system, beside
the rolling disk on an incline, on which sections 4 and 5 of LMS differ. The mass matrix is constant and the
motion reversible; no first integral besides the energy is known. Rank 2 holds everywhere.
"""

from __future__ import annotations

import jax.numpy as jnp
from jax import Array

from noslip.scenes import Scene, in_coordinates
from noslip.system import Parameters, System
from noslip.systems._states import in_one_program


def lagrangian(q: Array, v: Array, p: Parameters) -> Array:
    x, y, w, u, z = q
    kinetic = jnp.dot(v[:3], v[:3]) + p["m"] * jnp.dot(v[3:], v[3:])
    quartic = x**2 * u**2 + y**2 * z**2 + w**4
    return 0.5 * (kinetic - p["k"] * jnp.dot(q, q) - p["c"] * quartic)


def one_forms(q: Array, p: Parameters) -> Array:
    return jnp.column_stack([-_slopes(q, p), jnp.eye(2)])


def frame(q: Array, p: Parameters) -> Array:
    """One column for each of x, y, w, with the velocities of u and z that it implies."""
    return jnp.concatenate([jnp.eye(3), _slopes(q, p)])


def system(m: float = 0.8, k: float = 1.0, c: float = 0.5, a: float = 0.6, b: float = 0.7) -> System:
    return System(
        lagrangian,
        one_forms=one_forms,
        coordinates=("x", "y", "w", "u", "z"),
        parameters={"m": m, "k": k, "c": c, "a": a, "b": b},
        frame=frame,
        fibre=("u", "z"),
        scene=scene,
    )


def scene(q: Array, p: Parameters) -> Scene:
    """The state in x, y and w."""
    return in_coordinates(("x", "y", "w"), "x", "y", "w")(q, p)


@in_one_program
def typical_state() -> tuple[Array, Array]:
    q0 = jnp.array([0.6, -0.8, 0.5, 0.3, -0.4])
    return q0, frame(q0, {"a": 0.6, "b": 0.7}) @ jnp.array([0.5, 0.7, -0.9])


def _slopes(q: Array, p: Parameters) -> Array:
    """(udot, zdot) as linear functions of (xdot, ydot, wdot)."""
    x, y, w, u, z = q
    a, b = p["a"], p["b"]
    return jnp.array([[a * (y**2 + w * z), 0.0, b * x * y], [a * y * w, b * (x**2 - u * w), 0.0]])
