"""The wheel and the coin of the page on rolling are those of the catalogue; nothing is timed here."""

from __future__ import annotations

import sys

import numpy as np
import pytest

from benchmarks import rolling, rolling_by
from noslip import rotations
from noslip.systems import rolling_coin

PROBLEMS = {problem.name: problem for problem in rolling.PROBLEMS}


def test_the_equations_by_hand_are_those_of_the_system():
    coin = {"m": 1.3, "r": 0.8, "A": 0.31, "C": 0.43, "g": 1.7}
    system = rolling_coin.system(**coin)
    u = np.asarray(rotations.from_euler("zyz", [0.4, 1.1, 0.7]))
    turn, w = np.asarray(rotations.matrix(u)), np.array([0.5, -0.3, 2.1])
    q, v = (
        np.asarray(x) for x in rolling_coin.placed({"h": 0.0, **coin}, np.array(0.3), np.array(0.2), u, w)
    )
    rate = rolling.motion(coin)
    y = np.concatenate([q[:3], turn.ravel(), w])
    dy, h = rate(0.0, y), 1e-5
    np.testing.assert_allclose(dy[:3], v[:3], atol=1e-14)
    by_hand = (rate(0.0, y + h * dy) - rate(0.0, y - h * dy))[:3] / (2 * h)
    np.testing.assert_allclose(by_hand, np.asarray(system.acceleration(q, v))[:3], atol=1e-8)


@pytest.mark.parametrize("name", PROBLEMS)
def test_a_start_touches_and_does_not_slip(name):
    problem = PROBLEMS[name]
    task = problem.task
    start = np.concatenate([task["place"], task["velocity"], np.ravel(task["turn"]), task["rates"]])
    found = rolling.observed(problem.coin, np.array([start]))
    assert max(found["gap"], found["slip"]) < 1e-15
    lifted, pushed = start.copy(), start.copy()
    lifted[2] += 1e-3
    pushed[3] += 1e-3
    assert rolling.observed(problem.coin, np.array([start, lifted]))["gap"] == pytest.approx(1e-3)
    assert rolling.observed(problem.coin, np.array([start, pushed]))["slip"] == pytest.approx(1e-3)


def test_rotation_and_rates_of_a_quaternion():
    u, w = np.asarray(rotations.from_euler("zyz", [0.4, 1.1, 0.7])), np.array([0.5, -0.3, 2.1])
    row = np.concatenate([[1.0, 2.0, 3.0], u, [4.0, 5.0, 6.0], np.asarray(rotations.from_rates(u, w))])
    expected = np.concatenate([[1, 2, 3, 4, 5, 6], np.asarray(rotations.matrix(u)).ravel(), w])
    np.testing.assert_allclose(rolling_by._of_quaternion(row), expected, atol=1e-14)


def test_a_package_that_is_not_there_is_a_row(monkeypatch):
    monkeypatch.setattr(rolling, "NAMES", {"no_such_package": "Nobody"})
    problem = PROBLEMS["coin"]
    row = rolling.row_of(problem, ("no_such_package", "Euler", []), 0.1, np.zeros(3), sys.executable)
    assert row == {
        "problem": "coin",
        "by": "Nobody Euler",
        "step": 0.1,
        "failed": "KeyError: 'no_such_package'",
    }
    shown = rolling.markdown({"rows": [row]}, "coin")
    assert "| Nobody Euler | 100 ms | KeyError" in shown
