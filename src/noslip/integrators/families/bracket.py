"""What the methods on D* share: state, guess, scale and observation, with the energy anchor.

The state is z = (q, rho) as compensated sums, the energy that z must have (the anchor, which follows the
work of `force`), the gradient of H at z, the signs of the frame and the last increments, from which the
next one is extrapolated. Without a frame rho is the kinetic momentum M v; see `families.frame_free`.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import jax.numpy as jnp
import numpy as np
from jax import Array

from noslip.geometry import frames
from noslip.geometry.bracket import Bracket, Chart, MiddlePoint, Point, refusal
from noslip.geometry.frame_free import FreeBracket
from noslip.geometry.frames import Frame
from noslip.geometry.polar import PolarBracket
from noslip.integrators.base import ROUNDINGS, Integrator, Observation, Sum, round_off
from noslip.integrators.families import frame_free
from noslip.integrators.families.bracket_state import PAST, BracketState, energy_size, followed
from noslip.numerics.discrete_gradients import noise
from noslip.numerics.pytrees import replaced

if TYPE_CHECKING:
    from noslip.system import System

WILD = 0.25  # an extrapolated increment that differs from the last one by this part of z is not believed
EXTRAPOLATION = np.array([(-1) ** k * math.comb(PAST, k + 1) for k in range(PAST)], dtype=float)
FRAMES = (*frames.FRAMES, "none")


def scales(point: Point, d: Array, h: Array) -> tuple[Array, Array]:
    """Sizes of (q, rho) in the kinetic metric, so that no choice of units matters, and K: with K twice the
    kinetic energy, rho_a can be sqrt(K G_aa) and q_i can move by h sqrt(K) |row i of X / sqrt(G)|."""
    n, X = point.q.size, point.X
    G = jnp.sum(X * (point.frame.system.mass_matrix(point.q) @ X), axis=0)
    kinetic = jnp.sum((point.rho**2 + d[n:] ** 2) / G)
    reach = jnp.abs(h) * jnp.sqrt(kinetic * jnp.sum(X**2 / G, axis=1))
    return jnp.concatenate([jnp.abs(point.q) + reach, jnp.sqrt(kinetic * G)]), kinetic


class OnDStar(Integrator):
    """Common parts; a method has the field `frame`, and `frame_derivative` where it offers a choice.
    Its unknown is an array of increments of z, one or (`stage_shape`) several."""

    frame: str
    frame_derivative: str = "exact"

    @property
    def uses_frame(self) -> bool:
        return True

    @property
    def stage_shape(self) -> tuple[int, ...]:
        return ()

    def increment(self, x: Array) -> Array:
        """The increment of z that an unknown means."""
        return x

    def form(self, system: System) -> frame_free.Form | None:
        """What stands in the place of a frame, None where there is one: nothing is asked for and the system
        has none, or none is wanted; "orthonormal" then means an isometry of the planes of D."""
        if self.frame == "none" or (self.frame == "system" and system.frame is None):
            return FreeBracket
        return PolarBracket if self.frame == "orthonormal" and system.frame is None else None

    def applies_to(self, system: System) -> str | None:
        reason = refusal(system)
        if reason is None and self.frame_derivative != "exact" and self.form(system) is not None:
            return f"`frame_derivative='{self.frame_derivative}'` needs a frame, but there is none"
        return reason

    @property
    def preserves(self) -> frozenset[str]:
        kept = frozenset({"constraint", "energy"}) | self.self_adjoint
        return kept | {"holonomic"} if self.frame in ("system", "none") else kept

    @property
    def self_adjoint(self) -> frozenset[str]:
        """{"reversible"}, but not in a frame whose signs are those that the steps before have left."""
        return frozenset() if self.frame == "householder" else frozenset({"reversible"})

    def chart(self, system: System, state: BracketState, d: Array, h: Array) -> tuple[Chart, Array]:
        """D* around a step from `state` by d, and the coordinates z of the state there."""
        dq, form = d[: system.n], self.form(system)
        if form is None:
            return Bracket(self._frame(system, state.signs, state.q.value + dq / 2, dq)), state.z
        bracket = frame_free.around(form, system, state, d, h)
        return bracket, bracket.begin(state.z)

    def _frame(self, system: System, signs: Array, q: Array, dq: Array) -> Frame:
        exact = self.frame_derivative == "exact"
        return Frame(system, self.frame, signs, None if exact else frames.displacements(system, q, dq))

    def init(self, system: System, q: Array, v: Array, t: Array, h: Array) -> BracketState:
        if (form := self.form(system)) is not None:
            return frame_free.first(form, system, q, v, t, h, self.stage_shape)
        signs = jnp.ones(system.m)
        if frames.uses_signs(system, self.frame):
            signs = frames.initial_signs(system, q)
        bracket = Bracket(self._frame(system, signs, q, h * v))
        point = bracket.at(bracket.from_velocity(q, v))
        d = h * point.apply(point.gradient()) + h * point.force(t)
        past = jnp.broadcast_to(d, (PAST, *self.stage_shape, d.size))
        energy = Sum.start(point.energy())
        return _at(point, Sum.start(t), Sum.start(q), Sum.start(point.rho), energy, d, past, signs, h)

    def history(self, state: BracketState) -> Array:
        return state.past

    def with_history(self, state: BracketState, history: Array) -> BracketState:
        return replaced(state, past=history)

    def guess(self, system: System, state: BracketState, h: Array) -> Array:
        last, ahead = state.past[0], jnp.tensordot(jnp.asarray(EXTRAPOLATION), state.past, 1)
        # large steps vary too much to be extrapolated
        wild = jnp.any(jnp.abs(ahead - last) > WILD * state.scale)
        return jnp.where(wild, last, ahead)

    def scale(self, system: System, state: BracketState, guess: Array, h: Array) -> Array:
        return jnp.broadcast_to(state.scale, guess.shape)

    def grain(self, system: System, state: BracketState, guess: Array, h: Array) -> Array:
        q, free = state.q.value, self.form(system) is not None
        v, _ = round_off(system, q, state.v, h)
        p = jnp.diagonal(system.mass_matrix(q)) * v
        rho = p if free else jnp.abs(self._frame(system, state.signs, q, h * state.v)(q)).T @ p
        moved = ROUNDINGS * jnp.abs(q) + jnp.abs(h) * v
        return jnp.broadcast_to(jnp.concatenate([moved, rho]), guess.shape)

    def update(self, system: System, state: BracketState, x: Array, h: Array) -> BracketState:
        """For methods whose unknown is the increment, and in which `force` acts at the midpoint."""
        bracket, z = self.chart(system, state, x, h)
        done = work(system, ((bracket.middle(z + x / 2), x, state.t.value + h / 2, b) for b in (1.0,)))
        return self.moved(system, state, x, x, done, h)

    def moved(
        self, system: System, state: BracketState, x: Array, d: Array, work: Array, h: Array
    ) -> BracketState:
        """The state after the increment d and the unknown x, during which `force` did `work`."""
        n = system.n
        past = jnp.concatenate([x[None], state.past[:-1]])
        energy = state.energy if system.force is None else state.energy.plus(work)
        if (form := self.form(system)) is not None:
            return frame_free.moved(form, system, state, d, past, energy, h)
        q, rho, signs = state.q.plus(d[:n]), state.rho.plus(d[n:]), state.signs
        if frames.uses_signs(system, self.frame):
            signs = frames.renewed_signs(system, q.value, signs)
            old = Bracket(self._frame(system, state.signs, q.value, d[:n]))
            rho, past = _turned(old, signs, q.value, rho, past)
        bracket = Bracket(self._frame(system, signs, q.value, d[:n]))
        point = bracket.at(jnp.concatenate([q.value, rho.value]))
        return _at(point, state.t.plus(h), q, rho, energy, d, past, signs, h)

    def landed(self, system: System, state: BracketState, d: Array, h: Array) -> Array:
        """The increment of the state's (q, rho) that d means."""
        form = self.form(system)
        return d if form is None else frame_free.landed(form, system, state, d, h)[0]

    def observe(self, state: BracketState) -> Observation:
        t = state.t.value
        return Observation(t, state.q.value, state.v, None, t)


