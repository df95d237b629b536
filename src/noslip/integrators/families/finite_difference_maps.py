"""What the methods of a finite-difference map share: its choice by `beta` or `rho`, and JS definition 5.6.

That definition makes a method for (q~, v) of one for pairs of nodes: F~ = rho o F o rho^-1, F being the
discrete flow JS (59). Here it is for any map rho; the methods write out the case of rho^beta.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from jax import Array

from noslip.geometry.finite_difference_map import FiniteDifferenceMap, RhoBeta
from noslip.integrators.base import Integrator, OwnState, Sum, pytree, require_interval
from noslip.integrators.families import inner_nodes
from noslip.integrators.families.lagrange_dalembert import LagrangeDAlembert
from noslip.integrators.families.states import Unknown, VelocityState

if TYPE_CHECKING:
    from noslip.system import System


@pytree
class MappedState(VelocityState):
    """(q~_k, v_k) with the pair of original nodes behind it: w = (q_k - q_{k-1}) / h, ahead = q_k - q~_k,
    and the momentum p = D2 L_d(q_{k-1}, q_k) that arrives at q_k."""

    w: Sum
    ahead: Array
    p: Array


def mapped_init(rho: FiniteDifferenceMap, system: System, state: VelocityState, h: Array) -> MappedState:
    """rho^-1: the pair of original nodes that belongs to the state."""
    q = state.q.value
    ahead, w = rho.inverse(q, state.v.value, h)
    p = rho.momenta(system, q + ahead - h * w, w, h, state.t.value)[1]
    return MappedState(**vars(state), w=Sum.start(w), ahead=ahead, p=p)


def mapped_residual(
    rho: FiniteDifferenceMap, system: System, state: MappedState, x: Unknown, h: Array
) -> Unknown:
    """JS (59) for the pair (q_k, q_k + h w1): D1 L_d + p + h mu(q_k)^T lam = 0, phi_d = 0."""
    qk, w = state.q.value + state.ahead, state.w.value
    w1 = w + x.d
    minus_d1, _ = rho.momenta(system, qk, w1, h, state.t.value + h)
    t = state.t.value + h
    reaction = system.mu(qk, (w + w1) / 2, t - rho.fraction(qk) * h).T @ x.lam
    return Unknown(minus_d1 - state.p - h * reaction, system.phi(*rho.node(qk, w1, h), t))


def mapped_update(
    rho: FiniteDifferenceMap, system: System, state: MappedState, x: Unknown, h: Array
) -> MappedState:
    """rho of the new pair."""
    qk, w, t = state.q.value + state.ahead, state.w.plus(x.d), state.t.plus(h)
    shift, v = rho.at(qk, w.value, h)
    _, p = rho.momenta(system, qk, w.value, h, t.value)
    q, ahead = state.q.plus(state.ahead + shift), h * w.value - shift
    return MappedState(t, q, Sum.start(v), x.lam, t.value - rho.fraction(qk) * h, w, ahead, p)


class MapMethod(Integrator):
    """A method with the parameters `beta` and `rho`, of which one or the other chooses the map."""

    beta: float
    rho: FiniteDifferenceMap | None

    def __post_init__(self) -> None:
        require_interval("beta", self.beta, 0.0, 1.0)
        if self.rho is None:
            return
        if not isinstance(self.rho, FiniteDifferenceMap):
            raise TypeError(f"`rho` must be a map such as RhoFunctions(g, f), but {self.rho!r} was provided")
        if self.beta != 0.5:
            raise ValueError(f"`beta` must be left out where `rho` is given, but {self.beta!r} was provided")
        if isinstance(self.rho, RhoBeta):  # the same method, with its formulas written out
            object.__setattr__(self, "beta", self.rho.beta)
            object.__setattr__(self, "rho", None)

    @property
    def map(self) -> FiniteDifferenceMap:
        """The finite-difference map of the method."""
        return RhoBeta(self.beta) if self.rho is None else self.rho

    def discrete_lagrangian(self, system: System, q: Array, q1: Array, h: Array) -> Array:
        """h L o rho."""
        return self.map.discrete_lagrangian(system, q, q1, h)

    def applies_to(self, system: System) -> str | None:
        return self.map.refusal(system)

    def options(self) -> dict[str, object]:
        return {
            name: value for name, value in super().options().items() if name != "rho" or value is not None
        }


class RedefinedNodes(MapMethod, LagrangeDAlembert):
    """A method of JS definition 5.6: by equations of its own for rho^beta, by those above for any `rho`."""

    @property
    def multiplier_order(self) -> int:
        return self.order

    @property
    def remembers_inputs(self) -> bool:
        return self.rho is not None  # p of `MappedState`

    def init(self, system: System, q: Array, v: Array, t: Array, h: Array) -> VelocityState:
        state = super().init(system, q, v, t, h)
        if self.rho is None:
            return inner_nodes.begun(system, state, h)
        return mapped_init(self.rho, system, state, h)

    def update(self, system: System, state: OwnState, x: Unknown, h: Array) -> VelocityState:
        if self.rho is not None:
            return mapped_update(self.rho, system, state, x, h)
        return inner_nodes.shown(system, super().update(system, state, x, h))

    def node(self, q: Array, v: Array, h: Array) -> Array:
        """The original node q_k ahead of the redefined one."""
        return q + self.map.inverse(q, v, h)[0]
