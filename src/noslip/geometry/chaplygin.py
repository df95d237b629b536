"""Chaplygin systems: reduction by a group that the constraints are transversal to (FBO section 1).

Let a group of dimension m act on the m fibre coordinates s, such that L and the constraints are invariant and
T_qQ = vertical + D. With r the n - m other coordinates and xi = g^-1 gdot (see `groups`):

    xi = -A(r) rdot                                                            connection, (6)
    l(r, rdot, xi) = L at the identity,   l_c(r, rdot) = l(r, rdot, -A rdot)   (4)
    B^a_ab = d_b A^a_a - d_a A^a_b + C^a_bc A^b_a A^c_b                        curvature
    d/dt dl_c/drdot - dl_c/dr = F,   F_a = -(dl/dxi^a) B^a_ab rdot^b           (5)

The curvature is minus (7) as printed, which goes with (5) and with the paper's own example B_xy = -1.
Everything depends on r alone, so that l_c and F are a forced mechanical system of its own on M = Q/G.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, ParamSpec, TypeVar

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from numpy.typing import ArrayLike

from noslip.engine.backends.numpy_rows import evaluate_anyhow
from noslip.engine.kept import jitted
from noslip.geometry.groups import Group, Translations, broken_axiom, make
from noslip.numerics.linear import solve, spd_solve
from noslip.numerics.pytrees import PyTree
from noslip.numerics.tracing import is_traced
from noslip.system import System
from noslip.system.conditions import around
from noslip.system.inputs import STANDS_STILL

P = ParamSpec("P")
R = TypeVar("R")
SAMPLES = 8
TOLERANCE = 1e-9


def traced_once(method: Callable[P, R]) -> Callable[P, R]:
    """Let JAX trace a method once per system and group, however deep the derivatives that use it."""

    def of_parts(system: System, *args: ArrayLike, group: Group) -> PyTree:
        return method(Reduction(system, group), *args)  # type: ignore[call-arg, arg-type]

    compiled = jitted(of_parts, static=("group",))

    @functools.wraps(method)
    def call(self: Reduction, *args: ArrayLike) -> PyTree:
        return compiled(self.system, *args, group=self.group)

    return call  # type: ignore[return-value]


@dataclass(frozen=True)
class Reduction:
    """The reduced system on M; `r` and `w` are base coordinates and velocities."""

    system: System
    group: Group

    @property
    def fibre_index(self) -> np.ndarray:
        """Positions of the group coordinates."""
        return np.array([self.system.index(name) for name in self.group.fibre])

    @property
    def base_index(self) -> np.ndarray:
        """Positions of the base coordinates."""
        fibre = self.group.fibre
        return np.array([i for i, name in enumerate(self.system.coordinates) if name not in fibre])

    @property
    def base(self) -> tuple[str, ...]:
        """Names of the base coordinates."""
        return tuple(self.system.coordinates[i] for i in self.base_index)

    @property
    def base_angles(self) -> list[int]:
        """Which of the base coordinates are declared angles."""
        return [i for i, name in enumerate(self.base) if name in self.system.angles]

    def joined(self, base: Array, fibre: Array) -> Array:
        """A vector of n components from its base and fibre parts."""
        return jnp.zeros(self.system.n).at[self.base_index].set(base).at[self.fibre_index].set(fibre)

    def at(self, r: Array) -> Array:
        """The point above r with the identity as group element."""
        return self.joined(r, jnp.zeros(self.group.dimension))

    # ---- connection and curvature -----------------------------------------------------------------
    def one_forms(self, r: Array) -> Array:
        """mu at the identity, on (rdot, xi) in the places of the base and of the fibre."""
        q = self.at(r)
        return self.system.mu(q, jnp.zeros_like(q))

    @traced_once
    def connection(self, r: Array) -> Array:
        """A of shape (m, n - m)."""
        mu = self.one_forms(r)
        return solve(mu[:, self.fibre_index], mu[:, self.base_index])

    @traced_once
    def curvature(self, r: Array) -> Array:
        """B^a_ab at [a, alpha, beta], skew in the last two."""
        A = self.connection(r)
        slopes = jax.jacfwd(self.connection)(r)  # d_b A^a_alpha at [a, alpha, b]
        bracket = jnp.einsum("abc,bi,cj->aij", self.group.structure_constants, A, A)
        return slopes - jnp.swapaxes(slopes, 1, 2) + bracket

    # ---- the reduced constrained Lagrangian -------------------------------------------------------
    def lagrangian(self, r: Array, w: Array, xi: Array) -> Array:
        """l, with the group velocity left free."""
        return self.system.lagrangian(self.at(r), self.joined(w, xi), self.system.parameters)

    @traced_once
    def constrained_lagrangian(self, r: Array, w: Array) -> Array:
        """l_c of (4)."""
        return self.lagrangian(r, w, -self.connection(r) @ w)

    @traced_once
    def group_momentum(self, r: Array, w: Array) -> Array:
        """dl/dxi on the constraint."""
        return jax.grad(self.lagrangian, 2)(r, w, -self.connection(r) @ w)

    def group_inertia(self, r: Array) -> Array:
        """How dl/dxi depends on rdot, of shape (m, n - m)."""
        return jax.jacfwd(self.group_momentum, 1)(r, jnp.zeros_like(r))

    @traced_once
    def momentum(self, r: Array, w: Array) -> Array:
        """dl_c/drdot."""
        return jax.grad(self.constrained_lagrangian, 1)(r, w)

    @traced_once
    def metric(self, r: Array) -> Array:
        """G of (4)."""
        return jax.jacfwd(self.momentum, 1)(r, jnp.zeros_like(r))

    def velocity(self, r: Array, momentum: Array) -> Array:
        """rdot from dl_c/drdot."""
        return spd_solve(self.metric(r), momentum - self.momentum(r, jnp.zeros_like(r)))

    # ---- forces and motion ------------------------------------------------------------------------
    @traced_once
    def reaction(self, r: Array, w: Array) -> Array:
        """F of (5), which does no work."""
        return -jnp.einsum("a,aij,j->i", self.group_momentum(r, w), self.curvature(r), w)

    def force(self, r: Array, w: Array, t: Array) -> Array:
        """F and what an applied force does along the base."""
        if self.system.force is None:
            return self.reaction(r, w)
        q = self.at(r)
        applied = self.system.applied_force(q, self.lift(q, w), t)
        return self.reaction(r, w) + self.along(r, applied)

    def along(self, r: Array, covector: Array) -> Array:
        """The base part of a covector on D at the identity."""
        return covector[self.base_index] - covector[self.fibre_index] @ self.connection(r)

    def acceleration(self, r: Array, w: Array, t: Array | float = 0.0) -> Array:
        """d2r/dt2 from (5)."""
        slope = jax.grad(self.constrained_lagrangian, 0)(r, w)
        transport = jax.jvp(lambda x: self.momentum(x, w), (r,), (w,))[1]
        return spd_solve(self.metric(r), slope - transport + self.force(r, w, jnp.asarray(t)))

    # ---- back to Q --------------------------------------------------------------------------------
    def lift(self, q: Array, w: Array) -> Array:
        """The admissible velocity at q over rdot = w, (6)."""
        xi = -self.connection(q[self.base_index]) @ w
        return self.joined(w, self.group.body_fields(q[self.fibre_index]) @ xi)


def make_group(system: System, group: Group | str = "translations") -> Group:
    """The group, on the system's `fibre` or its last m coordinates where it names none."""
    return make(group, system.fibre or system.coordinates[-system.m :])


