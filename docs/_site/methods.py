"""What the pages of methods say, asked of the classes themselves."""

from __future__ import annotations

import dataclasses
import inspect
import re
import typing
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

from sphinx.pycode import ModuleAnalyzer

import measured
from noslip import integrators, references, systems
from noslip.analysis.scoreboard import short_name
from noslip.integrators.base import Integrator
from noslip.system import System
from prose import docstring, first_line, plain, sentence

CHOICE = Path(__file__).parents[1] / "how_to" / "choose_an_integrator.md"


@dataclasses.dataclass(frozen=True)
class Parameter:
    name: str
    default: str
    meaning: str
    allowed: str


@cache
def catalogue() -> dict[str, System]:
    return {name: module.system() for name, module in systems.discover().items()}


@cache
def refusals(method: Integrator) -> dict[str, str]:
    """Of each system to which a method does not apply: why."""
    return {name: reason for name, system in catalogue().items() if (reason := method.refusal(system))}


def families() -> dict[str, list[str]]:
    """The methods by the paper that they are from; those of other works come last."""
    found: dict[str, list[str]] = {paper: [] for paper in references.PAPERS}
    for name, cls in integrators.discover().items():
        own = [key for key in references.keys(cls.reference) if key in references.PAPERS]
        first = own[0] if own and cls.reference.startswith(own[0]) else ""
        family = first if first and not cls.exact else "Relatives"
        found.setdefault(family, []).append(name)
    return {family: names for family, names in found.items() if names}


def order(method: Integrator) -> str:
    return "exact" if method.exact else str(method.order)


def kept(method: Integrator) -> str:
    return ", ".join(sorted(method.preserves)).replace("_", " ") or "-"


def call(method: Integrator) -> str:
    return short_name(method).replace("|", "/")


def parameters(cls: type[Integrator]) -> Iterator[Parameter]:
    for f in dataclasses.fields(cls):  # type: ignore[arg-type]
        default = getattr(cls(), f.name)
        shown = short_name(default) if isinstance(default, Integrator) else repr(default)
        yield Parameter(f.name, shown, sentence(meaning(cls, f.name)), plain(allowed(cls, f.name)))


def meaning(cls: type[Integrator], name: str) -> str:
    """The text below a field, in the class or in the one from which it has the field."""
    for owner in cls.__mro__:
        if name in vars(owner).get("__annotations__", {}):
            notes = ModuleAnalyzer.for_module(owner.__module__).find_attr_docs()
            found = " ".join(notes.get((owner.__qualname__, name), [])).strip()
            return found[:1].upper() + found[1:]
    return ""


def allowed(cls: type[Integrator], name: str) -> str:
    """What a parameter may be, as the method itself says when it refuses another value."""
    hint = typing.get_type_hints(cls)[name]
    if choices := typing.get_args(hint):
        if all(isinstance(choice, str) for choice in choices):
            return ", ".join(f'`"{choice}"`' for choice in choices)
        hint = next(choice for choice in choices if choice is not type(None))
    none = " or `None`" if type(None) in choices else ""
    if hint is bool:
        return "`True`, `False`"
    if not isinstance(hint, type) or hint not in (str, int, float):
        return _article(getattr(hint, "__name__", str(hint))) + none
    refused: Any = "?" if hint is str else hint(-(10**6))
    try:
        cls(**{name: refused})
    except ValueError as error:
        found = re.search(r"must be (.*?),? but", str(error), re.DOTALL)
        if found:
            return re.sub(r"'(\w+)'", r'`"\1"`', found[1]) + none
    return {str: "a text", int: "a whole number", float: "a number"}[hint] + none


def _article(kind: str) -> str:
    return f"{'an' if kind[0] in 'AEIO' else 'a'} `{kind}`"


def advice(name: str) -> list[tuple[str, str]]:
    """(need, price) of the rows of the page on choosing that take this method."""
    rows = re.findall(r"^\| (.*?) \| (.*?) \| (.*?) \|$", CHOICE.read_text(), flags=re.MULTILINE)
    named = re.compile(rf"methods/{name}\.md|`{name}\(")
    return [
        (need.replace("](../methods/", "]("), price.replace("](../methods/", "]("))
        for need, take, price in rows
        if named.search(take)
    ]


def sources(cls: type[Integrator]) -> Iterator[tuple[str, str]]:
    """(place, full reference) of each work that a method is from."""
    parts = cls.reference.split("; ")
    for part, key in zip(parts, references.keys(cls.reference), strict=True):
        yield part, references.WORKS[key]


def page(cls: type[Integrator]) -> dict[str, Any]:
    module = inspect.getmodule(cls)
    method = cls()
    refused = refusals(method)
    return {
        "name": cls.__name__,
        "module": cls.__module__,
        "summary": first_line(cls),
        "order": order(method),
        "kept": sorted(method.preserves),
        "explicit": type(method).residual is Integrator.residual
        and type(method).fixed_point is Integrator.fixed_point,
        "equations": docstring(module),
        "parameters": list(parameters(cls)),
        "variants": [(f"`{call(v)}`", order(v), kept(v)) for v in cls.variants()],
        "measured": measured.cells(cls.__name__),
        "steps": measured.stored()["steps"],
        "step_size": measured.stored()["step_size"],
        "advice": advice(cls.__name__),
        "applies": [name for name in catalogue() if name not in refused],
        "refused": [(name, sentence(reason)) for name, reason in refused.items()],
        "sources": list(sources(cls)),
    }
