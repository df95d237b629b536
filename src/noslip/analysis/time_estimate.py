"""The error of the recovered time by two orders of accuracy, FBO section 5.1.

The times of `HamiltonizedDEL` are integrals of F = 1/f over tau, by a rule of order 2 or 4 on every step. A
rule of higher order for the same points differs from it by the error of the lower one, up to terms of the
higher order. Here the polynomial of degree 5 through the six nearest points is integrated over each step,
which is of order 6 and takes nothing but f at the computed points: no bound on F'', and no r'.
Like FBO (36) it is about the quadrature alone, not about the error of the points.
"""

from __future__ import annotations

import numpy as np

from noslip.analysis.reduced import multiplier_along
from noslip.geometry.chaplygin import make_group
from noslip.integrators.base import Integrator
from noslip.system import System
from noslip.trajectory import Trajectory

POINTS = 6


def two_order_estimate(system: System, integrator: Integrator, run: Trajectory) -> np.ndarray:
    """By how much `run.t` misses the integral of 1/f along the computed points, at each of them."""
    if run.info.save_every != 1:
        raise ValueError(f"the run must hold every step, but save_every = {run.info.save_every} was used")
    if not integrator.own_time:
        raise ValueError(f"only a method in tau has a time to recover, but {integrator} was provided")
    system = system.with_parameters(run.info.parameters)
    rate = 1 / multiplier_along(system, make_group(system, integrator.symmetry or "translations"), run.q)
    better = np.concatenate([[0.0], np.cumsum(_integrals(rate))]) * run.info.step_size
    return run.t - run.t[0] - better


def _integrals(values: np.ndarray) -> np.ndarray:
    """Of the interpolating polynomial over each step of length 1."""
    steps, points = len(values) - 1, min(POINTS, len(values))
    powers = np.arange(points)
    first = np.clip(np.arange(steps) - (points - 2) // 2, 0, steps + 1 - points)
    weights = {}
    for offset in range(points - 1):
        moments = ((offset + 1.0) ** (powers + 1) - float(offset) ** (powers + 1)) / (powers + 1)
        weights[offset] = np.linalg.solve(np.vander(np.arange(float(points)), increasing=True).T, moments)
    return np.array([weights[k - i] @ values[i : i + points] for k, i in enumerate(first)])
