"""The motion of one kind of system as code: the flow, and what is shown of the states that it leads to.

A flow begins somewhere, with angles wrapped, and has velocities of its own: v, or u in a frame. A state that
it has led to is off its constraints and its energy by the errors of the flow. What is shown of it is put back
on both; the state from which the flow begins anew on the constraints alone, so that it is nobody's but the
flow's.
"""

from __future__ import annotations

import functools
from typing import Any, cast

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from noslip.engine.kept import Large, kept
from noslip.numerics.linear import independence
from noslip.numerics.pytrees import PyTree, anatomy, pytree
from noslip.run import step as steps
from noslip.run.along import BLOWN_UP, conserves_energy
from noslip.run.flow_equations import own_of, velocity_in
from noslip.run.flows import Flow, flow_of
from noslip.run.of_states import OfStates
from noslip.run.programs import Shapes
from noslip.run.sure import SMALL, SURELY
from noslip.system import System
from noslip.system.conditions import ADMISSIBLE
from noslip.system.positions import placement, put_back

OFF = 1e-3  # of the size of the energy: what is farther off is no error of the flow, and stays to be seen
GIVEN, LED, AGAIN = 0.0, 1.0, -1.0  # see `FlowCode.begin`
SLOW = 1e-2  # of it in motion: with less, a velocity is not asked to make up for the energy


@pytree
class Begun:
    """Where the flow has begun, and with what energy the run has."""

    own: Array  # the flow's velocities for v
    turns: Array  # taken off the angles before
    v: Array
    energy: Array
    energy_scale: Array
    t: Array


Fixed = tuple[System, Begun, Array, Array]  # and the box outside which there is a doubt: its two corners


@pytree
class Shown:
    """What a saved time shows but for its number, and whether it may be more than that: 1 or 0."""

    q: Array
    turns: Array
    v: Array
    multipliers: Array
    energy: Array
    energy_scale: Array
    constraint: Array
    holonomic: Array
    first_integrals: dict[str, Array]
    taken: Array  # off the coordinates, of systems with angles
    whole: Array  # q with that
    doubt: Array


class FlowCode(Large):
    """See `flow_code_of`. Fixed in a call is a row of numbers: the system's leaves, a `Begun`, a box."""

    def __init__(self, system: System, flow: Flow):
        n, scalar = system.n, cast(Any, jax.ShapeDtypeStruct((), float))
        self.flow, self.n, self.size = flow, n, flow.size(n)
        x, own = (cast(Any, jax.ShapeDtypeStruct((size,), float)) for size in (n, self.size))
        self._fixed = (system, Begun(own, x, x, scalar, scalar, scalar), x, x)
        self.shown = OfStates(_shown, self._fixed, ((n + self.size,), ()), many=False)
        self.standing = OfStates(_standing, self._fixed, ((2 * n,), (2,)), many=False)
        self.leaves = self.shown.fixed.slots - 4 * n - self.size - 3
        self.free: list[Any] = []  # memory that a run left behind

    @functools.cached_property
    def many(self) -> OfStates:
        """As `shown`, with the same bits, several rows at a time; that takes longer to make."""
        return OfStates(_shown, self._fixed, ((self.n + self.size,), ()), many=True)

    @functools.cached_property
    def start(self) -> OfStates:
        """Of an initial state and its time, whether it may not be good: 1 or 0. By itself, so that the start
        is computed as in every other run."""
        return OfStates(_doubtful, self._fixed, ((2 * self.n,), (2,)), many=False)

    def nodes(self) -> int:
        return self.shown.nodes + self.standing.nodes

    def fixed(self, system: System) -> np.ndarray:
        """The row of numbers for a system, which has yet to begin."""
        row = np.zeros(self.shown.fixed.slots)
        row[: self.leaves] = numbers_of(system)
        row[-2 * self.n : -self.n], row[-self.n :] = -np.inf, np.inf
        return row

    def begin(self, fixed: np.ndarray, state: np.ndarray, t: float, how: float) -> np.ndarray:
        """The state of its own from which the flow begins at t, with angles wrapped: (q, v) is `GIVEN` by
        somebody, with the energy that the run has from now on, or the flow has begun there before (`AGAIN`):
        then as it is; or the flow has led to the `state` of its own (`LED`), which is put back on its
        constraints. All is written into `fixed`."""
        given = np.zeros(2 * self.n)
        given[: len(state)] = state
        found = self.standing(fixed, given[None], np.array([[t, how]]))[:, 0]
        fixed[self.leaves : -2 * self.n] = found[self.n :]
        return found[: self.n + self.size]


