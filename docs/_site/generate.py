"""Pages made from the code itself: every method, every system, every study, the reference, the changelog."""

from __future__ import annotations

import dataclasses
import importlib
import inspect
import json
import re
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

from noslip import integrators, studies, systems
from noslip.integrators.base import VOCABULARY, Integrator
from noslip.markdown import table
from noslip.studies._base import explanation, title
from noslip.symbolic import formulas

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
PAPERS = {
    "JS": "Jimenez, Scheurle: On the discretization of nonholonomic dynamics in R^n",
    "LMS": "de Leon, Martin de Diego, Santamaria-Merino: Geometric integrators and nonholonomic mechanics",
    "CFHM": "Celledoni, Farre Puiggali, Hoiseth, Martin de Diego: Energy-preserving integrators applied to "
    "nonholonomic systems",
    "FBO": "Fernandez, Bloch, Olver: Variational integrators for Hamiltonizable nonholonomic systems",
    "PP": "Popescu, Popescu: On discrete geometry of non-holonomic spaces",
}
REFERENCE = (
    "noslip",
    "noslip.symbolic",
    "noslip.analysis",
    "noslip.analysis.scoreboard",
    "noslip.analysis.work_precision",
    "noslip.plots.trajectory",
    "noslip.plots.portraits",
    "noslip.plots.animation",
    "noslip.plots.panels",
    "noslip.report",
    "noslip.testing",
    "noslip.geometry.bracket",
    "noslip.geometry.chaplygin",
    "noslip.numerics.compositions",
    "noslip.geometry.connection",
    "noslip.analysis.deformed",
    "noslip.geometry.discrete_chaplygin",
    "noslip.numerics.discrete_gradients",
    "noslip.analysis.embedding",
    "noslip.geometry.exact_generating_function",
    "noslip.geometry.finite_difference_map",
    "noslip.geometry.frames",
    "noslip.geometry.groups",
    "noslip.geometry.hamiltonian",
    "noslip.geometry.hamiltonization",
    "noslip.geometry.interpolation",
    "noslip.geometry.lie_algebra",
    "noslip.geometry.splitting",
)


def contents(section: str) -> list[Any]:
    """The entries of a section in the table of contents."""
    if section == "Methods":
        return ["methods/index.md", *({name: f"methods/{name}.md"} for name in integrators.discover())]
    if section == "Systems":
        return ["systems/index.md", *({_words(name): f"systems/{name}.md"} for name in systems.discover())]
    if section == "Studies":
        return ["studies/index.md", *({name: f"studies/{name}.md"} for name in studies.names())]
    assert section == "Reference", section
    return ["reference/index.md", *({name: f"reference/{name}.md"} for name in REFERENCE)]


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
    yield "reference/index.md", _reference()
    for name in REFERENCE:
        yield f"reference/{name}.md", _module(name)
    yield "changelog.md", _from_root("CHANGELOG.md")
    yield "contributing.md", _from_root("CONTRIBUTING.md")


# ---- methods --------------------------------------------------------------------------------------


