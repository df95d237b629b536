"""The pages of the repository say what is true: tables match, links and files exist; test_examples.py runs
what the README shows."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from typer.testing import CliRunner

import noslip
from noslip.cli import app
from noslip.integrators.base import VOCABULARY

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text()
CONTRIBUTING = (ROOT / "CONTRIBUTING.md").read_text()
PYTHON = re.findall(r"```python\n(.*?)```", README, flags=re.DOTALL)


def test_the_pages_show_what_was_measured() -> None:
    """All that `python -m benchmarks page` fills in."""
    from benchmarks import page

    tables = page.sections(page.load(ROOT / "docs" / "measured"))
    texts = {name: (ROOT / "docs" / name).read_text() for name in page.PAGES}
    assert [name for name, text in texts.items() if page.filled(text, tables) != text] == []
    marks = {mark for text in texts.values() for mark in re.findall("<!-- (.*?): begin -->", text)}
    assert marks == set(tables)


def test_the_scoreboard_shows_what_was_measured() -> None:
    from noslip.analysis.scoreboard import Score, as_markdown

    measured = json.loads((ROOT / "docs" / "measured" / "scoreboard.json").read_text())
    scores = [Score(**row) for row in measured["rows"]]
    assert as_markdown(scores).strip() in (ROOT / "docs" / "scoreboard.md").read_text()


def test_the_scoreboard_has_every_method_on_every_system() -> None:
    from noslip.analysis.scoreboard import SYSTEMS, defaults, short_name

    measured = json.loads((ROOT / "docs" / "measured" / "scoreboard.json").read_text())
    found = {(row["system"], row["method"]) for row in measured["rows"]}
    assert {(name, short_name(method)) for name in SYSTEMS for method in defaults()} <= found


def test_there_is_an_example_of_about_twenty_lines() -> None:
    assert PYTHON
    assert len([line for line in PYTHON[0].splitlines() if line.strip()]) <= 20


def test_table_of_methods_is_the_output_of_the_command() -> None:
    written = README.partition("<!-- methods: begin -->")[2].partition("<!-- methods: end -->")[0].strip()
    assert written == CliRunner().invoke(app, ["integrators", "--markdown"]).output.strip()


@pytest.mark.parametrize("page", [README, CONTRIBUTING], ids=["README", "CONTRIBUTING"])
def test_every_word_of_preserves_is_explained(page: str) -> None:
    for word, meaning in VOCABULARY.items():
        assert f"| `{word}` | {meaning} |" in page


@pytest.mark.slow
def test_commands_of_the_readme_are_accepted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    block = re.findall(r"```\n(noslip systems.*?)```", README, flags=re.DOTALL)[0]
    commands = [line.partition("#")[0].split() for line in block.replace("\\\n", " ").splitlines()]
    monkeypatch.chdir(tmp_path)
    Path("my_system.py").write_text(PYTHON[0].partition("run = ")[0])
    for command in commands:
        assert command[0] == "noslip"
        result = CliRunner().invoke(app, command[1:])
        assert result.exit_code == 0, result.output


@pytest.mark.parametrize("page", ["README.md", "CONTRIBUTING.md", "CHANGELOG.md"])
def test_links_and_named_files_exist(page: str) -> None:
    text = (ROOT / page).read_text()
    links = [target for target in re.findall(r"\]\(([^)#]+)\)", text) if "://" not in target]
    named = re.findall(r"`((?:src|tests|examples)/[\w/.]+)`", text)
    for target in links + named:
        assert (ROOT / target).exists(), target


def test_citation_and_changelog_name_this_version() -> None:
    assert f"version: {noslip.__version__}" in (ROOT / "CITATION.cff").read_text()
    assert f"[{noslip.__version__}]" in (ROOT / "CHANGELOG.md").read_text()


def test_makefile_has_the_commands_that_the_pages_name() -> None:
    makefile = (ROOT / "Makefile").read_text()
    for target in set(re.findall(r"make ([a-z-]+)", README + CONTRIBUTING)) - {"the"}:
        if re.fullmatch(r"demo|test|test-all|check|docs|format", target):
            assert f"\n{target}:" in makefile, target
