"""States between the saved rows of a run.

Between two rows H apart the motion is the polynomial of degree 5 that has their q, v and acceleration: with
s = (t - t0) / H, d = q1 - q0 - H v0 - H^2 a0 / 2, e = H (v1 - v0 - H a0), f = H^2 (a1 - a0),

    q(s) = q0 + H v0 s + H^2 a0 s^2 / 2
         + (10 d - 4 e + f / 2) s^3 + (7 e - 15 d - f) s^4 + (6 d - 3 e + f / 2) s^5

The error that this adds is O(H^6) in q and O(H^5) in v, which is its slope, put on the constraint by the
M-orthogonal projection at q(s), as q(s) is put on holonomic constraints by Newton's method along M^-1 G^T. Of
a quaternion u at the end of the interval, and -u, the nearer to that at its beginning is taken.
Multipliers are those of the motion at that state.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from noslip.engine.backends.numpy_rows import evaluate_anyhow
from noslip.engine.kept import jitted
from noslip.integrators.base import inside
from noslip.numerics.pytrees import PyTree
from noslip.numerics.tracing import Either, Values, is_traced
from noslip.system import System
from noslip.system.positions import put_back


@dataclass(frozen=True)
class Between:
    """States of a run at times of the user, time first."""

    t: Either
    q: Either
    v: Either
    multipliers: Either
    holonomic_multipliers: Either


def at_rows(function: Callable[..., PyTree], system: System, *arrays: PyTree) -> PyTree:
    """function(system, *row) for every row of arrays, or of pytrees of them. Where their numbers are known
    nothing is compiled, and what was made for one number of rows serves any other."""
    leaves, structure = jax.tree.flatten(arrays)
    if is_traced(system, leaves):
        return at_rows_by_xla(function, system, *arrays)
    flat = len(leaves) == len(arrays) and jax.tree_util.all_leaves(arrays)
    how = function, None if flat else structure  # a structure has no name on disk
    return evaluate_anyhow(_of_leaves, how, system, *map(np.asarray, leaves))


def _of_leaves(
    how: tuple[Callable[..., PyTree], jax.tree_util.PyTreeDef | None], system: System, *leaves: Array
) -> PyTree:
    function, structure = how
    return function(system, *(leaves if structure is None else jax.tree.unflatten(structure, leaves)))


def at_rows_by_xla(function: Callable[..., PyTree], system: System, *arrays: PyTree) -> PyTree:
    """The same, compiled; for loops that would be long programs."""
    return _rows_by_xla(function=function, system=system, arrays=arrays)


@partial(jitted, static=("function",))
def _rows_by_xla(function: Callable[..., PyTree], system: System, arrays: tuple[PyTree, ...]) -> PyTree:
    return jax.vmap(partial(function, system))(*arrays)


def between(system: System, t: Values, q: Values, v: Values, times: Values) -> tuple[Values, Values, Values]:
    """q, v and multipliers at `times`, from rows (t, q, v) with increasing t; jumps of (q, v) are two rows of
    one time."""
    xp = jnp if is_traced(t, q, v, times) else np
    t, q, v = (xp.asarray(x) for x in (t, q, v))
    left = xp.clip(xp.searchsorted(t, times, side="right") - 1, 0, max(len(t) - 2, 0))
    right = xp.minimum(left + 1, len(t) - 1)
    start, H = t[left], t[right] - t[left]
    found: tuple[Values, Values, Values] = at_rows(
        within, system, start, H, q[left], v[left], q[right], v[right], times
    )
    return found


def within(
    system: System, start: Array, H: Array, q0: Array, v0: Array, q1: Array, v1: Array, time: Array
) -> tuple[Array, Array, Array]:
    """q, v and multipliers at `time`, between (q0, v0) at `start` and (q1, v1) at a time H after it."""
    apart = H > 0
    H = jnp.where(apart, H, 1.0)  # a single row
    s = jnp.where(apart, (time - start) / H, 0.0)
    q1, v1 = system.alike(q1, v1, q0)
    a0 = system.acceleration(q0, v0, inside(start, H, 0))
    a1 = system.acceleration(q1, v1, inside(start, H, 1))
    d = q1 - q0 - H * v0 - H**2 / 2 * a0
    e, f = H * (v1 - v0 - H * a0), H**2 * (a1 - a0)
    c3, c4, c5 = 10 * d - 4 * e + f / 2, 7 * e - 15 * d - f, 6 * d - 3 * e + f / 2
    x = q0 + s * (H * v0 + s * (H**2 / 2 * a0 + s * (c3 + s * (c4 + s * c5))))
    slope = v0 + s * (H * a0 + s * (3 * c3 + s * (4 * c4 + s * 5 * c5)) / H)
    x = put_back(system.at(time), x)
    w = system.project_velocity(x, slope, time)
    x, w = system.shown(x, w)
    return x, w, system.multipliers(x, w, time)
