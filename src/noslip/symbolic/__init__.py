"""SymPy front end: state a Lagrangian and constraints in SymPy, simulate them like any `System`.

This package is imported explicitly; `import noslip` alone does not load SymPy.
"""

from noslip.symbolic._formulas import Formulas, formulas
from noslip.symbolic._integrability import Integrability
from noslip.symbolic._methods import from_kane, from_lagrange
from noslip.symbolic._reduction import SymbolicHamiltonization, SymbolicReduction
from noslip.symbolic._system import SymbolicSystem, system

__all__ = [
    "Formulas",
    "Integrability",
    "SymbolicHamiltonization",
    "SymbolicReduction",
    "SymbolicSystem",
    "formulas",
    "from_kane",
    "from_lagrange",
    "system",
]
