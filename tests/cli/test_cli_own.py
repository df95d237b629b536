"""Methods and systems of a user's own file or package on the command line: everywhere a built-in one goes."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from PIL import Image
from typer.testing import CliRunner, Result

import noslip
from noslip import report
from noslip.cli import app

SYSTEM = """
import jax.numpy as jnp
from noslip import System

def lagrangian(q, v, p):
    return 0.5 * jnp.dot(v, v) - p["k"] * (q[0] ** 2 + q[1] ** 2)

def one_forms(q, p):
    return jnp.array([[-q[1], 0.0, 1.0]])

def system(k: float = 1.0):
    return System(lagrangian, one_forms=one_forms, coordinates=("x", "y", "z"), parameters={"k": k})

def typical_state():
    return [0.2, 0.5, -0.1], [0.8, 0.6, 0.4]

def picture(q, parameters):
    with open("pictures", "a") as file:
        file.write("x")
    return (jnp.array([[q[0], q[1]], [q[0] + 1, q[1]]]),)
"""
METHOD = '''
from dataclasses import dataclass
from noslip.integrators import VelocityNonholonomic

@dataclass(frozen=True)
class Own(VelocityNonholonomic):
    """The user's own method."""

    beta: float = 0.25
    reference = "Page 3"
'''
HOW = ("--step-size", "0.1", "--steps", "10")


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    write_files()
    return tmp_path


def write_files() -> None:
    Path("mine.py").write_text(SYSTEM)
    Path("method.py").write_text(METHOD)


def call(*arguments: str) -> Result:
    return CliRunner().invoke(app, list(arguments))


def ran(*arguments: str) -> str:
    result = call(*arguments)
    assert result.exit_code == 0, result.output
    return result.output


@contextlib.contextmanager
def traps() -> Iterator[None]:
    """No command runs the files that a saved run names: meanwhile they would leave a trace."""
    for name in ("mine.py", "method.py"):
        Path(name).write_text("from pathlib import Path\nPath('was_run').touch()\n")
    yield
    assert not Path("was_run").exists()
    write_files()


def test_run_and_rerun_of_an_own_system_with_an_own_method() -> None:
    output = ran("run", "mine.py:system", "-i", "method.py:Own", "--option", "beta=0.5", *HOW, "-o", "a.nc")
    assert "Own(beta=0.5" in output
    run = noslip.load("a.nc")
    assert (run.info.source, run.info.integrator_source) == ("mine.py:system", "method.py:Own")
    with traps():
        refused = call("rerun", "a.nc")
    assert refused.exit_code == 2
    advice = "noslip rerun a.nc --system mine.py:system --integrator method.py:Own"
    assert advice in refused.stderr
    assert len(refused.stderr.splitlines()) == 1
    assert "identical bit for bit" in ran(*advice.split()[1:])
    ran("run", "mine.py:system", "-i", "Composition(base=method.py:Own(beta=0.5))", *HOW, "-o", "b.nc")
    assert "identical" in ran(
        "rerun", "b.nc", "--system", "mine.py:system", "-i", "Composition(method.py:Own(beta=0.5))"
    )


@pytest.fixture
def only_words(monkeypatch: pytest.MonkeyPatch) -> None:
    """Reports without pictures, which others look at."""
    monkeypatch.setattr(report, "_picture", lambda *_: "")


@pytest.mark.usefixtures("only_words")
def test_report_leaves_out_what_it_was_not_given_and_says_how_to_have_it() -> None:
    ran("run", "mine.py:system", "-i", "method.py:Own", *HOW, "-o", "a.nc")
    with traps():
        output = ran("report", "a.nc", "-o", "a.html")
    page = Path("a.html").read_text()
    for lacks, option in (
        ("equations", "--system mine.py:system"),
        ("promises", "--integrator method.py:Own"),
    ):
        said = f"The {lacks} are left out: the run names {option.split()[1]}, and code that is not part of "
        assert said in output
        assert said in page
        assert f"`noslip report FILE {option}` has them." in page
    assert "Page 3" not in page
    output = ran("report", "a.nc", "-o", "a.html", "--system", "mine.py:system", "-i", "method.py:Own")
    page = Path("a.html").read_text()
    assert "left out" not in page + output
    assert "Page 3" in page
    assert page.count("<svg") == 3


def test_animate_draws_the_picture_of_an_own_system() -> None:
    ran("run", "mine.py:system", "-i", "RungeKutta4", *HOW, "-o", "a.nc")
    ran("animate", "a.nc", "-o", "a.gif", "--seconds", "0.2")
    assert not Path("pictures").exists()
    ran("animate", "a.nc", "-o", "a.gif", "--seconds", "0.2", "--system", "mine.py:system")
    with Image.open("a.gif") as film:
        assert film.n_frames == len(Path("pictures").read_text()) == 3


def test_scoreboard_measures_own_methods_on_own_systems() -> None:
    output = ran("scoreboard", "--system", "mine.py:system", "-i", "method.py:Own(beta=0.5)", "--steps", "20")
    assert "## mine.py:system" in output
    assert "| `Own(beta=0.5)` |" in output
    assert "| 2.0" in output  # the order that was measured


def test_ensemble_goes_on_with_an_own_method() -> None:
    pytest.importorskip("zarr")
    arguments = ("--members", "3", "--vary", "k=1:2", "-o", "a.zarr")
    command = ("ensemble", "mine.py:system", "-i", "method.py:Own", *HOW, *arguments)
    assert "3 done" in ran(*command)
    assert "3 done" in ran(*command)


@pytest.mark.usefixtures("only_words")
def test_tables_list_what_installed_packages_offer(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    info = folder / "own-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: own\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(
        "[noslip.systems]\nrobot = mine\n[noslip.integrators]\nOwn = method:Own\n"
    )
    monkeypatch.syspath_prepend(folder)
    try:
        assert "robot" in ran("systems")
        assert "| `Own` |" in ran("integrators", "--markdown")
        ran("run", "robot", "-i", "Own", *HOW, "-o", "a.nc")
        assert "identical bit for bit" in ran("rerun", "a.nc")
        assert "left out" not in ran("report", "a.nc", "-o", "a.html")
    finally:
        for name in ("mine", "method"):
            sys.modules.pop(name, None)