def reduction(
    system: System, group: Group | str = "translations", *, at: Sequence[float] | np.ndarray | None = None
) -> Reduction:
    """The reduction of a Chaplygin system; refused with the condition that fails at or around the point `at`,
    or without one at a few points of [-1, 1]^n."""
    group = make_group(system, group)
    if reason := refusal(system, group, at):
        raise ValueError(f"this is no Chaplygin system under {group.action}: {reason}")
    return Reduction(system, group)


# ---- the conditions of a Chaplygin system -------------------------------------------------------------
def refusal(
    system: System,
    group: Group,
    at: Sequence[float] | np.ndarray | None = None,
    *,
    must_be_seen: bool = True,
) -> str | None:
    """None, or one sentence: which condition of FBO section 1 fails, and where. Values are looked at only
    where the system's parameters are concrete; where none of them is finite that is a reason too, unless the
    caller looks again at a state."""
    if system.moving:
        return f"the base M = Q/G needs {STANDS_STILL}"
    if system.kind != "linear":
        return f"the constraints must be linear in the velocities, but they are {system.kind}"
    if system.k or system.rotations:
        return (
            "the base M = Q/G needs a system without holonomic constraints and rotations, but there are such"
        )
    if not system.m:
        return "the base M = Q/G needs constraints that determine the group velocity, but there are none"
    if group.dimension != system.m:
        return (
            f"the group must have as many directions as there are constraints, but it has "
            f"{group.dimension} and the system has {system.m}"
        )
    if reason := broken_axiom(group):
        return reason
    if unknown := [name for name in group.fibre if name not in system.coordinates]:
        return f"the group must act on coordinates among {system.coordinates}, but {unknown} was provided"
    return None if is_traced(system) else _broken_condition(system, group, at, must_be_seen)


