"""The Jacobi defect: zero for holonomic constraints, not zero for those of disks and sleighs."""

import jax.numpy as jnp
import pytest

from noslip import System
from noslip.analysis import jacobi_defect
from noslip.geometry.frames import FRAMES
from noslip.systems import chaplygin_sleigh, gearbox, rolling_disk, turntable_ball


def on_a_surface():
    """d(z - x y - sin x) = 0, a holonomic constraint in the form of a one-form."""
    return System(
        lambda q, v, p: 0.5 * (1 + 0.2 * q[1] ** 2) * jnp.dot(v, v) - q[2],
        one_forms=lambda q, p: jnp.array([[-q[1] - jnp.cos(q[0]), -q[0], 1.0]]),
        coordinates=("x", "y", "z"),
    )


pytestmark = pytest.mark.thorough


@pytest.mark.slow
def test_holonomic_constraints_give_a_poisson_bracket():
    system, q = on_a_surface(), jnp.array([0.3, -0.4, 0.5])
    v = system.project_velocity(q, jnp.array([0.7, 0.2, 0.1]))
    assert jacobi_defect(system, q, v) < 1e-13


@pytest.mark.slow
@pytest.mark.parametrize("frame", FRAMES)
def test_in_every_frame(frame):
    system, q = on_a_surface(), jnp.array([0.3, -0.4, 0.5])
    v = system.project_velocity(q, jnp.array([0.7, 0.2, 0.1]))
    assert jacobi_defect(system, q, v, frame) < 1e-13


@pytest.mark.slow
@pytest.mark.parametrize("module", [rolling_disk, chaplygin_sleigh, gearbox])
def test_nonholonomic_ones_do_not(module):
    system, state = module.system(), module.typical_state()
    assert jacobi_defect(system, *state) > 0.1


def test_there_is_no_bracket_for_affine_constraints():
    with pytest.raises(ValueError, match="linear constraints"):
        jacobi_defect(turntable_ball.system(), *turntable_ball.typical_state())
