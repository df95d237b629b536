"""Every study in its quick form against the numbers stored beside this file, and the files that it writes.

`stored.json` holds for each row our number and the verdict. A number must come back within the spread that
the row allows for other machines; where that is None (round-off, chaos) the verdict alone must. To store
anew after a change that is meant: python tests/studies/test_studies.py
"""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from noslip import studies
from noslip.cli import app
from noslip.plots.panels import Curve, Panel
from noslip.studies._base import UNEXPLAINED, Study, StudyRow, claim, explanation, number, silent, title
from noslip.studies._write import write

STORED = Path(__file__).with_name("stored.json")
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


@pytest.mark.parametrize("name", NAMES)
def test_the_quick_form_gives_the_stored_numbers(name: str) -> None:
    stored = json.loads(STORED.read_text())[name]
    rows = studies.find(name).run(False, silent).rows
    assert [row.quantity for row in rows] == list(stored)
    for row in rows:
        ours, verdict = stored[row.quantity]
        assert row.verdict == verdict, f"{row.quantity}: {row.ours} where {ours} is stored"
        assert row.reason != UNEXPLAINED, row.quantity
        if row.spread is not None:
            assert row.ours == pytest.approx(ours, rel=row.spread, abs=1e-3 * row.spread), row.quantity


def test_every_study_has_stored_numbers_and_says_what_it_is() -> None:
    assert list(json.loads(STORED.read_text())) == studies.names()
    for module in studies.discover().values():
        assert module.PAPER in {"JS", "LMS", "CFHM", "FBO", "PP"}
        assert title(module)
        assert explanation(module)


def test_a_difference_without_a_reason_says_so_and_names_are_unique() -> None:
    assert number("x", 2, 2.05, within=0.1).verdict == "agrees"
    assert number("x", 2, 2.2, within=0.1).reason == UNEXPLAINED
    assert number("x", 2, float("nan"), within=0.1).verdict == "differs"
    assert claim("x", "small", 3.0, False, "too large").reason == "too large"
    with pytest.raises(ValueError, match=r"must have its own name, but \['x'\] came twice"):
        Study({}, (StudyRow("x", "1", 1.0, True), StudyRow("x", "2", 2.0, True)), ())


def test_files_of_a_study(tmp_path: Path) -> None:
    module = studies.find("lms_energy")
    panel = Panel(
        "p", "t", "E", (Curve("a", [1.0, 2.0], [0.0, 1e-3]), Curve("b", [1.0], [2.0], "points")), "y"
    )
    study = Study({"h": 0.1}, (number("order, of q", 2, 1.99, within=0.1),), (panel,))
    paths = write(module, study, tmp_path / "new", full=False, seconds=1.23)
    assert sorted(p.name for p in paths) == sorted(p.name for p in (tmp_path / "new").iterdir())
    document = json.loads((tmp_path / "new" / "lms_energy.json").read_text())
    assert document["rows"] == [
        {"quantity": "order, of q", "paper": "2", "ours": 1.99, "verdict": "agrees", "reason": ""}
    ]
    assert document["inputs"] == {"h": 0.1}
    with (tmp_path / "new" / "lms_energy.csv").open(newline="") as file:
        assert list(csv.reader(file))[1] == ["lms_energy", "order, of q", "2", "1.99", "agrees", ""]
    with (tmp_path / "new" / "lms_energy_curves.csv").open(newline="") as file:
        assert list(csv.reader(file))[1:] == [
            ["p", "a", "1.0", "1e-17"],
            ["p", "a", "2.0", "0.001"],
            ["p", "b", "1.0", "2.0"],
        ]
    assert (tmp_path / "new" / "lms_energy.png").read_bytes().startswith(b"\x89PNG")


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
    assert text.rstrip().endswith("4 numbers agree, 3 differ in 1 study")
    assert len(list((tmp_path / "out").iterdir())) == 4
    assert told("run", "lms_enery") == (2, "noslip: unknown study 'lms_enery'; did you mean 'lms_energy'?\n")
    (tmp_path / "file").touch()
    code, text = told("run", "lms_energy", "--out", str(tmp_path / "file"))
    assert (code, text.endswith("must be a folder, but it is a file\n")) == (2, True)


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