def flow_code_of(system: System, tolerance: float, in_frame: bool = True) -> FlowCode:
    """The motion of systems with this structure, with this relative error of a step; `in_frame` the flow may
    have velocities of its own."""
    return _motion(*anatomy(system)[1:], flow_of(system, tolerance, in_frame))


@kept
def _motion(structure: jax.tree_util.PyTreeDef, shapes: Shapes, flow: Flow) -> FlowCode:
    leaves = [jax.ShapeDtypeStruct(shape, float) for shape in shapes]
    return FlowCode(jax.tree.unflatten(structure, leaves), flow)


def numbers_of(system: System) -> np.ndarray:
    """The parameters in a row."""
    return np.concatenate([np.empty(0), *(np.ravel(leaf) for leaf in jax.tree.leaves(system))])


def _standing(fixed: Fixed, state: Array, when: Array) -> tuple[Array, Begun]:
    system, begun, *_ = fixed
    (t, how), here = when, system.at(when[0])
    before = jnp.where(how == GIVEN, 0.0, begun.turns)
    own = state[: system.n + len(begun.own)]
    q, v = state[: system.n], jnp.where(how == LED, _velocity(fixed, own, t), state[system.n :])
    q, turns = _wrapped(system, q, before)
    given, led = system.shown(q, v), _on_constraints(system, q, v, t)
    q, v = (
        jnp.where(how == LED, a, jnp.where(how == GIVEN, b, c))
        for a, b, c in zip(led, given, (q, v), strict=True)
    )
    energy = jnp.where(how == GIVEN, here.energy(q, v), begun.energy)
    scale = jnp.where(how == GIVEN, here.energy_scale(q, v), begun.energy_scale)
    return q, Begun(own_of(system, q, v, t, len(begun.own)), turns, v, energy, scale, t)


def _shown(fixed: Fixed, state: Array, t: Array) -> Shown:
    """What is shown of a state, with angles wrapped: if the flow has led there, put back. Nonlinear
    constraints take twenty steps back, which only the beginning of a flow is worth."""
    system, begun, low, high = fixed
    q, turns = _wrapped(system, state[: system.n], begun.turns)
    v = jnp.where(t != begun.t, _velocity(fixed, state, t), begun.v)
    if system.kind != "nonlinear" or system.k or system.rotations:
        there = _on_constraints(system, q, v, t)
        if conserves_energy(system) and not system.first_integrals:
            there = there[0], there[1] * (1.0 + _missing(system, begun, *there))
        q, v = (jnp.where(t != begun.t, new, old) for new, old in zip(there, (q, v), strict=True))
    lam = system.multipliers(q, v, t)
    energy, _, *rest = values = steps.energies(system.at(t), q, v)
    doubt = _not_finite(q, v, lam, energy, rest) | jnp.any((q < low) | (q > high))
    if conserves_energy(system):
        doubt = doubt | (jnp.abs(energy - begun.energy) > BLOWN_UP * begun.energy_scale)
    angles = slice(system.n if system.angles else 0)
    taken = steps.TURN * turns[angles]  # shown, so that it is rounded by itself, as whoever adds it does
    doubt = doubt | _parallel(system, q, v, t)
    return Shown(q, turns, v, lam, *values, taken, q[angles] + taken, doubt * 1.0)


