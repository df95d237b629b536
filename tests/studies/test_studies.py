"""Every study in its quick form against the numbers stored beside this file, the gallery of docs/studies
against what the code declares, the rules, and the files that a study writes.

`stored.json` holds for each row our number and the verdict. A number must come back within the spread that
the row allows for other machines; where that is None (round-off, chaos) the verdict alone must. To store
anew after a change that is meant: python tests/studies/test_studies.py
"""

from __future__ import annotations

import csv
import json
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from noslip import studies
from noslip.cli import app
from noslip.plots.panels import Curve, Panel
from noslip.studies import _rules
from noslip.studies._base import (
    CHECK,
    KINDS,
    NUMBER,
    UNEXPLAINED,
    DeclaredRow,
    Study,
    check,
    counted,
    declared,
    explanation,
    exponent,
    judge,
    number,
    silent,
    statement,
    title,
)
from noslip.studies._write import described, write

STORED = Path(__file__).with_name("stored.json")
GALLERY = Path(__file__).parents[2] / "docs" / "studies"
HEAVY = {
    "cfhm_suslov",
    "js_embedding",
    "js_orders",
    "lms_constraint",
    "cfhm_order",
    "cfhm_conservation",
    "cfhm_gearbox",
    "cfhm_variance",
    "cfhm_rolling_disk",
    "fbo_hamiltonization",
}
NAMES = [pytest.param(n, marks=pytest.mark.slow) if n in HEAVY else n for n in studies.names()]


@pytest.mark.thorough
@pytest.mark.parametrize("name", NAMES)
def test_the_quick_form_gives_the_stored_numbers(name: str) -> None:
    stored = json.loads(STORED.read_text())[name]
    rows = studies.find(name).run(False, silent).rows
    assert [row.quantity for row in rows] == list(stored)
    for row in rows:
        ours, verdict = stored[row.quantity]
        assert row.verdict == verdict, f"{row.quantity}: {row.ours} where {ours} is stored"
        assert row.reason != UNEXPLAINED, row.quantity
        spread = row.declared.spread
        if spread is not None:
            assert row.ours == pytest.approx(ours, rel=spread, abs=1e-3 * spread), row.quantity


def test_every_study_has_stored_numbers_and_says_what_it_is() -> None:
    assert list(json.loads(STORED.read_text())) == studies.names()
    for module in studies.discover().values():
        assert module.PAPER in {"JS", "LMS", "CFHM", "FBO", "PP"}
        assert title(module)
        assert explanation(module)


@pytest.mark.parametrize("name", studies.names())
def test_the_gallery_is_what_the_code_declares(name: str) -> None:
    """Names, kinds, rules and the paper's column, without a run; and the verdicts, by the rules of today."""
    module = studies.find(name)
    stored = json.loads((GALLERY / f"{name}.json").read_text())
    rows = declared(module.ROWS, stored["full"])
    assert (stored["study"], stored["paper"], stored["title"]) == (name, module.PAPER, title(module))
    assert stored["full"], "the gallery shows the full form"
    what = ("quantity", "kind", "paper", "rule")
    assert [{key: row[key] for key in what} for row in stored["rows"]] == [
        described(r) for r in rows.values()
    ]
    for row, told in zip(rows.values(), stored["rows"], strict=True):
        again = row.judged(told["ours"])
        assert told["verdict"] == again.verdict, row.quantity
        assert UNEXPLAINED not in told["reason"], row.quantity
        assert again.reason in told["reason"] or not again.reason, row.quantity
    with (GALLERY / f"{name}.csv").open(newline="") as file:
        assert [(r["quantity"], r["kind"], r["verdict"]) for r in csv.DictReader(file)] == [
            (r["quantity"], r["kind"], r["verdict"]) for r in stored["rows"]
        ]


