"""One file per figure or table of the papers. A file is its own registration: `discover` finds it.

Each module begins with its title and what there is to know, names its `PAPER`, declares its `ROWS` (what
the paper prints or says, the kind of each row and the rule by which it is judged), and offers `run(full,
track)` -> `Study`: the inputs, the rows with our numbers, and the curves. The quick form (full=False)
takes seconds; full=True uses the paper's own sizes.
"""

import importlib
import pkgutil
from types import ModuleType

from noslip.errors import unknown_name


def discover() -> dict[str, ModuleType]:
    """All studies by name, in alphabetical order."""
    return {name: importlib.import_module(f"{__name__}.{name}") for name in names()}


def find(name: str) -> ModuleType:
    """The study of that name."""
    if name not in names():
        raise ValueError(unknown_name("study", name, [*names(), "all"]))
    return importlib.import_module(f"{__name__}.{name}")


def names() -> list[str]:
    """The names alone, without importing anything."""
    return sorted(info.name for info in pkgutil.iter_modules(__path__) if not info.name.startswith("_"))
