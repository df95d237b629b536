"""Systems of any size: a chain of blades whose neighbours are coupled, and one without a zero anywhere."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
from jax import Array

from noslip.engine.backends.numpy_rows import evaluate
from noslip.system import Parameters, System

Start = tuple[System, np.ndarray, np.ndarray]


def chain(links: int) -> Start:
    """Blades (x, y, a) on a plane in a row, n = 3 links coordinates, as many one-forms as links:

        L = sum (x'^2 + y'^2 + J (1 + cos(a) / 5) a'^2) / 2 - k sum (r^2 - 1)^2 / 2 - c sum cos(a_i+1 - a_i)
        -sin(a_i) x_i' + cos(a_i) y_i' + e cos(a_i - a_i+1) a_i+1' = 0

    with r the distance of neighbours; the last blade has no e. M is diagonal, mu M^-1 mu^T tridiagonal.
    """

    def lagrangian(q: Array, v: Array, p: Parameters) -> Array:
        (x, y, a), (dx, dy, da) = q.reshape(links, 3).T, v.reshape(links, 3).T
        inertia = p["J"] * (1 + jnp.cos(a) / 5)
        r = (x[1:] - x[:-1]) ** 2 + (y[1:] - y[:-1]) ** 2
        springs = p["k"] * jnp.sum((r - 1) ** 2) / 2 + p["c"] * jnp.sum(jnp.cos(a[1:] - a[:-1]))
        return jnp.sum(dx**2 + dy**2 + inertia * da**2) / 2 - springs

    def one_forms(q: Array, p: Parameters) -> Array:
        a, i = q.reshape(links, 3)[:, 2], np.arange(links)
        mu = jnp.zeros((links, links, 3))
        mu = mu.at[i, i, 0].set(-jnp.sin(a)).at[i, i, 1].set(jnp.cos(a))
        mu = mu.at[i[:-1], i[1:], 2].set(p["e"] * jnp.cos(a[:-1] - a[1:]))
        return mu.reshape(links, 3 * links)

    names = tuple(f"{name}{k}" for k in range(1, links + 1) for name in ("x", "y", "a"))
    parameters = {"J": 0.1, "k": 1.0, "c": 0.3, "e": 0.2}
    system = System(lagrangian, one_forms=one_forms, coordinates=names, parameters=parameters)
    i = np.arange(links)
    q = np.stack([1.05 * i, 0.1 * np.sin(i), 0.3 * np.cos(1.7 * i)], 1).ravel()
    v = np.stack([0.3 * np.cos(i), 0.2 * np.sin(2 * i), 0.4 * np.cos(3 * i)], 1).ravel()
    return system, q, evaluate(_projected, None, system, q[None], v[None])[0]


def _projected(_: None, system: System, q: Array, v: Array) -> Array:
    return system.project_velocity(q, v)


def full(n: int, m: int = 5) -> Start:
    """n coordinates, m one-forms, random numbers everywhere."""
    rng = np.random.default_rng(0)
    A, B, F, G = (rng.normal(size=shape) / n for shape in ((n, n), (n, n), (m, n), (m, n, n)))

    def lagrangian(q: Array, v: Array, p: Parameters) -> Array:
        w = v * (1 + 0.1 * jnp.sin(B @ q))
        return 0.5 * w @ (A @ A.T + np.eye(n)) @ w - 0.5 * q @ q - jnp.sum(jnp.cos(n * A @ q)) / n

    def one_forms(q: Array, p: Parameters) -> Array:
        return jnp.asarray(n * F) + jnp.tensordot(G, jnp.sin(q), 1)

    system = System(lagrangian, one_forms=one_forms, coordinates=tuple(f"q{k}" for k in range(n)))
    q, v = 0.3 * rng.normal(size=(2, n))
    return system, q, np.asarray(system.project_velocity(q, v))
