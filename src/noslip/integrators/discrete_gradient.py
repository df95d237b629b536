"""Discrete gradient methods on D*: energy and constraint to the last bit, CFHM section 3.

With z = (q, rho) and Pi, H of (8)-(9) in a frame of D, the step from z to z' = z + d is CFHM (14)

    d = h Pi(z + d / 2) gbar(z, z') + h (0, X^T force),      gbar . d = H(z') - E

where gbar is one of the discrete gradients (11)-(13) and E, the energy that z ought to have, is carried
along: E' = E + force . d_q. The velocity X y satisfies the constraints at every z. `frame="householder"`
with gonzalez is CFHM's GONZALEZ-R, with `frame_derivative="finite_difference"` that of remark 3.5.

Where the system declares no frame, and always with `frame="none"`, the frame is X(q) = P(q) B, B a basis of
D at the middle of the step, which drops out (`geometry.frame_free`): rho is M v, and no unit matters. There
`frame="orthonormal"` is the isometric form of it (`geometry.polar`).

gonzalez, mean_value and symmetrized_coordinate_increment are symmetric in z, z' and so of order 2;
coordinate_increment is of order 1. In a frame they depend on it, gonzalez also on the units of z; and the
signs of the Householder frame, which are memory, make a step of -h differ from the way back.
`nodes` are those of Gauss's rule in the mean values.
"""

from __future__ import annotations

from dataclasses import dataclass

import jax.numpy as jnp
from jax import Array

from noslip.geometry.frames import DERIVATIVES
from noslip.integrators.base import require_interval, require_one_of
from noslip.integrators.families.bracket import FRAMES, OnDStar
from noslip.integrators.families.bracket_state import BracketState
from noslip.numerics.discrete_gradients import GRADIENTS, Step, discrete_gradient
from noslip.system import System


@dataclass(frozen=True)
class DiscreteGradient(OnDStar):
    """CFHM (14) with Pi at the midpoint: keeps energy and constraint; order 2, (13) unsymmetrized 1."""

    gradient: str = "gonzalez"  #: which discrete gradient, CFHM (11)-(13)
    frame: str = "system"  #: the frame of D in which the step is taken
    frame_derivative: str = "exact"  #: how the frame is differentiated
    nodes: int = 5  #: points of Gauss's rule in the mean values

    reference = "CFHM (11)-(14), remark 3.5"

    def __post_init__(self) -> None:
        require_one_of("gradient", self.gradient, GRADIENTS)
        require_one_of("frame", self.frame, FRAMES)
        require_one_of("frame_derivative", self.frame_derivative, DERIVATIVES)
        require_interval("nodes", self.nodes, 1, 12)

    @property
    def order(self) -> int:
        return 1 if self.gradient == "coordinate_increment" else 2

    @property
    def self_adjoint(self) -> frozenset[str]:
        return super().self_adjoint if self.order == 2 else frozenset()

    @property
    def preserves(self) -> frozenset[str]:
        return super().preserves - ({"holonomic"} if "coordinate" in self.gradient else frozenset())

    @classmethod
    def variants(cls) -> tuple[DiscreteGradient, ...]:
        # (13) happens to be symmetric on the telling systems, so a test of its own has it
        return cls(), cls("mean_value", "orthonormal"), cls("mean_value", "none")

    def applies_to(self, system: System) -> str | None:
        if "coordinate" in self.gradient and self.form(system) is not None:
            return f"`gradient='{self.gradient}'` needs a frame, but there is none; try frame='householder'"
        return super().applies_to(system)

    def fixed_point(self, system: System, state: BracketState, x: Array, h: Array) -> Array:
        bracket, z = self.chart(system, state, x, h)
        middle = bracket.middle(z + x / 2)
        step = Step(z, x, state.energy.value, state.gradient, state.noise)
        known = middle.gradient() if self.gradient == "gonzalez" else None
        d = h * middle.apply(discrete_gradient(self.gradient, bracket, step, known, self.nodes))
        if system.force is not None:
            d = d + h * middle.force(state.t.value + h / 2)
        # Gauss-Seidel: d_q with the new d_rho, which changes no solution and halves the evaluations
        n = system.n
        return jnp.concatenate([d[:n] + h / 2 * middle.lift(d[n:] - x[n:]), d[n:]])
