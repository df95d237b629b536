"""Which constraints of a model say something: a wheel on a body that moves in the plane keeps its height by
itself, and two wheels of one axle slip sideways together.

At positions taken at random, on and off the constraints, a row whose derivatives vanish or that is a
combination of the rows before it holds by itself: it is left out, and its reaction is not known from rigid
bodies alone. Holonomic rows come first.
"""

from __future__ import annotations

from collections.abc import Sequence

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from noslip.bodies.mechanism import Mechanism
from noslip.engine.backends.numpy_rows import evaluate_anyhow
from noslip.system.derived import Parameters

SAMPLES = 12
DEPENDENT = 1e-9  # of the size of a row
OPEN = 1e-9  # of the coordinates' and the model's sizes
BALANCED = 1e-7  # of singular values and vectors of rows of length one


def without_redundant_rows(mechanism: Mechanism, rotations: Sequence[slice], p: Parameters) -> Mechanism:
    """The mechanism that keeps what it must; refuses what can never hold."""
    k = len(mechanism.position_rows)
    if not k + len(mechanism.velocity_rows):
        return mechanism.keeping((), ())
    q = np.random.default_rng(0).uniform(-0.7, 0.7, (SAMPLES, len(mechanism.coordinates)))
    for place in rotations:
        q[:, place] /= np.linalg.norm(q[:, place], axis=1, keepdims=True)
    t = np.linspace(0.1, 0.9, SAMPLES)
    values, slopes = evaluate_anyhow(_rows, mechanism, dict(p), q, t)
    known = np.all(np.isfinite(slopes), axis=(1, 2)) & np.all(np.isfinite(values), axis=1)
    if not np.any(known):
        return mechanism.keeping(tuple(range(k)), tuple(range(len(mechanism.velocity_rows))))
    values, slopes = values[known], slopes[known]
    for row, (name, direction) in enumerate(mechanism.position_rows):
        still = np.all(np.abs(slopes[:, row]) <= DEPENDENT)
        if still and not np.all(np.abs(values[:, row]) <= OPEN):
            gap = values[0, row]
            raise ValueError(
                f"'{name}' must be able to close, but its gap ({direction}) is {gap:.3g} wherever the joints "
                "are"
            )
    kept = _independent(slopes)
    return mechanism.keeping(
        tuple(row for row in kept if row < k), tuple(row - k for row in kept if row >= k)
    )


def _independent(slopes: np.ndarray) -> list[int]:
    """The rows that are no combination of those before them at some of the positions."""
    kept: list[int] = []
    for row in range(slopes.shape[1]):
        for rows in slopes:
            before, own = rows[kept], rows[row]
            rest = own - before.T @ np.linalg.lstsq(before.T, own, rcond=None)[0] if kept else own
            if np.linalg.norm(rest) > DEPENDENT * max(1.0, float(np.linalg.norm(own))):
                kept.append(row)
                break
    return kept


def left_open(mechanism: Mechanism, p: Parameters, q: np.ndarray, t: np.ndarray) -> np.ndarray:
    """At each of these states, which rows have reactions that rigid bodies leave open, (states, rows): those
    that can be balanced by other rows."""
    _, slopes = evaluate_anyhow(_rows, mechanism, dict(p), q, t)
    sizes = np.linalg.norm(slopes, axis=2, keepdims=True)
    u, s, _ = np.linalg.svd(slopes / np.where(sizes > DEPENDENT, sizes, np.inf), full_matrices=True)
    values = np.zeros(u.shape[:2])
    values[:, : s.shape[1]] = s
    balanced = np.where((values <= BALANCED)[:, None, :], u, 0.0)
    return np.asarray(np.max(np.abs(balanced), axis=2) > BALANCED)


def _rows(mechanism: Mechanism, p: Parameters, q: Array, t: Array) -> tuple[Array, Array]:
    """The values of the holonomic rows, and the derivatives of all rows, by q and by v."""
    rest, found = jnp.zeros_like(q), []
    values = jnp.zeros(0)
    if mechanism.position_rows:
        values = mechanism.gaps(q, t, p)
        found.append(jax.jacfwd(lambda x: mechanism.gaps(x, t, p))(q))
    if mechanism.velocity_rows:
        found.append(jax.jacfwd(lambda v: mechanism.slips(q, v, t, p))(rest))
    return values, jnp.concatenate(found)
