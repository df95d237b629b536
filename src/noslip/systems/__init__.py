"""One file per mechanical system. A file is its own registration: `discover` finds every system here.

Each module offers `system(**parameters)`, `typical_state()` -> (q0, v0) for the default parameters and,
where a closed form is known, `exact(t, q0, v0)` -> (q, v) or (q, v, multipliers).
"""

import importlib
import pkgutil
from types import ModuleType

from noslip.errors import unknown_name


def discover() -> dict[str, ModuleType]:
    """All catalogue modules by name, in alphabetical order."""
    names = sorted(info.name for info in pkgutil.iter_modules(__path__) if not info.name.startswith("_"))
    return {name: importlib.import_module(f"{__name__}.{name}") for name in names}


def find(name: str) -> ModuleType:
    """The catalogue module of that name."""
    names = [info.name for info in pkgutil.iter_modules(__path__) if not info.name.startswith("_")]
    if name not in names:
        raise ValueError(unknown_name("system", name, names))
    return importlib.import_module(f"{__name__}.{name}")
