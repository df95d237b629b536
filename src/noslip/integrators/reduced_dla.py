"""The reduced discrete Lagrange-d'Alembert equations on M = Q/G (FBO section 2.2).

With l_c and the reaction F of `geometry.chaplygin`, and d = r1 - r:

    D1 Ld(r_i, r_{i+1}) + D2 Ld(r_{i-1}, r_i) + F^- + F^+ = 0                       (21)

`forces="curvature"`: Ld from l_c, F^- = F^+ = h / 2 times the mean of F(r + e d, d / h), (24)-(25); signs
and halves are those that converge. `forces="group"`: the discrete forces (22)-(23) of the group, which
make this the whole discrete Lagrange-d'Alembert principle with variations in D. Let ld(r, r1, f) be
h l(r + e d, d / h, unretract(f) / h) and f = retract(-A d) the solution of the discrete constraint (14); then

    P + D1 ld + A(r)^T R^*_f dld/df = 0,      P1 = D2 ld - A(r1)^T L^*_f dld/df

with P1 the momentum that arrives at r1. The two agree where A is linear in r.
"""

from __future__ import annotations

from dataclasses import dataclass

import jax
import jax.numpy as jnp
from jax import Array

from noslip.geometry.chaplygin import Reduction
from noslip.integrators.base import OwnState, require_one_of
from noslip.integrators.families.chaplygin import OnBase
from noslip.system import System

FORCES = ("curvature", "group")


@dataclass(frozen=True)
class ReducedDLA(OnBase):
    """Discrete Lagrange-d'Alembert on the base of a Chaplygin system, with reconstruction."""

    forces: str = "curvature"  #: the discrete reaction: of the curvature, or of the group

    reference = "FBO (21)-(25)"

    def __post_init__(self) -> None:
        super().__post_init__()
        require_one_of("forces", self.forces, FORCES)

    @property
    def preserves(self) -> frozenset[str]:
        kept = super().preserves
        return kept | {"momentum_equation"} if self.forces == "group" else kept

    @classmethod
    def variants(cls) -> tuple[ReducedDLA, ...]:
        return cls(), cls(epsilon=0.2, forces="group"), cls(group="planar", forces="group")

    def momenta(self, system: System, state: OwnState, d: Array, h: Array) -> tuple[Array, Array]:
        reduced = self.reduced(system)
        r = state.q.value[reduced.base_index]
        if self.forces == "group":
            return self._group_momenta(system, state, r, d, h)
        minus, plus = self.discrete_momenta(reduced.constrained_lagrangian, r, d, h)
        times = [state.t.value + e * h for e in self.nodes]
        forces = [reduced.force(r + e * d, d / h, t) for e, t in zip(self.nodes, times, strict=True)]
        half = h / 2 * sum(forces[1:], forces[0]) / len(forces)
        return minus - half, plus + half

    def _group_momenta(
        self, system: System, state: OwnState, r: Array, d: Array, h: Array
    ) -> tuple[Array, Array]:
        """(22)-(23), and applied forces by halves."""
        reduced, group = self.reduced(system), self.reduced(system).group
        f = self.group_step(reduced, r, d)
        d1, d2, df = jax.grad(self._ld, (1, 2, 3))(reduced, r, r + d, f, h)
        minus = -d1 - reduced.connection(r).T @ (group.space_fields(f).T @ df)
        plus = d2 - reduced.connection(r + d).T @ (group.body_fields(f).T @ df)
        if system.force is None:
            return minus, plus
        half = jnp.zeros_like(r)
        for e in self.nodes:
            node, t = r + e * d, state.t.value + e * h
            half = half + h / 2 * (reduced.force(node, d / h, t) - reduced.reaction(node, d / h))
        return minus - half / len(self.nodes), plus + half / len(self.nodes)

    def _ld(self, reduced: Reduction, r: Array, r1: Array, f: Array, h: Array) -> Array:
        """ld(r, r1, f)."""
        xi = reduced.group.unretract(f) / h
        values = [reduced.lagrangian(r + e * (r1 - r), (r1 - r) / h, xi) for e in self.nodes]
        return h * sum(values[1:], values[0]) / len(values)

    def discrete_lagrangian(self, system: System, q: Array, q1: Array, h: Array) -> Array:
        """ld of the two base points and g^-1 g1."""
        reduced = self.reduced(system)
        base, fibre = reduced.base_index, reduced.fibre_index
        return self._ld(reduced, q[base], q1[base], reduced.group.relative(q[fibre], q1[fibre]), h)
