"""What the methods from a discrete Lagrange-d'Alembert principle share: unknowns, guess and state.

The unknowns of a step are the velocity increment d = v_{k+1} - v_k and the multipliers lam, which
are forces: D1 L_d + D2 L_d + h mu^T lam = 0.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp
from jax import Array

from noslip.engine.translate import depends_on
from noslip.geometry.finite_difference_map import FiniteDifferenceMap, RhoBeta
from noslip.integrators.base import Integrator, Observation, Sum, require_interval
from noslip.numerics.pytrees import pytree

if TYPE_CHECKING:
    from noslip.system import System


@pytree
class VelocityState:
    """A state on the constraint: position, velocity, and the multipliers of the step that led here."""

    t: Sum
    q: Sum
    v: Sum
    lam: Array
    lam_t: Array


@pytree
class Unknown:
    """Increment of the velocity and multipliers; as a residual: momentum balance and constraint."""

    d: Array
    lam: Array


@pytree
class TwoPointState:
    """The last node, the momentum that arrives there, and the last difference quotient."""

    t: Sum
    q: Sum
    p: Array
    v: Array
    lam: Array
    lam_t: Array
    weight: Array


class LagrangeDAlembert(Integrator):
    """Common parts; a method adds `residual`, `drift` and the date of its multipliers."""

    def drift(self, v: Array, v1: Array, h: Array) -> Array:
        """Displacement of the node over a step with velocities v before and v1 after."""
        raise NotImplementedError(f"{type(self).__name__} must define drift")

    def multiplier_delay(self, h: Array) -> Array:
        """How long before the new node the multiplier acts."""
        raise NotImplementedError(f"{type(self).__name__} must define multiplier_delay")

    def init(self, system: System, q: Array, v: Array, t: Array, h: Array) -> VelocityState:
        return VelocityState(Sum.start(t), Sum.start(q), Sum.start(v), system.multipliers(q, v, t), t)

    def guess(self, system: System, state: VelocityState, h: Array) -> Unknown:
        q, v, t = state.q.value, state.v.value, state.t.value
        return Unknown(h * system.acceleration(q, v, t), system.multipliers(q, v, t))

    def scale(self, system: System, state: VelocityState, guess: Unknown, h: Array) -> Unknown:
        return kinetic_scale(system, state.q.value, state.v.value, guess.d, h)

    def update(self, system: System, state: VelocityState, x: Unknown, h: Array) -> VelocityState:
        v, t = state.v.plus(x.d), state.t.plus(h)
        q = state.q.plus(self.drift(state.v.value, v.value, h))
        return VelocityState(t, q, v, x.lam, t.value - self.multiplier_delay(h))

    def observe(self, state: VelocityState) -> Observation:
        return Observation(state.t.value, state.q.value, state.v.value, state.lam, state.lam_t)


def kinetic_scale(system: System, q: Array, v: Array, d: Array, h: Array) -> Unknown:
    """Sizes of velocity and multipliers in the kinetic metric, so that no choice of units matters:
    with K = v.Mv + d.Md, a velocity component can be sqrt(K / M_ii), an impulse sqrt(K / C_aa)."""
    M, mu = system.mass_matrix(q), system.mu(q, v)
    diagonal = jnp.diagonal(M)
    kinetic = v @ M @ v + d @ M @ d
    stiffness = jnp.sum(mu**2 / diagonal, axis=1)  # the diagonal of C, for a diagonal M
    return Unknown(jnp.sqrt(kinetic / diagonal), jnp.sqrt(kinetic / stiffness) / jnp.abs(h))


# ---- any finite-difference map: JS definition 5.6, F~ = rho o F o rho^-1 -------------------------------
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
    reaction = system.mu(qk, (w + w1) / 2).T @ x.lam
    return Unknown(minus_d1 - state.p - h * reaction, system.phi(*rho.node(qk, w1, h)))


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

    def applies_to(self, system: System) -> str | None:
        return self.map.refusal(system)

    def options(self) -> dict[str, Any]:
        return {
            name: value for name, value in super().options().items() if name != "rho" or value is not None
        }


def forces_ignore_velocity(system: System) -> bool:
    """Whether dL/dq and the force do not contain v, so that the mass matrix is constant and without
    gyroscopic terms; False where the program of the system does not show it."""
    q, t = jax.ShapeDtypeStruct((system.n,), float), jax.ShapeDtypeStruct((), float)
    p = jax.tree.map(lambda x: jax.ShapeDtypeStruct(jnp.shape(x), float), dict(system.parameters))
    if depends_on(jax.grad(system.lagrangian, 0), 1, q, q, p):
        return False
    return system.force is None or not depends_on(system.force, 1, q, q, t, p)


def mean(values: list[Array]) -> Array:
    """Of the maps that a method averages over."""
    return sum(values[1:], values[0]) / len(values)
