"""The classical results on the ball on a turntable."""

import jax
import numpy as np
import pytest

from noslip.systems import turntable_ball
from noslip.testing.systems import reference


def angular_velocity(run_t: np.ndarray, xy: np.ndarray, centre: np.ndarray) -> float:
    angle = np.unwrap(np.arctan2(*(xy - centre).T[::-1]))
    return float(np.polyfit(run_t, angle, 1)[0])


@pytest.mark.parametrize(
    ("parameters", "ratio"),
    [({}, 2 / 7), ({"m": 1.4, "r": 0.8, "I": 0.9}, 0.9 / (0.9 + 1.4 * 0.8**2))],
    ids=["homogeneous", "general"],
)
def test_the_centre_runs_on_a_circle_at_the_known_rate(parameters: dict[str, float], ratio: float) -> None:
    system = turntable_ball.system(**parameters)
    q, v = turntable_ball.typical_state()
    run = reference(system, q, system.project_velocity(q, v), t_end=20.0)
    k = ratio * 0.7
    xy, speed = np.asarray(run.q[:, :2]), np.asarray(run.v[0, :2])
    centre = xy[0] + np.array([-speed[1], speed[0]]) / k
    radius = np.linalg.norm(xy - centre, axis=1)
    np.testing.assert_allclose(radius, radius[0], rtol=0, atol=1e-10)
    assert angular_velocity(np.asarray(run.t), xy, centre) == pytest.approx(k, abs=1e-10)


def test_the_energy_is_not_conserved_but_the_moving_energy_is() -> None:
    system = turntable_ball.system()
    run = reference(system, *turntable_ball.typical_state(), t_end=20.0)
    energy = jax.vmap(system.energy)(run.q, run.v)
    moving = jax.vmap(lambda q, v: turntable_ball.moving_energy(q, v, system.parameters))(run.q, run.v)
    assert np.ptp(energy) > 0.02
    assert np.ptp(moving) < 1e-10


def test_on_a_table_at_rest_the_ball_rolls_straight() -> None:
    system = turntable_ball.system(Omega=0.0)
    q, v = turntable_ball.typical_state()
    v = system.project_velocity(q, v)
    np.testing.assert_allclose(system.acceleration(q, v)[:2], 0, rtol=0, atol=1e-15)
    np.testing.assert_allclose(system.multipliers(q, v), 0, rtol=0, atol=1e-15)
