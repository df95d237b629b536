"""What the methods on D* share: state, guess, scale and observation, with the energy anchor.

The state is z = (q, rho) as compensated sums, the energy that z must have (the anchor, which follows the
work of `force`), the gradient of H at z, the signs of the frame and the last increments, from which the
next one is extrapolated.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import jax.numpy as jnp
import numpy as np
from jax import Array

from noslip.geometry import frames
from noslip.geometry.bracket import Bracket, Point, refusal
from noslip.geometry.frames import Frame
from noslip.integrators.base import Integrator, Observation, Sum
from noslip.numerics.discrete_gradients import noise
from noslip.numerics.pytrees import pytree, replaced

if TYPE_CHECKING:
    from noslip.system import System

PAST = 5  # increments that the guess is extrapolated from
WILD = 0.25  # an extrapolated increment that differs from the last one by this part of z is not believed
EXTRAPOLATION = np.array([(-1) ** k * math.comb(PAST, k + 1) for k in range(PAST)], dtype=float)


@pytree
class BracketState:
    """A point of D* and what the next step needs there."""

    t: Sum
    q: Sum
    rho: Sum
    v: Array
    energy: Sum
    gradient: Array
    noise: Array
    scale: Array
    past: Array
    signs: Array

    @property
    def z(self) -> Array:
        return jnp.concatenate([self.q.value, self.rho.value])


def scales(point: Point, d: Array, h: Array) -> Array:
    """Sizes of (q, rho) in the kinetic metric, so that no choice of units matters: with K twice the
    kinetic energy, rho_a can be sqrt(K G_aa) and q_i can move by h sqrt(K) |row i of X / sqrt(G)|."""
    n, X = point.q.size, point.X
    G = jnp.sum(X * (point.frame.system.mass_matrix(point.q) @ X), axis=0)
    kinetic = jnp.sum((point.rho**2 + d[n:] ** 2) / G)
    reach = jnp.abs(h) * jnp.sqrt(kinetic * jnp.sum(X**2 / G, axis=1))
    return jnp.concatenate([jnp.abs(point.q) + reach, jnp.sqrt(kinetic * G)])


class OnDStar(Integrator):
    """Common parts; a method has the field `frame`, and `frame_derivative` where it offers a choice.
    Its unknown is an array of increments of z, one or (`stage_shape`) several."""

    frame: str
    frame_derivative: str = "exact"

    @property
    def stage_shape(self) -> tuple[int, ...]:
        return ()

    def increment(self, x: Array) -> Array:
        """The increment of z that an unknown means."""
        return x

    def applies_to(self, system: System) -> str | None:
        reason = refusal(system)
        if reason is None:
            frames.report_fallback(system, self.frame)
        return reason

    def bracket(self, system: System, signs: Array, h: Array) -> Bracket:
        step = h if self.frame_derivative == "finite_difference" else None
        return Bracket(Frame(system, self.frame, signs, step))

    def init(self, system: System, q: Array, v: Array, t: Array, h: Array) -> BracketState:
        signs = jnp.ones(system.m)
        if frames.uses_signs(system, self.frame):
            signs = frames.initial_signs(system, q)
        bracket = self.bracket(system, signs, h)
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

    def update(self, system: System, state: BracketState, x: Array, h: Array) -> BracketState:
        """For methods whose unknown is the increment, and in which `force` acts at the midpoint."""
        work = jnp.zeros(())
        if system.force is not None:
            middle = self.bracket(system, state.signs, h).at(state.z + x / 2)
            force = system.applied_force(middle.q, middle.v, state.t.value + h / 2)
            work = jnp.dot(force, x[: system.n])
        return self.moved(system, state, x, x, work, h)

    def moved(
        self, system: System, state: BracketState, x: Array, d: Array, work: Array, h: Array
    ) -> BracketState:
        """The state after the increment d and the unknown x, during which `force` did `work`."""
        n = system.n
        q, rho = state.q.plus(d[:n]), state.rho.plus(d[n:])
        past, signs = jnp.concatenate([x[None], state.past[:-1]]), state.signs
        if frames.uses_signs(system, self.frame):
            signs = frames.renewed_signs(system, q.value, signs)
            rho, past = _turned(self.bracket(system, state.signs, h), signs, q.value, rho, past)
        point = self.bracket(system, signs, h).at(jnp.concatenate([q.value, rho.value]))
        energy = state.energy if system.force is None else state.energy.plus(work)
        return _at(point, state.t.plus(h), q, rho, energy, d, past, signs, h)

    def observe(self, state: BracketState) -> Observation:
        t = state.t.value
        return Observation(t, state.q.value, state.v, None, t)


def _at(
    point: Point, t: Sum, q: Sum, rho: Sum, energy: Sum, d: Array, past: Array, signs: Array, h: Array
) -> BracketState:
    """The state at a point, reached by d, with what is evaluated there once per step."""
    gradient = point.gradient()
    S = jnp.abs(energy.value) + jnp.abs(jnp.dot(point.rho, point.y))  # |H| + |p . v|
    level = noise(S, gradient, d)
    return BracketState(t, q, rho, point.v, energy, gradient, level, scales(point, d, h), past, signs)


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
