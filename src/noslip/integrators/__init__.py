"""One file per method. A file is its own registration: `discover` finds every integrator here."""

import importlib
import pkgutil

from noslip.errors import unknown_name
from noslip.integrators._base import Integrator


def discover() -> dict[str, type[Integrator]]:
    """All integrator classes of this package by name, in alphabetical order."""
    found = {}
    for info in pkgutil.iter_modules(__path__):
        if info.name.startswith("_"):
            continue
        module = importlib.import_module(f"{__name__}.{info.name}")
        for value in vars(module).values():
            own = isinstance(value, type) and value.__module__ == module.__name__
            if own and issubclass(value, Integrator) and not value.__name__.startswith("_"):
                found[value.__name__] = value
    return dict(sorted(found.items()))


def find(name: str) -> type[Integrator]:
    """The integrator class of that name."""
    classes = discover()
    if name not in classes:
        raise ValueError(unknown_name("integrator", name, classes))
    return classes[name]
