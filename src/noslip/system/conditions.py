"""What a system must be where it runs: finite, L quadratic in v, mu X = 0, of full rank, periodic in angles.

A formula may be good in one region and bad in another, so nothing is asked before a state is given. Then
these are looked at there, at a few points around it, and at some of the states that a run has reached. A
value that is not finite is no consent: at the state itself it is refused, around it the point is no part of
the region.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from noslip.engine.backends.numpy_rows import evaluate_anyhow
from noslip.engine.backends.often import evaluate_often
from noslip.engine.program import CannotTranslate
from noslip.numerics.linear import independence, nearly_parallel, spd_solve
from noslip.numerics.pytrees import PyTree
from noslip.system.derived import lagrangian_by
from noslip.system.positions import dependent_rows

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from noslip.system import System

AROUND = 4  # points: the state itself and three near it
NEAR = 0.1  # of the size of each coordinate, so that no sign changes
TOLERANCE = 1e-8
ADMISSIBLE = 1e-9
EPS = float(np.finfo(float).eps)
FULL_RANK = 1e-12  # of singular values, relative to the largest
SURELY_FULL = 1e-10  # of their squares, as a Gram matrix shows them


def around(x: np.ndarray, count: int, seed: int = 0) -> np.ndarray:
    """x, and points near it; a coordinate that is zero moves by the size of the others."""
    x = np.asarray(x, float)
    typical = float(np.max(np.abs(x), initial=0.0)) or 1.0
    size = NEAR * np.where(x != 0, np.abs(x), typical)
    steps = np.random.default_rng(seed).uniform(-1.0, 1.0, (count, len(x)))
    steps[0] = 0.0
    return x + size * steps


def velocities(v: np.ndarray, count: int, seed: int = 1) -> np.ndarray:
    """v, and others of its size in all directions; of size 1 where it is at rest."""
    v = np.asarray(v, float)
    size = float(np.max(np.abs(v), initial=0.0)) or 1.0
    others = size * np.random.default_rng(seed).uniform(-1.0, 1.0, (count, len(v)))
    others[0] = v
    return others


class Region:
    """The box of the states at which the conditions of a system have been looked at."""

    def __init__(self) -> None:
        self.low: list[float] = []
        self.high: list[float] = []

    def holds(self, q: Sequence[float]) -> bool:
        """Whether the point is inside."""
        return bool(self.low) and all(a <= x <= b for a, x, b in zip(self.low, q, self.high, strict=True))

    def grow(self, low: np.ndarray, high: np.ndarray) -> None:
        """Take these in, and a quarter of the way beyond."""
        if self.low:
            low, high = np.minimum(low, self.low), np.maximum(high, self.high)
        rim = (high - low) / 4
        self.low, self.high = (low - rim).tolist(), (high + rim).tolist()


def region_of(system: System) -> Region:
    """Kept with the system, so that a second run there asks nothing twice."""
    return system.remembered.setdefault("region", Region())


def broken_near(system: System, q: np.ndarray, v: np.ndarray, t: float, *, again: bool = False) -> str | None:
    """None, or one sentence: which condition does not hold at or around this state, and where. Nearby states
    are not looked at again, unless asked to."""
    region = region_of(system)
    if not again and region.holds(np.asarray(q).tolist()):
        return None
    points, speeds = around(q, AROUND), velocities(v, AROUND)
    if reason := _broken(system, points, speeds, np.full(AROUND, t), only_first_must_be_finite=True)[1]:
        return reason
    region.grow(points.min(axis=0), points.max(axis=0))
    return None


def broken_along(
    system: System, q: np.ndarray, v: np.ndarray, t: np.ndarray, *, looks: int = 8
) -> tuple[int, str] | None:
    """The first of these states at which a condition fails, of those looked at, and the sentence."""
    region = region_of(system)
    columns = np.ascontiguousarray(q.T)  # so that the least of many rows is found at once
    low, high = columns.min(axis=1), columns.max(axis=1)
    if region.holds(low.tolist()) and region.holds(high.tolist()):
        return None
    outside = (
        np.flatnonzero(~np.all((q >= region.low) & (q <= region.high), axis=1))
        if region.low
        else range(len(q))
    )
    rows = np.unique(np.asarray(outside)[np.linspace(0, len(outside) - 1, looks).round().astype(int)])
    row, reason = _broken(system, q[rows], v[rows], t[rows], only_first_must_be_finite=False)
    if reason:
        return int(rows[row]), reason
    region.grow(low, high)
    return None


def _broken(
    system: System, q: np.ndarray, v: np.ndarray, t: np.ndarray, only_first_must_be_finite: bool
) -> tuple[int, str | None]:
    """The row and the sentence of the first condition that fails."""
    other = np.roll(v, 1, axis=1) * 1.7 + velocities(v[0], len(v), seed=2)
    found = evaluate_anyhow(_measure, None, system, q, v, other, t)
    for name, finite in found["finite"].items():
        bad = np.flatnonzero(finite[:1] == 0) if only_first_must_be_finite else np.flatnonzero(finite == 0)
        if len(bad):
            k = int(bad[0])
            return k, f"the {name} must be finite, but at q = {q[k]}, v = {v[k]} it is not"
    inside = np.all([finite != 0 for finite in found["finite"].values()], axis=0)
    for name, (defects, sizes) in found["defect"].items():
        # a value that is not finite where all else is, say a turn away, is a broken condition too
        defects = np.where(inside, np.where(np.isfinite(defects), defects, np.inf), 0.0)
        size = np.max(np.where(inside & np.isfinite(sizes), sizes, 0.0))
        k = int(np.argmax(defects))
        if defects[k] > TOLERANCE * size:
            return k, _sentence(name, q[k], v[k], defects[k] / size if size else np.inf)
    for name, ratios in found["rank"].items():
        for k in np.flatnonzero(inside & ~(ratios > SURELY_FULL)).tolist():
            matrix = np.asarray(_matrix(system.at(float(t[k])), name, q[k], v[k]))
            values = np.linalg.svd(matrix, compute_uv=False)
            if not values[-1] > FULL_RANK * values[0]:
                return k, (
                    f"the {name} must have full rank {min(matrix.shape)}, but at q = {q[k]} "
                    f"the singular values are {values}" + dependent_rows(system, matrix)
                )
    return 0, None


def _sentence(name: str, q: np.ndarray, v: np.ndarray, size: float) -> str:
    where = f"at q = {q}, v = {v} (by {size:.1e} of its size)"
    if name == "quadratic":
        return f"`lagrangian` must be quadratic in v (v^T M(q) v / 2 + a(q) v - V(q)), but it is not {where}"
    if name == "frame":
        return f"`frame` must satisfy one_forms(q) @ frame(q) = 0, but it does not {where}"
    angle, what = name.split(":")
    return f"`{angle}` was declared an angle, but the {what} is not 2 pi-periodic in it {where}"


def _matrix(system: System, name: str, q: np.ndarray, v: np.ndarray) -> Array:
    if name == "frame":
        assert system.frame is not None
        return system.frame(jnp.asarray(q), system.parameters)
    return system.mu(q, v)


def _measure(_: None, system: System, q: Array, v: Array, w: Array, t: Array) -> dict[str, dict[str, PyTree]]:
    """At one state: what must be finite, defects with their sizes, and how independent columns are."""
    system = system.at(t)
    values, rest = _everything(system, q, v, t), jnp.zeros_like(v)
    p = [system.momentum(q, u) for u in (rest, v, w, v + w)]
    mu = system.mu(q, v)
    rank = {"constraint one-forms": _independence(mu)}
    # p - a must be linear in v; what the rounding of a large a makes of that is no defect
    own = _size(p[1] - p[0]) + _size(p[2] - p[0]) + 64 * EPS / TOLERANCE * _size(p[0])
    defect = {"quadratic": (_size(p[3] - p[1] - p[2] + p[0]), own)}
    if system.frame is not None:
        X = jnp.asarray(system.frame(q, system.parameters), float)
        values["frame"] = X, X
        rank["frame"] = _independence(X.T)
        defect["frame"] = _size(mu @ X), _size(mu) * _size(X)
    for angle in system.angles:
        there = _everything(system, q.at[system.index(angle)].add(2 * jnp.pi), v, t)
        for name, (after, terms) in there.items():
            here = values[name][0]
            defect[f"{angle}:{name}"] = _size(after - here), _size(here) + _size(terms)
    finite = {name: jnp.all(jnp.isfinite(x)) * 1.0 for name, (x, _) in values.items()}
    finite["momentum"] = jnp.all(jnp.isfinite(p[1])) * 1.0
    return {"finite": finite, "defect": defect, "rank": rank}


def _size(x: Array) -> Array:
    return jnp.max(jnp.abs(x), initial=0.0)


def _everything(system: System, q: Array, v: Array, t: Array) -> dict[str, tuple[Array, Array]]:
    """The values that the system is made of, each with the size of its terms."""
    p = system.parameters
    mu = system.mu(q, v)
    found = {
        "lagrangian": (jnp.atleast_1d(lagrangian_by(system, "", q, v)), system.energy_scale(q, v)),
        "constraint": (jnp.concatenate([system.phi(q, v), mu.ravel()]), system.constraint_size(q, v)),
    }
    if system.k:
        found["holonomic constraint"] = system.g(q), jnp.abs(system.G(q)) @ jnp.abs(q)
    if system.force is not None:
        found["force"] = system.applied_force(q, v, t), jnp.zeros(1)
    for name, integral in system.first_integrals.items():
        value, slope = jax.value_and_grad(lambda u, f=integral: jnp.asarray(f(q, u, p), float))(v)
        found[f"first integral {name}"] = jnp.atleast_1d(value), jnp.sum(jnp.abs(slope * v))
    return found


def _independence(rows: Array) -> Array:
    """The least squared sine between a row and those before it: 0 where they are dependent or vanish."""
    left, least = rows, jnp.ones(())
    for k in range(rows.shape[0]):
        whole, rest = jnp.dot(rows[k], rows[k]), jnp.dot(left[k], left[k])
        least = jnp.minimum(least, jnp.where(whole > 0, rest / whole, 0.0))
        left = left - jnp.outer(left @ left[k], left[k]) / jnp.where(rest > 0, rest, 1.0)
    return least


LOOKS = 8  # states of a run at which the one-forms are looked at


def parallel_along(
    system: System, q: np.ndarray, v: np.ndarray, t: np.ndarray, *, looks: int = LOOKS
) -> bool:
    """Whether the one-forms are nearly parallel at some of these states."""
    if system.rows < 2 or system.orthogonal:
        return False
    rows = np.unique(np.linspace(0, len(q) - 1, looks).round().astype(int))
    when = (t[rows],) if system.clocked else ()
    states = q[rows], v[rows], *when

    def found(function: Callable[..., Array]) -> np.ndarray:
        try:
            values: np.ndarray = evaluate_often(function, None, system, *states)
        except CannotTranslate:
            values = evaluate_anyhow(function, None, system, *states)
        return values

    surely_not = (found(_apart) > 0).all()
    return not surely_not and nearly_parallel(found(_one_forms))


def _apart(_: None, system: System, q: Array, v: Array, t: Array | None = None) -> Array:
    return independence(system.mu(q, v, t))


def _one_forms(_: None, system: System, q: Array, v: Array, t: Array | None = None) -> Array:
    return system.mu(q, v, t)


# ---- admissible velocities ------------------------------------------------------------------------------
def admissibility(_: None, system: System, q: Array, v: Array) -> tuple[Array, Array]:
    """phi, and what of it is allowed: 1e-9 of the terms of which it is the sum, or what the rounding of q and
    of the parameters makes of it, which is all that is left where these terms vanish."""
    slope = jnp.abs(jax.jacfwd(lambda x: system.phi(x, v))(q)) @ jnp.abs(q)
    leaves, structure = jax.tree.flatten(system)
    for k, leaf in enumerate(leaves):
        leaf = jnp.asarray(leaf, float)

        def phi(x: Array, k: int = k) -> Array:
            return jax.tree.unflatten(structure, [*leaves[:k], x, *leaves[k + 1 :]]).phi(q, v)

        by_leaf = jnp.abs(jax.jacfwd(phi)(leaf)).reshape(system.rows, leaf.size)
        slope = slope + by_leaf @ jnp.abs(leaf).ravel()
    if system.k:  # where g has an extremum, as the height of a coin that stands, G v has no terms
        G, M, bent = system.G(q), system.mass_matrix(q), jnp.abs(jax.jacfwd(system.G)(q))
        reach = jnp.sqrt(jnp.sum(G * spd_solve(M, G.T).T, axis=1) * (v @ M @ v))  # the most that G v can be
        rounded = (bent @ jnp.abs(q)) @ jnp.abs(v) + reach
        slope = slope.at[system.m : system.m + system.k].add(rounded)
    return system.phi(q, v), ADMISSIBLE * system.constraint_size(q, v) + 4 * EPS * slope
