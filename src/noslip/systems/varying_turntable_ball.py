"""Ball on a turntable whose speed goes up and down: affine constraints that contain the time.

Coordinates x, y (middle of the ball, from the axis of the table) and u0, u1, u2, u3, its rotation. Mass m,
radius r, moment of inertia I about every diameter; W is the angular velocity in space. The table turns at the
rate O(t) = Omega (1 + swing cos(pace t)):

    L = m (xdot^2 + ydot^2) / 2 + I |W|^2 / 2
    xdot - r W_y + O(t) y = 0,      ydot + r W_x - O(t) x = 0

The force on the ball drives middle and rotation alike, so xdot + k O(t) y and ydot - k O(t) x are constant
with k = I / (I + m r^2), 2/7 for a homogeneous ball, and so is the spin W_z. With w = x + i y this is w' = i
k O(t) w + constant, which `centre` solves. `turntable_ball` has a constant speed and Euler angles. The
energy is not conserved. The attitude has no elementary form, hence no `exact`.
"""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import Array
from scipy.integrate import quad_vec

from noslip import rotations
from noslip.scenes import Scene
from noslip.system import Parameters, System
from noslip.systems import _looks
from noslip.systems._states import in_one_program


def speed(t: Any, p: Parameters) -> Any:
    """O(t)."""
    return p["Omega"] * (1 + p["swing"] * jnp.cos(p["pace"] * t))


def lagrangian(q: Array, v: Array, p: Parameters) -> Array:
    w = rotations.body_rates(q[2:], v[2:])
    return 0.5 * (p["m"] * jnp.dot(v[:2], v[:2]) + p["I"] * jnp.dot(w, w))


def one_forms(q: Array, p: Parameters) -> Array:
    moved = rotations.rolling(lambda gamma: -p["r"] * gamma)(q[2:])
    return jnp.concatenate([jnp.eye(2), moved[:2]], axis=1)


def drift(q: Array, t: Array, p: Parameters) -> Array:
    return speed(t, p) * jnp.stack([q[1], -q[0]])


def share(p: Parameters) -> Any:
    """k."""
    return p["I"] / (p["I"] + p["m"] * p["r"] ** 2)


def along_x(q: Array, v: Array, t: Array, p: Parameters) -> Array:
    return v[0] + share(p) * speed(t, p) * q[1]


def along_y(q: Array, v: Array, t: Array, p: Parameters) -> Array:
    return v[1] - share(p) * speed(t, p) * q[0]


def spin(q: Array, v: Array, p: Parameters) -> Array:
    return rotations.space_rates(q[2:], v[2:])[2]


def system(
    m: float = 1.0,
    r: float = 1.0,
    I: float = 0.4,
    Omega: float = 0.7,
    swing: float = 0.5,
    pace: float = 1.3,
) -> System:
    integrals = {"along_x": along_x, "along_y": along_y, "spin": spin}
    with_time: dict[str, Any] = {"drift": drift, "first_integrals": integrals}
    return System(
        lagrangian,
        one_forms=one_forms,
        coordinates=("x", "y", *rotations.names("u")),
        rotations=("u",),
        parameters={"m": m, "r": r, "I": I, "Omega": Omega, "swing": swing, "pace": pace},
        scene=scene,
        **with_time,
    )


def scene(q: Array, t: Array, p: Parameters) -> Scene:
    """The ball on the table as it turns, and the force of the table."""
    angle = p["Omega"] * (t + p["swing"] / p["pace"] * jnp.sin(p["pace"] * t))
    return _looks.on_table(q, q[2:], p["r"], angle)


@in_one_program
def typical_state() -> tuple[Array, Array]:
    """At t = 0, where the default table turns at the rate 1.05."""
    u, x, y, dx, dy = rotations.from_euler("zxz", [0.3, 1.1, -0.4]), 0.5, -0.3, 0.08, 0.07
    O = 0.7 * (1 + 0.5)
    W = jnp.array([O * x - dy, O * y + dx, 1.1])
    return jnp.array([x, y, *u]), jnp.array([dx, dy, *(rotations.frame("space")(u) @ W)])


def centre(t: float, q0: Any, v0: Any, p: Parameters) -> complex:
    """x + i y at the time t, from any admissible state at t = 0: with a(t) the integral of k O,
    exp(i a(t)) (w(0) + constant times the integral of exp(-i a))."""

    def angle(t: float) -> float:
        return float(share(p) * p["Omega"] * (t + p["swing"] / p["pace"] * np.sin(p["pace"] * t)))

    constant = complex(along_x(q0, v0, jnp.zeros(()), p), along_y(q0, v0, jnp.zeros(()), p))

    def turned_back(s: float) -> Any:
        return np.exp(-1j * angle(s))

    whole = quad_vec(turned_back, 0.0, t, epsabs=1e-14, epsrel=1e-14)[0]
    return complex(np.exp(1j * angle(t)) * (complex(q0[0], q0[1]) + constant * whole))
