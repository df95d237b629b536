"""What a run kept: energy, first integrals, constraint, and how fast each drifted."""

from __future__ import annotations

from dataclasses import dataclass

import jax
import numpy as np
from jax import Array
from scipy.integrate import cumulative_simpson

from noslip.engine.kept import jitted
from noslip.integrators.base import Integrator
from noslip.run.step import TURN
from noslip.system import System
from noslip.trajectory import Trajectory


@dataclass(frozen=True)
class Drift:
    """Slope of a straight line through a quantity over time, with its standard error."""

    slope: float
    standard_error: float

    @property
    def significant(self) -> bool:
        """Whether the slope differs from zero by more than three standard errors."""
        return abs(self.slope) > 3 * self.standard_error


def drift(t: np.ndarray, values: np.ndarray) -> Drift:
    """Least-squares slope of `values` over `t`; at least three points."""
    t, values = np.asarray(t, dtype=float), np.asarray(values, dtype=float)
    if t.shape != values.shape or t.size < 3:
        raise ValueError(
            f"a drift needs at least 3 values at as many times, "
            f"but shapes {t.shape} and {values.shape} were given"
        )
    x = t - t.mean()
    spread = np.sum(x**2)
    slope = float(np.sum(x * values) / spread)
    rest = values - values.mean() - slope * x
    return Drift(slope, float(np.sqrt(np.sum(rest**2) / (t.size - 2) / spread)))


def energy_error(run: Trajectory) -> np.ndarray:
    """E(t) - E(0), relative to the largest |T| + |V| of the run."""
    return (run.energy - run.energy[0]) / _size(run.energy_scale)


def energy_drift(run: Trajectory) -> Drift:
    """Slope per unit of time of `energy_error`."""
    return drift(run.t, energy_error(run))


def first_integral_errors(run: Trajectory) -> dict[str, np.ndarray]:
    """I(t) - I(0) for every declared first integral, relative to the largest |I| of the run."""
    return {name: (x - x[0]) / _size(x) for name, x in run.first_integrals.items()}


def constraint_error(run: Trajectory) -> float:
    """The largest |phi(q, v)| of the run, or |G v|; 0 where there are no constraints."""
    rows = (run.constraint_residual, run.holonomic_rate)
    return max(float(np.max(np.abs(x), initial=0.0)) for x in rows)


def holonomic_error(run: Trajectory) -> float:
    """The largest |g(q)| of the run; 0 where there are no holonomic constraints."""
    return float(np.max(np.abs(run.holonomic_residual), initial=0.0))


def deformed_constraint_error(system: System, integrator: Integrator, run: Trajectory) -> float:
    """The largest value of what the method keeps instead of phi, JS (88); the initial state, which is
    given and not made by the method, is left out."""
    bound, h = _bound(system, run, "constraints"), run.info.step_size
    q = wrapped(run)[1:]
    values = jax.vmap(lambda q, v, t: integrator.deformed_constraint(bound.at(t), q, v, h))(
        q, run.v[1:], run.t[1:]
    )
    return float(np.max(np.abs(values), initial=0.0))


def energy_balance(system: System, run: Trajectory) -> np.ndarray:
    """E(t) - E(0) minus the work of `force`, of the constraints and of what moves L, relative to the largest
    |T| + |V|.

    dE/dt = lam^T mu v + force . v - dL/dt at fixed (q, v); the work is integrated by Simpson's rule over the
    saved times, so save densely.
    """
    bound = _bound(system, run, "energy")
    work = cumulative_simpson(np.asarray(_power(bound, wrapped(run), run.v, run.t)), x=run.t, initial=0)
    return (run.energy - run.energy[0] - work) / _size(run.energy_scale)


def _bound(system: System, run: Trajectory, judged: str) -> System:
    """With the parameters of the run; what inputs have changed is not judged."""
    given = (*run.inputs, *run.info.input_functions)
    if given and (judged == "energy" or system.inputs_within(given)[1]):
        raise ValueError(f"the {judged} of a run can be judged without inputs only, but it had {given}")
    return system.with_parameters(run.info.parameters)


def wrapped(run: Trajectory) -> np.ndarray:
    """The positions with declared angles in [-pi, pi], as the method stepped them: no digits lost."""
    angles = np.isin(run.info.coordinates, run.info.angles)
    return np.where(angles, run.q - TURN * np.round(run.q / TURN), run.q)


@jitted
def _power(system: System, q: Array, v: Array, t: Array) -> Array:
    return jax.vmap(system.power)(q, v, t)


def _size(values: np.ndarray) -> float:
    largest = float(np.max(np.abs(values)))
    return largest if largest > 0 else 1.0
