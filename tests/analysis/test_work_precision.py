"""Work against precision: the errors are those of the calls, and what could not be run says why."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from noslip import simulate
from noslip.analysis import work_precision as wp
from noslip.cli import app
from noslip.integrators.discrete_gradient import DiscreteGradient
from noslip.integrators.hamiltonized_del import HamiltonizedDEL
from noslip.integrators.runge_kutta4 import RungeKutta4
from noslip.systems import gearbox, knife_edge, nonholonomic_particle


@pytest.fixture(autouse=True)
def _few_rounds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(wp, "ROUNDS", 1)


def test_the_errors_are_those_of_the_call_and_fall_with_the_order() -> None:
    system, (q, v) = nonholonomic_particle.system(k=0.0), nonholonomic_particle.typical_state()

    def exact(t: float) -> wp.State:
        q1, v1, *_ = nonholonomic_particle.exact(np.array([t]), q, v)
        return q1[0], v1[0]

    points = wp.work_precision(
        system, [RungeKutta4(), DiscreteGradient()], q, v, t_end=4.0, steps=(20, 40), reference=exact
    )
    assert [(p.by, p.setting) for p in points] == [
        (f"{name}()", f"{steps} steps") for name in ("RungeKutta4", "DiscreteGradient") for steps in (20, 40)
    ]
    end = simulate(system, DiscreteGradient(), q, v, step_size=0.1, steps=40)
    truth = exact(4.0)
    expected = max(np.max(np.abs(end.q[-1] - truth[0])), np.max(np.abs(end.v[-1] - truth[1])))
    assert points[3].error == expected
    assert 12 < points[0].error / points[1].error < 20
    assert 3.5 < points[2].error / points[3].error < 4.5
    assert points[3].energy_error < 1e-14 < points[0].energy_error
    assert all(0 < p.seconds < p.first_call for p in points[::2])


def test_the_reference_flow_is_the_truth_where_none_is_given() -> None:
    system, (q, v) = knife_edge.system(), knife_edge.typical_state()
    own, given = (
        wp.work_precision(system, [RungeKutta4()], q, v, t_end=2.0, steps=(20,), reference=reference)[0]
        for reference in (None, lambda t: tuple(x[0] for x in knife_edge.exact(np.array([t]), q, v)[:2]))
    )
    assert own.error == pytest.approx(given.error, rel=1e-4)


def test_a_method_with_its_own_time_is_judged_at_the_time_that_it_reached() -> None:
    system, (q, v) = nonholonomic_particle.system(k=0.0), nonholonomic_particle.typical_state()
    point = wp.work_precision(system, [HamiltonizedDEL()], q, v, t_end=2.0, steps=(400,))[0]
    run = simulate(system, HamiltonizedDEL(), q, v, step_size=2.0 / 400, steps=400)
    assert abs(run.t[-1] - 2.0) > 0.01
    assert point.error < 1e-3


def test_a_method_that_does_not_apply_is_a_point_with_the_reason() -> None:
    points = wp.work_precision(
        gearbox.system(), [HamiltonizedDEL(), RungeKutta4()], *gearbox.typical_state(), t_end=1.0, steps=(50,)
    )
    assert [p.by for p in points] == ["RungeKutta4()", "HamiltonizedDEL()"]
    assert points[1].seconds is None
    assert "Lagrangian must be invariant" in points[1].note
    assert "Lagrangian must be invariant" in wp.as_markdown(points)


def test_a_solver_that_fails_is_a_point_and_after_a_long_one_no_finer_is_run() -> None:
    calls = []

    def fail() -> wp.Solver:
        raise ArithmeticError("it did not\nconverge")

    def slow() -> wp.Solver:
        calls.append("slow")
        return lambda: (1.0, *([sum(i * i for i in range(20000))] for _ in range(2)))

    rivals = [wp.Rival("a", "1", fail), wp.Rival("b", "1", slow), wp.Rival("b", "2", slow)]
    points = wp.points(rivals, lambda t, q, v: (0.0, 0.0, 0.0), longest=1e-5)
    assert points[0].note == "it did not"
    assert points[1].seconds > 1e-5
    assert points[2].note.startswith("not run, since the point before took")
    assert calls == ["slow"]


def test_an_end_before_the_start_is_refused() -> None:
    with pytest.raises(ValueError, match="`t_end` must be a time after t0 = 0, but -1"):
        wp.work_precision(knife_edge.system(), [], *knife_edge.typical_state(), t_end=-1)


def test_the_command_prints_and_writes_the_points(tmp_path: Path) -> None:
    target, picture = tmp_path / "points.json", tmp_path / "points.png"
    words = ["work-precision", "knife_edge", "-i", "RungeKutta4", "-i", "DiscreteGradient('mean_value')"]
    words += ["--t-end", "1", "--steps", "10", "--steps", "20", "--json", str(target), "--plot", str(picture)]
    done = CliRunner().invoke(app, words)
    assert done.exit_code == 0, done.output
    assert done.output.count("DiscreteGradient(gradient='mean_value')") == 2
    rows = json.loads(target.read_text())["rows"]
    assert [row["setting"] for row in rows] == ["10 steps", "20 steps"] * 2
    assert rows[1]["error"] < rows[0]["error"] < 1e-2
    assert picture.read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["-i", "RungeKutta5"], "unknown integrator 'RungeKutta5'"),
        (["-i", "RungeKutta4", "--plot", "x.txt"], "`--plot` must end in .png"),
        (["-i", "RungeKutta4", "--t-end", "0"], "`t_end` must be a time after"),
        (["-i", "RungeKutta4", "--steps", "0"], "`steps` must be"),
    ],
)
def test_bad_input_of_the_command_is_one_sentence(words: list[str], message: str) -> None:
    done = CliRunner().invoke(app, ["work-precision", "knife_edge", *words])
    assert done.exit_code == 2
    assert message in done.stderr
    assert done.stderr.count("\n") == 1
