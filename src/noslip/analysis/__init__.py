"""Judges of a run or a method: energy, constraint, first integrals, order, reversibility."""

from noslip.analysis.conservation import (
    Drift,
    constraint_error,
    deformed_constraint_error,
    drift,
    energy_balance,
    energy_drift,
    energy_error,
    energy_of_switches,
    first_integral_errors,
    holonomic_error,
)
from noslip.analysis.jacobi import jacobi_defect, jacobiator
from noslip.analysis.linearize import Linearization, Stability, linearize, stability
from noslip.analysis.momentum_map import MomentumMap, momentum_map
from noslip.analysis.order import MeasuredOrder, measured_order
from noslip.analysis.reduced import (
    NonholonomicMomentum,
    midpoint_energy,
    multiplier_along,
    nonholonomic_momentum,
    poincare_energy,
    symplecticity_defect,
)
from noslip.analysis.reversibility import reversibility_defect
from noslip.analysis.symplectic_evolution import (
    SymplecticEvolution,
    reduced_symplectic_evolution,
    symplectic_evolution,
)
from noslip.analysis.time_estimate import two_order_estimate
from noslip.analysis.time_transformation import TimeErrors, time_errors

__all__ = [
    "Drift",
    "Linearization",
    "MeasuredOrder",
    "MomentumMap",
    "NonholonomicMomentum",
    "Stability",
    "SymplecticEvolution",
    "TimeErrors",
    "constraint_error",
    "deformed_constraint_error",
    "drift",
    "energy_balance",
    "energy_drift",
    "energy_error",
    "energy_of_switches",
    "first_integral_errors",
    "holonomic_error",
    "jacobi_defect",
    "jacobiator",
    "linearize",
    "measured_order",
    "midpoint_energy",
    "momentum_map",
    "multiplier_along",
    "nonholonomic_momentum",
    "poincare_energy",
    "reduced_symplectic_evolution",
    "reversibility_defect",
    "stability",
    "symplectic_evolution",
    "symplecticity_defect",
    "time_errors",
    "two_order_estimate",
]
