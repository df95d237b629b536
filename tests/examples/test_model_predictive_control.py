"""A robot on its path: by voltages that are right for it, and by control where they are not."""

from pathlib import Path

import numpy as np
import pytest

from worked import assert_page_shows, example

control = example("08_model_predictive_control")


def test_planned_voltages_keep_the_model_on_the_path_and_the_plant_not() -> None:
    away = {}
    for name, plant in (("model", control.MODEL), ("plant", control.PLANT)):
        seen, wanted, _ = control.drive(1.0, False, plant, (0.0, 0.0, 0.0))
        away[name] = np.max(np.abs(seen - wanted))
    assert away["model"] < 2e-3  # voltages are held for a millisecond
    assert away["plant"] > 0.02


@pytest.mark.slow
def test_a_plan_stays_within_the_battery_and_gets_better() -> None:
    poses, planned = control.plan(1.0)
    q, v = control.start(poses)
    looks = 50 * np.arange(1, control.AHEAD + 1)
    V, far = planned[looks - 50], poses[looks] + [0.5, 0.3, 0.0]
    before = np.sum(control.misses(V, q, v, far, V)[0] ** 2)
    W = np.asarray(control.better(V, q, v, far, V))
    assert np.max(np.abs(W)) == control.BATTERY
    assert np.sum(control.misses(W, q, v, far, V)[0] ** 2) < 0.95 * before


@pytest.mark.slow
def test_the_page_shows_what_the_script_prints(tmp_path: Path, capsys) -> None:
    control.main(tmp_path)
    assert_page_shows("model_predictive_control", capsys.readouterr().out, tolerance=0.3)
    assert (tmp_path / "control.png").read_bytes().startswith(b"\x89PNG")
