"""Structure-preserving simulation of mechanical systems with nonholonomic constraints.

Importing noslip switches JAX to 64-bit floats, since every method here is judged at round-off: at once if JAX
is loaded, else by JAX_ENABLE_X64 for when it is. The names below, and the rooms of the package, are
imported when they are first asked for, so that the command line can show its help without loading JAX.
"""

import importlib
import os
import sys
from types import ModuleType
from typing import TYPE_CHECKING, Any

from noslip import moved
from noslip.version import __version__

if TYPE_CHECKING:
    from noslip.analysis.error_estimate import error_estimate
    from noslip.analysis.linearize import linearize
    from noslip.ensembles import Ensemble, Observable, ensemble
    from noslip.errors import Damaged, Interrupted, SolveFailed
    from noslip.prepared import Prepared, Stepper, prepare
    from noslip.resumed import resume
    from noslip.run.events import Event
    from noslip.saved import Rerun, rerun
    from noslip.simulate import simulate
    from noslip.system import System
    from noslip.trajectory import Trajectory, load

__all__ = [
    "Damaged",
    "Ensemble",
    "Event",
    "Interrupted",
    "Observable",
    "Prepared",
    "Rerun",
    "SolveFailed",
    "Stepper",
    "System",
    "Trajectory",
    "__version__",
    "ensemble",
    "error_estimate",
    "linearize",
    "load",
    "prepare",
    "rerun",
    "resume",
    "simulate",
]
_HOMES = {
    "analysis.error_estimate": ("error_estimate",),
    "ensembles": ("Ensemble", "Observable", "ensemble"),
    "analysis.linearize": ("linearize",),
    "errors": ("Damaged", "Interrupted", "SolveFailed"),
    "run.events": ("Event",),
    "prepared": ("Prepared", "Stepper", "prepare"),
    "resumed": ("resume",),
    "saved": ("Rerun", "rerun"),
    "simulate": ("simulate",),
    "system": ("System",),
    "trajectory": ("Trajectory", "load"),
}

if "jax" in sys.modules:
    sys.modules["jax"].config.update("jax_enable_x64", True)
else:
    os.environ["JAX_ENABLE_X64"] = "1"


class _Package(ModuleType):
    def __setattr__(self, name: str, value: Any) -> None:
        """Importing the module noslip.simulate binds it here; the name belongs to the function in it."""
        if isinstance(value, ModuleType) and name in _HOMES.get(name, ()):
            value = getattr(value, name)
        super().__setattr__(name, value)


sys.modules[__name__].__class__ = _Package
moved.install()

if not TYPE_CHECKING:  # editors and mypy are told by the imports above

    def __getattr__(name: str) -> Any:
        for home, names in _HOMES.items():
            if name in names:
                return getattr(importlib.import_module(f"{__name__}.{home}"), name)
        room = f"{__name__}.{name}"
        if not name.startswith("_"):
            try:
                return importlib.import_module(room)
            except ModuleNotFoundError as missing:
                if missing.name != room:
                    raise
        raise AttributeError(f"module '{__name__}' has no attribute '{name}'")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
