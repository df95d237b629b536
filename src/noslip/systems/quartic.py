"""Chaotic quartic system with one constraint on 2 n + 1 coordinates (CFHM (19)-(20)).

Coordinates x, w1..wn, z1..zn, unit masses, n >= 2:

    L = |qdot|^2 / 2 - stiffness |q|^2 / 2 - coupling (z1^2 z2^2 + sum_i wi^2 zi^2) / 2
    xdot + sum_i wi zidot = 0

CFHM has both parameters equal to 1. The motion is chaotic; no first integral besides the energy is known.
It is reversible. Test problem of McLachlan, Perlmutter 2006 for methods at the energy 3.06 with n = 3.
"""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
from jax import Array

from noslip.scenes import Scene, in_coordinates
from noslip.system import Parameters, System

ENERGY = 3.06


def lagrangian(q: Array, v: Array, p: Parameters) -> Array:
    w, z = _parts(q)
    quartic = z[0] ** 2 * z[1] ** 2 + jnp.sum(w**2 * z**2)
    return 0.5 * (jnp.dot(v, v) - p["stiffness"] * jnp.dot(q, q) - p["coupling"] * quartic)


def one_forms(q: Array, p: Parameters) -> Array:
    w, _ = _parts(q)
    return jnp.concatenate([jnp.ones(1), jnp.zeros_like(w), w])[None, :]


def frame(q: Array, p: Parameters) -> Array:
    """d/dwi and wi d/dx - d/dzi (CFHM section 4.1.1)."""
    w, _ = _parts(q)
    n = w.shape[0]
    top = jnp.concatenate([jnp.zeros(n), w])[None, :]
    return jnp.concatenate([top, jnp.diag(jnp.concatenate([jnp.ones(n), -jnp.ones(n)]))])


def system(n: int = 3, stiffness: float = 1.0, coupling: float = 1.0) -> System:
    if n < 2:
        raise ValueError(f"`n` must be at least 2, but {n} was provided")
    numbers = range(1, n + 1)
    return System(
        lagrangian,
        one_forms=one_forms,
        coordinates=("x", *(f"w{i}" for i in numbers), *(f"z{i}" for i in numbers)),
        parameters={"stiffness": stiffness, "coupling": coupling},
        frame=frame,
        fibre=("x",),
        scene=scene,
    )


def scene(q: Array, p: Parameters) -> Scene:
    """The state in x, w1 and w2."""
    return in_coordinates(("x", "w1", "w2"), "x", "w1", "w2")(q, p)


def typical_state(n: int = 3) -> tuple[Array, Array]:
    """A state in general position, with the velocity scaled to the energy 3.06."""
    i = np.arange(1.0, n + 1)
    w, z = 1.3 * np.cos(i) / n**0.5, 1.1 * np.sin(2 * i + 1) / n**0.5
    wdot, zdot = np.sin(3 * i - 1), np.cos(2 * i)
    q0 = np.concatenate([[0.4], w, z])
    v0 = np.concatenate([[-np.dot(w, zdot)], wdot, zdot])
    potential = 0.5 * (np.dot(q0, q0) + (z[0] ** 2 * z[1] ** 2 + np.sum(w**2 * z**2)))
    v0 = v0 * np.sqrt(2 * (ENERGY - potential) / np.dot(v0, v0))
    v0[0] = -np.dot(w, v0[n + 1 :])
    return jnp.array(q0), jnp.array(v0)


def _parts(q: Array) -> tuple[Array, Array]:
    n = q.shape[0] // 2
    return q[1 : n + 1], q[n + 1 :]
