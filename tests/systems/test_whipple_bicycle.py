"""Whipple's bicycle against what is published about it.

Basu-Mandal, Chatterjee, Papadopoulos 2007, table 1: a state and its accelerations to 13 digits, with the
numbers that the public DynamicistToolKit has of it. Meijaard, Papadopoulos, Ruina, Schwab 2007: the linear
equations about upright riding and the forces at rest; `tests/bodies` has the rest of these.
"""

import numpy as np
import pytest

from noslip import linearize
from noslip.engine.backends.numpy_rows import evaluate
from noslip.systems import whipple_bicycle as bicycle

# x, y, z, theta, psi, phi, psi_f, beta_r, beta_f: its z points up, its x backwards
POSITION = np.array([0, 0, 0.2440472102925, 0, 0.9501292851472, 3.1257073014894, 0.2311385135743, 0, 0])
RATES = np.array(
    [
        *(-2.8069345714545, -0.1480982396001, 0.1058778746261, 0.7830033527065, 0.6068425835418),
        *(-0.0119185528069, 0.4859824687093, 8.9129896614890, 8.0133620584155),
    ]
)
ACCELERATIONS = np.array(
    [
        *(-0.5041626315047, -0.3449706619454, -1.4604528332980, 0.8353281706379, -7.8555281128244),
        *(0.1205543897884, -4.6198904039403, 1.8472554144217, 2.4548072904550),
    ]
)
TURNED = np.array([-1.0, 1.0, -1.0, -1.0, -1.0, -1.0, -1.0, -1.0, -1.0])
ZERO = np.array([0, 0, 0, 0, np.pi / 2, np.pi, 0, 0, 0])  # its psi and phi while ours are zero


def motion(_, system, q, v):
    return system.acceleration(q, v), system.multipliers(q, v), system.phi(q, v), system.g(q)


def test_its_accelerations_are_those_of_the_published_table():
    q, v = ZERO + TURNED * POSITION, TURNED * RATES
    rows = evaluate(motion, None, bicycle.system(), q[None], v[None])
    accelerations, _, slip, gap = (x[0] for x in rows)
    assert np.max(np.abs(gap)) < 1e-12  # the table's own rounding
    assert np.max(np.abs(slip)) < 1e-12
    np.testing.assert_allclose(accelerations, TURNED * ACCELERATIONS, rtol=1e-11, atol=1e-11)


def test_it_stands_on_its_wheels_with_the_published_forces():
    q, v = bicycle.upright(0.0)
    forces = evaluate(motion, None, bicycle.system(), q[None], v[None])[1][0, 4:]
    np.testing.assert_allclose(forces, [612.836470588236, 309.303529411765], rtol=0, atol=1e-9)


@pytest.mark.slow
def test_it_rides_by_itself_between_two_speeds():
    def grows(speed):
        q, v = bicycle.upright(speed)
        found = linearize(bicycle.system(), q, v, cyclic=("x", "y", "yaw", "rear", "front"))
        return found.growth > 1e-6  # that of the speed itself is zero

    assert [grows(speed) for speed in (4.2, 4.4, 5.9, 6.1)] == [True, False, False, True]


def test_parameters_are_known_by_name():
    assert bicycle.system(mB=70.0).parameters["mB"] == 70.0
    q, _ = bicycle.upright(1.0, w=1.1, rR=0.33)
    assert q[2] == -0.33
    with pytest.raises(ValueError, match="unknown parameter 'mX'"):
        bicycle.system(mX=1.0)
