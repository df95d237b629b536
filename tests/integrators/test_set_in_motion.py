"""A body that rests but for round-off, and a torque that comes: the sizes that are known at the guess of that
step are those of the rest, and too small by any factor."""

import jax.numpy as jnp
import numpy as np
import pytest
from numpy.testing import assert_allclose

from noslip import System, simulate
from noslip.integrators.composition import Composition
from noslip.integrators.discrete_gradient import DiscreteGradient
from noslip.integrators.energy_collocation import EnergyCollocation
from noslip.integrators.lobatto_spark import LobattoSpark
from noslip.integrators.semi_implicit_dla import SemiImplicitDLA
from noslip.integrators.velocity_nonholonomic import VelocityNonholonomic

METHODS = [
    SemiImplicitDLA(), VelocityNonholonomic(), DiscreteGradient(), DiscreteGradient("mean_value"),
    EnergyCollocation(), LobattoSpark(), Composition(SemiImplicitDLA()),
]  # fmt: skip
PUSH = np.repeat([0.0, 1.0, 0.0, -1.0], 10)


def lagrangian(q, v, p):
    """A sleigh whose centre of mass is 0.4 ahead of its edge."""
    s, c = jnp.sin(q[2]), jnp.cos(q[2])
    return ((v[0] - 0.4 * s * v[2]) ** 2 + (v[1] + 0.4 * c * v[2]) ** 2 + 0.7 * v[2] ** 2) / 2


SLEIGH = System(
    lagrangian,
    one_forms=lambda q, p: jnp.array([[-jnp.sin(q[2]), jnp.cos(q[2]), 0.0]]),
    coordinates=("x", "y", "phi"),
    force=lambda q, v, t, p: p["push"] * jnp.array([jnp.cos(q[2]), jnp.sin(q[2]), 0.3]),
    inputs={"push": 0.0},
)


@pytest.mark.parametrize("rest", [1e-17, 1e-12, 1e-8])
@pytest.mark.parametrize("method", METHODS, ids=str)
def test_a_body_at_rest_but_for_round_off_is_set_in_motion(method, rest):
    q0, along = [0.1, 0.2, 0.3], np.array([np.cos(0.3), np.sin(0.3), 1.0])
    runs = [
        simulate(SLEIGH, method, q0, v * along, step_size=0.1, steps=40, inputs={"push": PUSH})
        for v in (0.0, rest)
    ]
    assert runs[1].report.increment.max() < 1e-14
    assert_allclose(runs[1].v, runs[0].v, rtol=0, atol=1e-13 + 20 * rest)
