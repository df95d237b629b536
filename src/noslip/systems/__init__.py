"""One file per mechanical system. A file is its own registration: `discover` finds every system here.

Each module offers `system(**parameters)`, `typical_state()` -> (q0, v0) for the default parameters and,
where a closed form is known, `exact(t, q0, v0)` -> (q, v) or (q, v, multipliers). Installed packages may
offer more such modules, by entry points of the group "noslip.systems".
"""

import importlib
import pkgutil
from types import ModuleType
from typing import TYPE_CHECKING, Any

from noslip import names as _names
from noslip.errors import shown, unknown_name
from noslip.system import System
from noslip.systems._source import Source, Start

__all__ = ["Source", "Start", "discover", "find", "name_of", "names", "open_source"]
_GROUP = "noslip.systems"


def names() -> list[str]:
    """The names alone, of the catalogue and of installed packages, without importing anything."""
    return sorted({*_catalogue(), *_names.installed(_GROUP)})


def discover() -> dict[str, ModuleType]:
    """All modules of the catalogue and of installed packages by name, in alphabetical order."""
    return {name: find(name) for name in names()}


def find(name: str) -> ModuleType:
    """The module of that name in the catalogue, or that an installed package offers."""
    if name in _catalogue():
        return importlib.import_module(f"{__name__}.{name}")
    installed = _names.installed(_GROUP)
    if name not in installed:
        raise ValueError(unknown_name("system", name, names()))
    module = _names.load(installed[name])
    if not isinstance(module, ModuleType) or not callable(getattr(module, "system", None)):
        raise ValueError(
            f"'{name}' of {_GROUP} must be a module with a function system(), but {installed[name].value} "
            "is not"
        )
    return module


def name_of(module: str) -> str:
    """The name by which `find` gives the module of that full name; empty for all other modules."""
    package, _, name = module.rpartition(".")
    if package == __name__ and name in _catalogue():
        return name
    points = _names.installed(_GROUP).items()
    return next((name for name, point in points if point.value == module and name not in _catalogue()), "")


def open_source(system: str | System | Any) -> Source:
    """Where a system comes from: a name that `find` knows, `file.py:name`, a System, or a function that
    makes one. A file is run: give this only words that the user wrote."""
    if isinstance(system, System) or callable(system):
        return Source(getattr(system, "__name__", "the given system"), system)
    if not isinstance(system, str):
        raise TypeError(
            "a system must be a System, a function that makes one, or a name, "
            f"but {shown(system)} was provided"
        )
    if _names.in_a_file(system):
        module, maker = _names.attribute(system, "system", System)
        return Source.beside(system, maker, module)
    module = find(system)
    return Source.beside(system, module.system, module)


def _catalogue() -> list[str]:
    return [info.name for info in pkgutil.iter_modules(__path__) if not info.name.startswith("_")]


if not TYPE_CHECKING:  # editors and mypy see the files of the catalogue

    def __getattr__(name: str) -> ModuleType:
        """`from noslip.systems import robot`, also for what installed packages offer."""
        if not name.startswith("_") and name in names():
            return find(name)
        raise AttributeError(f"module '{__name__}' has no attribute '{name}'")


def __dir__() -> list[str]:
    return sorted({*globals(), *names()})
