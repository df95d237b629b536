"""`noslip rerun`: the same bits, or a sentence that says by how much and why not."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

import noslip
from noslip.cli import app
from noslip.integrators.velocity_nonholonomic import VelocityNonholonomic
from noslip.simulate import simulate
from noslip.systems import chaplygin_sleigh

SLEIGH = ("run", "chaplygin_sleigh", "--integrator", "VelocityNonholonomic", "--step-size", "0.1")


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Each test works in an empty folder of its own."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


def call(*arguments: str) -> Result:
    return CliRunner().invoke(app, list(arguments))


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("written") / "sleigh.nc"
    call(*SLEIGH, "--steps", "20", "--save-every", "3", "--set", "a=0.5", "--t0", "1", "-o", str(path))
    return path


@pytest.fixture
def saved(written: Path) -> Path:
    return Path(shutil.copy(written, "sleigh.nc"))


def test_rerun_is_identical_and_writes_on_request(saved: Path) -> None:
    result = call("rerun", str(saved), "-o", "again.nc")
    assert result.exit_code == 0, result.output
    assert "identical bit for bit: 8 saved times" in result.output
    assert noslip.load("again.nc") == noslip.load(saved)


def test_rerun_of_a_run_from_python() -> None:
    run = simulate(
        chaplygin_sleigh.system(), VelocityNonholonomic(), *chaplygin_sleigh.typical_state(),
        step_size=0.1, steps=5, parameters={"m": 2.0},
    )  # fmt: skip
    run.save("a.nc")
    assert call("rerun", "a.nc").exit_code == 0


def test_rerun_says_by_how_much_it_differs(saved: Path) -> None:
    run = noslip.load(saved)
    replace(run, q=run.q + 1e-6).save("other.nc")
    result = call("rerun", "other.nc")
    assert result.exit_code == 4
    assert "q: 1.0e-06" in result.output
    assert "all versions are the same" in result.output


def test_rerun_names_other_versions(saved: Path) -> None:
    run = noslip.load(saved)
    info = replace(run.info, versions={**run.info.versions, "jax": "0.0.1"})
    replace(run, info=info, v=run.v * (1 + 1e-15)).save("other.nc")
    result = call("rerun", "other.nc")
    assert result.exit_code == 4
    assert "jax 0.0.1 then" in result.output


def test_rerun_refuses_what_it_cannot_rebuild(saved: Path) -> None:
    run = noslip.load(saved)
    replace(run, info=replace(run.info, source="")).save("a.nc")
    assert "does not say where its system came from" in call("rerun", "a.nc").stderr
    replace(run, info=replace(run.info, coordinates=("a", "b", "c"))).save("a.nc")
    assert "built by other means" in call("rerun", "a.nc").stderr
    replace(run, info=replace(run.info, source="gone.py:x")).save("a.nc")
    assert "there is no file 'gone.py'" in call("rerun", "a.nc", "--system", "gone.py:x").stderr


def test_rerun_of_other_files() -> None:
    Path("text").write_text("hello")
    for name, words in (
        ("absent.nc", "there is no file 'absent.nc'"),
        ("text", "'text' is not a NetCDF file"),
    ):
        result = call("rerun", name, "-o", "new.nc")
        assert result.exit_code == 2
        assert result.stderr == f"noslip: {words}\n"
    assert not Path("new.nc").exists()


def test_rerun_does_not_overwrite_its_file(saved: Path) -> None:
    result = call("rerun", str(saved), "-o", str(saved))
    assert result.exit_code == 2
    assert "another file" in result.stderr
