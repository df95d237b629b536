"""Every script in examples/ runs as a user would run it, with warnings as errors; those with a file of their
own in tests/examples are run there."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import noslip

EXAMPLES = Path(__file__).parents[1] / "examples"
OWN = {path.stem.removeprefix("test_") for path in (Path(__file__).parent / "examples").glob("test_*.py")}
NUMBERED = sorted(path for path in EXAMPLES.glob("[0-9][0-9]_*.py") if path.stem[3:] not in OWN)


def run(script: Path, folder: Path, *arguments: str) -> str:
    command = [sys.executable, "-W", "error", str(script), *arguments]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=240)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.thorough
@pytest.mark.parametrize("script", NUMBERED, ids=lambda path: path.stem)
def test_numbered_example_runs(script: Path, tmp_path: Path) -> None:
    assert run(script, tmp_path)
    # what a script writes goes to the folder that it names
    assert {path.name for path in tmp_path.iterdir()} <= {"demo-output"}


def test_there_are_examples() -> None:
    assert len(NUMBERED) >= 4


def test_demo_writes_a_picture_and_a_run(tmp_path: Path) -> None:
    output = run(EXAMPLES / "demo.py", tmp_path, "--t-end", "40")
    for words in ("VelocityNonholonomic", "RungeKutta4", "energy", "constraint", "iterations", "gearbox.png"):
        assert words in output
    assert (tmp_path / "demo-output" / "gearbox.png").read_bytes().startswith(b"\x89PNG")
    saved = noslip.load(tmp_path / "demo-output" / "gearbox.nc")
    assert saved.info.source == "gearbox"
    assert saved.t[-1] == pytest.approx(40.0)
