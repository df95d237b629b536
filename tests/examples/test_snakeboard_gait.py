"""A snakeboard's gait: equal frequencies drive it forward, and gradients find the least effort."""

from pathlib import Path

import numpy as np
import pytest

from worked import assert_page_shows, example

gait = example("10_snakeboard_gait")


def test_equal_frequencies_drive_the_board_and_others_do_not() -> None:
    runs = [gait.ride(gait.FIRST, ratio) for ratio in (1.0, 2.0)]
    assert all(np.max(np.abs(run.constraint_residual)) < 1e-12 for run in runs)
    (far, _), (near, _) = map(gait.distance_and_effort, runs)
    assert far > 1.5
    assert near < 0.3
    w, t = 2 * np.pi, runs[0].t  # the shape is the one that was asked for
    np.testing.assert_allclose(runs[0].q[:, 3], 0.4 * np.sin(w * t), atol=2e-3)


@pytest.mark.slow
def test_the_best_gait_is_one_and_the_page_shows_it(tmp_path: Path, capsys) -> None:
    gait.main(tmp_path)
    assert_page_shows("snakeboard_gait", capsys.readouterr().out, tolerance=0.02)
    found = gait.best().x
    distance, effort = np.asarray(gait.slopes(found))
    tangent = effort - distance * (effort @ distance) / (distance @ distance)
    assert np.max(np.abs(tangent)) < 1e-3 * np.max(np.abs(effort))  # no way along the same distance is better
    differences = [(gait.values(found + e) - gait.values(found - e)) / 2e-6 for e in 1e-6 * np.eye(3)]
    np.testing.assert_allclose(np.transpose(differences), [distance, effort], rtol=1e-6, atol=1e-6)