def work(system: System, visits: Iterable[tuple[MiddlePoint, Array, Array, float]]) -> Array:
    """Of `force` during a step: the sum of b force . d_q over the points visited, each with d, t and b."""
    total = jnp.zeros(())
    for point, d, t, b in visits if system.force is not None else ():
        total = total + b * jnp.dot(system.applied_force(point.q, point.v, t), d[: system.n])
    return total


def _at(
    point: Point, t: Sum, q: Sum, rho: Sum, energy: Sum, d: Array, past: Array, signs: Array, h: Array
) -> BracketState:
    """The state at a point, reached by d, with what is evaluated there once per step."""
    system = point.frame.system
    scale, kinetic = scales(point, d, h)
    S = energy_size(system, q.value, energy, jnp.dot(point.rho, point.y))
    level = noise(S, kinetic)
    if system.force is not None:
        energy = followed(energy, point.energy(), S, level)
    return BracketState(t, q, rho, point.v, energy, point.gradient(), level, scale, past, signs, None)


def _turned(old: Bracket, signs: Array, q: Array, rho: Sum, past: Array) -> tuple[Sum, Array]:
    """rho and the increments in the frame of the new signs: X' = X S gives rho' = S^T rho."""
    frame: Any = old.frame
    new = Frame(frame.system, frame.name, signs, frame.difference)
    n, X = q.size, frame(q)
    MX = frame.system.mass_matrix(q) @ X if frame.orthonormal else X  # X^T MX = I in either case
    S = MX.T @ new(q)
    changed = jnp.any(signs != frame.signs)
    turned = jnp.concatenate([past[..., :n], past[..., n:] @ S], axis=-1)
    value = jnp.where(changed, S.T @ rho.value, rho.value)
    low = jnp.where(changed, S.T @ rho.low, rho.low)
    return Sum(value, low), jnp.where(changed, turned, past)
