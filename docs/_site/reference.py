"""Pages of the public modules, which are found and not listed."""

from __future__ import annotations

import importlib
import inspect
import pkgutil
import re
from functools import cache
from types import ModuleType
from typing import Any

import noslip
from noslip import integrators, studies, systems
from noslip.markdown import table
from prose import first_line, verbatim


@cache
def modules() -> tuple[str, ...]:
    """The public modules that say something of their own: found, not listed. Integrators, systems and studies
    have pages of their own, and what is behind the verbs is not for users."""
    own = {f"{package.__name__}.{name}" for package in (systems, studies) for name in package.discover()}
    own |= {cls.__module__ for cls in integrators.discover().values()}
    inside = tuple(f"noslip.{room}" for room in ("bench", "cli", "engine", "run"))
    found = ["noslip"]
    for info in pkgutil.walk_packages(noslip.__path__, "noslip."):
        private = any(part.startswith("_") for part in info.name.split("."))
        if private or info.name in own or info.name.startswith(inside):
            continue
        if _members(importlib.import_module(info.name)):
            found.append(info.name)
    return tuple(found)


def index() -> str:
    rows = [(f"[`{name}`]({name}.md)", first_line(importlib.import_module(name))) for name in modules()]
    return "\n\n".join(
        [
            "# Reference",
            "The public modules. Integrators and systems have [pages](../methods/index.md) of "
            "[their own](../systems/index.md).",
            table(("module", "what it holds"), rows),
        ]
    )


def page(name: str) -> str:
    module = importlib.import_module(name)
    parts = [f"# `{name}`", verbatim(inspect.getdoc(module) or "")]
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
    doc = verbatim(inspect.getdoc(value.fget if isinstance(value, property) else value) or "")
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
