"""What one step of a method is a map of: coordinates z on its own phase space, and the motion there.

To be a map, a step must start from all that the next step uses, and reach nothing less. With n coordinates
and m constraints the methods of this package have four phase spaces:

    D         z = (q, v_a), JS (29)     methods that keep the constraint
    D_eps     z = (q, v_a), JS (96)     two-point methods, which keep the deformed constraint JS (88), (91);
                                        v = (q_k - q_{k-1}) / eps is the last quotient, as the run shows it
    TQ        z = (q, v_a, v_alpha)     methods that keep neither; off D as on D the motion is JS (22)
    D x R^m   z = (q, v_a, s)           the reflection of LMS section 5

The reflection keeps D but remembers the reaction: lam_{k+1} is near 2 lam(q, v) - lam_k, not near lam(q, v),
so a step is a map of (q, v, lam). As eps -> 0 it does not tend to the identity, but reflects lam about
lam(q, v); if m is odd that reverses the orientation, and it is the time-eps map of no differential equation.
Taking out the sign,

    s = (-1)^k eps (lam_k - lam(q_k, v_k)),      J (q, v_a, s) = (q, v_a, -s),

leaves a map near the identity, J o (step). The motion has ds/dt = 0, and a run starts at s = 0. The local
error is O(eps^{p+1}) where |s| <= C eps^p, and s of a run stays below that as long as the method behaves.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import Array, lax

from noslip.analysis.local_chart import LocalChart
from noslip.geometry.connection import AdaptedCoordinates
from noslip.integrators.base import Integrator, OwnState
from noslip.numerics.linear import solve
from noslip.system import System

NEWTON_STEPS = 6


@dataclass(frozen=True)
class PhaseSpace:
    """The constraint manifold D, and what the others change. `adapted` are coordinates on it or on D_eps."""

    integrator: Integrator
    system: System
    step_size: Any
    adapted: AdaptedCoordinates
    near: Array

    @property
    def turn(self) -> np.ndarray:
        """The diagonal of J; 1 where there is nothing to reflect."""
        return np.ones(2 * self.system.n - self.system.m)

    def coordinates(self, q: Array, v: Array, memory: Array) -> Array:
        """z of a state."""
        return jnp.concatenate([q, self.adapted.base_velocity(v)])

    def state(self, z: Array) -> tuple[Array, Array]:
        """(q, v) of z, JS (27)."""
        n, m = self.system.n, self.system.m
        return z[:n], self.adapted.psi(z[:n], z[n : 2 * n - m], self.near)

    def field(self, z: Array) -> Array:
        """The motion, JS (46)."""
        q, v = self.state(z)
        return jnp.concatenate([v, self.adapted.base_velocity(self.adapted.system.acceleration(q, v))])

    def begin(self, z: Array) -> OwnState:
        """The state of the integrator at z."""
        return self.integrator.in_mid_run(self.system, *self.state(z), jnp.zeros(()), self.step_size)

    def end(self, state: OwnState) -> Array:
        """z of a state of the integrator."""
        seen = self.integrator.observe(state)
        return self.coordinates(seen.q, seen.v, jnp.zeros(self.system.m))


class DeformedManifold(PhaseSpace):
    """D_eps of JS (88), with the motion (94)."""

    def state(self, z: Array) -> tuple[Array, Array]:
        """By Newton's method from the velocity on D, which is wrong by O(eps)."""
        kept, fibre = self.adapted.system, self.adapted.fibre_index
        on_d = AdaptedCoordinates(self.system, self.adapted.fibre)
        q = z[: self.system.n]

        def newton(_: Array, v: Array) -> Array:
            return v.at[fibre].add(-solve(kept.mu(q, v)[:, fibre], kept.phi(q, v)))

        return q, lax.fori_loop(0, NEWTON_STEPS, newton, on_d.psi(q, z[self.system.n :], self.near))


class TangentBundle(PhaseSpace):
    """TQ = R^2n, where D is one level of phi, which the motion keeps and the method does not."""

    @property
    def turn(self) -> np.ndarray:
        return np.ones(2 * self.system.n)

    def coordinates(self, q: Array, v: Array, memory: Array) -> Array:
        return jnp.concatenate([q, v[self.adapted.base_index], v[self.adapted.fibre_index]])

    def state(self, z: Array) -> tuple[Array, Array]:
        n = self.system.n
        order = np.concatenate([self.adapted.base_index, self.adapted.fibre_index])
        return z[:n], jnp.zeros(n).at[order].set(z[n:])

    def field(self, z: Array) -> Array:
        q, v = self.state(z)
        return self.coordinates(v, self.system.acceleration(q, v), z)


class WithReaction(PhaseSpace):
    """D x R^m, where s = eps (lam_k - lam(q_k, v_k)) up to sign."""

    @property
    def turn(self) -> np.ndarray:
        return np.concatenate([super().turn, -np.ones(self.system.m)])

    def coordinates(self, q: Array, v: Array, memory: Array) -> Array:
        return jnp.concatenate([super().coordinates(q, v, memory), memory])

    def field(self, z: Array) -> Array:
        return jnp.concatenate([super().field(z), jnp.zeros(self.system.m)])

    def begin(self, z: Array) -> OwnState:
        state = super().begin(z)
        return replace(state, lam=state.lam + z[z.size - self.system.m :] / self.step_size)

    def end(self, state: OwnState) -> Array:
        seen = self.integrator.observe(state)
        other = state.lam - self.system.multipliers(seen.q, seen.v)
        return self.coordinates(seen.q, seen.v, self.step_size * other)


@dataclass(frozen=True)
class InTurns(PhaseSpace):
    """D of a system with rotations: z = (x, w_a) of its chart, as are `adapted` and `near`."""

    chart: LocalChart

    @property
    def turn(self) -> np.ndarray:
        return np.ones(2 * self.adapted.system.n - self.system.m)

    def coordinates(self, q: Array, v: Array, memory: Array) -> Array:
        base = self.adapted.base_velocity(self.chart.velocity(q, v))
        return jnp.concatenate([self.chart.coordinates(q), base])

    def _local(self, z: Array) -> tuple[Array, Array]:
        n = self.adapted.system.n
        return z[:n], self.adapted.psi(z[:n], z[n:], self.near)

    def state(self, z: Array) -> tuple[Array, Array]:
        return self.chart.state(*self._local(z))

    def field(self, z: Array) -> Array:
        x, w = self._local(z)
        return jnp.concatenate([w, self.adapted.base_velocity(self.adapted.system.acceleration(x, w))])


def phase_space(integrator: Integrator) -> type[PhaseSpace]:
    """That of a method, by what it promises to keep."""
    if integrator.remembers_reaction:
        return WithReaction
    if "constraint" in integrator.preserves:
        return PhaseSpace
    return DeformedManifold if "deformed_constraint" in integrator.preserves else TangentBundle
