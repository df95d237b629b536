"""Rattleback: an ellipsoid on a plane whose inertia is askew to its shape, so that it turns round by itself.

Coordinates x, y, z (mass centre, z upwards) and u0, u1, u2, u3, the rotation from the axes of the ellipsoid
to space. It has half axes a, b, c; its middle is at the height h above the mass centre on the third axis.
With gamma the vertical and w the angular velocity in the body, W that in space, the point that touches is at

    contact = (0, 0, h) - S gamma / sqrt(gamma . S gamma),     S = diag(a^2, b^2, c^2)

    J = ((A, D, 0), (D, B, 0), (0, 0, C))
    L = m |v|^2 / 2 + w . J w / 2 - m g z
    z + gamma . contact = 0                          (holonomic: it touches)
    v + W x (contact in space) = 0                   (two rows: it does not slip along x and y)

The defaults are those of Kane, Levinson 1982 in metres, kilograms and seconds: spun the wrong way it begins
to rattle, stops, and turns the other way. With D = 0 it is an ellipsoid that rolls like any other; there is
no other maker for that. Only the energy is conserved. The multiplier of the holonomic constraint is the
normal force, as long as it is positive.
"""

from __future__ import annotations

from collections.abc import Callable

import jax.numpy as jnp
from jax import Array

from noslip import rotations
from noslip.scenes import Ellipsoid, Scene
from noslip.system import Parameters, System
from noslip.systems import _looks
from noslip.systems._states import in_one_program


def contact(p: Parameters) -> Callable[[Array], Array]:
    """The point that touches, in body axes, as a function of gamma."""
    squares = jnp.stack([p["a"] ** 2, p["b"] ** 2, p["c"] ** 2])
    middle = jnp.array([0.0, 0.0, 1.0]) * p["h"]
    return lambda gamma: middle - squares * gamma / jnp.sqrt(jnp.dot(squares, gamma**2))


def lagrangian(q: Array, v: Array, p: Parameters) -> Array:
    w1, w2, w3 = rotations.body_rates(q[3:], v[3:])
    turning = p["A"] * w1**2 + 2 * p["D"] * w1 * w2 + p["B"] * w2**2 + p["C"] * w3**2
    return 0.5 * (p["m"] * jnp.dot(v[:3], v[:3]) + turning) - p["m"] * p["g"] * q[2]


def one_forms(q: Array, p: Parameters) -> Array:
    return jnp.concatenate([jnp.eye(3), rotations.rolling(contact(p))(q[3:])], axis=1)[:2]


def holonomic(q: Array, p: Parameters) -> Array:
    return (q[2] - rotations.height(contact(p))(q[3:]))[None]


def system(
    m: float = 1.0,
    a: float = 0.2,
    b: float = 0.03,
    c: float = 0.02,
    h: float = 0.01,
    A: float = 2e-4,
    B: float = 1.6e-3,
    C: float = 1.7e-3,
    D: float = -2e-5,
    g: float = 9.81,
) -> System:
    return System(
        lagrangian,
        one_forms=one_forms,
        holonomic=holonomic,
        coordinates=("x", "y", "z", *rotations.names("u")),
        rotations=("u",),
        parameters={"m": m, "a": a, "b": b, "c": c, "h": h, "A": A, "B": B, "C": C, "D": D, "g": g},
        scene=scene,
    )


def scene(q: Array, p: Parameters) -> Scene:
    """The ellipsoid, its middle above the mass centre."""
    middle = q[:3] + p["h"] * rotations.matrix(q[3:])[:, 2]
    return _looks.rolls(Ellipsoid(p["a"], p["b"], p["c"]), middle, q[3:], _looks.touches(q, contact(p)))


@in_one_program
def typical_state() -> tuple[Array, Array]:
    """Spun the wrong way, tilted by about a degree."""
    touching = contact({"a": 0.2, "b": 0.03, "c": 0.02, "h": 0.01})
    u = rotations.from_euler("zxy", [0.4, 0.02, 0.015])
    du = rotations.from_rates(u, [0.13, -0.21, -5.0])
    q0 = jnp.concatenate([jnp.array([0.05, -0.03]), rotations.height(touching)(u)[None], u])
    return q0, jnp.concatenate([-rotations.rolling(touching)(u) @ du, du])
