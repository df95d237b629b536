"""The benchmark of long energy, on runs short enough for a test: its numbers are those of the runs."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_allclose
from typer.testing import CliRunner

from noslip import simulate
from noslip.bench import energy
from noslip.cli import app
from noslip.integrators.discrete_gradient import DiscreteGradient
from noslip.integrators.runge_kutta4 import RungeKutta4
from noslip.systems import gearbox

pytestmark = pytest.mark.native


@pytest.fixture
def short(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two methods and few steps."""
    monkeypatch.setattr(energy, "COMPARED", (DiscreteGradient(), RungeKutta4()))
    monkeypatch.setattr(energy, "LONG", (DiscreteGradient(),))
    for name, steps in (("PART_STEPS", 12_000), ("LONG_STEPS", 20_000), ("LONGEST_STEPS", 30_000)):
        monkeypatch.setattr(energy, name, steps)


@pytest.mark.slow
@pytest.mark.usefixtures("short")
def test_the_command_shows_and_writes_what_the_runs_give(tmp_path: Path) -> None:
    target = tmp_path / "energy.json"
    done = CliRunner().invoke(app, ["bench", "energy", "--full", "--json", str(target)])
    assert done.exit_code == 0, done.output
    assert done.output.count("slope") == 2
    assert "llvmlite" in done.output
    result = json.loads(target.read_text())
    exact, plain, long, longest = result["rows"]
    assert (long["steps"], longest["steps"]) == (20_000, 30_000)
    run = simulate(gearbox.system(), RungeKutta4(), *gearbox.typical_state(), step_size=0.1, steps=12_000)
    parts = run.first_integrals["oscillator_energy"]
    assert_allclose(plain["oscillator_energy"], np.max(np.abs(parts / parts[0] - 1)), rtol=1e-12)
    assert_allclose(plain["energy"], np.max(np.abs(run.energy / run.energy[0] - 1)), rtol=1e-12)
    assert 0.1 < plain["error"] < 0.5  # t = 1000
    assert plain["evaluations"] is None
    assert max(exact["energy"], long["energy"], longest["energy"]) < 4e-15
    assert abs(long["slope"]) < 5 * long["standard error"]
    assert longest["oscillator_energy"] >= long["oscillator_energy"] >= exact["oscillator_energy"] > 0.1
    first, second = energy.markdown(result)
    assert first.splitlines()[0].startswith("| method | steps | energy | oscillators")
    assert "| `RungeKutta4()` |" in first
    assert "| 2e4 |" in second


def test_a_run_that_loses_its_energy_has_a_row_up_to_there() -> None:
    row = energy.parts(RungeKutta4(), 120_000, np.zeros(3))
    assert 1.1e5 < row["steps"] < 1.2e5
    assert row["energy"] > 1e8


def test_a_file_that_cannot_be_written_is_refused_before_anything_runs(tmp_path: Path) -> None:
    done = CliRunner().invoke(app, ["bench", "energy", "--json", str(tmp_path / "none" / "x.json")])
    assert done.exit_code == 2
    assert "`--json` must be a file in a folder that exists" in done.output
