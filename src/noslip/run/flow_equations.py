"""The equations of motion for the flow: in the coordinates and velocities of a system, or in a frame of it.

Where linear constraints come with a frame X(q), admissible velocities are v = X u. Then (q, u) move by

    q' = X u,    X^T M X u' = X^T (f - M X' u)

with f as in dv/dt = M^-1 (f + mu^T lam): fewer equations, no multipliers, and the constraints hold whatever
the errors of u are. Which of the two a flow takes is decided by the number of operations; a frame that
may end somewhere, by a pole or by a loss of rank, is not taken: there the equations for u have poles.
"""

from __future__ import annotations

from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from noslip.engine import stored
from noslip.engine.backends.heyoka_expressions import SUMS, Way, cheaper, cheapest, polynomials
from noslip.engine.backends.polynomials import keeps_rank
from noslip.engine.program import CannotTranslate, Program
from noslip.engine.translate import translate
from noslip.numerics.linear import spd_solve
from noslip.numerics.pytrees import PyTree
from noslip.run.programs import Shapes
from noslip.system import System

FEW = 16  # dear operations; with no more in a frame, nobody asks for the other equations


def equations(system: System, in_frame: bool) -> tuple[Way, bool]:
    """How to write the slopes of the state, and whether it is (q, u): at most where a frame may be taken."""
    if not (in_frame and has_frame(system)):
        return _way(system, plain, system.n), False
    try:
        short = _way(system, framed, system.n - system.m) if _keeps_rank(system) else None
    except CannotTranslate:
        short = None
    if short is not None and short.dear <= FEW:
        return short, True
    usual = _way(system, plain, system.n)
    return (usual, False) if short is None or cheaper(short, usual) is usual else (short, True)


def _keeps_rank(system: System) -> bool:
    """Whether its frame is surely one wherever the motion leads, even where nobody looks."""
    program = _program(system, _frame, ((system.n,), ()))
    if program.operations() > SUMS:
        return False
    entries = np.array(polynomials(program), dtype=object)
    return keeps_rank(entries.reshape(system.n, -1).tolist())


def _frame(system: System, y: tuple[Array, Array]) -> Array:
    return frame_at(system, *y)


def has_frame(system: System) -> bool:
    """Whether its velocities are those in its frame, the same however inputs are, and not too many of them
    for the solve that takes the place of that for the multipliers."""
    linear = system.kind == "linear" and system.rows == system.m
    return system.frame is not None and linear and not system.inputs and system.n <= 3 * system.m


def plain(system: System, y: tuple[Array, Array, Array]) -> tuple[Array, Array]:
    q, v, t = y
    return v, system.acceleration(q, v, t)


def framed(system: System, y: tuple[Array, Array, Array]) -> tuple[Array, Array]:
    q, u, t = y
    X, M = frame_at(system, q, t), system.mass_matrix(q, t)
    v = X @ u
    rates = _along(lambda x, s: system.momentum(x, v, s), q, v, t)
    f = system.dL_dq(q, v, t) - rates + system.applied_force(q, v, t)
    turning = _along(lambda x, s: frame_at(system, x, s) @ u, q, v, t)
    return v, spd_solve(X.T @ M @ X, X.T @ f - (X.T @ M) @ turning)


def velocity_in(system: System, q: Array, w: Array, t: Array) -> Array:
    """The velocity of a flow's own: v itself, or X u."""
    return w if len(w) == system.n else frame_at(system, q, t) @ w


def own_of(system: System, q: Array, v: Array, t: Array, size: int) -> Array:
    """The flow's own for a velocity: that itself, or the u of the X u that is nearest to it."""
    if size == system.n:
        return v
    X, M = frame_at(system, q, t), system.mass_matrix(q, t)
    return spd_solve(X.T @ M @ X, (X.T @ M) @ v)


def frame_at(system: System, q: Array, t: Array) -> Array:
    here = system.at(t)
    assert here.frame is not None
    return jnp.asarray(here.frame(q, here.parameters), float)


def _along(function: Callable[[Array, Array], Array], q: Array, v: Array, t: Array) -> Array:
    """d/dt along q' = v."""
    return jax.jvp(function, (q, t), (v, jnp.ones_like(t)))[1]


def _way(system: System, slopes: Callable[..., tuple[Array, Array]], size: int) -> Way:
    return cheapest(_program(system, slopes, ((system.n,), (size,), ())))


def _program(system: System, function: Callable[..., PyTree], shapes: Shapes) -> Program:
    fixed = jax.tree.map(lambda leaf: jax.ShapeDtypeStruct(np.shape(leaf), float), system)
    y = tuple(jax.ShapeDtypeStruct(shape, float) for shape in shapes)
    return stored.program(
        ("for a flow", function, fixed, y), lambda: translate(function, fixed, y, expand=False)
    )
