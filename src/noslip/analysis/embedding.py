"""A discrete flow as the time-eps map of a rapidly forced motion: JS proposition 4.1, remark 4.5.

In D-adapted coordinates z = (q, v_a) let f be the vector field of the motion, F its flow and Phi one step of
length eps of an integrator of order p. With the cut-offs chi_0, chi_1, for 0 <= tau <= 1,

    G(tau, y) = chi_0(tau) F(eps tau, y) + chi_1(tau) F(eps tau - eps, Phi(y))          (41)
    G(tau + k, y) = G(tau, Phi^k(y)),      k = ..., -1, 0, 1, ...                       (40)
    y(tau, z):    z = G(tau, y)                                                         (43)
    g(tau, z) = eps^-p (-f(z) + (1/eps) dG/dtau (tau, y(tau, z)))                       (42)
    dz/dt = f(z) + eps^p g(t/eps, z)                                                    (38), (45)

and g has period 1 in tau, stays bounded as eps -> 0, and the last equation takes z to Phi(z) in time eps,
JS corollary 4.1. JS write the case tau >= 0; for tau < 0 the same formula has the inverse of Phi, which is
y(1, .), and then (44), Phi(y(tau + 1, z)) = y(tau, z), holds for all tau.
With F0 = F(eps tau, y) and F1 = F(eps tau - eps, Phi(y)), which differ by O(eps^{p+1}),

    eps^p g = -chi_0'(tau) (F1 - F0) / eps + chi_0 (f(F0) - f(z)) + chi_1 (f(F1) - f(z)),

which is how it is computed here. On the states x = (q, v) = psi(z) the same motion is JS (50), and with
multipliers it is the perturbed DAE (51); its right-hand side (54) and multipliers (53) are given for any
perturbation, tangent to D or not. JS (55), which drops part of (54), does not hold: see the errata page.

The system must be autonomous. A method that keeps D is embedded there, with z = (q, v_a). Others are embedded
where their steps are maps, see `noslip.analysis.phase_space`:

    two-point methods on D_eps, JS remark 6.1: f is (94), the multipliers belong to the deformed constraint.
        Unless symmetrized, the redefined nodes, JS (90), carry them to D, as `VelocityNonholonomic`.
    methods that keep no constraint on TQ: (51a) with lam(q, v), where the perturbation moves phi too.
    the reflection of LMS section 5 on D x R^m, where Phi is J o (step), and J ends each period:
        G(tau + k, y) = J^k G(tau, (step)^k y),      g(tau + k, z) = J^k g(tau, J^k z),
        so that g has period 2 in tau, and (g_q, g_v) at s = 0 has period 1.

With rotations z has three small turns about the state `near` in the place of each quaternion, `local_chart`.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, Self

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax
from numpy.typing import ArrayLike

from noslip.analysis.deformed import kept_system
from noslip.analysis.local_chart import LocalChart
from noslip.analysis.phase_space import DeformedManifold, InTurns, PhaseSpace, TangentBundle, phase_space
from noslip.engine.kept import jitted
from noslip.engine.translate import depends_on
from noslip.geometry.connection import AdaptedCoordinates, adapted_coordinates
from noslip.geometry.discrete_lagrangian import with_jacobian
from noslip.geometry.interpolation import chi_0, chi_1
from noslip.integrators.base import Integrator, OwnState
from noslip.integrators.solve import Status
from noslip.numerics.collocation import gauss_collocation
from noslip.numerics.linear import spd_solve
from noslip.numerics.tracing import Real, Values, is_traced
from noslip.system import System

STAGES = 8  # of Gauss collocation: order 16
Rates = tuple[Array, Array, Array]  # dq/dt, dv/dt and the multipliers
LIMIT = 60  # iterations
_Loop = tuple[Array, Array, Array, Array, Array]


@jax.tree_util.register_pytree_node_class
class Embedding:
    """The perturbation of a system's motion whose time-eps map is one step of an integrator.

    `near=(q, v)` is a state of the region of interest; it may be left out where the constraints are linear
    and the system, without rotations, names its fibre. `order` is p; by default what the integrator claims.
    `motion` is the system whose motion is perturbed: the given one, with rotations that of the `chart`, or
    that of JS remark 6.1 for a two-point method.
    """

    system: System
    motion: System
    integrator: Integrator
    step_size: Any
    order: int
    adapted: AdaptedCoordinates
    near: Array
    chart: LocalChart | None

    def __init__(
        self,
        system: System,
        integrator: Integrator,
        *,
        step_size: float,
        order: int | None = None,
        near: tuple[ArrayLike, ArrayLike] | None = None,
    ) -> None:
        if not step_size > 0:
            raise ValueError(f"`step_size` must be positive, but {step_size!r} was provided")
        if reason := _refusal(system, integrator):
            raise ValueError(f"{type(integrator).__name__} cannot be embedded on this system: {reason}")
        if near is None and (system.fibre is None or system.kind == "nonlinear" or system.rotations):
            raise ValueError(
                "`near` must be a state (q, v) where the fibre is to be chosen, but none was given"
            )
        q, v = (jnp.zeros(system.n), jnp.zeros(system.n)) if near is None else map(jnp.asarray, near)
        self.system, self.integrator = system, integrator
        self.motion = kept_system(system, integrator, step_size) if self._two_point else system
        self.chart, here = None, (q, v)
        if system.rotations:
            self.chart = LocalChart.about(system, q)
            self.motion = self.chart.system(system)
            here = self.chart.coordinates(q), self.chart.velocity(q, v)
        self.step_size, self.near = jnp.asarray(step_size, dtype=float), here[1]
        self.order = integrator.order if order is None else order
        self.adapted = adapted_coordinates(self.motion, *here)
        if near is not None:
            self._require_a_map(q, v)

    def tree_flatten(self) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
        children = (self.system, self.motion, self.step_size, self.near)
        return children, (self.integrator, self.order, self.adapted.fibre, self.chart)

    @classmethod
    def tree_unflatten(cls, static: tuple[Any, ...], children: tuple[Any, ...]) -> Self:
        self = object.__new__(cls)
        self.system, self.motion, self.step_size, self.near = children
        self.integrator, self.order, fibre, self.chart = static
        self.adapted = AdaptedCoordinates(self.motion, fibre)
        return self

    @property
    def space(self) -> PhaseSpace:
        """Where the step is a map."""
        parts = (self.integrator, self.system, self.step_size, self.adapted, self.near)
        if self.chart is not None:
            return InTurns(*parts, self.chart)
        return phase_space(self.integrator)(*parts)

    @property
    def _two_point(self) -> bool:
        return phase_space(self.integrator) is DeformedManifold

    @property
    def period(self) -> int:
        """Of g in tau: 1, or 2 for a method whose memory changes sign with every step."""
        return 2 if np.any(self.space.turn < 0) else 1

    # ---- coordinates ------------------------------------------------------------------------------
    def coordinates(self, q: ArrayLike, v: ArrayLike, memory: OwnState = None) -> Array:
        """z of a state, JS (29); `memory` is s of the reflection, where a run has 0 to begin with."""
        s = np.zeros(self.system.m) if memory is None else memory
        return self.space.coordinates(*(jnp.asarray(x, dtype=float) for x in (q, v, s)))

    def state(self, z: ArrayLike) -> tuple[Array, Array]:
        """(q, v) = psi(z), JS (27)."""
        return self.space.state(jnp.asarray(z, dtype=float))

    def start(self, q: ArrayLike, v: ArrayLike) -> Array:
        """The z whose step is the first step of a run from the state (q, v) of D.

        Two-point methods start a run with half a reaction, which is not a step of theirs, but has the result
        of one from this point of D_eps; for all others it is the point (q, v).
        """
        q, v = jnp.asarray(q, dtype=float), jnp.asarray(v, dtype=float)
        if not self._two_point:
            return self.coordinates(q, v)
        return self.initial_value(1.0, _finite(_first_step(self, q, v)[1]))

    # ---- the two flows ----------------------------------------------------------------------------
    def discrete_flow(self, z: ArrayLike) -> Array:
        """One step of the integrator: Phi(z), JS (35), or J Phi(z) with the J of the phase space."""
        return _finite(_discrete_flow(self, jnp.asarray(z, dtype=float)))

    def exact_flow(self, t: Real, z: ArrayLike) -> Array:
        """F(t, z): the motion, forwards or backwards, for |t| up to about step_size, JS (36)."""
        return _finite(_exact_flow(self, jnp.asarray(t, dtype=float), jnp.asarray(z, dtype=float)))

    def unperturbed(self, z: ArrayLike) -> Array:
        """f(z), the vector field of the motion, JS (46)."""
        return _field(self, jnp.asarray(z, dtype=float))

    # ---- the embedding ----------------------------------------------------------------------------
    def G(self, tau: ArrayLike, y: ArrayLike) -> Array:
        """The evolution map from time 0 to time eps tau, forwards or backwards, JS (40)-(41)."""
        tau, y = jnp.asarray(tau, dtype=float), jnp.asarray(y, dtype=float)
        forwards = not is_traced(tau, y) and float(tau) >= 0
        return _finite(_evolution(self, tau, y, forwards=forwards))

    def initial_value(self, tau: ArrayLike, z: ArrayLike) -> Array:
        """y(tau, z): where the motion that passes z at time eps tau is at time 0, JS (43)."""
        return _finite(
            _initial_value_at_any(self, jnp.asarray(tau, dtype=float), jnp.asarray(z, dtype=float))
        )

    def g(self, tau: ArrayLike, z: ArrayLike) -> Array:
        """The perturbation g(eps, tau, z), periodic in tau, JS (42)."""
        scaled = _scaled_perturbation(self, jnp.asarray(tau, dtype=float), jnp.asarray(z, dtype=float))
        return _finite(scaled) / self.step_size**self.order

    def vector_field(self, t: Real, z: ArrayLike) -> Array:
        """f(z) + eps^p g(t/eps, z), JS (45)."""
        return _finite(_vector_field(self, jnp.asarray(t, dtype=float), jnp.asarray(z, dtype=float)))

    # ---- on the states, and as a DAE --------------------------------------------------------------
    def perturbation_of_states(
        self, tau: Real, q: ArrayLike, v: ArrayLike, memory: OwnState = None
    ) -> tuple[Array, Array]:
        """(g~_q, g~_v) = (dpsi/dz) g at a state of D, JS (49)."""
        z = self.coordinates(q, v, memory)
        tilde_q, tilde_v = jax.jvp(self.state, (z,), (self.g(tau, z),))[1]
        return tilde_q, tilde_v

    def dae_right_hand_side(self, t: Real, q: Values, v: Values, memory: OwnState = None) -> Rates:
        """dq/dt, dv/dt and the multipliers of the perturbed DAE at a state of D, JS (54) and (53)."""
        scale = self.step_size**self.order
        g_q, g_v = (scale * g for g in self.perturbation_of_states(t / self.step_size, q, v, memory))
        if isinstance(self.space, TangentBundle):  # phi is not kept, so no multiplier answers g
            return v + g_q, self.system.acceleration(q, v) + g_v, self.system.multipliers(q, v)
        return perturbed_dae(self.motion if self.chart is None else self.system, q, v, g_q, g_v)

    def _require_a_map(self, q: Array, v: Array) -> None:
        """The second step of a run must be a step from the z that the first one reaches."""
        difference = float(_memory(self, q, v))
        if not difference <= 1e-9 * (1 + float(jnp.max(jnp.abs(v)))):
            raise ValueError(
                f"{type(self.integrator).__name__} cannot be embedded on this system: its steps depend "
                f"on more than their {self.space.turn.size} coordinates, by {difference:.1e}"
            )


def perturbed_dae(system: System, q: ArrayLike, v: ArrayLike, r_q: ArrayLike, r_v: ArrayLike) -> Rates:
    """The motion under any perturbation (r_q, r_v) of dq/dt and dv/dt, JS (51), at a state of D:
    dq/dt, dv/dt of (54), and the multipliers (53) that keep it tangent to D."""
    q, v, r_q, r_v = (jnp.asarray(x, dtype=float) for x in (q, v, r_q, r_v))
    mu = system.mu(q, v)
    lift = spd_solve(system.mass_matrix(q), mu.T)
    leaving = jax.jvp(lambda x: system.phi(x, v), (q,), (r_q,))[1] + mu @ r_v
    extra = -spd_solve(mu @ lift, leaving)
    lam = system.multipliers(q, v)
    return v + r_q, system.acceleration(q, v) + r_v + lift @ extra, lam + extra[: len(lam)]


def _refusal(system: System, integrator: Integrator) -> str | None:
    if reason := integrator.refusal(system):
        return reason
    if system.k:
        return "it has holonomic constraints, so that its steps are a map of a surface without coordinates"
    if system.rotations and phase_space(integrator) is not PhaseSpace:
        return "it has rotations, and steps of this method are no map of the constraint manifold"
    if integrator.own_time:
        return "its steps have a time of their own, so they are not the motion after step_size"
    if system.force is not None:
        q, t = jax.ShapeDtypeStruct((system.n,), float), jax.ShapeDtypeStruct((), float)
        p = jax.tree.map(lambda x: jax.ShapeDtypeStruct(jnp.shape(x), float), dict(system.parameters))
        if depends_on(system.force, 2, q, q, t, p):
            return "its force depends on time"
    return None


def _finite(z: Array) -> Array:
    if not isinstance(z, jax.core.Tracer) and not np.all(np.isfinite(z)):
        raise ValueError("the step, or y(tau, z) of JS (43), has no solution here; try a smaller step_size")
    return z


@jitted
def _field(e: Embedding, z: Array) -> Array:
    return e.space.field(z)


def _until_settled(again: Callable[[Array], Array], start: Array, more: int) -> Array:
    """Iterate until the increments no longer shrink, and `more` times for the sake of derivatives, which
    follow behind; NaN where the increments stay above round-off."""

    def shrinks(loop: _Loop) -> Array:
        count, _, _, size, before = loop
        return (count < LIMIT) & (size > 0) & (size < before)

    def iterate(loop: _Loop) -> _Loop:
        count, left, x, size, before = loop
        new, searching = again(x), shrinks(loop)
        sizes = jnp.where(searching, jnp.max(jnp.abs(new - x)), size), jnp.where(searching, size, before)
        return count + 1, jnp.where(searching, left, left - 1), new, *sizes

    # one loop for both kinds of iteration, or `again`, which is large, would be compiled twice
    begin = (jnp.array(0), jnp.array(more), start, jnp.array(1e300), jnp.array(jnp.inf))
    _, _, x, size, _ = lax.while_loop(lambda loop: shrinks(loop) | (loop[1] > 0), iterate, begin)
    return jnp.where(size <= 1e-11 * (1 + jnp.max(jnp.abs(x))), x, jnp.nan)


@jitted
def _exact_flow(e: Embedding, t: Array, z: Array) -> Array:
    """One step of Gauss collocation, whose stages are a fixed point that short times reach quickly."""
    gauss = gauss_collocation(STAGES, STAGES)

    def again(slopes: Array) -> Array:
        return jax.vmap(lambda x: _field(e, x))(z + t * gauss.A @ slopes)

    return z + t * gauss.b @ _until_settled(again, jnp.tile(_field(e, z), (STAGES, 1)), more=4)


@jitted
def _discrete_flow(e: Embedding, z: Array) -> Array:
    if e.integrator.exact:
        return _exact_flow(e, e.step_size, z)
    return _step(e, e.space.begin(z))[1]


def _step(e: Embedding, state: OwnState) -> tuple[OwnState, Array]:
    state, record = e.integrator.advance(e.system, state, e.step_size)
    return state, jnp.where(record.status == Status.SOLVED, e.space.end(state), jnp.nan)


@jitted
def _first_step(e: Embedding, q: Array, v: Array) -> tuple[OwnState, Array]:
    return _step(e, e.integrator.init(e.system, q, v, jnp.zeros(()), e.step_size))


@jitted
def _memory(e: Embedding, q: Array, v: Array) -> Array:
    """By how much the second step of a run differs from one that starts where the first ends."""
    if e.integrator.exact:
        return jnp.zeros(())
    state, z = _first_step(e, q, v)
    both = jax.tree.map(lambda *x: jnp.stack(x), state, e.space.begin(z))
    seen = lax.map(lambda state: _step(e, state)[1], both)
    return jnp.max(jnp.abs(seen[1] - seen[0]))


@jitted
def _ends(e: Embedding, tau: Array, y: Array) -> tuple[Array, Array]:
    """F0 and F1, the motions from y and to Phi(y), at time eps tau."""
    eps, Phi = e.step_size, e.space.turn * _discrete_flow(e, y)
    return _exact_flow(e, eps * tau, y), _exact_flow(e, eps * tau - eps, Phi)


@functools.partial(jitted, static=("forwards",))
def _evolution(e: Embedding, tau: Array, y: Array, forwards: bool) -> Array:
    whole = jnp.floor(tau)
    y = _iterate(e, whole, y, forwards)
    F0, F1 = _ends(e, tau - whole, y)
    return _turned(e, whole, F0 + chi_1(tau - whole) * (F1 - F0))


def _iterate(e: Embedding, k: Array, y: Array, forwards: bool = False) -> Array:
    """Phi^k(y) for k of either sign; the way back is large, and left out where k is known to have none."""

    def steps(step: Callable[[Embedding, Array], Array]) -> Callable[[Array], Array]:
        return lambda y: lax.fori_loop(0, jnp.abs(k).astype(int), lambda _, y: step(e, y), y)

    ahead = steps(_discrete_flow)
    return ahead(y) if forwards else lax.cond(k >= 0, ahead, steps(_discrete_flow_back), y)


def _discrete_flow_back(e: Embedding, z: Array) -> Array:
    """The y with Phi(y) = z."""
    return _initial_value(e, jnp.ones(()), e.space.turn * z)


@jitted
def _initial_value_at_any(e: Embedding, tau: Array, z: Array) -> Array:
    whole = jnp.ceil(tau) - 1  # so that 0 < tau - whole <= 1, and y(1, z) is Newton's
    whole = jnp.where(tau == 0, 0.0, whole)
    return _iterate(e, -whole, _initial_value(e, tau - whole, _turned(e, whole, z)))


def _turned(e: Embedding, whole: Array, z: Array) -> Array:
    """J^whole z."""
    return jnp.where(whole % 2 == 1, e.space.turn, 1.0) * z


@jitted
def _initial_value(e: Embedding, tau: Array, z: Array) -> Array:
    """Newton's method from F(-eps tau, z). Both that start and the inverse Jacobian, taken as that of
    F(eps tau, .), are wrong by the local error of the method only, so each iteration gains its order."""
    inverse, start = with_jacobian(lambda z: _exact_flow(e, -e.step_size * tau, z), z)

    def again(y: Array) -> Array:
        F0, F1 = _ends(e, tau, y)
        return y - inverse @ (F0 + chi_1(tau) * (F1 - F0) - z)

    return _until_settled(again, start, more=1)


@jitted
def _scaled_perturbation(e: Embedding, tau: Array, z: Array) -> Array:
    """eps^p g(tau, z)."""
    if e.integrator.exact:
        return jnp.zeros_like(z)
    whole = jnp.floor(tau)
    tau, z = tau - whole, _turned(e, whole, z)
    F0, F1 = _ends(e, tau, _initial_value(e, tau, z))
    f, slope = _field(e, z), jax.grad(chi_0)(tau)
    mixed = chi_0(tau) * (_field(e, F0) - f) + chi_1(tau) * (_field(e, F1) - f)
    return _turned(e, whole, mixed - slope * (F1 - F0) / e.step_size)


@jitted
def _vector_field(e: Embedding, t: Array, z: Array) -> Array:
    return _field(e, z) + _scaled_perturbation(e, t / e.step_size, z)
