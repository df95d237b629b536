"""What the pages of systems say, asked of the systems themselves."""

from __future__ import annotations

import inspect
import re
from types import ModuleType
from typing import Any

import methods
from noslip import integrators, systems
from noslip.references import WORKS, cited
from noslip.symbolic import Formulas, formulas
from prose import docstring, sentence


def words(name: str) -> str:
    """The name of a system for people: what its module says before the first colon, where that is short."""
    first, colon, _ = (inspect.getdoc(systems.find(name)) or "").partition("\n")[0].partition(":")
    return first if colon and len(first) <= 50 else name.replace("_", " ").capitalize().replace("Fbo", "FBO")


def number(value: Any) -> str:
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def page(name: str, module: ModuleType) -> dict[str, Any]:
    system = methods.catalogue()[name]
    q0, v0 = module.typical_state()
    found = formulas(system)
    doc = inspect.getdoc(module) or ""
    states = [
        (f"`{c}`" + (" (angle)" if c in system.angles else ""), f"{q:.6g}", f"{v:.6g}")
        for c, q, v in zip(system.coordinates, q0, v0, strict=True)
    ]
    offers = [x for x in ("system", "typical_state", "exact", "picture", "scene") if hasattr(module, x)]
    by_method = {method: methods.refusals(cls()) for method, cls in integrators.discover().items()}
    return {
        "name": name,
        "title": words(name),
        "text": docstring(module),
        "equations": found.latex() if found else [],
        "integrals": integrals(found, list(system.first_integrals)),
        "states": states,
        "parameters": [(f"`{key}`", number(value)) for key, value in system.parameters.items()],
        "inputs": [(f"`{key}`", number(value)) for key, value in system.inputs.items()],
        "offers": offers,
        "applies": [method for method, refused in by_method.items() if name not in refused],
        "refused": [
            (f"[{m}](../methods/{m}.md)", sentence(refused[name]))
            for m, refused in by_method.items()
            if name in refused
        ],
        "works": [(key, WORKS[key]) for key in WORKS if key in cited(doc) or re.search(rf"\b{key}\b", doc)],
    }


def integrals(found: Formulas | None, names: list[str]) -> list[tuple[str, str]]:
    """(name, LaTeX) of each declared first integral; no LaTeX where it is too long to read."""
    shown = dict(found.first_integrals_latex()) if found else {}
    return [(name, shown.get(name, "")) for name in names]


def row(name: str, module: ModuleType) -> tuple[str, ...]:
    system = methods.catalogue()[name]
    what = sentence((inspect.getdoc(module) or "").partition("\n")[0])
    exact = "yes" if hasattr(module, "exact") else "-"
    kind = f"{system.m} {system.kind}" if system.m else "-"
    positions = str(system.k) if system.k else "-"
    inputs = str(len(system.inputs)) if system.inputs else "-"
    return f"[{words(name)}]({name}.md)", str(system.n), kind, positions, inputs, exact, what
