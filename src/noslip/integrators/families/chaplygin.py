"""What the methods of FBO share: a discrete Lagrangian on the base M, and the way back to Q.

Let Ld(r, r + d) be h times the mean of L(r + e d, d / h) over e = epsilon, 1 - epsilon, (13), (32). Then

    P + D1 Ld(r, r + d) + F^- = 0,      P1 = D2 Ld(r, r + d) + F^+

is a one-step method for (r, P), P the discrete Legendre momentum: (10), (21), (33), (46) with the start
P0 = dL/drdot. `start="taylor1"` takes the P0 that leads to r1 = r0 + h rdot0, as in the paper's figures.
The group moves by the discrete constraint (14): g1 = g retract(-A d), where A solves the mean of the
one-forms over the nodes for the group velocity.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from noslip.engine.kept import jitted
from noslip.geometry import chaplygin, hamiltonization
from noslip.geometry.chaplygin import Reduction, make_group
from noslip.geometry.groups import Group, spelled
from noslip.geometry.hamiltonization import Hamiltonization
from noslip.integrators.base import (
    ROUNDINGS,
    Integrator,
    Observation,
    OwnState,
    Solve,
    Sum,
    pytree,
    replaced,
    require_interval,
    require_one_of,
)
from noslip.integrators.solve import Status
from noslip.numerics.linear import solve
from noslip.system import System

STARTS = ("legendre", "taylor1")


@pytree
class ReducedState:
    """A point of Q, the momentum on M that arrives there, the velocity, and the last two d / h."""

    t: Sum
    q: Sum
    P: Array
    v: Array
    last: Array
    before: Array


@pytree
class HamiltonizedState(ReducedState):
    """The same with the normalisation of f (its logarithm, where f is found) and the initial energy."""

    norm: Array
    energy: Array


@dataclass(frozen=True)
class OnBase(Integrator):
    """A method on M = Q/G; subclasses give the momenta -D1 Ld - F^- and D2 Ld + F^+ of a step."""

    epsilon: float = 0.5  #: L is taken at epsilon and 1 - epsilon of the step
    start: str = "legendre"  #: how the first momentum is found
    group: str | Group = "translations"  #: the group G; translations along the fibre, or others by name

    def __post_init__(self) -> None:
        require_interval("epsilon", self.epsilon, 0.0, 1.0)
        require_one_of("start", self.start, STARTS)
        object.__setattr__(self, "group", spelled(self.group))

    @property
    def remembers_start(self) -> bool:
        return True

    @property
    def symmetry(self) -> str | Group:
        return self.group

    @property
    def order(self) -> int:
        return 2 if self.start == "legendre" else 1

    @property
    def preserves(self) -> frozenset[str]:
        # the step is self-adjoint, but not the way from v0 to the P0 of "taylor1", which depends on h
        return frozenset({"constraint", "reversible"} if self.start == "legendre" else {"constraint"})

    def applies_to(self, system: System) -> str | None:
        return self._refusal(system, None)

    def applies_around(self, system: System, q: np.ndarray, v: np.ndarray) -> str | None:
        return self._refusal(system, q)

    def _refusal(self, system: System, at: np.ndarray | None) -> str | None:
        def under(group: str | Group) -> str | None:
            return chaplygin.refusal(system, make_group(system, group), at, must_be_seen=at is not None)

        reason = under(self.group)
        if reason is None or self.group == "planar" or under("planar"):
            return reason
        return f"{reason}; under group='planar' it is a Chaplygin system"

    # ---- the base ---------------------------------------------------------------------------------
    def reduced(self, system: System) -> Reduction:
        """The reduced system."""
        return Reduction(system, make_group(system, self.group))

    @property
    def nodes(self) -> tuple[float, ...]:
        """epsilon and 1 - epsilon, once if they are the same."""
        return (0.5,) if self.epsilon == 0.5 else (self.epsilon, 1 - self.epsilon)

    def momenta(self, system: System, state: OwnState, d: Array, h: Array) -> tuple[Array, Array]:
        """-(D1 Ld + F^-) and D2 Ld + F^+ of the step d."""
        raise NotImplementedError(f"{type(self).__name__} must define momenta")

    def base_velocity(self, system: System, state: OwnState) -> Array:
        """rdot of a state whose momentum is P."""
        r = state.q.value[self.reduced(system).base_index]
        return self.reduced(system).velocity(r, state.P)

    # ---- one step ---------------------------------------------------------------------------------
    def init(self, system: System, q: Array, v: Array, t: Array, h: Array) -> OwnState:
        base = self.reduced(system).base_index
        P, w = self.reduced(system).momentum(q[base], v[base]), v[base]
        return self.started(system, ReducedState(Sum.start(t), Sum.start(q), P, v, w, w), h)

    def started(self, system: System, state: OwnState, h: Array) -> OwnState:
        """The state with the momentum that `start` asks for; P = dL/drdot for the first step."""
        if self.start == "legendre":
            return state
        return replaced(state, P=self.momenta(system, state, h * state.last, h)[0])

    def guess(self, system: System, state: OwnState, h: Array) -> Array:
        # extrapolated, which also chooses between two roots where f has a zero
        return h * (2 * state.last - state.before)

    def scale(self, system: System, state: OwnState, guess: Array, h: Array) -> Array:
        reduced, w = self.reduced(system), guess / h
        G = reduced.metric(state.q.value[reduced.base_index])
        return jnp.abs(h) * jnp.sqrt(jnp.abs(w @ G @ w / jnp.diagonal(G)))

    def grain(self, system: System, state: OwnState, guess: Array, h: Array) -> Array:
        reduced, r = self.reduced(system), state.q.value[self.reduced(system).base_index]
        G = jnp.diagonal(reduced.metric(r))
        return ROUNDINGS * jnp.sqrt(jnp.sum(G * r**2) / G)

    def residual(self, system: System, state: OwnState, d: Array, h: Array) -> Array:
        return self.momenta(system, state, d, h)[0] - state.P

    def update(self, system: System, state: OwnState, d: Array, h: Array) -> OwnState:
        reduced, q = self.reduced(system), state.q
        r, s = q.value[reduced.base_index], q.value[reduced.fibre_index]
        moved = reduced.group.displacement(s, self.group_step(reduced, r, d))
        P = self.momenta(system, state, d, h)[1]
        new = replaced(state, t=state.t.plus(h), q=q.plus(reduced.joined(d, moved)), P=P)
        return self.observed(system, replaced(new, last=d / h, before=state.last))

    def group_step(self, reduced: Reduction, r: Array, d: Array) -> Array:
        """g^-1 g1 by the discrete constraint (14)."""
        if len(self.nodes) == 1:
            return reduced.group.retract(-reduced.connection(r + self.nodes[0] * d) @ d)
        rows = [reduced.one_forms(r + e * d) for e in self.nodes]
        mu = sum(rows[1:], rows[0])
        return reduced.group.retract(-solve(mu[:, reduced.fibre_index], mu[:, reduced.base_index] @ d))

    def observed(self, system: System, state: OwnState) -> OwnState:
        """The state with the velocity that belongs to its momentum."""
        w = self.base_velocity(system, state)
        return replaced(state, v=self.reduced(system).lift(state.q.value, w))

    def observe(self, state: OwnState) -> Observation:
        return Observation(state.t.value, state.q.value, state.v, None, state.t.value)

    def discrete_momenta(
        self, lagrangian: Callable[[Array, Array], Array], r: Array, d: Array, h: Array
    ) -> tuple[Array, Array]:
        """-D1 Ld and D2 Ld."""
        minus, plus = jnp.zeros_like(r), jnp.zeros_like(r)
        for e in self.nodes:
            slope, p = jax.grad(lagrangian, (0, 1))(r + e * d, d / h)
            minus, plus = minus + p - h * (1 - e) * slope, plus + p + h * e * slope
        return minus / len(self.nodes), plus / len(self.nodes)


@dataclass(frozen=True)
class OnHamiltonizedBase(OnBase):
    """A method that needs Chaplygin's multiplier f, normalised to 1 at the initial point."""

    @property
    def preserves(self) -> frozenset[str]:
        return super().preserves | {"symplectic_reduced", "momentum_map"}

    @property
    def canonical(self) -> MomentumChart:
        return MomentumChart(self)

    def _refusal(self, system: System, at: np.ndarray | None) -> str | None:
        reason, seen = super()._refusal(system, at), at is not None
        if reason is None and (
            missing := hamiltonization.refusal(self.reduced(system), at, must_be_seen=seen)
        ):
            return f"the system is not Hamiltonizable: {missing}"
        return reason

    def hamiltonized(self, system: System) -> Hamiltonization:
        """The reduced system with its multiplier."""
        return Hamiltonization(self.reduced(system))

    # ---- the multiplier along a step --------------------------------------------------------------
    def multiplier(self, system: System, state: HamiltonizedState, r: Array) -> Array:
        """f at r, near the state: the system's own, or found by integrating d ln f from there."""
        made, base = self.hamiltonized(system), self.reduced(system).base_index
        if system.multiplier is None:
            return jnp.exp(state.norm + made.log_ratio(state.q.value[base], r))
        return state.norm * system.multiplier(made.reduced.at(r), system.parameters)

    def multiplier_here(self, system: System, state: HamiltonizedState) -> Array:
        """f at the state."""
        if system.multiplier is None:
            return jnp.exp(state.norm)
        return self.multiplier(system, state, state.q.value[self.reduced(system).base_index])

    def base_velocity(self, system: System, state: HamiltonizedState) -> Array:
        """P = f dl_c/drdot."""
        r = state.q.value[self.reduced(system).base_index]
        return self.reduced(system).velocity(r, state.P / self.multiplier_here(system, state))

    # ---- one step ---------------------------------------------------------------------------------
    def init(self, system: System, q: Array, v: Array, t: Array, h: Array) -> HamiltonizedState:
        reduced = self.reduced(system)
        r, w = q[reduced.base_index], v[reduced.base_index]
        norm = jnp.zeros(())
        if system.multiplier is not None:
            norm = 1 / system.multiplier(reduced.at(r), system.parameters)
        P, energy = reduced.momentum(r, w), system.energy(q, v)
        state = HamiltonizedState(Sum.start(t), Sum.start(q), P, v, w, w, norm, energy)
        return self.started(system, state, h)

    def update(self, system: System, state: HamiltonizedState, d: Array, h: Array) -> HamiltonizedState:
        moved = super().update(system, state, d, h)
        if system.multiplier is not None:
            return moved
        r = state.q.value[self.reduced(system).base_index]
        carried = state.norm + self.hamiltonized(system).log_ratio(r, r + d)
        return self.observed(system, replaced(moved, norm=carried))

    def advance(self, system: System, state: HamiltonizedState, h: Array) -> tuple[HamiltonizedState, Solve]:
        """One step; where f has a zero on the way that the method cannot pass, the record says so."""
        moved, record = super().advance(system, state, h)
        r, failed = state.q.value[self.reduced(system).base_index], record.status != Status.SOLVED
        # a step that fails near a zero may have come only half of the way to it
        way = jnp.where(failed, 2 * self.guess(system, state, h), h * moved.last)
        met = self.hamiltonized(system).vanishes_on_the_way(r, way)
        ended = jnp.where(failed, met, self.passes_zero(system, state, moved, met))
        status = jnp.where(ended, int(Status.MULTIPLIER_ZERO), record.status)
        return moved, Solve(record.iterations, record.increment, record.residual, status)

    def failure_detail(self, system: System, run: Any) -> str:
        if run.report.worst != Status.MULTIPLIER_ZERO:
            return ""
        base = self.reduced(system).base_index
        rate = jnp.dot(self.hamiltonized(system).omega(jnp.asarray(run.q[-1, base])), run.v[-1, base])
        return f"; f vanishes at about t = {run.t[-1] - 1 / float(rate):.6g}"

    def passes_zero(
        self, system: System, state: HamiltonizedState, moved: HamiltonizedState, met: Array
    ) -> Array:
        """Whether a solved step, which has met a zero of f or not, cannot go on."""
        raise NotImplementedError(f"{type(self).__name__} must define passes_zero")


@dataclass(frozen=True)
class MomentumChart:
    """(r, P) of the states of a method that carries Chaplygin's multiplier along."""

    method: OnHamiltonizedBase

    def point(self, system: System, state: HamiltonizedState) -> tuple[Array, Array]:
        return state.q.value[self.method.reduced(system).base_index], state.P

    def moved(self, system: System, state: HamiltonizedState, r: Array, P: Array) -> HamiltonizedState:
        """f is normalised at the start, so one that is found along the way changes with r."""
        return _moved(system, state, r, P, method=self.method)


@partial(jitted, static=("method",))
def _moved(
    system: System, state: HamiltonizedState, r: Array, P: Array, method: OnHamiltonizedBase
) -> HamiltonizedState:
    base, norm, q = method.reduced(system).base_index, state.norm, state.q.value
    if system.multiplier is None:
        norm = norm + method.hamiltonized(system).log_ratio(q[base], r)
    return replaced(state, q=Sum(q.at[base].set(r), state.q.low), P=P, norm=norm)
