"""Which systems of the catalogue the tests that run over all of it take, and when.

The bodies in space, vehicles and linkages are held to d'Alembert's principle, to closed forms and to 1e5
steps in tests/systems. They are large, so other tests take them among the slow ones or only a sample."""

import pytest

LARGE = {
    "ball_in_bowl",
    "ball_in_cone",
    "ball_in_cylinder",
    "bead_on_a_curve",
    "chaplygin_gyrostat",
    "chaplygin_sphere",
    "four_bar",
    "rattleback",
    "roller_racer",
    "rolling_coin",
    "rolling_torus",
    "rubber_sphere",
    "segway",
    "slider_crank",
    "snake_robot",
    "suslov_quaternion",
    "unicycle",
    "varying_turntable_ball",
    "veselova_quaternion",
    "whipple_bicycle",
}
SAMPLE = {"bead_on_a_curve", "roller_racer"}
"""Holonomic; with an input. A step with a quaternion takes XLA minutes to compile."""


def by_size(names):
    """All of them, the large ones among the slow tests."""
    return [pytest.param(x, marks=[pytest.mark.slow] if x in LARGE else [], id=x) for x in names]


def sampled(names):
    """Without the large ones that are not in the sample."""
    return [x for x in names if x not in LARGE - SAMPLE]