def _methods() -> str:
    rows = []
    for name, cls in integrators.discover().items():
        method = cls()
        order = "exact" if method.exact else str(method.order)
        kept = ", ".join(sorted(method.preserves)) or "-"
        rows.append((f"[{name}]({name}.md)", order, kept, _first_line(cls)))
    words = [(f"`{word}`", meaning) for word, meaning in VOCABULARY.items()]
    return "\n\n".join(
        [
            "# Methods",
            "Every integrator of the package, at its default parameters. Each word in *preserves* is a "
            "promise that the tests hold over long runs; each absent word was seen broken on some system. "
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
        (f"[{name}](../systems/{name}.md)", _escaped(reason))
        for name, other in systems.discover().items()
        if (reason := cls().applies_to(other.system()))
    ]
    where = (
        table(("system", "why the method does not apply"), refusals)
        if refusals
        else "On every system of the catalogue."
    )
    return "\n\n".join(
        [
            f"# {cls.__name__}",
            _first_line(cls),
            f"Source: {cls.reference}. Module: `{cls.__module__}`.",
            "## The equations",
            _verbatim(inspect.getdoc(module) or ""),
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
        system = module.system()
        what = (inspect.getdoc(module) or "").partition("\n")[0]
        exact = "yes" if hasattr(module, "exact") else "-"
        rows.append((f"[{_words(name)}]({name}.md)", f"{system.n}", f"{system.m} {system.kind}", exact, what))
    return "\n\n".join(
        [
            "# Systems",
            "The catalogue: each is one file with defaults for all parameters and a typical state.",
            table(("system", "coordinates", "constraints", "closed form", "what it is"), rows),
        ]
    )


def _system(name: str, module: ModuleType) -> str:
    system = module.system()
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
            _verbatim(inspect.getdoc(module) or ""),
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
    parts = [
        "# Studies",
        "Figures and tables of the papers, computed again and judged: each number that a paper prints stands "
        "beside ours with a verdict; of a formula the column has the value, of a statement the words. "
        "*Differs* always comes with a reason, most often "
        "a misprint that the [errata](../errata/README.md) explain. The pictures are those of the full form; "
        "`noslip study run all` repeats all studies in their quick form on your machine.",
    ]
    rows = []
    for paper, reference in PAPERS.items():
        own = [name for name in studies.names() if paper == studies.find(name).PAPER]
        if not own:
            continue
        parts += [f"## {paper}", f"{reference}."]
        for name in own:
            stored = _stored(name)
            agree = sum(row["verdict"] == "agrees" for row in stored["rows"])
            differ = len(stored["rows"]) - agree
            rows.append((f"[{name}]({name}.md)", paper, agree, differ))
            parts += [
                f"### [{stored['title']}]({name}.md)",
                f"{agree} numbers agree, {differ} differ.",
                f"[![{stored['title']}]({name}.png)]({name}.md)",
            ]
    parts.insert(2, table(("study", "paper", "agree", "differ"), rows))
    return "\n\n".join(parts)


def _study(name: str, module: ModuleType) -> str:
    stored = _stored(name)
    rows = [
        (r["quantity"], r["paper"], _shown(r["ours"]), _verdict(r["verdict"]), r["reason"])
        for r in stored["rows"]
    ]
    inputs = [(f"`{key}`", f"`{json.dumps(value)}`") for key, value in stored["inputs"].items()]
    versions = ", ".join(f"{k} {v}" for k, v in stored["versions"].items())
    return "\n\n".join(
        [
            f"# {title(module)}",
            _escaped(explanation(module)),
            f"![{title(module)}]({name}.png)",
            "## Numbers",
            table(
                ("quantity", "paper", "ours", "verdict", "reason"),
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
    return re.sub(r"\b(\d[\d.]*e-\d+)", r'<span class="unbroken">\1</span>', _escaped(cell))


def _shown(value: float) -> str:
    size = abs(value)
    return f"{value:.1e}" if 0 < size < 1e-6 or size >= 1e6 else f"{value:.6g}"


# ---- reference ------------------------------------------------------------------------------------


def _reference() -> str:
    rows = [(f"[`{name}`]({name}.md)", _first_line(importlib.import_module(name))) for name in REFERENCE]
    return "\n\n".join(
        [
            "# Reference",
            "The public modules. Integrators and systems have [pages](../methods/index.md) of "
            "[their own](../systems/index.md).",
            table(("module", "what it holds"), rows),
        ]
    )


def _module(name: str) -> str:
    module = importlib.import_module(name)
    parts = [f"# `{name}`", _verbatim(inspect.getdoc(module) or "")]
    for public, value in _members(module):
        parts.append(f"## `{public}`")
        parts.append(_described(public, value))
        if inspect.isclass(value):
            for method, function in vars(value).items():
                if not method.startswith("_") and (
                    inspect.isfunction(function) or isinstance(function, property)
                ):
                    target = function.fget if isinstance(function, property) else function
                    if inspect.getdoc(target):
                        parts += [f"### `{public}.{method}`", _described(method, function)]
    return "\n\n".join(parts)


def _members(module: ModuleType) -> list[tuple[str, Any]]:
    names = getattr(module, "__all__", None) or [
        name
        for name, value in vars(module).items()
        if not name.startswith("_")
        and (inspect.isclass(value) or inspect.isfunction(value))
        and value.__module__ == module.__name__
    ]
    return [
        (name, getattr(module, name)) for name in names if callable(getattr(module, name)) and name[0] != "_"
    ]


def _described(name: str, value: Any) -> str:
    doc = _verbatim(inspect.getdoc(value.fget if isinstance(value, property) else value) or "")
    if isinstance(value, property):
        return doc
    try:
        signature = str(inspect.signature(value))
    except ValueError:
        return doc
    signature = re.sub(r" at 0x[0-9a-f]+", "", signature).replace("'", "")
    return f"```text\n{_folded(name + signature)}\n```\n\n{doc}"


def _folded(signature: str) -> str:
    """A long signature with one parameter on each line."""
    if len(signature) <= 90:
        return signature
    depth, lines, line = 0, [], ""
    for letter in signature:
        if letter in ")]}" and depth == 1 and letter == ")":
            lines, line = [*lines, line], ""
        depth += (letter in "([{") - (letter in ")]}")
        line += letter
        if (letter == "," and depth == 1) or (letter == "(" and depth == 1):
            lines, line = [*lines, line], ""
    return "\n".join(
        "    " + x.strip() if 0 < k < len(lines) else x.strip() for k, x in enumerate([*lines, line])
    )


# ---- Markdown -------------------------------------------------------------------------------------


def _from_root(name: str) -> str:
    text = (ROOT / name).read_text()
    return text.replace("](docs/", "](").replace("```\nmake", "```text\nmake")


def _verbatim(doc: str) -> str:
    """A docstring as it was written: paragraphs as text, indented formulas as they stand."""
    parts = []
    for block in re.split(r"\n\s*\n", doc):
        lines = block.splitlines()
        inside = [line for line in lines if line.startswith("    ")]
        if inside and len(inside) == len(lines):
            parts.append("```text\n" + inspect.cleandoc(block) + "\n```")
        elif inside:  # a paragraph with formulas in its middle
            parts.append("```text\n" + block + "\n```")
        else:
            parts.append(_escaped(block))
    return "\n\n".join(parts)


def _escaped(text: Any) -> str:
    """Plain text that Markdown leaves alone; what is between back quotes stays as it is."""
    pieces = re.split(r"(`[^`]*`|\*\*[a-z]+\*\*)", str(text))
    return "".join(piece if k % 2 else _plain(piece) for k, piece in enumerate(pieces))


def _plain(text: str) -> str:
    safe = text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return re.sub(r"([\\*_|\[\]#$])", r"\\\1", safe)


def _first_line(value: Any) -> str:
    return _escaped((inspect.getdoc(value) or "").partition("\n")[0])


def _call(method: Integrator) -> str:
    return re.sub(r" at 0x[0-9a-f]+", "", repr(method)).replace("|", "/")


def _number(value: Any) -> str:
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def _words(name: str) -> str:
    return name.replace("_", " ").capitalize()
