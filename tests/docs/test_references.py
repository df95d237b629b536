"""One bibliography: what methods, docstrings, pages and CITATION.cff cite is in it, and nothing else is."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import noslip
from noslip import integrators, studies
from noslip.references import PAPERS, WORKS, cited, keys

ROOT = Path(__file__).parents[2]
SOURCE = Path(noslip.__file__).parent
TEXTS = {
    str(path.relative_to(ROOT)): path.read_text()
    for path in sorted(
        [*SOURCE.rglob("*.py"), *(ROOT / "docs").rglob("*.md"), *ROOT.glob("*.md"), ROOT / "CITATION.cff"]
    )
    if path.name != "references.py"
}


@pytest.mark.parametrize("cls", integrators.discover().values(), ids=lambda cls: cls.__name__)
def test_the_source_of_every_method_is_in_the_bibliography(cls: type) -> None:
    assert keys(cls.reference)


def test_a_source_that_is_not_in_the_bibliography_is_named() -> None:
    with pytest.raises(
        ValueError, match=r"must begin with a key of noslip\.references, but is 'Nobody 1999'"
    ):
        keys("JS (22); Nobody 1999")
    with pytest.raises(ValueError, match="but is 'PPP 3'"):
        keys("PPP 3")


@pytest.mark.parametrize("name", [name for name, text in TEXTS.items() if cited(text)])
def test_what_is_cited_is_in_the_bibliography(name: str) -> None:
    assert cited(TEXTS[name]) <= set(WORKS)


def test_citations_are_seen() -> None:
    assert cited("as in McLachlan, Perlmutter 2006 and (Norton et al. 2015; Basu-Mandal, Kutta 1901)") == {
        "McLachlan, Perlmutter 2006",
        "Norton et al. 2015",
        "Basu-Mandal, Kutta 1901",
    }


def test_every_work_is_cited_somewhere() -> None:
    everything = "\n".join(TEXTS.values())
    assert [key for key in WORKS if key not in everything] == []


def test_a_work_is_whole() -> None:
    for key, work in WORKS.items():
        assert all(name.count(", ") == 1 for name in work.authors), key
        assert work.title
        assert work.journal
        assert re.fullmatch(r"10\.\d{4,5}/\S+", work.doi or "10.1000/none"), key
        year = re.search(r"\d{4}$", key)
        assert year is None or int(year.group()) == work.year
    jay = WORKS["Jay 2003"]
    assert jay.text.startswith("Laurent O. Jay: Solution of index 2")
    assert jay.url == "https://doi.org/10.1023/A:1023696822355"


def test_studies_name_one_of_the_papers() -> None:
    assert {studies.find(name).PAPER for name in studies.names()} <= set(PAPERS)


def test_the_citation_file_lists_the_papers_as_they_are_here() -> None:
    yaml = pytest.importorskip("yaml")
    listed = yaml.safe_load((ROOT / "CITATION.cff").read_text())["references"]
    assert [entry["notes"] for entry in listed] == list(PAPERS)
    for entry in listed:
        work = WORKS[entry["notes"]]
        names = tuple(f"{a['family-names']}, {a['given-names']}" for a in entry["authors"])
        found = (names, entry["title"], entry["journal"], entry["year"], entry.get("doi", ""))
        assert found == (work.authors, work.title, work.journal, work.year, work.doi)
