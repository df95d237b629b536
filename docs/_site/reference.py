"""The public modules, which are found and not listed."""

from __future__ import annotations

import importlib
import inspect
import pkgutil
from collections.abc import Iterable
from functools import cache
from types import ModuleType

import noslip
from noslip import integrators, studies, systems
from prose import first_line


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
        if members(importlib.import_module(info.name)):
            found.append(info.name)
    return tuple(found)


def members(module: ModuleType) -> list[str]:
    """The public classes and functions of a module: those it lists, else those it defines."""
    names = getattr(module, "__all__", None) or [
        name
        for name, value in vars(module).items()
        if not name.startswith("_")
        and (inspect.isclass(value) or inspect.isfunction(value))
        and value.__module__ == module.__name__
    ]
    return [name for name in names if callable(getattr(module, name)) and name[0] != "_"]


def directives(name: str) -> list[tuple[str, str]]:
    """(member, the directive of autodoc that shows it)."""
    module = importlib.import_module(name)
    return [
        (member, "autoclass" if inspect.isclass(getattr(module, member)) else "autofunction")
        for member in members(module)
    ]


def rooms() -> dict[str, list[str]]:
    """The modules at the top of the house, each with those inside it."""
    found: dict[str, list[str]] = {}
    for name in modules():
        room = ".".join(name.split(".")[:2])
        found.setdefault(room, []).extend([name] if name != room else [])
    return found


def rows(names: Iterable[str]) -> list[tuple[str, str]]:
    return [(f"[`{name}`]({name}.md)", first_line(importlib.import_module(name))) for name in names]
