"""What the symmetric projection needs: state, integrals as functions on D*, the solve for mu."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax

from noslip.engine.backends.numpy_rows import evaluate_anyhow
from noslip.geometry.bracket import Chart
from noslip.integrators.base import Sum
from noslip.integrators.families.bracket import EXTRAPOLATION, WILD, OnDStar
from noslip.integrators.families.bracket_state import PAST, BracketState
from noslip.integrators.solve import without_derivatives
from noslip.numerics.discrete_gradients import noise
from noslip.numerics.pytrees import pytree, replaced
from noslip.system import System
from noslip.system.conditions import AROUND, TOLERANCE, velocities
from noslip.system.time import Timed

DEPENDENT = 1e-10  # pivots of W below this are those of dependent integrals


@pytree
class ProjectedState(BracketState):
    """A state of the base, the values to keep, their normalised gradients and noise, and earlier (mu, e)."""

    targets: Array
    normals: Array
    sizes: Array  # of the gradients
    levels: Array  # of the noise, relative to `sizes`
    extra: Array


@pytree
class ProjectedUnknown:
    """The unknown of the base, the multipliers of the projection, and the whole increment."""

    x: Array
    mu: Array
    e: Array


Step = Callable[[System, ProjectedState, Array, Array], Array]  # the unknown of the base, advanced
Turn = Callable[[ProjectedUnknown], ProjectedUnknown]


def integrals(system: System, bracket: Chart, z: Array) -> Array:
    """g(z): the energy, the declared first integrals, and the holonomic constraints."""
    point = bracket.at(z)
    others = [f(point.q, point.v, system.parameters) for f in system.first_integrals.values()]
    return jnp.stack([point.energy(), *others, *(system.g(point.q) if system.k else ())])


def gradients(system: System, bracket: Chart, z: Array) -> Array:
    """B = dg(z), one row per integral."""
    return jax.jacrev(lambda z: integrals(system, bracket, z))(z)


def normals(system: System, bracket: Chart, z: Array, state: ProjectedState) -> Array:
    """B at the beginning of a step, normalised: known, unless D* is seen from the middle of this step."""
    return gradients(system, bracket, z) / state.sizes[:, None] if bracket.moving else state.normals


def first(base: OnDStar, system: System, state: BracketState, h: Array) -> ProjectedState:
    """The state of the base at the start, with the values to keep."""
    d = base.increment(state.past[0])
    targets = integrals(system, *base.chart(system, state, jnp.zeros_like(d), h))
    extra = jnp.broadcast_to(jnp.concatenate([jnp.zeros_like(targets), d]), (PAST, targets.size + d.size))
    return completed(base, system, state, targets, extra, h)


def completed(
    base: OnDStar, system: System, state: BracketState, targets: Array, extra: Array, h: Array
) -> ProjectedState:
    """The state of the base with the gradients of the integrals there."""
    bracket, z = base.chart(system, state, jnp.zeros_like(extra[0, targets.size :]), h)
    B = gradients(system, bracket, z)
    squares = jnp.sum(B * jax.vmap(bracket.vector)(B), axis=1)
    sizes = jnp.sqrt(squares)
    sizes = jnp.where(sizes > 0, sizes, 1.0)
    last = extra[0, targets.size :]
    exchanged = jnp.sqrt(lax.stop_gradient(squares * jnp.dot(last, bracket.dual(last))))
    levels = noise(jnp.abs(targets), exchanged) / sizes
    inherited = {name: getattr(state, name) for name in BracketState.__dataclass_fields__}
    return ProjectedState(
        **inherited, targets=targets, normals=B / sizes[:, None], sizes=sizes, levels=levels, extra=extra
    )


def guess(x: Array, base: OnDStar, state: ProjectedState) -> ProjectedUnknown:
    """From x, the guess of the base: mu and e extrapolated, or where that is wild no projection at all."""
    k, extra = state.targets.size, jnp.asarray(EXTRAPOLATION) @ state.extra
    wild = jnp.any(jnp.abs(extra[k:] - state.extra[0, k:]) > WILD * state.scale)
    plain = jnp.concatenate([jnp.zeros_like(state.targets), base.increment(x)])
    extra = jnp.where(wild, plain, extra)
    return ProjectedUnknown(x, extra[:k], extra[k:])


def scale(x: Array, state: ProjectedState, guess: ProjectedUnknown) -> ProjectedUnknown:
    """The sizes of the unknowns, x those of the base. mu is judged by what it does to e: along dependent
    integrals it is noise without an effect."""
    size = jnp.sqrt(jnp.sum(state.scale**2)) / DEPENDENT
    return ProjectedUnknown(x, jnp.broadcast_to(size, guess.mu.shape), state.scale)


def refusal(system: System) -> str | None:
    """Why there is nothing to project onto, where something is not constant."""
    if system.force is not None:
        return "a projection needs quantities that stay constant, but this system has a `force`"
    if any(isinstance(f, Timed) for f in system.first_integrals.values()):
        return "a projection needs quantities that stay constant, but a first integral contains t"
    return None


def changing(system: System, q: np.ndarray, v: np.ndarray) -> str | None:
    """Why there is nothing to project onto: a declared integral that the motion changes, at this position and
    with velocities like this one."""
    if not system.first_integrals:
        return None
    speeds = velocities(v, AROUND)
    rates, sizes = evaluate_anyhow(_rates, None, system, np.tile(np.asarray(q, float), (AROUND, 1)), speeds)
    for name, rate, size in zip(system.first_integrals, rates.T, sizes.T, strict=True):
        worst = float(np.max(np.abs(rate)))
        if worst > TOLERANCE * float(np.max(size)):
            return (
                f"a projection needs quantities that stay constant, but the first integral '{name}' changes "
                f"at a rate of {worst:.2g} at q = {np.asarray(q)} and a speed like the initial one"
            )
    return None


def _rates(_: None, system: System, q: Array, v: Array) -> tuple[Array, Array]:
    """The rates of the first integrals along the motion, and the sizes of the terms that make them up."""
    v = system.project_velocity(q, v)
    a = system.acceleration(q, v)
    found = [jax.grad(f, (0, 1))(q, v, system.parameters) for f in system.first_integrals.values()]
    rates = [by_q @ v + by_v @ a for by_q, by_v in found]
    sizes = [jnp.abs(by_q) @ jnp.abs(v) + jnp.abs(by_v) @ jnp.abs(a) for by_q, by_v in found]
    return jnp.stack(rates), jnp.stack(sizes)


def displaced(bracket: Any, z: Array, state: ProjectedState, shift: Array) -> ProjectedState:
    """The state at z + shift, whose energy there is what the base shall keep."""
    point = bracket.at(z + shift)
    return replaced(
        state,
        q=Sum.start(point.q),
        rho=Sum.start(point.rho),
        energy=Sum.start(point.energy()),
        gradient=point.start(),
        g=None if state.g is None else bracket.system.g(point.q),
    )


def solved(base: OnDStar) -> Step:
    """The unknown of a step of the base, found as it finds that of its own steps, whatever is known of it."""

    def step(system: System, state: ProjectedState, x: Array, h: Array) -> Array:
        with without_derivatives():
            return base.solved(system, state, base.guess(system, state, h), h)[0]

    return step


def multipliers(W: Array, mu: Array, defect: Array) -> Array:
    """A mu' with W mu' = W mu - defect, W being positive semidefinite: by LDL^T, in which the mu' of an
    integral that depends on those before it is zero. The energy comes first."""
    k, right = mu.size, W @ mu - defect
    low: list[list[Array]] = []
    pivots: list[Array] = []
    inverses: list[Array] = []
    y: list[Array] = []
    for i in range(k):
        row: list[Array] = []
        for j in range(i):
            above = sum((row[s] * low[j][s] * pivots[s] for s in range(j)), jnp.zeros(()))
            row.append((W[i, j] - above) * inverses[j])
        pivot = W[i, i] - sum((row[s] ** 2 * pivots[s] for s in range(i)), jnp.zeros(()))
        free = pivot > DEPENDENT
        inverses.append(jnp.where(free, 1.0 / jnp.where(free, pivot, 1.0), 0.0))
        pivots.append(jnp.where(free, pivot, 0.0))
        low.append(row)
        y.append(right[i] - sum((row[s] * y[s] for s in range(i)), jnp.zeros(())))
    found = [y[i] * inverses[i] for i in range(k)]
    for i in reversed(range(k)):
        for s in range(i + 1, k):
            found[i] = found[i] - jnp.where(inverses[i] > 0, low[s][i], 0.0) * found[s]
    return jnp.stack(found)