def test_a_row_has_no_threshold_of_its_own_and_can_fail() -> None:
    """All rules are in one list, with one sentence each; no row agrees with a number that is none."""
    rows = {(name, row.quantity): row for name in studies.names() for row in studies.find(name).ROWS.values()}
    assert {row.rule.name for row in rows.values()} == {rule.name for rule in _rules.ALL}
    for place, row in rows.items():
        assert row.rule in _rules.ALL, place
        assert row.judged(float("nan")).verdict == "differs", place
        wild = [row.judged(x).verdict for x in (-1e9, 0.0, 1e-30, 1e9)]
        assert "differs" in wild, place
        if row.rule in (_rules.DIGITS, _rules.EXPONENTS):
            assert float(row.paper) == row.value, place


def test_each_printed_number_is_counted_once() -> None:
    """A number that comes twice in a study stands for two places of the paper: its table, or (61)."""
    for name in studies.names():
        numbers = [row for row in studies.find(name).ROWS.values() if row.kind == NUMBER]
        assert all(row.rule is _rules.DIGITS for row in numbers)
        printed = [row.paper for row in numbers]
        assert name == "pp_table" or len(set(printed)) == len(printed), name


@pytest.mark.parametrize(
    ("row", "good", "bad"),
    [
        (number("x", "5.2e-4"), (5.16e-4, 5.249e-4), (5.1e-4, 5.26e-4)),
        (number("x", "60"), (59.96, 60.5), (61.0, 14.0)),
        (number("x", "0.428234"), (0.4282344,), (0.428235,)),
        (exponent("x", 2), (1.91, 2.09), (1.85, 3.0)),
        (statement("x", "order 1e-4", _rules.MAGNITUDE, 1e-4), (1e-4, 9.9e-4), (9e-5, 1e-3)),
        (statement("x", "0.25", _rules.EQUAL, 0.25), (0.25, 0.2500000001), (0.2501,)),
        (statement("x", "0", _rules.ZERO), (0.0, -1e-13), (1e-11,)),
        (statement("x", "not", _rules.BROKEN), (1e-5, -0.1), (1e-7,)),
        (statement("x", "exponential", _rules.EXPONENTIAL), (1.0, 0.9), (0.0, 0.306, 3.0)),
        (statement("x", "bounded", _rules.BOUNDED), (0.1, 1.2), (1.42, -1.0)),
        (statement("x", "oscillatory", _rules.OSCILLATES), (10, 6882), (0, 9)),
        (statement("x", "on average", _rules.MOST), (0.51,), (0.22, 0.5)),
    ],
    ids=lambda value: value.rule.name if isinstance(value, DeclaredRow) else None,
)
def test_what_the_rules_let_through(
    row: DeclaredRow, good: tuple[float, ...], bad: tuple[float, ...]
) -> None:
    assert [row.judged(x).verdict for x in good] == ["agrees"] * len(good)
    assert [row.judged(x).verdict for x in bad] == ["differs"] * len(bad)


def test_linear_and_quadratic_growth_are_not_exponential() -> None:
    t = np.linspace(0, 1, 501)
    assert _rules.constancy_of_rate(3 + np.exp(4 * t)) == pytest.approx(1)
    assert _rules.constancy_of_rate(np.expm1(4 * t)) == pytest.approx(1)
    for x in (1 + t, (1 + t) ** 2, t**2, -t, np.cos(9 * t)):
        assert not _rules.EXPONENTIAL.agrees(_rules.constancy_of_rate(x), float("nan"), "")
    assert _rules.sign_changes(np.array([1.0, 0.0, -2.0, 3.0])) == 2
    assert _rules.growth_of_halves(np.array([1.0, -2.0, 1.0, 3.0])) == 1.5


def test_a_difference_without_a_reason_says_so_and_nothing_is_missing() -> None:
    rows = {
        "a": number("x", "2.0"),
        "b": check("y", "small", _rules.NEGLIGIBLE, reason="too large", note="n"),
    }
    assert [r.reason for r in judge(rows, {"a": 2.2, "b": (3.0, "seen")})] == [
        UNEXPLAINED,
        "n; seen; too large",
    ]
    assert [r.reason for r in judge(rows, {"a": 2.04, "b": 0.0})] == ["", "n"]
    with pytest.raises(
        ValueError, match=r"a number for each row that it declares, but these differ: \['b'\]"
    ):
        judge(rows, {"a": 2.0})
    with pytest.raises(ValueError, match=r"must have its own name, but \['x'\] came twice"):
        declared({"a": number("x", "1"), "b": number("x", "2")}, True)
    with pytest.raises(ValueError, match="must be one of number, statement, check, but 'claim' was given"):
        DeclaredRow("x", "claim", _rules.ZERO, "0")
    assert list(declared({"a": check("x", "0", _rules.ZERO, full=True)}, False)) == []


