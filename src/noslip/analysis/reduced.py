"""What methods keep of the reduced system: momentum equation, symplectic form, energies as in FBO."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from numpy.typing import ArrayLike
from scipy.linalg import null_space

from noslip.analysis.reversibility import travelled
from noslip.engine.backends.numpy_rows import evaluate_anyhow
from noslip.geometry.chaplygin import Reduction, cyclic_coordinates, make_group
from noslip.geometry.groups import Group
from noslip.geometry.hamiltonization import Hamiltonization, hamiltonize
from noslip.integrators.base import CanonicalChart, Integrator, OwnState
from noslip.numerics.pytrees import replaced
from noslip.run.choose import on_cpu, trajectory_runner
from noslip.run.pairing import pairing_of
from noslip.run.step import Carry
from noslip.system import System
from noslip.trajectory import Trajectory

AGREED = 1e-12  # Jacobians of two widths that differ by less have no error but that of rounding


# ---- the nonholonomic momentum map --------------------------------------------------------------------
@dataclass(frozen=True)
class NonholonomicMomentum:
    """J_k = D2 L_d(q_{k-1}, q_k) . xi(q_k) for sections xi of D along cyclic coordinates, one column each,
    and what the discrete momentum equation misses at each inner node, relative to the terms of J."""

    cyclic: tuple[str, ...]
    values: np.ndarray
    defect: np.ndarray


def nonholonomic_momentum(
    system: System, integrator: Integrator, run: Trajectory
) -> NonholonomicMomentum | None:
    """The momentum map of the translations that leave the system as it is, restricted to D, along a run.

    It is not constant: J_{k+1} - J_k = D2 L_d(q_k, q_{k+1}) . (xi(q_{k+1}) - xi(q_k)) is the discrete
    nonholonomic momentum equation (FBO section 2.2), stated for the nodes and the L_d of the method. None for
    a method without an L_d of its own, where D has no direction along cyclic coordinates, and for nonlinear
    constraints, whose reactions depend on the velocity, or holonomic ones, where saved states are no nodes.
    The run must hold every step.
    """
    if run.info.save_every != 1:
        raise ValueError(f"the run must hold every step, but save_every = {run.info.save_every} was used")
    system = system.with_parameters(run.info.parameters)
    cyclic = cyclic_coordinates(system, at=run.q[0])
    columns = [system.index(name) for name in cyclic]
    made_from_one = integrator.defines("discrete_lagrangian")
    if len(columns) <= system.m or system.kind == "nonlinear" or system.k or not made_from_one:
        return None
    h = np.full(len(run.q), run.info.step_size)
    q = evaluate_anyhow(_node, integrator, system, run.q, run.v, h)
    p = evaluate_anyhow(_arriving_momentum, integrator, system, q[:-1], q[1:], h[1:])
    mu = evaluate_anyhow(_one_forms, None, system, q)
    sections = _aligned([null_space(x[:, columns]) for x in mu[1:]])
    before = np.einsum("kc,kcs->ks", p[:, columns], sections)
    after = np.einsum("kc,kcs->ks", p[1:, columns], sections[:-1])
    terms = np.einsum("kc,kcs->ks", np.abs(p[:, columns]), np.abs(sections))
    return NonholonomicMomentum(cyclic, before, (after - before[:-1]) / np.max(terms))


def _node(integrator: Integrator, system: System, q: Array, v: Array, h: Array) -> Array:
    return integrator.node(q, v, h)


def _arriving_momentum(integrator: Integrator, system: System, q: Array, q1: Array, h: Array) -> Array:
    return jax.grad(integrator.discrete_lagrangian, 2)(system, q, q1, h)


def _one_forms(_: None, system: System, q: Array) -> Array:
    return system.mu(q, jnp.zeros_like(q))


def _aligned(bases: list[np.ndarray]) -> np.ndarray:
    """Each basis turned so that it is near the one before."""
    aligned = [bases[0]]
    for basis in bases[1:]:
        u, _, w = np.linalg.svd(basis.T @ aligned[-1])
        aligned.append(basis @ u @ w)
    return np.array(aligned)


# ---- the symplectic form ------------------------------------------------------------------------------
def symplecticity_defect(
    system: System, integrator: Integrator, q0: ArrayLike, v0: ArrayLike, *, step_size: float, steps: int = 4
) -> float:
    """By how much single steps miss keeping dr ^ dP on T*M, P = f dl_c/drdot: the largest entry of
    S^T J S - J over the first `steps` steps, relative to |S|^2, with S the Jacobian of a step for (r, P).

    S is found by differences of order 8 where those of two widths agree to round-off; elsewhere by automatic
    differentiation, which takes longer to compile (a flow of the host, which cannot be traced, keeps its
    differences). What a state knows of its start (f there, its energy) is held fixed."""
    made = hamiltonize(system, _group_name(integrator), at=np.asarray(q0, float))
    d = len(made.reduced.base)
    J = np.block([[np.zeros((d, d)), np.eye(d)], [-np.eye(d), np.zeros((d, d))]])
    q, v = (np.asarray(x, dtype=float) for x in (q0, v0))
    step: _OwnStep | _AnyStep
    if (chart := integrator.canonical) is not None:
        step = _OwnStep(made, integrator, chart, q, v, step_size)
    else:
        step = _AnyStep(made, integrator, q, v, step_size)
    exactly = jax.jit(jax.jacfwd(step.traced, 1))
    defects = []
    for _ in range(steps):
        S, sure = _differences(step.stepped, step.point)
        if not sure and not integrator.host_driven:
            with on_cpu():
                S = np.asarray(exactly(step.state, jnp.asarray(step.point)))
        defects.append(np.max(np.abs(S.T @ J @ S - J)) / np.max(np.abs(S)) ** 2)
        step.go_on()
    return float(np.max(defects))


class _OwnStep:
    """Steps of a method whose state has (r, P) of its own."""

    def __init__(
        self,
        made: Hamiltonization,
        integrator: Integrator,
        chart: CanonicalChart,
        q: ArrayLike,
        v: ArrayLike,
        h: float,
    ):
        self.system, self.chart, self.integrator, self.h = made.reduced.system, chart, integrator, h
        with on_cpu():
            q, v = np.asarray(q, dtype=float), np.asarray(v, dtype=float)
            self.runner = trajectory_runner(pairing_of(self.system, integrator), q, v, 0.0, h)
        self.carry = self.runner.snapshot()

    @property
    def point(self) -> np.ndarray:
        return self._point(self.carry.state)

    @property
    def state(self) -> OwnState:
        """What `traced` holds fixed."""
        return jax.tree.map(jnp.asarray, self.carry.state)

    def _point(self, state: OwnState) -> np.ndarray:
        return np.concatenate(self.chart.point(self.system, state))

    def _next(self, carry: Carry) -> Carry:
        self.runner.restore(carry)
        step = int(carry.step) + 1
        failed = self.runner.to(step, step, step).failed
        there = self.runner.snapshot()
        return replaced(there, state=jax.tree.map(lambda x: x + np.nan, there.state)) if failed else there

    def stepped(self, x: np.ndarray) -> np.ndarray:
        """(r, P) after a step from x, with all else as it is."""
        r, P = jnp.split(jnp.asarray(x), 2)
        moved = jax.tree.map(np.asarray, self.chart.moved(self.system, self.carry.state, r, P))
        return self._point(self._next(replaced(self.carry, state=moved)).state)

    def traced(self, state: OwnState, x: Array) -> Array:
        """The same, for JAX."""
        moved = self.chart.moved(self.system, state, *jnp.split(x, 2))
        there, _ = self.integrator.advance(self.system, moved, jnp.asarray(self.h))
        return jnp.concatenate(self.chart.point(self.system, there))

    def go_on(self) -> None:
        self.carry = self._next(self.carry)


class _AnyStep:
    """Steps of any method, as a map of (q, v)."""

    def __init__(self, made: Hamiltonization, integrator: Integrator, q: np.ndarray, v: np.ndarray, h: float):
        self.made, self.integrator, self.q, self.v, self.h = made, integrator, q, v, h
        self.base, self.start = made.reduced.base_index, q[made.reduced.base_index]
        self.momentum, self.velocity = jax.jit(made.momentum), jax.jit(_velocity_of(made))

    def _reduced(self, q: np.ndarray, v: np.ndarray) -> np.ndarray:
        r = q[self.base]
        return np.concatenate([r, self.momentum(self.start, r, v[self.base])])

    @property
    def point(self) -> np.ndarray:
        return self._reduced(self.q, self.v)

    def _next(self, q: np.ndarray, v: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return travelled(self.made.reduced.system, self.integrator, q, v, 0.0, self.h, 1)

    def stepped(self, x: np.ndarray) -> np.ndarray:
        """(r, P) after a step from x."""
        q = self.q.copy()
        q[self.base] = x[: len(self.base)]
        v = np.asarray(self.velocity(self.start, q, x[len(self.base) :]))
        return self._reduced(*self._next(q, v))

    @property
    def state(self) -> OwnState:
        """What `traced` holds fixed."""
        return jnp.asarray(self.q)

    def traced(self, q: Array, x: Array) -> Array:
        """The same, for JAX."""
        r, P = jnp.split(x, 2)
        q, start = q.at[self.base].set(r), jnp.asarray(self.start)
        v, h, system = _velocity_of(self.made)(start, q, P), jnp.asarray(self.h), self.made.reduced.system
        state, _ = self.integrator.advance(system, self.integrator.init(system, q, v, jnp.zeros(()), h), h)
        seen = self.integrator.observe(state)
        r = seen.q[self.base]
        return jnp.concatenate([r, self.made.momentum(start, r, seen.v[self.base])])

    def go_on(self) -> None:
        self.q, self.v = self._next(self.q, self.v)


def _group_name(integrator: Integrator) -> str | Group:
    """Of a method on M, or of what is composed of it; any other method is judged by translations."""
    return integrator.symmetry or "translations"


def _velocity_of(made: Hamiltonization) -> Callable[[Array, Array, Array], Array]:
    def velocity(start: Array, q: Array, P: Array) -> Array:
        r = q[made.reduced.base_index]
        return made.reduced.lift(q, made.reduced.velocity(r, P / made.multiplier(start, r)))

    return velocity


def _differences(function: Callable[[np.ndarray], np.ndarray], x: np.ndarray) -> tuple[np.ndarray, bool]:
    """The Jacobian by central differences of order 8, and whether it is right to round-off."""
    width, found = 0.005 * max(1.0, float(np.max(np.abs(x)))), []
    for w in (width, width / 2):
        columns = []
        for e in np.eye(len(x)):
            ends = [function(x + k * w * e) - function(x - k * w * e) for k in (1, 2, 3, 4)]
            columns.append(np.dot([4 / 5, -1 / 5, 4 / 105, -1 / 280], ends) / w)
        found.append(np.array(columns).T)
    wide, narrow = found
    return wide, bool(np.max(np.abs(wide - narrow)) <= AGREED * np.max(np.abs(wide)))


# ---- the multiplier and energies along a run -----------------------------------------------------------
def multiplier_along(system: System, group: Group, q: np.ndarray) -> np.ndarray:
    """f at the rows of q, 1 at the first; where it is found, it is carried from row to row."""
    ratios = evaluate_anyhow(_multiplier_ratio, group, system, q[:-1], q[1:])
    return np.concatenate([[1.0], np.cumprod(ratios)])


def _multiplier_ratio(group: Group, system: System, q: Array, q1: Array) -> Array:
    made = Hamiltonization(Reduction(system, group))
    base = made.reduced.base_index
    return made.multiplier(q[base], q1[base])


def midpoint_energy(system: System, integrator: Integrator, run: Trajectory) -> np.ndarray:
    """The energies of FBO's figures: of ((r_i + r_{i+1}) / 2, (r_{i+1} - r_i) / h), one per step, for methods
    of that family; in tau, where the method steps in it, so that the velocity is f times the quotient."""
    system, h = system.with_parameters(run.info.parameters), np.diff(run.tau)
    group = make_group(system, _group_name(integrator))
    f = multiplier_along(system, group, run.q)[:-1] if integrator.own_time else np.ones_like(h)
    how = (group, integrator.own_time)
    return evaluate_anyhow(_midpoint_energy, how, system, run.q[:-1], run.q[1:], h, f)


def _midpoint_energy(how: Any, system: System, q: Array, q1: Array, h: Array, f: Array) -> Array:
    group, in_tau = how
    made = Hamiltonization(Reduction(system, group))
    base = made.reduced.base_index
    r, w = (q[base] + q1[base]) / 2, (q1[base] - q[base]) / h
    if in_tau:
        w = w * f * made.multiplier(q[base], r)
    at = made.reduced.at(r)
    return system.energy(at, made.reduced.lift(at, w))


def poincare_energy(system: System, integrator: Integrator, run: Trajectory) -> np.ndarray:
    """f (energy - E) along a run, which `PoincareHamiltonizedDEL` nearly keeps at zero: FBO (49), (50)."""
    system = system.with_parameters(run.info.parameters)
    f = multiplier_along(system, make_group(system, _group_name(integrator)), run.q)
    return f * (run.energy - run.energy[0])
