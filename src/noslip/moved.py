"""Modules of version 0.1 under their old names: each is the very module that now has another name.

    noslip.diagnostics.order  ->  noslip.analysis.order

There is no warning: the old names stay, and a script with `python -W error` goes on running.
"""

from __future__ import annotations

import importlib
import importlib.util
import sys
from collections.abc import Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType

ANALYSIS, NUMERICS = "noslip.analysis", "noslip.numerics"
MOVED = {
    "noslip.diagnostics": ANALYSIS,
    **{f"noslip.geometry.{name}": f"{ANALYSIS}.{name}" for name in ("deformed", "embedding", "phase_space")},
    **{
        f"noslip.geometry.{name}": f"{NUMERICS}.{name}"
        for name in ("collocation", "compositions", "discrete_gradients", "linear")
    },
    "noslip.integrators._base": "noslip.integrators.base",
    "noslip._pytree": f"{NUMERICS}.pytrees",
}


def new_name(old: str) -> str | None:
    """Where a module, or the package around it, has gone; None if it stayed."""
    head, rest = old, ""
    while head not in MOVED:
        head, dot, tail = head.rpartition(".")
        if not dot:
            return None
        rest = f".{tail}{rest}"
    return MOVED[head] + rest


class MovedModules(MetaPathFinder, Loader):
    """Finds a module of an old name, and gives the one of the new name instead of making another."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        new = new_name(fullname) if fullname.startswith("noslip.") else None
        if new is None or importlib.util.find_spec(new) is None:
            return None
        return ModuleSpec(fullname, self)

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        module = importlib.import_module(new_name(spec.name) or "")
        spec.loader_state = module.__spec__  # which the import system now replaces
        return module

    def exec_module(self, module: ModuleType) -> None:
        assert module.__spec__ is not None
        module.__spec__ = module.__spec__.loader_state


def install() -> None:
    """Once, and before the finder of files, which would load a second copy of a moved submodule."""
    if not any(isinstance(finder, MovedModules) for finder in sys.meta_path):
        sys.meta_path.insert(0, MovedModules())
