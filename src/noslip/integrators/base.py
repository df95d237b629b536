"""The contract of an integrator: all that a method needs, whoever writes it, and every hook it may have.

An implicit method is its residual: `init`, `guess`, `scale`, `residual`, `update`, `observe`; the solve, the
loop, saving and compiling are elsewhere. A method of the form x = F(x) gives `fixed_point` instead of the
residual and is iterated, an explicit one gives `step` instead of the middle four.
States are frozen pytrees whose only absolute position is `q` (a `Sum`), so that the time loop can
wrap declared angles in any of them; all else is increments, velocities and momenta.

Beyond these a method may answer questions that others ask about it. They are the remaining methods of
`Integrator`; each has an answer that is right for a plain method, and says who asks.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from dataclasses import fields
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Protocol, Self, TypeAlias

import jax
import jax.numpy as jnp
from jax import Array

from noslip.errors import shown
from noslip.integrators._fields import check_first, refuse_other_kinds
from noslip.integrators.solve import Solve, explicit_step, iterate, solve
from noslip.numerics.pytrees import PyTree, pytree, replaced
from noslip.numerics.sums import Sum

if TYPE_CHECKING:
    import numpy as np

    from noslip.geometry.groups import Group
    from noslip.system import System

__all__ = [
    "VOCABULARY",
    "CanonicalChart",
    "Integrator",
    "Observation",
    "Solve",
    "State",
    "Sum",
    "inside",
    "kinetic_sizes",
    "pytree",
    "replaced",
    "require_interval",
    "require_one_of",
    "round_off",
]

ROUNDINGS = 16 * 2.0**-52
INWARD = 16 * 2.0**-52  # of a time, from an end of a step: more than its own round-off
VOCABULARY: Mapping[str, str] = {
    "constraint": "phi(q, v) = 0 at every saved state, to round-off",
    "deformed_constraint": "phi at the method's own inner node, JS (88), to round-off",
    "holonomic": "g(q) = 0 at every saved state, to round-off; a method without it refuses such systems",
    "energy": "the energy where the motion conserves it, to round-off",
    "first_integrals": "every declared first integral, to round-off",
    "reversible": "self-adjoint: a step of -h undoes a step of h, on the whole state of the method",
    "symplectic_reduced": "the symplectic form of the reduced phase space",
    "momentum_equation": "the discrete nonholonomic momentum equation of the method's own L_d",
    "momentum_map": "the discrete momentum map FBO (12) of symmetries that are left after reduction",
}


class Observation(NamedTuple):
    """What a state shows to the outside; `multipliers` None where the method has none of its own."""

    t: Array
    q: Array
    v: Array
    multipliers: Array | None
    multiplier_t: Array


class State(Protocol):
    """Any frozen pytree with these; the next step may need more."""

    @property
    def t(self) -> Sum: ...
    @property
    def q(self) -> Sum: ...


OwnState: TypeAlias = Any  # a `State` of the method's own: a method names its class instead


class CanonicalChart(Protocol):
    """How to read, and to change, the point (r, P) of T*M that a state carries."""

    def point(self, system: System, state: OwnState) -> tuple[Array, Array]:
        """(r, P) of the state."""

    def moved(self, system: System, state: OwnState, r: Array, P: Array) -> OwnState:
        """The state at (r, P), with what it knows of its start unchanged."""


class Integrator:
    """Base of all methods. Subclasses are frozen dataclasses: equal fields mean equal methods."""

    def __init_subclass__(cls) -> None:
        if "__post_init__" in vars(cls):
            cls.__post_init__ = check_first(cls.__post_init__)  # type: ignore[method-assign]

    def __post_init__(self) -> None:
        refuse_other_kinds(self)

    # ---- what a method claims -----------------------------------------------------------------------
    @property
    def order(self) -> int:
        """Order p of the global error in (q, v); the claims test measures it."""
        raise NotImplementedError(f"{type(self).__name__} must define order")

    @property
    def multiplier_order(self) -> int | None:
        """Order of the error of the method's own multipliers at the times by which it dates them, the largest
        of a run; 0 if they do not converge. The claims test measures it. None where `observe` gives none:
        then they are lam(q, v)."""
        return None

    @property
    def preserves(self) -> frozenset[str]:
        """Words of VOCABULARY: each is a promise that the claims test holds, each absent one seen broken."""
        return frozenset()

    reference: ClassVar[str] = ""
    """Paper and equation numbers; here keys of `noslip.references`, separated by semicolons."""

    exact: ClassVar[bool] = False
    """True for a flow, which is as good whatever the step; its order is not measured."""

    @classmethod
    def variants(cls) -> tuple[Self, ...]:
        """The parameter choices that the claims test runs."""
        return (cls(),)

    def applies_to(self, system: System) -> str | None:
        """None, or one sentence that says why this method cannot run on this system."""
        return None

    def leaves_positions(self, system: System) -> str | None:
        """The same for holonomic constraints, which a method keeps just if it promises to, and for rotations,
        of which tangent rates are shown: a method with others would not show what it keeps."""
        if system.rotations and not self.preserves & {"constraint", "holonomic"}:
            return (
                "it has rotations, and rates that this method does not keep tangent to quaternions of length "
                "1; those of methods that promise 'constraint' are"
            )
        if not system.k or "holonomic" in self.preserves:
            return None
        return (
            "it has holonomic constraints g(q) = 0, which the positions of this method would leave; those of "
            "methods that promise 'holonomic', such as DiscreteGradient() and SemiImplicitDLA(), stay there"
        )

    def refusal(self, system: System) -> str | None:
        """Why this method cannot run on this system, if it cannot; what others ask."""
        return self.leaves_positions(system) or self.applies_to(system)

    def applies_around(self, system: System, q: np.ndarray, v: np.ndarray) -> str | None:
        """The same for a run that starts at (q, v). A method whose conditions depend on values looks at them
        there; a run asks nothing else, and a second one from nearby does not ask again."""
        return self.applies_to(system)

    def options(self) -> dict[str, object]:
        """The fields by name, for tables and saved files."""
        return {f.name: getattr(self, f.name) for f in fields(self)}  # type: ignore[arg-type]

    # ---- one step -----------------------------------------------------------------------------------
    def init(self, system: System, q: Array, v: Array, t: Array, h: Array) -> OwnState:
        """The state from which the first step starts."""
        raise NotImplementedError(f"{type(self).__name__} must define init")

    def guess(self, system: System, state: OwnState, h: Array) -> PyTree:
        """The unknowns of the step, a pytree of arrays, as well as they are known beforehand."""
        raise NotImplementedError(f"{type(self).__name__} must define guess, or step")

    def scale(self, system: System, state: OwnState, guess: PyTree, h: Array) -> PyTree:
        """Sizes of the unknowns, against which the solve judges their last increments."""
        raise NotImplementedError(f"{type(self).__name__} must define scale, or step")

    def grain(self, system: System, state: OwnState, guess: PyTree, h: Array) -> PyTree:
        """By how much round-off may move the unknowns, whatever is left of the motion: that of positions, and
        of forces that balance. Where increments no longer shrink, those within the grain are a solution.
        Methods without this hook are judged by `scale` alone."""
        raise NotImplementedError(f"{type(self).__name__} has no grain")

    def fixed_point(self, system: System, state: OwnState, x: PyTree, h: Array) -> PyTree:
        """F(x) of a method of the form x = F(x), contracting where the step is not too large."""
        raise NotImplementedError(f"{type(self).__name__} must define fixed_point, residual or step")

    def simplified_newton(
        self, system: System, state: OwnState, x: PyTree, h: Array
    ) -> Callable[[PyTree], PyTree]:
        """A map with the fixed point of `fixed_point`, made at x, that contracts near x also at large steps.
        It is used where `fixed_point` does not; a method without it leaves such steps to full Newton."""
        raise NotImplementedError(f"{type(self).__name__} has no simplified Newton iteration")

    def residual(self, system: System, state: OwnState, x: PyTree, h: Array) -> PyTree:
        """Zero at the solution; x - F(x) where the method gives a fixed point."""
        return jax.tree.map(jnp.subtract, x, self.fixed_point(system, state, x, h))

    def update(self, system: System, state: OwnState, x: PyTree, h: Array) -> OwnState:
        """The state after the step whose unknowns are x."""
        raise NotImplementedError(f"{type(self).__name__} must define update, or step")

    def observe(self, state: OwnState) -> Observation:
        """What is saved of a state."""
        raise NotImplementedError(f"{type(self).__name__} must define observe")

    def step(self, system: System, state: OwnState, h: Array) -> OwnState:
        """Explicit methods define this one."""
        return None

    def defines(self, hook: str) -> bool:
        """Whether the class has its own version of a hook that may be left out: `step`, `residual`, ..."""
        return getattr(type(self), hook) is not getattr(Integrator, hook)

    def is_explicit(self, system: System) -> bool:
        """Whether `step` is used; a method that is explicit on some systems only says on which."""
        return self.defines("step")

    def advance(self, system: System, state: OwnState, h: Array) -> tuple[OwnState, Solve]:
        """One step with the record of its solve. Used by the time loop; compositions override it, and methods
        for which a solved step may still have led out of their reach."""
        if self.is_explicit(system):
            state = self.step(system, state, h)
            return state, explicit_step(state)
        x, record = self.solved(system, state, self.guess(system, state, h), h)
        return self.update(system, state, x, h), record

    def solved(self, system: System, state: OwnState, guess: PyTree, h: Array) -> tuple[PyTree, Solve]:
        """The unknowns of the step, found from `guess`, with the record of the solve."""
        scale = self.scale(system, state, guess, h)
        grain = partial(self.grain, system, state, guess, h) if self.defines("grain") else None
        if not self.defines("fixed_point"):
            return solve(lambda x: self.residual(system, state, x, h), guess, scale, grain)
        own = self.defines("simplified_newton")
        return iterate(
            lambda x: self.fixed_point(system, state, x, h),
            guess,
            scale,
            (lambda x: self.simplified_newton(system, state, x, h)) if own else None,
            grain,
        )

    # ---- asked by what runs it ----------------------------------------------------------------------
    host_driven: ClassVar[bool] = False
    """True for the motion itself, which an adaptive flow on the host computes in the place of `step`. The
    runner asks: such a method can be neither traced nor composed, and runs one trajectory at a time."""

    @property
    def flow_tolerance(self) -> float:
        """The error of a step of that flow, relative to the state."""
        return sys.float_info.epsilon

    @property
    def own_time(self) -> bool:
        """Whether time is computed in the step instead of being t0 + k h."""
        return False

    @property
    def remembers_start(self) -> bool:
        """Whether the state carries constants of the initial state, such as its energy, so that a run can be
        continued from the whole state only, not from its (q, v)."""
        return False

    @property
    def remembers_inputs(self) -> bool:
        """Whether the state carries forces of the last step into the next: `switched` is then asked at every
        change of inputs, even of those of a force."""
        return self.remembers_reaction

    def switched(self, before: System, system: System, state: OwnState, h: Array) -> OwnState:
        """The state where inputs switch from those of `before` to those of `system`: begun anew where it was
        seen, with its velocity on the constraint as it is now. Asked where the Lagrangian or the constraints
        contain the inputs, and of methods that remember them."""
        seen = self.observe(state)
        steered = system.inputs_within(system.inputs)[1]
        v = system.project_velocity(seen.q, seen.v, seen.t) if steered else seen.v
        fresh = self.init(system, seen.q, v, state.t.value, h)
        return replaced(fresh, t=state.t, q=Sum(fresh.q.value, state.q.low))

    def failure_detail(self, system: System, run: Any) -> str:
        """What a failed run's message says beyond the status, with its own punctuation."""
        return ""

    # ---- asked by compositions, whose steps have different lengths ----------------------------------
    def for_step(self, system: System, state: OwnState, h: Array) -> OwnState:
        """The state as the start of a step of another length. A state may depend on the length, so one with
        no memory, of its start, of the reaction or of earlier steps, is begun anew where it was seen."""
        if self.remembers_start or self.remembers_reaction or self.history(state) is not None:
            return state
        seen = self.observe(state)
        fresh = self.init(system, seen.q, seen.v, state.t.value, h)
        return replaced(fresh, t=state.t, q=Sum(fresh.q.value, state.q.low))

    def history(self, state: OwnState) -> PyTree:
        """What the state holds of earlier steps only in order to guess the next, a pytree; None for nothing.
        A composition keeps one for each of its steps, since those at the same place are alike."""
        return None

    def with_history(self, state: OwnState, history: PyTree) -> OwnState:
        """The state with another history."""
        return state

    # ---- asked by those who judge it ----------------------------------------------------------------
    def discrete_lagrangian(self, system: System, q: Array, q1: Array, h: Array) -> Array:
        """L_d(q, q1) of the nodes of the method, whose momenta the discrete momentum equation is about. A
        method that is not made from one leaves it out, and cannot promise that equation."""
        raise NotImplementedError(f"{type(self).__name__} is not made from a discrete Lagrangian")

    def node(self, q: Array, v: Array, h: Array) -> Array:
        """The node of L_d that belongs to a saved (q, v); the same q, unless the method saves others."""
        return q

    def deformed_constraint(self, system: System, q: Array, v: Array, h: Array) -> Array:
        """What a method with the promise `deformed_constraint` keeps at zero instead of phi, JS (88), for a
        state (q, v) at the time of the system."""
        return system.phi(q - h / 2 * v, v, system.time - h / 2)

    def in_mid_run(self, system: System, q: Array, v: Array, t: Array, h: Array) -> OwnState:
        """A state that observes (q, v) as if steps had gone before: what a step is a map of. Asked where the
        first step from `init` differs from all others; elsewhere it is the same."""
        return self.init(system, q, v, t, h)

    @property
    def remembers_reaction(self) -> bool:
        """Whether the next step depends on the multipliers of the last, which the state then has as `lam`, so
        that a step is a map of (q, v, lam) and not of (q, v) alone."""
        return False

    @property
    def symmetry(self) -> str | Group | None:
        """The group of `geometry.groups`, or its text, by which a method on the base M = Q/G of a Chaplygin
        system divides; None for one on Q. It is judged on such systems, while (r, g) are coordinates."""
        return None

    @property
    def uses_frame(self) -> bool:
        """Whether a frame that the system declares enters the step, so that a system without one may tell
        more about the method. The claims test asks."""
        return False

    @property
    def canonical(self) -> CanonicalChart | None:
        """The chart (r, P) of T*M, P = f dl_c/drdot, where states carry P, so that the symplectic form can be
        measured on them; None where a step is a map of (q, v) only."""
        return None


