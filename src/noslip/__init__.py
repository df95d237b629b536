"""Structure-preserving simulation of mechanical systems with nonholonomic constraints.

Importing noslip switches JAX to 64-bit floats: every method here is judged at round-off.
"""

from importlib import import_module as _import_module
from typing import TYPE_CHECKING

import jax as _jax

_jax.config.update("jax_enable_x64", True)

__version__ = "0.1.0"

if TYPE_CHECKING:
    from noslip.errors import Interrupted, SolveFailed
    from noslip.simulate import simulate
    from noslip.system import System
    from noslip.trajectory import Trajectory, load

_HOMES = {
    "System": "noslip.system",
    "simulate": "noslip.simulate",
    "Trajectory": "noslip.trajectory",
    "load": "noslip.trajectory",
    "Interrupted": "noslip.errors",
    "SolveFailed": "noslip.errors",
}
__all__ = ["Interrupted", "SolveFailed", "System", "Trajectory", "load", "simulate"]


def __getattr__(name: str) -> object:
    # SciPy, SymPy and xarray are loaded by whoever needs them, so that `import noslip` stays quick.
    if name not in _HOMES:
        raise AttributeError(f"module 'noslip' has no attribute '{name}'")
    value = getattr(_import_module(_HOMES[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted([*globals(), *_HOMES])
