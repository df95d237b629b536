"""`noslip bench bodies`: a ball in quaternions and a bicycle, from nothing to a result."""

import json

import numpy as np
from typer.testing import CliRunner

from noslip import simulate
from noslip.bench import ball, bicycle, bodies
from noslip.cli import app
from noslip.integrators.discrete_gradient import DiscreteGradient
from noslip.integrators.semi_implicit_dla import SemiImplicitDLA


def test_the_ball_starts_on_three_independent_constraints():
    q, v = ball.typical_state()
    mu = np.asarray(ball.system().mu(q, v))
    assert mu.shape == (3, 6)
    assert np.linalg.matrix_rank(mu) == 3
    assert np.max(np.abs(mu @ v)) <= 1e-15


def test_the_ball_keeps_its_energy_and_its_quaternion_its_length():
    run = simulate(ball.system(), DiscreteGradient(), *ball.typical_state(), step_size=0.02, steps=300)
    assert np.ptp(run.energy) <= 1e-13
    lengths = np.sum(run.q[:, 2:] ** 2, axis=1)
    assert (
        np.ptp(lengths) <= 2e-3
    )  # it is a velocity constraint: the length drifts with the order of the method
    distance = np.linalg.norm(run.q[:, :2], axis=1)
    assert 0.5 < distance.max() < 5.0  # it rolls, and the spring holds it


def test_no_step_of_a_bicycle_needs_the_fallback():
    """Which takes as long as a thousand steps; its elimination by known places is accurate all the way."""
    run = simulate(bicycle.system(), SemiImplicitDLA(), *bicycle.typical_state(), step_size=0.005, steps=3000)
    assert run.report.iterations.max() <= 4


def test_the_command_writes_what_it_measured(tmp_path, monkeypatch):
    row = {"first result": 0.9, "us per step": 1.7, "ms of ten steps": 0.4}
    monkeypatch.setattr(bodies, "printed_by", lambda *_: dict(row))
    file = tmp_path / "bodies.json"
    done = CliRunner().invoke(app, ["bench", "bodies", "--markdown", "--json", str(file)])
    assert done.exit_code == 0, done.output
    assert "| ball | EnergyCollocation(3) | 0.90 s | 0.90 s | 1.7 us | 0.4 ms |" in done.output
    rows = json.loads(file.read_text())["rows"]
    assert [(x["body"], x["method"]) for x in rows][-1] == ("bicycle", "EnergyCollocation(3)")


def test_times_are_those_of_runs():
    found = bodies.times("ball", SemiImplicitDLA(), many=200)
    assert set(found) == {"first result", "us per step", "ms of ten steps"}
    assert 0 < found["us per step"] < 1e3
