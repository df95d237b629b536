"""Every integrator with random parameters."""

from __future__ import annotations

from collections.abc import Callable

import jax.numpy as jnp
import numpy as np
from random_system import Shape

from noslip.geometry.finite_difference_map import RhoFunctions
from noslip.integrators.base import Integrator
from noslip.integrators.composition import Composition
from noslip.integrators.discrete_gradient import DiscreteGradient
from noslip.integrators.discrete_lagrange_dalembert import DiscreteLagrangeDAlembert
from noslip.integrators.energy_collocation import EnergyCollocation
from noslip.integrators.full_space_discrete_gradient import FullSpaceDiscreteGradient
from noslip.integrators.generating_function import GeneratingFunction
from noslip.integrators.geometric_nonholonomic import GeometricNonholonomic
from noslip.integrators.hamiltonized_del import HamiltonizedDEL
from noslip.integrators.lagrange_dalembert_chaplygin import LagrangeDAlembertChaplygin
from noslip.integrators.lobatto_spark import LobattoSpark
from noslip.integrators.poincare_hamiltonized_del import PoincareHamiltonizedDEL
from noslip.integrators.projected import Projected
from noslip.integrators.reduced_dla import ReducedDLA
from noslip.integrators.reference_flow import ReferenceFlow
from noslip.integrators.runge_kutta4 import RungeKutta4
from noslip.integrators.semi_implicit_dla import SemiImplicitDLA
from noslip.integrators.variable_step import VariableStep
from noslip.integrators.velocity_nonholonomic import VelocityNonholonomic

GRADIENTS = ("gonzalez", "mean_value", "coordinate_increment", "symmetrized_coordinate_increment")
FRAMES = ("system", "householder", "orthonormal", "none")
SYMMETRIC = ("gonzalez", "mean_value")
Rng = np.random.Generator


def _quadratic(q, qbar):
    d = qbar - q
    return (q + qbar) / 2 + 0.1 * d * jnp.roll(d, 1)


def _stretched(q, qbar, h):
    return (qbar - q) / h * (1 + 0.2 * jnp.dot(qbar - q, qbar - q))


RHO = RhoFunctions(_quadratic, _stretched)  # symmetric


def fraction(rng: Rng) -> float:
    """In [0, 1], its ends and its middle included."""
    return float(rng.choice([0.0, 0.5, 1.0, round(float(rng.random()), 3)]))


def one_of(rng: Rng, *choices: str) -> str:
    return str(rng.choice(choices))


def _generating(rng: Rng) -> Integrator:
    return GeneratingFunction(fraction(rng), *(bool(x) for x in rng.random(2) < 0.3))


def _self_adjoint(rng: Rng) -> Integrator:
    bases = (
        lambda: DiscreteGradient(one_of(rng, *SYMMETRIC)),
        lambda: DiscreteGradient("symmetrized_coordinate_increment"),
        SemiImplicitDLA,
        VelocityNonholonomic,
        GeneratingFunction,
        LobattoSpark,
    )
    return bases[rng.integers(len(bases))]()


def _base(rng: Rng) -> tuple[float, str]:
    return fraction(rng), one_of(rng, "legendre", "legendre", "taylor1")


METHODS: dict[str, Callable[[Rng], Integrator]] = {
    "Composition": lambda rng: Composition(
        _self_adjoint(rng), one_of(rng, "suzuki4", "kahan_li6", "kahan_li8")
    ),
    "DiscreteGradient": lambda rng: DiscreteGradient(
        one_of(rng, *GRADIENTS),
        one_of(rng, *FRAMES),
        one_of(rng, "exact", "exact", "finite_difference"),
        int(rng.integers(3, 8)),
    ),
    "DiscreteLagrangeDAlembert": lambda rng: (
        DiscreteLagrangeDAlembert(rho=RHO)
        if rng.random() < 0.1
        else DiscreteLagrangeDAlembert(fraction(rng), bool(rng.random() < 0.3))
    ),
    "EnergyCollocation": lambda rng: EnergyCollocation(int(rng.integers(1, 4)), one_of(rng, *FRAMES)),
    "FullSpaceDiscreteGradient": lambda rng: FullSpaceDiscreteGradient(one_of(rng, *GRADIENTS)),
    "GeneratingFunction": _generating,
    "GeometricNonholonomic": lambda rng: GeometricNonholonomic(
        one_of(rng, "reflection", "projection"), fraction(rng)
    ),
    "HamiltonizedDEL": lambda rng: HamiltonizedDEL(
        *_base(rng), time_rule=one_of(rng, "trapezoid", "simpson")
    ),
    "LagrangeDAlembertChaplygin": lambda rng: LagrangeDAlembertChaplygin(one_of(rng, "previous", "next")),
    "LobattoSpark": lambda rng: LobattoSpark(int(rng.integers(2, 5))),
    "PoincareHamiltonizedDEL": lambda rng: PoincareHamiltonizedDEL(*_base(rng)),
    "Projected": lambda rng: Projected(
        DiscreteGradient(one_of(rng, *SYMMETRIC)) if rng.random() < 0.7 else EnergyCollocation(1)
    ),
    "ReducedDLA": lambda rng: ReducedDLA(*_base(rng), forces=one_of(rng, "curvature", "group")),
    "ReferenceFlow": lambda rng: ReferenceFlow(),
    "RungeKutta4": lambda rng: RungeKutta4(),
    "SemiImplicitDLA": lambda rng: SemiImplicitDLA(),
    "VariableStep": lambda rng: VariableStep(_self_adjoint(rng)),
    "VelocityNonholonomic": lambda rng: (
        VelocityNonholonomic(rho=RHO) if rng.random() < 0.1 else VelocityNonholonomic(fraction(rng))
    ),
}
"""By name, since what a parameter may be is nowhere written; a test sees that none is missing."""

HEAVY = {
    "Composition": 4,
    "DiscreteGradient": 5,
    "EnergyCollocation": 4,
    "LobattoSpark": 5,
    "Projected": 3,
    "ReferenceFlow": 4,
    "VariableStep": 3,
}
"""The largest n for methods that take long to compile, unless all sizes are asked for."""


def likely(name: str, shape: Shape) -> bool:
    """Whether a method of that name may apply to systems of that shape; saves asking it."""
    if name in ("HamiltonizedDEL", "PoincareHamiltonizedDEL"):
        return shape.form == "hamiltonizable"
    if name == "ReducedDLA":
        return shape.form in ("chaplygin", "hamiltonizable")
    return True