def test_kinds_are_counted_apart() -> None:
    pairs = [(NUMBER, "agrees"), (NUMBER, "differs"), *[(CHECK, "agrees")] * 2]
    assert counted(pairs) == "1 number agrees, 1 differs; 2 checks agree, 0 differ"
    assert list(KINDS) == ["number", "statement", "check"]


def test_files_of_a_study(tmp_path: Path) -> None:
    module = studies.find("lms_energy")
    panel = Panel(
        "p", "t", "E", (Curve("a", [1.0, 2.0], [0.0, 1e-3]), Curve("b", [1.0], [2.0], "points")), "y"
    )
    study = Study({"h": 0.1}, judge({"a": exponent("order, of q", 2)}, {"a": 1.99}), (panel,))
    paths = write(module, study, tmp_path / "new", full=False, seconds=1.23)
    assert sorted(p.name for p in paths) == sorted(p.name for p in (tmp_path / "new").iterdir())
    document = json.loads((tmp_path / "new" / "lms_energy.json").read_text())
    assert document["rows"] == [
        {"quantity": "order, of q", "kind": "statement", "paper": "2", "rule": "exponent", "ours": 1.99}
        | {"verdict": "agrees", "reason": ""}
    ]
    assert document["inputs"] == {"h": 0.1}
    with (tmp_path / "new" / "lms_energy.csv").open(newline="") as file:
        row = ["lms_energy", "order, of q", "statement", "2", "1.99", "exponent", "agrees", ""]
        assert list(csv.reader(file))[1] == row
    with (tmp_path / "new" / "lms_energy_curves.csv").open(newline="") as file:
        assert list(csv.reader(file))[1:] == [
            ["p", "a", "1.0", "1e-17"],
            ["p", "a", "2.0", "0.001"],
            ["p", "b", "1.0", "2.0"],
        ]
    assert (tmp_path / "new" / "lms_energy.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.slow
def test_the_command_lists_runs_and_refuses(tmp_path: Path) -> None:
    def told(*words: str) -> tuple[int, str]:
        result = CliRunner().invoke(app, ["study", *words])
        return result.exit_code, result.output

    code, text = told("list")
    assert code == 0
    assert all(name in text for name in studies.names())
    code, text = told("run", "lms_energy", "--out", str(tmp_path / "out"))
    assert code == 0
    assert "several orders of magnitude" in text
    assert text.rstrip().endswith("2 statements agree, 2 differ; 1 check agrees, 2 differ in 1 study")
    assert len(list((tmp_path / "out").iterdir())) == 4
    assert told("run", "lms_enery") == (2, "noslip: unknown study 'lms_enery'; did you mean 'lms_energy'?\n")
    (tmp_path / "file").touch()
    code, text = told("run", "lms_energy", "--out", str(tmp_path / "file"))
    assert (code, text.endswith("must be a folder, but it is a file\n")) == (2, True)


@pytest.mark.slow
def test_an_interrupted_study_says_which_and_what_is_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def stop(full: bool, track: object) -> Study:
        raise KeyboardInterrupt

    monkeypatch.setattr(studies, "names", lambda: ["lms_energy", "pp_table"])
    monkeypatch.setattr(studies.find("pp_table"), "run", stop)
    result = CliRunner().invoke(app, ["study", "run", "all", "--out", str(tmp_path)])
    assert result.exit_code == 130
    assert f"noslip: interrupted in study pp_table; what came before is in {tmp_path}" in result.output
    assert (tmp_path / "lms_energy.json").is_file()


def store() -> None:
    found = {}
    for name, module in studies.discover().items():
        found[name] = {row.quantity: [row.ours, row.verdict] for row in module.run(False, silent).rows}
    STORED.write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    store()
