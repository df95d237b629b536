"""The wheel and the coin of the page on rolling are those of the catalogue; nothing is timed here."""

from __future__ import annotations

import sys

import numpy as np
import pytest

from benchmarks import rolling, rolling_by
from noslip import rotations
from noslip.engine.backends.numpy_rows import evaluate
from noslip.systems import rolling_coin

PROBLEMS = {problem.name: problem for problem in rolling.PROBLEMS}


def placed_and_accelerated(_, system, angles, w):
    """The rotation, a coin that touches and rolls, and its acceleration."""
    u = rotations.from_euler("zyz", angles)
    q, v = rolling_coin.placed(system.parameters, 0.3, 0.2, u, w)
    return rotations.matrix(u), q, v, system.acceleration(q, v)


def test_the_equations_by_hand_are_those_of_the_system():
    coin = {"m": 1.3, "r": 0.8, "A": 0.31, "C": 0.43, "g": 1.7}
    system, angles, w = rolling_coin.system(**coin), np.array([0.4, 1.1, 0.7]), np.array([0.5, -0.3, 2.1])
    rows = evaluate(placed_and_accelerated, None, system, angles[None], w[None])
    turn, q, v, acceleration = (x[0] for x in rows)
    rate = rolling.motion(coin)
    y = np.concatenate([q[:3], turn.ravel(), w])
    dy, h = rate(0.0, y), 1e-5
    np.testing.assert_allclose(dy[:3], v[:3], atol=1e-14)
    by_hand = (rate(0.0, y + h * dy) - rate(0.0, y - h * dy))[:3] / (2 * h)
    np.testing.assert_allclose(by_hand, acceleration[:3], atol=1e-8)


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


def turned_by(_, _fixed, angles, w):
    u = rotations.from_euler("zyz", angles)
    return u, rotations.from_rates(u, w), rotations.matrix(u)


def test_rotation_and_rates_of_a_quaternion():
    w = np.array([0.5, -0.3, 2.1])
    u, du, matrix = (x[0] for x in evaluate(turned_by, None, None, np.array([[0.4, 1.1, 0.7]]), w[None]))
    row = np.concatenate([[1.0, 2.0, 3.0], u, [4.0, 5.0, 6.0], du])
    expected = np.concatenate([[1, 2, 3, 4, 5, 6], matrix.ravel(), w])
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
