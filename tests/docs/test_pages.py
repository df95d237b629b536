"""What the pages say is run: every block of code, in order, page by page; and what they name exists.

The tutorials are run whole whenever the site is built, by `make check`; an error ends the build.
"""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path

import pytest
from typer.testing import CliRunner

from noslip import studies
from noslip.cli import app

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
BLOCK = re.compile(r"^```(?:\{code-cell\} )?(\w*)[^\n]*\n(.*?)^```", flags=re.DOTALL | re.MULTILINE)
FILE = re.compile(r"# (\w+\.py)\n")  # the first line of a block that is a whole file
PAGES = {str(path.relative_to(DOCS)): path.read_text() for path in sorted(DOCS.rglob("*.md"))}
HOW_TO = [name for name in PAGES if name.startswith("how_to/") and not name.endswith("/index.md")]
WITH_CODE = [name for name, text in PAGES.items() if BLOCK.search(text)]
LONG = {
    "ensembles.md",
    "tutorial.md",
    "quickstart.md",
    "rolling_in_space.md",
    "examples/identify_a_sleigh.md",
    "examples/model_predictive_control.md",
    "examples/puck_in_a_box.md",
    "examples/parallel_parking.md",
    "examples/snakeboard_gait.md",
    "tutorials/a_penny_in_sympy.md",
    "tutorials/figure_4_of_cfhm.md",
    "tutorials/which_method_keeps_what.md",
    "how_to/add_a_system.md",
    "how_to/build_from_bodies.md",
    "how_to/choose_an_integrator.md",
    "how_to/draw_a_run.md",
    "how_to/make_a_live_page.md",
    "how_to/time_and_inputs.md",
    "mathematics/relatives.md",
    "mathematics/cfhm.md",
    "mathematics/fbo.md",
}


@pytest.mark.parametrize(
    "page", [pytest.param(p, marks=pytest.mark.slow) if p in LONG else p for p in WITH_CODE]
)
def test_every_block_runs(page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    if page.startswith("tutorials/"):
        monkeypatch.setattr("matplotlib.pyplot.show", lambda: None)
    names: dict[str, object] = {"__name__": f"page_{page}"}
    for language, block in BLOCK.findall(PAGES[page]):
        if language == "python" and (file := FILE.match(block)):
            Path(file.group(1)).write_text(block)  # for the commands; `tests/outside` runs what it says
        elif language == "python":
            exec(compile(block, page, "exec", dont_inherit=True), names)
        elif language == "console":
            for line in block.splitlines():
                assert line.startswith("$ noslip "), (
                    f"{page}: a console block holds commands, but has {line!r}"
                )
                result = CliRunner().invoke(app, shlex.split(line)[2:])
                assert result.exit_code == 0, f"{line}\n{result.output}"
        else:
            assert language == "text", f"{page}: a block must be python, console or text, but is {language!r}"


def test_there_is_code_on_every_page_that_teaches() -> None:
    for page in ("index.md", "quickstart.md", "tutorial.md", *HOW_TO):
        assert page in WITH_CODE


@pytest.mark.parametrize("paper", ["js", "lms", "cfhm", "fbo", "pp"])
def test_every_test_that_the_errata_name_exists(paper: str) -> None:
    text = PAGES[f"errata/{paper}.md"]
    own = (ROOT / "tests" / "errata" / f"test_{paper}.py").read_text()
    files = [ROOT / name for name in re.findall(r"`(tests/[\w/]+\.py)`", text)]
    assert all(file.is_file() for file in files)
    everything = own + "".join(file.read_text() for file in files)
    named = set(re.findall(r"`(test_\w+)`", text))
    assert named
    assert [name for name in sorted(named) if f"def {name}(" not in everything] == []


@pytest.mark.parametrize("name", studies.names())
def test_the_gallery_shows_the_numbers_of_this_version(name: str) -> None:
    """The stored results of the full form have the rows and verdicts of the quick form, which is tested, and
    those rows that only the full form has."""
    shown = json.loads((DOCS / "studies" / f"{name}.json").read_text())
    assert shown["full"]
    assert (DOCS / "studies" / f"{name}.png").is_file()
    tested = json.loads((ROOT / "tests" / "studies" / "stored.json").read_text())[name]
    only = {row.quantity for row in studies.find(name).ROWS.values() if row.full}
    rows = {row["quantity"]: row["verdict"] for row in shown["rows"] if row["quantity"] not in only}
    assert rows == {quantity: verdict for quantity, (_, verdict) in tested.items()}
