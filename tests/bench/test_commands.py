"""The commands of `noslip bench`: what is installed, and what a checkout adds."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from benchmarks import commands, page
from noslip.bench import checkout
from noslip.cli import app
from noslip.studies import cfhm_variance

ROOT = Path(__file__).parents[2]
INSTALLED = {"engine", "kernels", "energy", "programs", "ensembles", "bodies", "variance"}
OF_CHECKOUT = {
    "calls",
    "whole-calls",
    "encounters",
    "large",
    "engine",
    "peers",
    "researcher",
    "rolling",
    "size",
    "sliders",
    "wasm",
    "wasm-pairs",
    "gpu",
    "page",
}


def test_a_checkout_adds_its_commands() -> None:
    assert checkout.folder() == ROOT / "benchmarks"
    assert set(checkout.commands()) == OF_CHECKOUT
    shown = CliRunner().invoke(app, ["bench", "--help"]).output
    for name in INSTALLED | OF_CHECKOUT:
        assert f"\n  {name} " in shown
        assert CliRunner().invoke(app, ["bench", name, "--help"]).exit_code == 0
    assert "printed from" in CliRunner().invoke(app, ["bench", "engine", "--help"]).output


def test_an_installation_says_in_one_sentence_what_it_has(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checkout, "folder", lambda: None)
    done = CliRunner().invoke(app, ["bench", "peers"])
    assert done.exit_code == 2
    assert done.stderr == (
        "noslip: 'peers' needs a checkout of the repository; "
        "installed are engine, kernels, energy, programs, ensembles, bodies, variance\n"
    )
    assert "peers" not in CliRunner().invoke(app, ["bench", "--help"]).output
    assert "printed from" not in CliRunner().invoke(app, ["bench", "engine", "--help"]).output


def test_the_folder_has_its_own_command() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks", "--help"], cwd=ROOT, capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 0, done.stderr
    for name in OF_CHECKOUT:
        assert f"\n  {name} " in done.stdout


def test_the_page_command_writes_the_pages_that_are_there(tmp_path: Path) -> None:
    docs = tmp_path / "docs"
    (docs / "images").mkdir(parents=True)
    for name in page.PAGES:
        (docs / name).parent.mkdir(exist_ok=True)
        text = (ROOT / "docs" / name).read_text()
        emptied = re.sub(r"(begin -->\n).*?(?=<!-- [^:]+: end)", r"\1", text, flags=re.DOTALL)
        assert len(emptied) < len(text)
        (docs / name).write_text(emptied)
    done = CliRunner().invoke(commands.app, ["page", str(ROOT / "docs" / "measured"), "-o", str(docs)])
    assert done.exit_code == 0, done.output
    for name in page.PAGES:
        assert (docs / name).read_text() == (ROOT / "docs" / name).read_text()
    assert (docs / "images" / "work_precision.png").stat().st_size > 50_000


def test_a_gpu_is_asked_for_in_one_sentence(tmp_path: Path) -> None:
    import jax

    if jax.default_backend() == "gpu":
        pytest.skip("there is one here")
    done = CliRunner().invoke(commands.app, ["gpu", str(tmp_path)])
    assert done.exit_code == 2
    assert "this needs a GPU, but JAX sees" in done.stderr


def test_the_variance_is_that_of_the_study(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []

    def measure(members: int, show: object, **how: object) -> dict[str, object]:
        asked.append((members, how))
        return {"sampling seconds": 0.0, "rows": [], "step size": 0.1}

    monkeypatch.setattr(cfhm_variance, "measure", measure)
    target = tmp_path / "variance.json"
    words = ["bench", "variance", "--members", "30", "--method", "SPARK", "--json", str(target)]
    done = CliRunner().invoke(app, words)
    assert done.exit_code == 0, done.output
    assert asked == [(30, {"methods": ("SPARK",), "backend": "auto"})]
    assert json.loads(target.read_text())["benchmark"] == "variance"
    assert "unknown method 'SPARKS'" in CliRunner().invoke(app, [*words[:4], "--method", "SPARKS"]).stderr