def kinetic_sizes(system: System, q: Array, v: Array, d: Array, h: Array) -> tuple[Array, Array]:
    """Sizes of velocities and multipliers in the kinetic metric, for `scale`, so that no choice of units
    matters: with K = v.Mv + d.Md, d the guessed increment of v, a velocity component can be sqrt(K / M_ii)
    and an impulse sqrt(K / C_aa), C = mu M^-1 mu^T."""
    M, mu = system.mass_matrix(q), system.mu(q, v)
    diagonal = jnp.diagonal(M)
    kinetic = v @ M @ v + d @ M @ d
    stiffness = jnp.sum(mu**2 / diagonal, axis=1)  # the diagonal of C, for a diagonal M
    return jnp.sqrt(kinetic / diagonal), jnp.sqrt(kinetic / stiffness) / jnp.abs(h)


def round_off(system: System, q: Array, v: Array, h: Array) -> tuple[Array, Array]:
    """By how much that may move velocities and multipliers in a step, for `grain`: some ROUNDINGS of q / h,
    of the impulses h f and of the part a of the momenta without v, in the kinetic metric as in
    `kinetic_sizes`, with the diagonal of M."""
    M, mu = system.mass_matrix(q), system.mu(q, v)
    diagonal = jnp.diagonal(M)
    impulses = h**2 * (system.dL_dq(q, v) ** 2 + system.applied_force(q, v) ** 2)
    squares = (impulses + system.momentum(q, jnp.zeros_like(q)) ** 2) / diagonal
    K = ROUNDINGS**2 * jnp.sum(squares + diagonal * (q / h) ** 2)
    return jnp.sqrt(K / diagonal), jnp.sqrt(K / jnp.sum(mu**2 / diagonal, axis=1)) / jnp.abs(h)


def inside(t: Array, h: Array, c: float | Array) -> Array:
    """The time t + c h of a step from t, at its ends by their round-off on its inner side: a force that
    switches at a node is then taken as it is within the step, and the order of the method stays."""
    return t + c * h + (0.5 - c) * INWARD * (jnp.abs(t) * jnp.sign(h) + h)


def require_interval(name: str, value: float, low: float, high: float) -> None:
    """Refuse a parameter outside its interval."""
    if not low <= value <= high:
        raise ValueError(f"`{name}` must be in [{low:g}, {high:g}], but {shown(value)} was provided")


def require_one_of(name: str, value: object, choices: tuple[object, ...]) -> None:
    """Refuse a parameter that is not among its choices."""
    if value not in choices:
        listed = ", ".join(repr(choice) for choice in choices)
        raise ValueError(f"`{name}` must be one of {listed}, but {shown(value)} was provided")
