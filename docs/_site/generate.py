"""Pages made from the code itself: every method, every system, every study, the reference, the changelog."""

from __future__ import annotations

import dataclasses
import functools
import inspect
import json
import re
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import reference
from noslip import integrators, references, studies, systems
from noslip.integrators.base import VOCABULARY, Integrator
from noslip.markdown import table
from noslip.studies._base import KINDS, counted, explanation, title
from noslip.studies._rules import ALL as RULES
from noslip.symbolic import formulas
from noslip.system import System
from prose import escaped, first_line, verbatim

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"


def contents(section: str) -> list[Any]:
    """The entries of a section in the table of contents."""
    if section == "Methods":
        return ["methods/index.md", *({name: f"methods/{name}.md"} for name in integrators.discover())]
    if section == "Systems":
        return ["systems/index.md", *({_words(name): f"systems/{name}.md"} for name in systems.discover())]
    if section == "Studies":
        return ["studies/index.md", *({name: f"studies/{name}.md"} for name in studies.names())]
    if section == "Reference":
        return ["reference/index.md", *({name: f"reference/{name}.md"} for name in reference.modules())]
    raise ValueError(f"no section '{section}' is generated")


def pages() -> Iterator[tuple[str, str]]:
    """(path, Markdown) of every generated page."""
    yield "methods/index.md", _methods()
    for cls in integrators.discover().values():
        yield f"methods/{cls.__name__}.md", _method(cls)
    yield "systems/index.md", _systems()
    for name, module in systems.discover().items():
        yield f"systems/{name}.md", _system(name, module)
    yield "studies/index.md", _studies()
    for name, module in studies.discover().items():
        yield f"studies/{name}.md", _study(name, module)
    yield "reference/index.md", reference.index()
    for name in reference.modules():
        yield f"reference/{name}.md", reference.page(name)
    yield "references.md", _references()
    yield "changelog.md", _from_root("CHANGELOG.md")
    yield "contributing.md", _from_root("CONTRIBUTING.md")


# ---- methods --------------------------------------------------------------------------------------


def _methods() -> str:
    rows = []
    for name, cls in integrators.discover().items():
        method = cls()
        order = "exact" if method.exact else str(method.order)
        kept = ", ".join(sorted(method.preserves)) or "-"
        rows.append((f"[{name}]({name}.md)", order, kept, first_line(cls)))
    words = [(f"`{word}`", meaning) for word, meaning in VOCABULARY.items()]
    return "\n\n".join(
        [
            "# Methods",
            "Every integrator of the package, at its default parameters. Each word in *preserves* is a "
            "promise that the tests hold, over long runs where it is about a run; each absent word was seen "
            "broken on some system. "
            "[The scoreboard](../scoreboard.md) shows by how much, and "
            "[how to choose](../how_to/choose_an_integrator.md) which to take.",
            table(("method", "order", "preserves", "what it is"), rows),
            "## What the words promise",
            table(("word", "promise"), words),
        ]
    )


def _method(cls: type[Integrator]) -> str:
    module = inspect.getmodule(cls)
    assert module is not None
    rows = [
        (f"`{f.name}`", f"`{f.type}`", f"`{f.default!r}`")
        for f in dataclasses.fields(cls)  # type: ignore[arg-type]
    ]
    variants = [
        (f"`{_call(v)}`", "exact" if v.exact else v.order, ", ".join(sorted(v.preserves)) or "-")
        for v in cls.variants()
    ]
    refusals = [
        (f"[{name}](../systems/{name}.md)", escaped(reason))
        for name in systems.names()
        if (reason := cls().applies_to(_made(name)))
    ]
    where = (
        table(("system", "why the method does not apply"), refusals)
        if refusals
        else "On every system of the catalogue."
    )
    return "\n\n".join(
        [
            f"# {cls.__name__}",
            first_line(cls),
            f"Source: {_linked(cls.reference)}. Module: `{cls.__module__}`.",
            "## The equations",
            verbatim(inspect.getdoc(module) or ""),
            "## Parameters",
            table(("name", "type", "default"), rows) if rows else "None.",
            "## Order and promises",
            "As tested, for the variants that the claims test runs:",
            table(("variant", "order", "preserves"), variants),
            "## Where it runs",
            where,
        ]
    )


