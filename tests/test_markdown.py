"""Tables of Markdown have one writer."""

from __future__ import annotations

from pathlib import Path

import pytest

from noslip.markdown import table

ROOT = Path(__file__).parents[1]


def test_a_table_has_a_head_a_rule_and_rows_of_one_length() -> None:
    made = table(("a", "b", "c"), [(1, "two\nlines", 0.5), ("short",), ("|x|", r"\|y\|")])
    assert made.splitlines() == [
        "| a | b | c |",
        "|---|---|---|",
        "| 1 | two lines | 0.5 |",
        "| short |  |  |",
        r"| \|x\| | \|y\| |  |",
    ]


def test_a_row_that_does_not_fit_is_refused() -> None:
    with pytest.raises(ValueError, match="at most 1 cells, but it has 2"):
        table(("a",), [(1, 2)])


def test_no_other_file_writes_a_table_by_hand() -> None:
    files = [path for folder in ("src", "benchmarks", "docs/_site") for path in (ROOT / folder).rglob("*.py")]
    assert len(files) > 100
    by_hand = [path for path in files if any(mark in path.read_text() for mark in ('"| "', "---|", 'f"| '))]
    assert [path.relative_to(ROOT) for path in by_hand] == [Path("src/noslip/markdown.py")]
