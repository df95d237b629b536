"""The gallery: every page of docs/examples with its first picture, and every script that has no page."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from prose import typeset

ROOT = Path(__file__).parents[2]
PAGES = ROOT / "docs" / "examples"
IMAGES = ROOT / "docs" / "images"


class Card(NamedTuple):
    title: str
    link: str
    picture: str
    words: str


def scripts() -> dict[str, str]:
    """The numbered scripts by their names without the number, with their sources."""
    return {path.stem[3:]: path.read_text() for path in sorted((ROOT / "examples").glob("[0-9]*.py"))}


def cards() -> Iterator[Card]:
    for name, source in scripts().items():
        page = PAGES / f"{name}.md"
        if page.is_file():
            yield _card(page)
        else:
            first = ast.get_docstring(ast.parse(source)) or ""
            own = f"../images/{name}.png" if (IMAGES / f"{name}.png").is_file() else ""
            yield Card(_title(name), f"{name}.md", own, " ".join(first.partition("\n\n")[0].split()))


def _card(page: Path) -> Card:
    text = page.read_text()
    title = re.search(r"^# (.*)$", text, re.MULTILINE)
    picture = re.search(r"!\[[^\]]*\]\(([^)]*)\)", text)
    words = re.search(r"^# [^\n]*\n\n(.*?)(?<!\s\w)\.(?=\s|$)", text, re.DOTALL)
    assert title
    assert words
    plain = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", words[1])
    return Card(title[1], page.name, picture[1] if picture else "", " ".join(plain.split()) + ".")


def _title(name: str) -> str:
    return name.replace("_", " ").capitalize()


def pages() -> Iterator[tuple[str, dict[str, str]]]:
    """Of each script without a page: what its own page shows."""
    for name, source in scripts().items():
        if not (PAGES / f"{name}.md").is_file():
            doc = ast.get_docstring(ast.parse(source)) or ""
            file = next(path.name for path in (ROOT / "examples").glob(f"[0-9][0-9]_{name}.py"))
            code = source.partition('"""')[2].partition('"""')[2].strip()
            yield name, {"title": _title(name), "text": typeset(doc), "file": file, "code": code}