# ---- systems --------------------------------------------------------------------------------------


def _systems() -> str:
    rows = []
    for name, module in systems.discover().items():
        system = _made(name)
        what = (inspect.getdoc(module) or "").partition("\n")[0]
        exact, constraints = "yes" if hasattr(module, "exact") else "-", system.constraints.replace(",", "")
        rows.append((f"[{_words(name)}]({name}.md)", f"{system.n}", constraints, exact, what))
    return "\n\n".join(
        [
            "# Systems",
            "The catalogue: each is one file with defaults for all parameters and a typical state.",
            table(("system", "coordinates", "constraints", "closed form", "what it is"), rows),
        ]
    )


@functools.cache
def _made(name: str) -> System:
    """A system of the catalogue at its defaults, made once for all pages."""
    made: System = systems.find(name).system()
    return made


def _system(name: str, module: ModuleType) -> str:
    system = _made(name)
    q0, v0 = module.typical_state()
    lines = formulas(system)
    equations = "\n\n".join(f"$$\n{line}\n$$" for line in lines.latex()) if lines else "Too long to show."
    parameters = [(f"`{key}`", _number(value)) for key, value in system.parameters.items()]
    states = [
        (f"`{c}`" + (" (angle)" if c in system.angles else ""), f"{q:.6g}", f"{v:.6g}")
        for c, q, v in zip(system.coordinates, q0, v0, strict=True)
    ]
    offers = ["`system()`", "`typical_state()`"]
    offers += [f"`{extra}()`" for extra in ("exact", "picture") if hasattr(module, extra)]
    integrals = ", ".join(f"`{x}`" for x in system.first_integrals) or "None declared beyond the energy"
    return "\n\n".join(
        [
            f"# {_words(name)}",
            verbatim(inspect.getdoc(module) or ""),
            "## As it is computed",
            "Made from the functions of the module, as JAX traces them.",
            equations,
            "## Coordinates and the typical state",
            table(("coordinate", "position", "velocity"), states),
            "## Parameters",
            table(("name", "default"), parameters) if parameters else "None.",
            "## First integrals",
            f"{integrals}.",
            "## In code",
            f"`noslip.systems.{name}` offers {', '.join(offers)}; on the command line it is `{name}`.",
        ]
    )


# ---- studies --------------------------------------------------------------------------------------


def _stored(name: str) -> dict[str, Any]:
    return dict(json.loads((DOCS / "studies" / f"{name}.json").read_text()))


def _studies() -> str:
    stored = {name: _stored(name) for name in studies.names()}
    every = [(row["kind"], row["verdict"]) for each in stored.values() for row in each["rows"]]
    parts = [
        "# Studies",
        "Figures and tables of the papers, computed again and judged. Three kinds of rows are counted apart:",
        table(("kind", "what it is"), list(KINDS.items())),
        f"In all, {counted(every)}. *Differs* always comes with a reason, most often "
        "a misprint that the [errata](../errata/README.md) explain. The pictures are those of the full form; "
        "`noslip study run all` repeats all studies in their quick form on your machine.",
        "## How a row is judged",
        "By a rule that belongs to the kind of claim and is the same for every row that makes it; no row has "
        "a threshold of its own.",
        table(("rule", "agrees if"), [(rule.name, escaped(rule.sentence)) for rule in RULES]),
        "## All studies",
    ]
    rows = []
    pictures = []
    for paper in references.PAPERS:
        own = [name for name in stored if paper == stored[name]["paper"]]
        if not own:
            continue
        pictures += [f"## {paper}", _full(references.WORKS[paper])]
        for name in own:
            verdicts = [(row["kind"], row["verdict"]) for row in stored[name]["rows"]]
            cells = [
                f"{verdicts.count((kind, 'agrees'))} / {verdicts.count((kind, 'differs'))}" for kind in KINDS
            ]
            rows.append((f"[{name}]({name}.md)", paper, *cells))
            heading = stored[name]["title"]
            pictures += [
                f"### [{heading}]({name}.md)",
                f"{_capital(counted(verdicts))}.",
                f"[![{heading}]({name}.png)]({name}.md)",
            ]
    head = ("study", "paper", *(f"{kind}s: agree / differ" for kind in KINDS))
    return "\n\n".join([*parts, table(head, rows), *pictures])


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]


