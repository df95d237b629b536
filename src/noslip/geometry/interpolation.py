"""Curves that join two states without leaving the constraint manifold D (JS section 3.2).

The cut-off chi_0 goes from 1 at tau <= 0 to 0 at tau >= 1 with all derivatives zero at both ends, JS (30):

    chi_0(tau) = (1 + tanh(cot(pi tau))) / 2,       chi_1 = 1 - chi_0

and definition 3.1 mixes positions and base velocities with it, JS (32)-(33):

    q(t)   = chi_0(t/eps) q_1   + chi_1(t/eps) q_2
    v_a(t) = chi_0(t/eps) v_a,1 + chi_1(t/eps) v_a,2,       v_alpha from the constraint at (q, v_a)

The curve lies in D (proposition 3.1), but it is no motion: dq/dt is not v.
"""

from __future__ import annotations

from dataclasses import dataclass

import jax
import jax.numpy as jnp
from jax import Array
from numpy.typing import ArrayLike

from noslip.geometry.connection import AdaptedCoordinates, adapted_coordinates
from noslip.numerics.tracing import Real
from noslip.system import System

MARGIN = 2.0**-9  # nearer to 0 or 1 than this, chi_0 is constant: it has exp(-2 cot) < 1e-140 to go


@jax.jit
def chi_0(tau: ArrayLike) -> Array:
    """The cut-off of JS (30); smooth to JAX at every tau, 0 and 1 included."""
    tau = jnp.asarray(tau, dtype=float)
    inside = (tau > MARGIN) & (tau < 1 - MARGIN)
    angle = jnp.pi * jnp.where(inside, tau, 0.5)  # the branch not taken must stay finite, for derivatives too
    # (1 + tanh c) / 2 = 1 / (1 + exp(-2 c)); of chi_0 and 1 - chi_0 the smaller keeps all its digits
    double = 2 * jnp.cos(angle) / jnp.sin(angle)
    early, late = 1 - jax.nn.sigmoid(-double), jax.nn.sigmoid(double)
    return jnp.where(inside, jnp.where(tau < 0.5, early, late), jnp.where(tau < 0.5, 1.0, 0.0))


def chi_1(tau: ArrayLike) -> Array:
    """1 - chi_0(tau), which is chi_0(1 - tau)."""
    return chi_0(1 - jnp.asarray(tau, dtype=float))


@dataclass(frozen=True)
class CurveInD:
    """The curve of JS definition 3.1 from (q1, v1) at t = 0 to (q2, v2) at t = duration."""

    adapted: AdaptedCoordinates
    start: tuple[Array, Array]
    end: tuple[Array, Array]
    duration: float

    def __call__(self, t: Real) -> tuple[Array, Array]:
        """(q, v) at time t."""
        (q1, v1), (q2, v2) = self.start, self.end
        one, two = chi_0(t / self.duration), chi_1(t / self.duration)
        near = one * v1 + two * v2
        q = one * q1 + two * q2
        return q, self.adapted.psi(q, self.adapted.base_velocity(near), near)


def curve_in_d(
    system: System,
    start: tuple[ArrayLike, ArrayLike],
    end: tuple[ArrayLike, ArrayLike],
    *,
    duration: float,
    fibre: tuple[str, ...] | None = None,
) -> CurveInD:
    """Join two admissible states (q, v) inside D; the fibre is chosen as in `adapted_coordinates`."""
    if not duration > 0:
        raise ValueError(f"`duration` must be positive, but {duration!r} was provided")
    states = []
    for name, (q, v) in (("start", start), ("end", end)):
        if not system.is_admissible(q, v):
            phi = system.phi(q, v)
            raise ValueError(f"`{name}` must be a state on the constraint, but phi(q, v) = {phi} there")
        states.append((jnp.asarray(q, dtype=float), jnp.asarray(v, dtype=float)))
    return CurveInD(adapted_coordinates(system, *states[0], fibre=fibre), states[0], states[1], duration)
