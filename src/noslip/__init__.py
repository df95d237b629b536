"""Structure-preserving simulation of mechanical systems with nonholonomic constraints.

Importing noslip switches JAX to 64-bit floats: every method here is judged at round-off.
"""

import jax

jax.config.update("jax_enable_x64", True)

# SciPy, SymPy, xarray and matplotlib are imported by whoever needs them, so that this stays quick
from noslip.ensembles import Ensemble, Observable, ensemble  # noqa: E402
from noslip.errors import Interrupted, SolveFailed  # noqa: E402
from noslip.simulate import simulate  # noqa: E402
from noslip.system import System  # noqa: E402
from noslip.trajectory import Trajectory, load  # noqa: E402
from noslip.version import __version__  # noqa: E402

__all__ = [
    "Ensemble",
    "Interrupted",
    "Observable",
    "SolveFailed",
    "System",
    "Trajectory",
    "__version__",
    "ensemble",
    "load",
    "simulate",
]
