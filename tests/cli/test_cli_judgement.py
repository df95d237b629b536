"""Commands that judge: reduce, scoreboard."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from noslip.cli import app


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def call(*arguments: str) -> Result:
    return CliRunner().invoke(app, list(arguments))


def test_reduce_tells_group_metric_and_multiplier() -> None:
    result = call("reduce", "two_wheeled_robot", "--group", "planar")
    assert result.exit_code == 0, result.output
    assert "planar of x, y, theta" in result.output
    assert "f after a turn of psi_left" in result.output
    assert "multiplied by 1.45652" in result.output
    assert "no: the integrability defect" in call("reduce", "chaplygin_sleigh").output
    refused = call("reduce", "two_wheeled_robot")
    assert refused.exit_code == 2
    assert "no Chaplygin system under translations" in refused.stderr
    assert (
        "`group` must be one of translations, planar, rotations, or like"
        in call("reduce", "fbo_particle", "--group", "so3").stderr
    )


def test_scoreboard_measures_the_methods_that_were_asked_for() -> None:
    result = call("scoreboard", "--system", "gearbox", "-i", "RungeKutta4", "--steps", "50")
    assert result.exit_code == 0, result.output
    assert "| `RungeKutta4()` |" in result.output
    assert "did you mean 'gearbox'" in call("scoreboard", "--system", "gearbx").stderr


def test_scoreboard_says_what_kind_of_motion_it_is_and_writes_the_numbers() -> None:
    more = ("--also", "SemiImplicitDLA", "--json", "scores.json")
    result = call("scoreboard", "--system", "gearbox", "-i", "RungeKutta4", "--steps", "50", *more)
    assert result.exit_code == 0, result.output
    assert "Integrable and not reversible" in result.output
    written = json.loads(Path("scores.json").read_text())
    assert [row["method"] for row in written["rows"]] == ["RungeKutta4()", "SemiImplicitDLA()"]
    assert written["steps"] == 50
