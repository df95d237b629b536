"""The built site: no broken link, no missing picture, no formula left as source, nothing from elsewhere.

`make check` builds the site and runs these tests on it; `make test` does not build it a second time.
"""

from __future__ import annotations

import html
import importlib.util
import json
import re
import shutil
import subprocess
import threading
from functools import cache, partial
from html.parser import HTMLParser
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest
from playwright.sync_api import sync_playwright

from noslip import integrators, references, studies, systems

ROOT = Path(__file__).parents[2]
LOADED = {("link", "href"), ("script", "src"), ("img", "src"), ("iframe", "src"), ("source", "src")}
SOURCE = re.compile(r"\\[(\[)\]]|\\(?:frac|dot|left|begin|mu|lambda|partial)\b|\$\$")
BROWSER = shutil.which("chromium") or shutil.which("google-chrome")
QUIET = (
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-sync",
    "--disable-component-update", "--no-first-run", "--allow-file-access-from-files",
    "--virtual-time-budget=5000",
)  # fmt: skip
needs_browser = pytest.mark.skipif(BROWSER is None, reason="there is no Chromium")


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
        if "math" in str(given.get("class")).split():
            self.formulas.append("")
            self.inside[-1] = "math"

    def handle_endtag(self, tag: str) -> None:
        while self.inside and self.inside.pop() not in (tag, "math"):
            pass

    def handle_data(self, data: str) -> None:
        if "math" in self.inside:
            self.formulas[-1] += data
        elif not {"code", "pre", "script", "style"} & set(self.inside):
            self.words.append(data)
            if {"em", "strong"} & set(self.inside) and "dt" not in self.inside:  # not in signatures
                self.emphasised += data + "\n"


@pytest.fixture(scope="session")
def site(request: pytest.FixtureRequest) -> Path:
    folder = request.config.getoption("--site")
    if folder is None:
        pytest.skip("`make check` builds the site and runs this on it")
    return Path(folder).resolve()


@cache
def pages(site: Path) -> dict[Path, Page]:
    return {
        path: Page(path.read_text())
        for path in sorted(site.rglob("*.html"))
        if path.relative_to(site).parts[0] not in ("_static", "live")
    }


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


def test_mathematics_is_marked_as_such(site: Path) -> None:
    count = 0
    for path, page in pages(site).items():
        left = SOURCE.search(" ".join(page.words))
        assert left is None, f"{path.relative_to(site)} shows {left.group()!r} as text"
        assert all(formula.strip(r"\()[] ") for formula in page.formulas), path
        taken = re.search(r".*[{}\\].*|.*_\w.*", page.emphasised)  # an index that Markdown took for emphasis
        assert taken is None, f"{path.relative_to(site)}: {taken.group()!r}"
        count += len(page.formulas)
    assert count > 1000


@needs_browser
def test_every_formula_can_be_set(site: Path, tmp_path: Path) -> None:
    """By the KaTeX that the site has, in one page that says which formulas it refuses."""
    formulas = sorted({f.strip() for page in pages(site).values() for f in page.formulas})
    script = """
        const refused = [];
        for (const text of FORMULAS) {
            try { katex.renderToString(text.slice(2, -2), {displayMode: text[1] == "[", strict: "error"}) }
            catch (error) { refused.push(text + "  " + error.message) }
        }
        document.body.textContent = JSON.stringify(refused);"""
    page = tmp_path / "formulas.html"
    page.write_text(
        f'<!doctype html><script src="{(site / "_static" / "katex.min.js").as_uri()}"></script><body><script>'
        + script.replace("FORMULAS", json.dumps(formulas).replace("</", "<\\/"))
        + "</script>"
    )
    shown = browse("--dump-dom", page.as_uri())
    found = re.search(r"<body>(.*)</body>", shown, re.DOTALL)
    assert found
    assert json.loads(html.unescape(found[1])) == []


KINDS = (
    "index.html", "methods/DiscreteGradient.html", "systems/rolling_disk.html", "studies/pp_table.html",
    "examples/index.html", "reference/noslip.html", "search.html",
)  # fmt: skip


@needs_browser
def test_a_page_asks_no_other_host(site: Path) -> None:
    """As the browser tells of each page, with the frame of a live simulation in one of them."""

    class Handler(SimpleHTTPRequestHandler):
        def log_message(self, *words: object) -> None:
            pass

    asked: list[str] = []
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(Handler, directory=str(site))) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        origin = f"http://127.0.0.1:{server.server_port}/"
        with sync_playwright() as play:
            browser = play.chromium.launch(executable_path=BROWSER, args=["--no-sandbox", "--disable-gpu"])
            page = browser.new_page()
            page.on("request", lambda request: asked.append(request.url))
            for name in KINDS:
                page.goto(origin + name)
                if name.startswith("methods/"):  # the script of the formulas ran
                    page.wait_for_function("document.querySelectorAll('.katex').length > 10")
            browser.close()
        server.shutdown()
    assert {origin + name for name in KINDS} <= set(asked)
    assert [url for url in asked if not url.startswith((origin, "data:", "blob:"))] == []


@needs_browser
def test_a_search_finds_the_page_of_a_system(site: Path) -> None:
    shown = browse("--dump-dom", f"{(site / 'search.html').as_uri()}?q=sleigh")
    assert 'href="systems/chaplygin_sleigh.html"' in shown.partition('id="search-results"')[2]


def browse(*words: str) -> str:
    """What a headless browser with a profile of its own prints."""
    command = [str(BROWSER), *QUIET, *words]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, check=True).stdout


def test_the_navigation_has_at_most_seven_entries(site: Path) -> None:
    text = (site / "index.html").read_text()
    bar = re.search(r'<ul class="bd-navbar-elements.*?</ul>', text, re.DOTALL)
    assert bar
    assert 3 < bar.group().count("<li") <= 7


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


def test_every_system_runs_live_where_it_can_be_exported(site: Path) -> None:
    exported = importlib.util.find_spec("noslip.cli.export") is not None
    for name in systems.discover():
        framed = [t for tag, _, t in pages(site)[site / "systems" / f"{name}.html"].links if tag == "iframe"]
        assert framed == ([f"../live/{name}.html"] if exported else [])


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
    words = "".join(page.words).replace("\N{RIGHT SINGLE QUOTATION MARK}", "'")
    for key, work in references.WORKS.items():
        assert key in words
        assert work.title in words
    linked = {target for _, _, target in page.links}
    assert all(work.url in linked for work in references.WORKS.values() if work.doi)
