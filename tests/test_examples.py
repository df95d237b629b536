"""Every script in examples/ and every example of the README runs as a user would run it, with warnings as
errors; those scripts that a file in tests/examples is about are run there."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

import noslip

ROOT = Path(__file__).parents[1]
EXAMPLES = ROOT / "examples"
ELSEWHERE = "".join(path.read_text() for path in (Path(__file__).parent / "examples").glob("test_*.py"))
NUMBERED = sorted(path for path in EXAMPLES.glob("[0-9][0-9]_*.py") if path.stem not in ELSEWHERE)
README = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), flags=re.DOTALL)
# scripts one after the other, each as the main module in its folder; most of their time is imports
IN_TURN = """
import contextlib, io, json, os, runpy, sys
said = []
for folder, *sys.argv in json.load(sys.stdin):
    os.chdir(folder)
    with contextlib.redirect_stdout(io.StringIO()) as out:
        runpy.run_path(sys.argv[0], run_name="__main__")
    said.append(out.getvalue())
print(json.dumps(said))
"""


def run(*command: str, folder: Path, given: str = "") -> str:
    done = subprocess.run(
        [sys.executable, "-W", "error", *command],
        cwd=folder, capture_output=True, text=True, timeout=240, input=given,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.slow
@pytest.mark.parametrize("script", NUMBERED, ids=lambda path: path.stem)
def test_numbered_example_runs(script: Path, tmp_path: Path) -> None:
    assert run(str(script), folder=tmp_path)
    # what a script writes goes to the folder that it names
    assert {path.name for path in tmp_path.iterdir()} <= {"demo-output"}


def test_there_are_examples() -> None:
    assert len(NUMBERED) >= 4
    assert len(README) == 3


def test_those_of_the_readme_the_first_and_the_demo_run(tmp_path: Path) -> None:
    readme, first, demo = (tmp_path / name for name in ("readme", "first", "demo"))
    scripts = [[str(first), str(NUMBERED[0])], [str(demo), str(EXAMPLES / "demo.py"), "--t-end", "40"]]
    for folder in (readme, first, demo):
        folder.mkdir()
    for number, code in enumerate(README):
        (readme / f"{number}.py").write_text(code)
        scripts.insert(number, [str(readme), str(readme / f"{number}.py")])
    *of_readme, of_first, of_demo = json.loads(run("-c", IN_TURN, folder=tmp_path, given=json.dumps(scripts)))

    for words, said in zip(("1000 steps", "nonholonomic", "native"), of_readme, strict=True):
        assert words in said
    assert noslip.load(readme / "particle.nc").success
    assert (readme / "particle.png").is_file()

    assert of_first
    assert {path.name for path in first.iterdir()} <= {"demo-output"}

    for words in ("VelocityNonholonomic", "RungeKutta4", "energy", "constraint", "iterations", "gearbox.png"):
        assert words in of_demo
    assert (demo / "demo-output" / "gearbox.png").read_bytes().startswith(b"\x89PNG")
    saved = noslip.load(demo / "demo-output" / "gearbox.nc")
    assert saved.info.source == "gearbox"
    assert saved.t[-1] == pytest.approx(40.0)