def _velocity(fixed: Fixed, state: Array, t: Array) -> Array:
    """Of a state of the flow."""
    n = fixed[0].n
    return velocity_in(fixed[0], state[:n], state[n:], t)


def _on_constraints(system: System, q: Array, v: Array, t: Array) -> tuple[Array, Array]:
    """The state nearby with g = 0, phi = 0 and quaternions of length 1."""
    q = put_back(system.at(t), q)
    q, v = system.shown(q, system.project_velocity(q, v, t))
    return q, v


def _missing(system: System, begun: Begun, q: Array, v: Array) -> Array:
    """By what part a velocity must grow to make up for the energy that is missing, (E0 - E) / (v M v); not
    where little of the energy is in motion, since the error is not in the velocity there. Other first
    integrals would pay for it, so it is left where some are declared."""
    missing, twice = begun.energy - system.energy(q, v), v @ (system.mass_matrix(q) @ v)
    size = twice**2 + (SLOW * begun.energy_scale) ** 2
    small = (jnp.abs(missing) <= OFF * begun.energy_scale) & (size > 0)
    return jnp.where(small, missing * twice / jnp.where(small, size, 1.0), 0.0)


def _wrapped(system: System, q: Array, turns: Array) -> tuple[Array, Array]:
    """Declared angles in [-pi, pi], and the turns taken off in all."""
    whole = jnp.where(system.angle_mask, jnp.round(q / steps.TURN), 0.0)
    return q - whole * steps.TURN - whole * steps.TURN_LOW, turns + whole


# ---- doubts -----------------------------------------------------------------------------------------------


def _doubtful(fixed: Fixed, state: Array, when: Array) -> Array:
    """Whether a start may be other than in its box, finite, regular (of few coordinates) and on its
    constraints."""
    _, _, low, high = fixed
    t, here = when[0], fixed[0].at(when[0])
    q, v, p = state[: here.n], state[here.n :], here.parameters
    mu, phi, values = here.mu(q, v), here.phi(q, v), steps.energies(here, q, v)
    doubt = _not_finite(q, v, mu, *values) | _parallel(here, q, v, t) | jnp.any((q < low) | (q > high))
    doubt = doubt | ~jnp.all(jnp.abs(phi) <= ADMISSIBLE * here.constraint_size(q, v))
    if here.k:
        g, allowed = placement(None, here, q)
        doubt = doubt | ~jnp.all(jnp.abs(g) <= allowed)
    if here.n <= SMALL:
        frames = [] if here.frame is None else [jnp.asarray(here.frame(q, p), float)]
        for matrix in (here.mass_matrix(q), mu @ mu.T, *(X.T @ X for X in frames)):
            doubt = doubt | ~(_regularity(matrix) > SURELY)
    return doubt * 1.0


def _regularity(matrix: Array) -> Array:
    """det / trace^n of a symmetric matrix, at most the ratio of its least to its largest eigenvalue; 0 where
    it is not positive definite."""
    n, ratio = len(matrix), jnp.ones(())
    trace, rows = jnp.trace(matrix), matrix
    for k in range(n):
        pivot = rows[k, k]
        ratio = jnp.where(pivot > 0, ratio * pivot / trace, 0.0)
        rows = rows - jnp.outer(rows[:, k], rows[k]) / pivot
    return ratio


def _not_finite(*values: PyTree) -> Array:
    """Told by their sum: one that is not finite may be of numbers that are."""
    return ~jnp.isfinite(sum(jnp.sum(x) for x in jax.tree.leaves(values)))


def _parallel(system: System, q: Array, v: Array, t: Array) -> Array:
    """Whether the one-forms may be nearly parallel."""
    if system.rows < 2 or system.orthogonal:
        return jnp.zeros((), bool)
    return ~(independence(system.mu(q, v, t)) > 0)
