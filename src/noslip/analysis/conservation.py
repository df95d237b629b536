"""What a run kept: energy, first integrals, constraint, and how fast each drifted."""

from __future__ import annotations

from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from noslip.engine.backends.numpy_rows import evaluate_anyhow
from noslip.integrators.base import Integrator
from noslip.run.interpolate import at_rows, within
from noslip.run.occurrences import with_knots
from noslip.run.pieces import Pieces, pieces
from noslip.run.step import TURN
from noslip.system import System
from noslip.system.inputs import Held
from noslip.trajectory import Trajectory, bound_as, driving_of

NODES, WEIGHTS = np.polynomial.legendre.leggauss(4)  # Gauss' rule, on [-1, 1]


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
    bound, h = _bound(system, run), np.full(len(run.t) - 1, run.info.step_size)
    rows = wrapped(run)[1:], run.v[1:], run.t[1:], h
    return float(np.max(np.abs(evaluate_anyhow(_deformed, integrator, bound, *rows)), initial=0.0))


def _deformed(integrator: Integrator, system: System, q: Array, v: Array, t: Array, h: Array) -> Array:
    return integrator.deformed_constraint(system.at(t), q, v, h)


def energy_balance(system: System, run: Trajectory) -> np.ndarray:
    """E(t) - E(0) minus the work of `force`, of the constraints and of what moves L, relative to the largest
    |T| + |V|; what switches of inputs do, `energy_of_switches`, is work too.

    dE/dt = lam^T mu v + force . v - dL/dt at fixed (q, v); the work is integrated by Gauss' rule along
    `run.at`, with an error O(H^6), H being the distance of the rows, so save densely. Resets are no work.
    """
    work, switches = _put_in(system, run)
    return (run.energy - run.energy[0] - work - switches) / _size(run.energy_scale)


def energy_of_switches(system: System, run: Trajectory) -> np.ndarray:
    """What switches of inputs that L or the constraints contain have put into the energy up to each row: the
    other energy of the same state, and that of the velocity which a constraint leaves."""
    return _put_in(system, run)[1]


def _put_in(system: System, run: Trajectory) -> tuple[np.ndarray, np.ndarray]:
    """Work, and energy of switches, up to each row."""
    bound, driving = bound_as(run, system), driving_of(run)
    t, q, v = (np.asarray(x) for x in (run.t, run.q, run.v))
    if run.info.events and run.origin is not None:
        t, q, v = with_knots(bound, run.origin.pairing.events, run.events, t, q, v, driving)
    found = pieces(bound, driving, t, q, v, np.arange(len(t) - 1))[1]
    there, shape = np.searchsorted(t, run.t), found.t.shape
    flat = jax.tree.map(lambda x: np.asarray(x).reshape(-1, *x.shape[2:]), found)
    put_in = (np.cumsum(np.sum(x.reshape(shape), axis=1)) for x in at_rows(_of_piece, bound, flat))
    work, switches = (np.concatenate([[0.0], x])[there] for x in put_in)
    return work, switches


def _of_piece(system: System, p: Pieces) -> tuple[Array, Array]:
    """The work in a piece, and the energy that a switch at its beginning brings."""
    there = system.driven(p.drive)

    def power(c: Array) -> Array:
        t = p.t + c * p.H
        q, v, _ = within(there, p.t, p.H, p.q, p.v, p.q1, p.v1, t)
        return there.power(q, v, t)

    work = p.H / 2 * jnp.dot(WEIGHTS, jax.vmap(power)(jnp.asarray(1 + NODES) / 2))
    if not isinstance(p.drive, Held) or not any(system.inputs_within(p.drive.values)):
        return work, jnp.zeros(())
    pairs = zip(jax.tree.leaves(p.drive), jax.tree.leaves(p.drive_before), strict=True)
    switched = jnp.any(jnp.array([new != old for new, old in pairs]))
    before = system.driven(p.drive_before).energy(p.q, p.v_before, p.t)
    return work, jnp.where(switched, there.energy(p.q, p.v, p.t) - before, 0.0)


def _bound(system: System, run: Trajectory) -> System:
    """With the parameters of the run; constraints that inputs have changed are not judged."""
    given = (*run.inputs, *run.info.input_functions)
    if given and system.inputs_within(given)[1]:
        raise ValueError(f"the constraints of a run can be judged without inputs only, but it had {given}")
    return system.with_parameters(run.info.parameters)


def wrapped(run: Trajectory) -> np.ndarray:
    """The positions with declared angles in [-pi, pi], as the method stepped them: no digits lost."""
    angles = np.isin(run.info.coordinates, run.info.angles)
    return np.where(angles, run.q - TURN * np.round(run.q / TURN), run.q)


def _size(values: np.ndarray) -> float:
    largest = float(np.max(np.abs(values)))
    return largest if largest > 0 else 1.0
