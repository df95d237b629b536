"""The sources of the site in one folder: the pages of docs as they are, and those made from the code.

    python docs/_site/stage.py FOLDER

Only files that changed are written, so that Sphinx builds no more than it must.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator
from pathlib import Path

import jinja2

import catalogue
import gallery
import live
import measured
import methods
import papers
import prose
import reference
from noslip import integrators, references, studies, systems
from noslip.integrators.base import VOCABULARY
from noslip.markdown import table
from noslip.studies._base import KINDS
from noslip.studies._rules import ALL as RULES

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
CAPTIONS = {
    "JS": "Discrete Lagrange-d'Alembert (JS)",
    "LMS": "Generating functions (LMS)",
    "CFHM": "Discrete gradients (CFHM)",
    "FBO": "Hamiltonization (FBO)",
    "PP": "Nonlinear constraints (PP)",
    "Relatives": "Rivals and relatives",
}
TEMPLATES = jinja2.Environment(
    loader=jinja2.FileSystemLoader(Path(__file__).parent / "templates"),
    undefined=jinja2.StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
    keep_trailing_newline=True,
)
TEMPLATES.globals |= {
    "anchor": papers.anchor,
    "first_line": prose.first_line,
    "full": papers.full,
    "live": live.AVAILABLE,
    "module": importlib.import_module,
    "sentence": prose.sentence,
    "table": table,
    "words": catalogue.words,
    "zip": zip,
    "captions": CAPTIONS,
}


def made(template: str, **context: object) -> str:
    return TEMPLATES.get_template(f"{template}.jinja").render(context)


def pages() -> Iterator[tuple[str, str]]:
    """(path, text) of every page that is made from the code."""
    every = {name: cls() for name, cls in integrators.discover().items()}
    rows = [
        (f"[{n}]({n}.md)", methods.order(m), methods.kept(m), prose.first_line(type(m)))
        for n, m in every.items()
    ]
    promises = [(f"`{word}`", prose.sentence(meaning)) for word, meaning in VOCABULARY.items()]
    yield "methods/index.md", made("methods.md", rows=rows, families=methods.families(), promises=promises)
    for name, cls in integrators.discover().items():
        yield f"methods/{name}.md", made("method.md", **methods.page(cls))
        if measured.rows(name):
            yield f"methods/{name}.svg", measured.picture(name).decode()
    found = systems.discover()
    yield (
        "systems/index.md",
        made("systems.md", rows=[catalogue.row(*item) for item in found.items()], names=found),
    )
    for name, module in found.items():
        yield f"systems/{name}.md", made("system.md", **catalogue.page(name, module))
    yield (
        "studies/index.md",
        made(
            "studies.md",
            kinds=KINDS,
            rules=[(rule.name, prose.sentence(rule.sentence)) for rule in RULES],
            overview=papers.overview(),
            total=papers.total(),
        ),
    )
    for name, module in studies.discover().items():
        yield f"studies/{name}.md", made("study.md", **papers.study(name, module))
    yield "examples/index.md", made("gallery.md", cards=list(gallery.cards()))
    for name, context in gallery.pages():
        yield f"examples/{name}.md", made("script.md", **context)
    rooms = reference.rooms()
    yield "reference/index.md", made("reference.md", modules=rooms, rows=reference.rows(rooms))
    for name in sorted({*rooms, *reference.modules()}):
        inner = rooms.get(name, [])
        context = {"members": reference.directives(name), "inner": inner, "rows": reference.rows(inner)}
        yield f"reference/{name}.md", made("module.md", name=name, **context)
    yield "references.md", made("references.md", works=references.WORKS)
    for name in ("CHANGELOG", "CONTRIBUTING"):
        yield f"{name.lower()}.md", from_root(f"{name}.md")


def from_root(name: str) -> str:
    """A page of the repository's root, with its links as seen from docs."""
    return (ROOT / name).read_text().replace("](docs/", "](").replace("```\n", "```text\n", 1)


def stage(folder: Path) -> None:
    live.export(folder.parent / "simulations", systems.discover())
    texts = dict(pages())
    keep = {folder / path for path in texts}
    for path, text in texts.items():
        write(folder / path, text.encode())
    for path in DOCS.rglob("*"):
        inside = path.relative_to(DOCS)
        if path.is_file() and not inside.parts[0].startswith("_") and path.suffix != ".py":
            keep.add(folder / inside)
            write(folder / inside, path.read_bytes())
    for path in folder.rglob("*"):
        if path.is_file() and path not in keep:
            path.unlink()


def write(path: Path, content: bytes) -> None:
    if not path.is_file() or path.read_bytes() != content:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)


if __name__ == "__main__":
    stage(Path(sys.argv[1]))
