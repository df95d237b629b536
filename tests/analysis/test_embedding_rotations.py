"""Steps of a system with a quaternion as a map of small turns and free velocities near a state."""

import numpy as np
import pytest

from noslip import simulate
from noslip.analysis.embedding import Embedding
from noslip.integrators import ReferenceFlow, RungeKutta4, SemiImplicitDLA
from noslip.systems import spherical_pendulum, suslov_quaternion

STEP = 0.2


@pytest.mark.slow
def test_a_step_and_the_motion_are_those_of_runs_whatever_the_sign_of_the_quaternion():
    system = suslov_quaternion.system(A=0.9, b1=0.6)
    q, v = (np.asarray(x) for x in suslov_quaternion.typical_state())
    embedding = Embedding(system, SemiImplicitDLA(), step_size=STEP, near=(q, v))
    z = embedding.coordinates(q, v)
    assert z.shape == (5,)  # three turns and two free velocities
    for found, given in zip(embedding.state(z), (q, v), strict=True):
        np.testing.assert_allclose(found, given, atol=1e-15)
    run = simulate(system, SemiImplicitDLA(), q, v, step_size=STEP, steps=1)
    step = embedding.discrete_flow(z)
    for sign in (1, -1):
        np.testing.assert_allclose(
            embedding.coordinates(sign * run.q[1], sign * run.v[1]), step, rtol=0, atol=1e-14
        )
    true = simulate(system, ReferenceFlow(), q, v, step_size=STEP, steps=1)
    flow = embedding.exact_flow(STEP, z)
    np.testing.assert_allclose(embedding.coordinates(true.q[1], true.v[1]), flow, rtol=0, atol=1e-12)
    assert np.max(np.abs(flow - step)) > 1e-5


def test_what_has_no_coordinates_is_refused_in_one_sentence():
    system, (q, v) = spherical_pendulum.system(), spherical_pendulum.typical_state()
    with pytest.raises(ValueError, match="a map of a surface without coordinates"):
        Embedding(system, SemiImplicitDLA(), step_size=STEP, near=(q, v))
    system, (q, v) = suslov_quaternion.system(), suslov_quaternion.typical_state()
    with pytest.raises(ValueError, match="steps of this method are no map of the constraint manifold"):
        Embedding(system, RungeKutta4(), step_size=STEP, near=(q, v))
    with pytest.raises(ValueError, match=r"`near` must be a state \(q, v\)"):
        Embedding(system, SemiImplicitDLA(), step_size=STEP)
