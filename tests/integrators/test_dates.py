"""When forces act and multipliers belong: a coordinate is a clock, and tells what the method says."""

import jax.numpy as jnp
import numpy as np
import pytest
from numpy.testing import assert_allclose

from noslip import System, integrators, simulate
from noslip.geometry.finite_difference_map import RhoFunctions
from noslip.integrators.composition import Composition
from noslip.integrators.discrete_gradient import DiscreteGradient
from noslip.integrators.discrete_lagrange_dalembert import DiscreteLagrangeDAlembert
from noslip.integrators.energy_collocation import EnergyCollocation
from noslip.integrators.full_space_discrete_gradient import FullSpaceDiscreteGradient
from noslip.integrators.generating_function import GeneratingFunction
from noslip.integrators.geometric_nonholonomic import GeometricNonholonomic
from noslip.integrators.lagrange_dalembert_chaplygin import LagrangeDAlembertChaplygin
from noslip.integrators.lobatto_spark import LobattoSpark
from noslip.integrators.reduced_dla import ReducedDLA
from noslip.integrators.reference_flow import ReferenceFlow
from noslip.integrators.runge_kutta4 import RungeKutta4
from noslip.integrators.semi_implicit_dla import SemiImplicitDLA
from noslip.integrators.variable_step import VariableStep
from noslip.integrators.velocity_nonholonomic import VelocityNonholonomic

H = 0.25
MIDPOINT = RhoFunctions(lambda q, qbar: (q + qbar) / 2, lambda q, qbar, h: (qbar - q) / h)
METHODS = [
    DiscreteGradient(),
    DiscreteLagrangeDAlembert(0.2),
    EnergyCollocation(2),
    FullSpaceDiscreteGradient(),
    GeneratingFunction(0.2),
    LobattoSpark(3),
    VelocityNonholonomic(0.3),
    VelocityNonholonomic(rho=MIDPOINT),
]
OTHERS = [
    Composition(SemiImplicitDLA()),
    DiscreteLagrangeDAlembert(0.3, symmetrized=True),
    GeneratingFunction(0.3, symmetric=True, projected=True),
    GeometricNonholonomic(),
    LagrangeDAlembertChaplygin(),
    ReducedDLA(epsilon=0.2),
    ReducedDLA(forces="group"),
    ReferenceFlow(),
    RungeKutta4(),
    SemiImplicitDLA(),
    VariableStep(),
]
CASES = METHODS + [pytest.param(method, marks=pytest.mark.slow) for method in OTHERS]


# A free x, a clock that runs as the time, and a z that stays. The forces on x cancel if the clock is read
# when the method says it is; the reaction on z undoes a force that is linear in time.
CLOCK = System(
    lambda q, v, p: 0.5 * jnp.dot(v, v),
    one_forms=lambda q, p: jnp.array([[0.0, 0.0, 1.0]]),
    frame=lambda q, p: jnp.array([[1.0, 0.0], [0.0, 1.0], [0.0, 0.0]]),
    force=lambda q, v, t, p: jnp.array([jnp.cos(3 * t) - jnp.cos(3 * q[1]), 0.0, 0.7 + 1.3 * q[1]]),
    coordinates=("x", "clock", "z"),
)


@pytest.mark.parametrize("method", CASES, ids=str)
def test_forces_and_multipliers_have_the_dates_that_the_method_gives(method):
    run = simulate(CLOCK, method, [0.0, 0.0, 0.4], [0.0, 1.0, 0.0], step_size=H, steps=4)
    assert_allclose(run.q[:, 1], run.t, rtol=0, atol=1e-14)
    assert np.max(np.abs(run.q[:, 0])) < 1e-14
    assert np.max(np.abs(run.v[:, 0])) < 1e-14
    assert_allclose(run.multipliers[2:, 0], -0.7 - 1.3 * run.multiplier_t[2:], rtol=0, atol=1e-13)


def test_no_method_that_takes_forces_is_left_out():
    names = {name for name, cls in integrators.discover().items() if cls().applies_to(CLOCK) is None}
    assert names == {type(method).__name__ for method in METHODS + OTHERS}
