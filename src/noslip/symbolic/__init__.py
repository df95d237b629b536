"""SymPy front end: state a Lagrangian and velocity constraints in SymPy, simulate them like any `System`.

This package is imported explicitly; `import noslip` alone does not load SymPy.
"""

from noslip.symbolic._formulas import Formulas, formulas
from noslip.symbolic._integrability import Integrability
from noslip.symbolic._reduction import SymbolicHamiltonization, SymbolicReduction
from noslip.symbolic._system import SymbolicSystem, system

__all__ = [
    "Formulas",
    "Integrability",
    "SymbolicHamiltonization",
    "SymbolicReduction",
    "SymbolicSystem",
    "formulas",
    "system",
]
