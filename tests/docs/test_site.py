"""The built site: no broken link, no missing picture, no formula left as source, nothing from elsewhere."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from functools import cache
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

from noslip import integrators, references, studies, systems

ROOT = Path(__file__).parents[2]
LOADED = {("link", "href"), ("script", "src"), ("img", "src"), ("iframe", "src"), ("source", "src")}
SOURCE = re.compile(r"\\[(\[)\]]|\\(?:frac|dot|left|begin|mu|lambda|partial)\b|\$\$|arithmatex")


class Page(HTMLParser):
    """What a page links to, loads, names, says outside code, and its formulas."""

    def __init__(self, text: str):
        super().__init__()
        self.links: list[tuple[str, str, str]] = []
        self.ids: set[str] = set()
        self.words: list[str] = []
        self.formulas: list[str] = []
        self.emphasised = ""
        self.pictures_without_words = 0
        self.inside: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        if tag not in ("img", "link", "meta", "br", "hr", "input"):
            self.inside.append(tag)
        for name in ("href", "src"):
            if given.get(name):
                self.links.append((tag, name, str(given[name])))
        if given.get("id"):
            self.ids.add(str(given["id"]))
        if tag == "img" and not given.get("alt"):
            self.pictures_without_words += 1
        if tag == "math":
            self.formulas.append("")

    def handle_endtag(self, tag: str) -> None:
        while self.inside and self.inside.pop() != tag:
            pass

    def handle_data(self, data: str) -> None:
        if "math" in self.inside:
            self.formulas[-1] += data
        elif not {"code", "pre", "script", "style"} & set(self.inside):
            self.words.append(data)
            if {"em", "strong"} & set(self.inside):
                self.emphasised += data + "\n"


@pytest.fixture(scope="session")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Built as `make docs` does, strictly, and without the network."""
    pytest.importorskip("mkdocs")
    folder = tmp_path_factory.mktemp("site")
    source = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join([str(ROOT / "src"), os.environ.get("PYTHONPATH", "")]),
    }
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(folder)]
    done = subprocess.run(command, cwd=ROOT, env=source, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    assert done.stdout + done.stderr == ""  # not a single warning
    return folder


@cache
def pages(site: Path) -> dict[Path, Page]:
    return {path: Page(path.read_text()) for path in sorted(site.rglob("*.html")) if path.name != "404.html"}


@pytest.mark.slow
def test_links_lead_somewhere_and_pictures_exist(site: Path) -> None:
    missing = []
    for path, page in pages(site).items():
        for tag, _, target in page.links:
            parts = urlsplit(target)
            if parts.scheme or target.startswith("//"):
                continue
            file = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            file = file / "index.html" if file.is_dir() else file
            named = parts.fragment and file.suffix == ".html" and file in pages(site)
            if not file.is_file() or (named and unquote(parts.fragment) not in pages(site)[file].ids):
                missing.append(f"{path.relative_to(site)}: <{tag}> {target}")
    assert not missing


def test_nothing_is_loaded_from_elsewhere(site: Path) -> None:
    for path, page in pages(site).items():
        for tag, name, target in page.links:
            if (tag, name) in LOADED and not target.startswith("data:"):
                assert not urlsplit(target).netloc, f"{path.relative_to(site)} loads {target}"
    for path in site.rglob("*.css"):
        loaded = re.findall(
            r"url\(['\"]?(https?:[^)'\"]*)|@import\s+['\"]?(https?:[^'\"]*)", path.read_text()
        )
        assert not loaded, f"{path.relative_to(site)} loads {loaded}"


def test_mathematics_is_rendered(site: Path) -> None:
    count = 0
    for path, page in pages(site).items():
        left = SOURCE.search(" ".join(page.words))
        assert left is None, f"{path.relative_to(site)} shows {left.group()!r} as text"
        for formula in page.formulas:
            assert formula.strip(), f"{path.relative_to(site)} has an empty formula"
            assert not re.search(r"[\\&]", formula), f"{path.relative_to(site)}: {formula!r}"
        taken = re.search(r".*[{}\\].*|.*_\w.*", page.emphasised)  # an index that Markdown took for emphasis
        assert taken is None, f"{path.relative_to(site)}: {taken.group()!r}"
        count += len(page.formulas)
    assert count > 100  # the family pages and every system


def test_pictures_have_words_for_those_who_cannot_see_them(site: Path) -> None:
    assert [str(p.relative_to(site)) for p, page in pages(site).items() if page.pictures_without_words] == []


def test_every_method_system_and_study_has_a_page(site: Path) -> None:
    for folder, names in (
        ("methods", integrators.discover()),
        ("systems", systems.discover()),
        ("studies", studies.names()),
    ):
        for name in names:
            assert (site / folder / f"{name}.html").is_file(), name


def test_every_public_module_has_a_page(site: Path) -> None:
    pages_of = {path.stem for path in (site / "reference").glob("noslip*.html")}
    for name in (
        "noslip",
        "noslip.integrators.base",
        "noslip.references",
        "noslip.testing",
        "noslip.symbolic",
    ):
        assert name in pages_of
    assert not [name for name in pages_of if "._" in name]
    rooms = {name.split(".")[1] for name in pages_of if "." in name}
    assert not rooms & {"engine", "run", "cli", "bench"}


def test_every_work_has_a_place_on_the_page_of_references(site: Path) -> None:
    page = pages(site)[site / "references.html"]
    words = "".join(page.words)
    for key, work in references.WORKS.items():
        assert key in words
        assert work.title in words
    linked = {target for _, _, target in page.links}
    assert all(work.url in linked for work in references.WORKS.values() if work.doi)
