"""Judges of a run or a method: energy, constraint, first integrals, order, reversibility."""

from noslip.diagnostics.conservation import (
    Drift,
    constraint_error,
    deformed_constraint_error,
    drift,
    energy_balance,
    energy_drift,
    energy_error,
    first_integral_errors,
)
from noslip.diagnostics.jacobi import jacobi_defect, jacobiator
from noslip.diagnostics.order import MeasuredOrder, measured_order
from noslip.diagnostics.reduced import (
    NonholonomicMomentum,
    midpoint_energy,
    multiplier_along,
    nonholonomic_momentum,
    poincare_energy,
    symplecticity_defect,
)
from noslip.diagnostics.reversibility import reversibility_defect
from noslip.diagnostics.time_transformation import TimeErrors, time_errors

__all__ = [
    "Drift",
    "MeasuredOrder",
    "NonholonomicMomentum",
    "TimeErrors",
    "constraint_error",
    "deformed_constraint_error",
    "drift",
    "energy_balance",
    "energy_drift",
    "energy_error",
    "first_integral_errors",
    "jacobi_defect",
    "jacobiator",
    "measured_order",
    "midpoint_energy",
    "multiplier_along",
    "nonholonomic_momentum",
    "poincare_energy",
    "reversibility_defect",
    "symplecticity_defect",
    "time_errors",
]