def _study(name: str, module: ModuleType) -> str:
    stored = _stored(name)
    rows = [
        (
            r["quantity"],
            r["kind"],
            r["paper"],
            _shown(r["ours"]),
            r["rule"],
            _verdict(r["verdict"]),
            r["reason"],
        )
        for r in stored["rows"]
    ]
    verdicts = counted((r["kind"], r["verdict"]) for r in stored["rows"])
    inputs = [(f"`{key}`", f"`{json.dumps(value)}`") for key, value in stored["inputs"].items()]
    versions = ", ".join(f"{k} {v}" for k, v in stored["versions"].items())
    return "\n\n".join(
        [
            f"# {title(module)}",
            escaped(explanation(module)),
            f"![{title(module)}]({name}.png)",
            "## Numbers",
            f"{_capital(verdicts)}; [what the kinds and the rules are](index.md). For a check the third "
            "column has what we expect, not what the paper prints.",
            table(
                ("quantity", "kind", "paper", "ours", "rule", "verdict", "reason"),
                [tuple(map(_unbroken, row)) for row in rows],
            ),
            "## Inputs",
            table(("input", "value"), inputs),
            "## Again",
            f"`noslip study run {name} --full --out DIR` writes this figure, the numbers as CSV and JSON, "
            f"and the curves. What is shown was made with {versions}.",
        ]
    )


def _verdict(word: str) -> str:
    return word if word == "agrees" else f"**{word}**"


def _unbroken(cell: Any) -> str:
    """Text for a narrow column, in which 1e-8 stays on one line."""
    return re.sub(r"\b(\d[\d.]*e-\d+)", r'<span class="unbroken">\1</span>', escaped(cell))


def _shown(value: float) -> str:
    size = abs(value)
    return f"{value:.1e}" if 0 < size < 1e-6 or size >= 1e6 else f"{value:.6g}"


# ---- references -----------------------------------------------------------------------------------


def _references() -> str:
    parts = [
        "# References",
        "The five papers that the package implements, and all other works that pages and docstrings name.",
    ]
    for key, work in references.WORKS.items():
        parts += [f"## {key}", _full(work)]
    return "\n\n".join(parts)


def _full(work: references.Work) -> str:
    return escaped(work.text) + (f" [doi:{work.doi}]({work.url})" if work.doi else "")


def _linked(reference: str) -> str:
    """The source of a method with its keys as links."""
    parts = zip(reference.split("; "), references.keys(reference), strict=True)
    return "; ".join(
        f"[{key}](../references.md#{_anchor(key)}){escaped(part.removeprefix(key))}" for part, key in parts
    )


def _anchor(heading: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", heading.lower())


# ---- Markdown ---------------------------------------------------------------------------------------


def _from_root(name: str) -> str:
    text = (ROOT / name).read_text()
    return text.replace("](docs/", "](").replace("```\nmake", "```text\nmake")


def _call(method: Integrator) -> str:
    return re.sub(r" at 0x[0-9a-f]+", "", repr(method)).replace("|", "/")


def _number(value: Any) -> str:
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def _words(name: str) -> str:
    return name.replace("_", " ").capitalize()