def _broken_condition(system: System, group: Group, at: Any, must_be_seen: bool) -> str | None:
    rng = np.random.default_rng(0)
    q, v = rng.uniform(-1.0, 1.0, (2, SAMPLES, system.n))
    q = q if at is None else around(np.asarray(at, float), SAMPLES)
    g = rng.uniform(-1.0, 1.0, (SAMPLES, group.dimension))
    found = evaluate_anyhow(_defects, group, system, q, v, g)
    here = found["here"] != 0
    if not (here.any() if at is None else here[0]):
        return unseen("T_qQ must be vertical + D, but L or the constraints are", at) if must_be_seen else None
    texts = {
        "lagrangian": "the Lagrangian must be invariant, but it changes by {size:.1e} of its size",
        "constraint": "the constraints must be invariant, but their span turns by {size:.1e}",
        "force": "the force must be invariant, but it changes by {size:.1e} of its size",
    }
    for name, text in texts.items():
        # finite here and not finite where the group leads: no invariance
        sizes = np.where(here, np.where(np.isfinite(found[name]), found[name], np.inf), 0.0)
        worst = int(np.argmax(sizes))
        if sizes[worst] > TOLERANCE:
            where = f"when q = {rounded(q[worst])} is moved by {rounded(g[worst])}"
            return f"{text.format(size=sizes[worst])} {where}"
    smallest = np.array([np.linalg.svd(x, compute_uv=False)[-1] for x in found["vertical"][here]])
    if (np.median(smallest) if at is None else smallest[0]) <= TOLERANCE:
        where = f"at q = {rounded(q[here][int(np.argmin(smallest)) if at is None else 0])}"
        return f"T_qQ must be vertical + D, but the constraints do not determine the group velocity {where}"
    return None


def unseen(what: str, at: Any) -> str:
    """The sentence for conditions that no finite value has spoken for."""
    if at is not None:
        return f"{what} not finite at q = {rounded(np.asarray(at, float))}"
    return f"{what} not finite at any point looked at in [-1, 1]^n; give `at`, a point of the system's domain"


def cyclic_coordinates(system: System, at: Sequence[float] | np.ndarray | None = None) -> tuple[str, ...]:
    """The coordinates whose translations leave the Lagrangian, the constraints and the force as they are, at
    and around the point `at`, or without one at points of [-1, 1]^n; none where nothing is finite."""
    rng = np.random.default_rng(0)
    q, v = rng.uniform(-1.0, 1.0, (2, SAMPLES, system.n))
    q = q if at is None else around(np.asarray(at, float), SAMPLES)
    g = rng.uniform(-1.0, 1.0, (SAMPLES, 1))
    names = []
    for name in system.coordinates:
        found = evaluate_anyhow(_defects, Translations((name,)), system, q, v, g)
        here, conditions = found["here"] != 0, ("lagrangian", "constraint", "force")
        if here.any() and all(np.max(found[key][here]) <= TOLERANCE for key in conditions):
            names.append(name)
    return tuple(names)


def _defects(group: Group, system: System, q: Array, v: Array, g: Array) -> dict[str, Array]:
    """Relative changes of L, D and the force under q -> g q; the constraints on vertical vectors."""
    fibre = Reduction(system, group).fibre_index

    def act(q: Array) -> Array:
        return q.at[fibre].set(g + group.displacement(g, q[fibre]))

    gq, gv = jax.jvp(act, (q,), (v,))
    slope = jax.jacfwd(act)(q)
    p = system.parameters
    change = jnp.abs(system.lagrangian(gq, gv, p) - system.lagrangian(q, v, p))
    mu, moved = system.mu(q, v), system.mu(gq, gv) @ slope
    off = moved - (moved @ mu.T) @ spd_solve(mu @ mu.T, mu)
    f = system.applied_force(q, v, 0.3)
    pulled = slope.T @ system.applied_force(gq, gv, 0.3)
    unit = mu / jnp.sqrt(jnp.sum(mu**2, axis=1, keepdims=True))
    vertical = unit[:, fibre] @ group.body_fields(q[fibre])
    values = (system.energy_scale(q, v), vertical, f)
    return {
        "here": jnp.all(jnp.array([jnp.all(jnp.isfinite(x)) for x in values])) * 1.0,
        "lagrangian": change / (system.energy_scale(q, v) + system.energy_scale(gq, gv)),
        "constraint": jnp.sqrt(jnp.sum(off**2) / jnp.sum(moved**2)),
        "force": jnp.sqrt(jnp.sum((pulled - f) ** 2) / (jnp.sum(f**2) + 1e-300)),
        "vertical": vertical,
    }


def rounded(x: np.ndarray) -> list[float]:
    return [round(float(value), 3) for value in x]
