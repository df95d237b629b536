"""Energy-preserving collocation on D* (Cohen, Hairer 2011), of order 2 s with s stages.

For dz/dt = Pi dH, CFHM (9), Gauss nodes c_j with weights b_j and Lagrange polynomials l_j: a polynomial u of
degree s with u(0) = z and, K_j being its slope at c_j,

    K_j = Pi(u(c_j)) G_j + (0, X^T force),      G_j = (1 / b_j) int_0^1 l_j(tau) dH(u(tau)) dtau
    z' = z + h sum_j b_j K_j

The integrals are taken by Gauss's rule with `nodes` points, and the defect of the energy, the anchor E of
`DiscreteGradient` included, is spread over the stages:

    G_j += c K_j* / (h sum_i b_i K_i . K_i*),    c = H(z') - E - h sum_j b_j K_j . G_j,    K* = K in a frame

Then H(z') = E + work of `force` whatever the quadrature. One stage is the mean value method (11), (14). Pi, H
and * without a frame are those of `geometry.frame_free`, seen from the middle. The unknown is x_j = h K_j.
"""

from __future__ import annotations

from dataclasses import dataclass

import jax
import jax.numpy as jnp
from jax import Array

from noslip.geometry.holonomic import applied, stage_rows
from noslip.integrators.base import require_interval, require_one_of
from noslip.integrators.families.bracket import FRAMES, OnDStar, work
from noslip.integrators.families.bracket_state import BracketState
from noslip.numerics.collocation import GaussCollocation, Map, gauss_collocation, stage_solver
from noslip.numerics.discrete_gradients import mean, reciprocal, soft
from noslip.numerics.linear import value_and_jacobian
from noslip.system import System


@dataclass(frozen=True)
class EnergyCollocation(OnDStar):
    """Cohen-Hairer collocation on D*: keeps energy and constraint at order 2 s."""

    stages: int = 2  #: their number s; the order is 2 s
    frame: str = "system"  #: the frame of D in which the step is taken
    nodes: int | None = None  #: points of Gauss's rule in the integrals, at least s; s + 4 if None

    reference = "Cohen, Hairer 2011; CFHM section 3.2"

    def __post_init__(self) -> None:
        require_interval("stages", self.stages, 1, 6)
        require_one_of("frame", self.frame, FRAMES)
        require_interval("nodes", self.stages if self.nodes is None else self.nodes, self.stages, 16)

    @property
    def order(self) -> int:
        return 2 * self.stages

    @property
    def stage_shape(self) -> tuple[int, ...]:
        return (self.stages,)

    def increment(self, x: Array) -> Array:
        return jnp.dot(self.rule.b, x)

    @property
    def rule(self) -> GaussCollocation:
        return gauss_collocation(self.stages, self.stages + 4 if self.nodes is None else self.nodes)

    def slopes(self, system: System, state: BracketState, x: Array, h: Array) -> Array:
        """h K_j of the stages."""
        rule, (bracket, z) = self.rule, self.chart(system, state, self.increment(x), h)
        gradients = jax.vmap(bracket.gradient)(z + rule.between @ x)
        G = jax.vmap(mean, (0, None))(rule.weights, gradients)
        defect = bracket.energy(z + rule.b @ x) - state.energy.value - rule.b @ jnp.sum(x * G, axis=1)
        dual = jax.vmap(bracket.dual)(x)
        square = jnp.dot(rule.b, jnp.sum(x * dual, axis=1))
        G = G + soft(defect, state.noise) * reciprocal(square) * dual
        rows = None if state.g is None else stage_rows(bracket, rule, state.q.value, x, state.g)
        slopes = jax.vmap(lambda u, G, c, rows: applied(bracket.at(u), G, state.t.value + c * h, rows))
        return h * slopes(z + rule.A @ x, G, jnp.asarray(rule.c), rows)

    def fixed_point(self, system: System, state: BracketState, x: Array, h: Array) -> Array:
        """Gauss-Seidel as in `DiscreteGradient`: x_q with the new x_rho."""
        n, A, new = system.n, self.rule.A, self.slopes(system, state, x, h)
        bracket, z = self.chart(system, state, self.increment(x), h)
        lifted = h * jax.vmap(lambda u, r: bracket.at(u).lift(r))(z + A @ x, A @ (new - x)[:, n:])
        return jnp.concatenate([new[:, :n] + lifted, new[:, n:]], axis=1)

    def simplified_newton(self, system: System, state: BracketState, x: Array, h: Array) -> Map:
        """x += (I - h A (x) J)^-1 (h K(x) - x), J being the Jacobian of Pi dH in the middle of the step."""
        bracket, z = self.chart(system, state, self.increment(x), h)
        middle, t = z + self.increment(x) / 2, state.t.value + h / 2
        J = value_and_jacobian(lambda z: bracket.field(z) + bracket.at(z).force(t), middle)[1]
        correct = stage_solver(self.rule.A, h * J)
        return lambda x: x + correct(self.slopes(system, state, x, h) - x)

    def update(self, system: System, state: BracketState, x: Array, h: Array) -> BracketState:
        rule, (bracket, z) = self.rule, self.chart(system, state, self.increment(x), h)
        stages = zip(z + rule.A @ x, x, rule.c, rule.b, strict=True)
        done = work(system, ((bracket.at(u), d, state.t.value + c * h, b) for u, d, c, b in stages))
        return self.moved(system, state, x, self.increment(x), done, h)
