"""A project outside of this one, written from `docs/how_to/add_an_integrator.md` alone: a method, a system.

It lives in a folder of its own, runs in processes of its own, and touches no private name.
"""

from __future__ import annotations

import ast
import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PROJECT = Path(__file__).parent / "project"
PAGE = (ROOT / "docs" / "how_to" / "add_an_integrator.md").read_text()
FILES = sorted(PROJECT.glob("*.py"))
METHOD, SYSTEM = "trapezoid.py:Trapezoid", "ribbon.py:system"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for file in FILES:
        shutil.copy(file, tmp_path)
    return tmp_path


def python(folder: Path, *arguments: str, path: str = "") -> str:
    """What a process prints that knows noslip and this folder, and nothing else of the repository."""
    source = os.pathsep.join([str(ROOT / "src"), *([path] if path else [])])
    command = [sys.executable, "-W", "error", *arguments]
    done = subprocess.run(
        command,
        cwd=folder,
        env={**os.environ, "PYTHONPATH": source},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


COMMANDS = """
from noslip.cli import app
for command in {commands}:
    if code := app(command, standalone_mode=False):
        raise SystemExit(code)
"""


def noslip(folder: Path, *commands: list[str], before: str = "", path: str = "") -> str:
    """What commands print, one after another in one process, since each process imports JAX anew."""
    return python(folder, "-c", before + COMMANDS.format(commands=commands), path=path)


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.name)
def test_the_page_shows_the_file_whole(file: Path) -> None:
    assert f"```python\n{file.read_text()}```" in PAGE


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.name)
def test_no_private_name_is_touched(file: Path) -> None:
    named = []
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.ImportFrom):
            named += [*(node.module or "").split("."), *(alias.name for alias in node.names)]
        elif isinstance(node, ast.Import):
            named += [part for alias in node.names for part in alias.name.split(".")]
        elif isinstance(node, ast.Attribute):
            named.append(node.attr)
    assert named
    assert [name for name in named if name.startswith("_")] == []


def test_the_method_is_not_a_variant_of_one_that_is_here() -> None:
    bases = re.findall(r"class \w+\((\w+)\):", (PROJECT / "trapezoid.py").read_text())
    assert bases == ["Integrator"]
    assert "families" not in "".join(file.read_text() for file in FILES)


@pytest.mark.thorough
@pytest.mark.parametrize("optimised", [(), ("-O",)], ids=["plain", "with -O"])
def test_both_keep_what_they_promise_and_a_prouder_claim_is_refuted_as_the_page_says(
    folder: Path, optimised: tuple[str, ...]
) -> None:
    (folder / "proud.py").write_text(
        "import check\n"
        "from trapezoid import Trapezoid\n"
        "from noslip.testing import CheckFailed, check_integrator\n"
        "class Proud(Trapezoid):\n    order = 3\n"
        "try:\n    check_integrator(Proud())\n"
        "except CheckFailed as failure:\n    print(f'{type(failure).__name__}: {failure}')\n"
    )
    kept, refuted = python(folder, *optimised, "proud.py").splitlines()
    assert kept == "both keep what they promise"
    assert refuted.startswith("CheckFailed: Proud()")
    assert refuted.replace("Proud()", "Trapezoid()").partition("(errors")[0] in PAGE


def test_it_runs_on_the_command_line_and_again_from_its_file(folder: Path) -> None:
    how = ["--integrator", METHOD]
    said = noslip(
        folder,
        ["run", SYSTEM, *how, "--step-size", "0.05", "--t-end", "10", "-o", "bead.nc"],
        ["rerun", "bead.nc", "--system", SYSTEM, *how],
        ["report", "bead.nc", "-o", "bead.html", "--system", SYSTEM, *how],
    )
    ran, again = said.split("wrote bead.nc\n")
    assert "Trapezoid" in ran
    assert "identical bit for bit" in again
    assert "Trapezoid" in (folder / "bead.html").read_text()


@pytest.mark.slow
def test_it_stands_on_the_scoreboard(folder: Path) -> None:
    table = noslip(folder, ["scoreboard", "--system", SYSTEM, "-i", METHOD, "--steps", "200"])
    row = next(line for line in table.splitlines() if "Trapezoid()" in line)
    order = float(row.split("|")[6])
    assert abs(order - 2) < 0.15


@pytest.mark.slow
def test_work_and_precision(folder: Path) -> None:
    table = python(folder, "compare.py")
    for name in ("Trapezoid()", "SemiImplicitDLA()"):
        errors = [float(line.split("|")[5]) for line in table.splitlines() if f"`{name}`" in line]
        assert len(errors) == 3
        assert errors[0] > 3.5 * errors[1] > 12 * errors[2]  # second order


def test_an_installed_package_offers_it_by_entry_points(tmp_path: Path) -> None:
    packages, elsewhere = tmp_path / "packages", tmp_path / "elsewhere"
    shutil.copytree(PROJECT, packages / "my_package")
    elsewhere.mkdir()
    about = packages / "my_package-1.0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: my_package\nVersion: 1.0\n")
    groups = tomllib.loads("[project." + PAGE.partition("```text\n[project.")[2].partition("```")[0])
    for group, points in groups["project"]["entry-points"].items():
        with (about / "entry_points.txt").open("a") as file:
            file.write("\n".join([f"[{group}]", *(f"{k} = {v}" for k, v in points.items()), ""]))
    code = "from noslip.integrators import Trapezoid, find; print(Trapezoid(), find('Trapezoid').__module__)"
    command = ["run", "ribbon", "--integrator", "Trapezoid", "--step-size", "0.05", "--steps", "20"]
    said, *ran = noslip(elsewhere, command, before=code, path=str(packages)).splitlines()
    assert said == "Trapezoid() my_package.trapezoid"
    assert "Trapezoid" in "".join(ran)
