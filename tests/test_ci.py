"""What a submission must pass, and what is installed, as the files of the repository say it."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
CONSTRAINTS = [line for line in (ROOT / "constraints.txt").read_text().splitlines() if line]


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in re.findall(r"\d+", version))


def test_constraints_are_names_and_versions_alone() -> None:
    for line in CONSTRAINTS:
        assert re.fullmatch(r"[A-Za-z0-9_.-]+==[0-9][A-Za-z0-9.]*", line), line


def test_every_dependency_has_a_lower_bound_below_the_version_that_is_tested() -> None:
    tested = {name.lower(): version for name, version in (line.split("==") for line in CONSTRAINTS)}
    for need in PROJECT["dependencies"]:
        name, bound, version = need.partition(">=")
        assert bound, need
        assert _numbers(version) <= _numbers(tested[name]), need


def test_a_submission_runs_checks_tests_slow_tests_and_the_wheel() -> None:
    script, makefile = (ROOT / ".ci" / "run").read_text(), (ROOT / "Makefile").read_text()
    targets = re.findall(r"^make (\S+)$", script, flags=re.MULTILINE)
    assert targets == ["check", "test", "test-slow", "wheel-test"]
    for target in targets:
        assert f"\n{target}: $(STAMP)\n" in makefile
    assert '-m "slow and not all_pairs"' in makefile


def test_every_folder_with_slow_tests_is_in_one_command() -> None:
    makefile = (ROOT / "Makefile").read_text()
    given = [
        word
        for line in re.findall(r"^\t\$\(SLOW\) (.+)$", makefile, flags=re.MULTILINE)
        for word in line.split()
    ]
    tests = ROOT / "tests"
    marked = [
        file for file in tests.rglob("test_*.py") if re.search(r"mark\.(slow|thorough)", file.read_text())
    ]
    folders = {"tests/test_*.py" if file.parent == tests else f"tests/{file.parent.name}" for file in marked}
    assert sorted(given) == sorted(folders)


def test_hooks_before_a_commit_fetch_nothing() -> None:
    text = (ROOT / ".pre-commit-config.yaml").read_text()
    assert re.findall(r"repo: (\S+)", text) == ["local"]
    assert re.findall(r"entry: \.venv/bin/(.+)", text) == ["ruff format", "ruff check", "mypy"]
