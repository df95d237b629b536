"""Problems that noslip and its peers solve alike: the equations of motion by hand, and the true end.

Each is written once for any module that has `sin` and `cos` (math, jax.numpy, heyoka), solved for the
accelerations and the multipliers, as a person would who knows that one problem.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from noslip.simulate import simulate
from noslip.system import System
from noslip.systems import gearbox, knife_edge, nonholonomic_particle, rolling_disk

Numbers = Sequence[Any]


@dataclass(frozen=True, eq=False)
class Problem:
    """A system, its initial state, and for the peers: applied forces and mu, mudot as plain formulas.

    `force(np, q)` are the accelerations without reaction (M = diag(masses)), `forms(np, q, v)` the rows of mu
    and of its time derivative.
    """

    name: str
    system: System
    state: tuple[np.ndarray, np.ndarray]
    exact: Callable[..., Any] | None
    masses: tuple[float, ...]
    force: Callable[[Any, Numbers], Numbers]
    forms: Callable[[Any, Numbers, Numbers], tuple[list[Numbers], list[Numbers]]]
    acceleration: Callable[[Any, Numbers, Numbers], Numbers]
    span: float = 50.0

    @functools.cached_property
    def end(self) -> tuple[np.ndarray, np.ndarray]:
        """(q, v) after `span`, to round-off: a closed form, or the Taylor method at its own round-off."""
        if self.exact is not None:
            q, v, *_ = self.exact(np.array([self.span]), *self.state)
            return q[0], v[0]
        from noslip.integrators.reference_flow import ReferenceFlow

        run = simulate(self.system, ReferenceFlow(), *self.state, step_size=self.span, steps=1)
        return run.q[-1], run.v[-1]


# ---- knife edge on an inclined plane; m = J = g = 1 ----------------------------------------------------
SLOPE = float(np.sin(np.pi / 36))


def _knife_acceleration(m: Any, q: Numbers, v: Numbers) -> Numbers:
    s, c = m.sin(q[2]), m.cos(q[2])
    lam = -((v[0] * c + v[1] * s) * v[2] + SLOPE * s)
    return SLOPE + lam * s, -lam * c, 0.0 * v[2]


def _knife_forms(m: Any, q: Numbers, v: Numbers) -> Any:
    s, c = m.sin(q[2]), m.cos(q[2])
    return [(s, -c, 0.0)], [(c * v[2], s * v[2], 0.0)]


# ---- rolling disk; m = r = 1 ---------------------------------------------------------------------------
def _disk_acceleration(m: Any, q: Numbers, v: Numbers) -> Numbers:
    turn = v[2] * v[3]
    return -turn * m.sin(q[2]), turn * m.cos(q[2]), 0.0 * v[2], 0.0 * v[3]


def _disk_forms(m: Any, q: Numbers, v: Numbers) -> Any:
    s, c = m.sin(q[2]), m.cos(q[2])
    return [(1.0, 0.0, 0.0, -c), (0.0, 1.0, 0.0, -s)], [(0, 0, 0, s * v[2]), (0, 0, 0, -c * v[2])]


# ---- free nonholonomic particle ------------------------------------------------------------------------
def _particle_acceleration(m: Any, q: Numbers, v: Numbers) -> Numbers:
    lam = v[0] * v[1] / (1.0 + q[1] * q[1])
    return -q[1] * lam, 0.0 * v[1], lam


def _particle_forms(m: Any, q: Numbers, v: Numbers) -> Any:
    return [(-q[1], 0.0, 1.0)], [(-v[1], 0.0, 0.0)]


# ---- gearbox, epsilon = 0.2 ----------------------------------------------------------------------------
def _gearbox_force(m: Any, q: Numbers) -> Numbers:
    return -q[0], -q[1], m.sin(q[2]) + 0.4 * m.cos(2.0 * q[2])


def _gearbox_acceleration(m: Any, q: Numbers, v: Numbers) -> Numbers:
    s, c = m.sin(q[2]), m.cos(q[2])
    lam = -(c * v[2] * v[1] - q[0] - s * q[1]) / (1.0 + s * s)
    return lam - q[0], s * lam - q[1], s + 0.4 * m.cos(2.0 * q[2])


def _gearbox_forms(m: Any, q: Numbers, v: Numbers) -> Any:
    return [(1.0, m.sin(q[2]), 0.0)], [(0.0, m.cos(q[2]) * v[2], 0.0)]


def problems() -> tuple[Problem, ...]:
    """Three with closed forms, and the gearbox."""

    def start(module: Any) -> tuple[np.ndarray, np.ndarray]:
        q, v = module.typical_state()
        return np.asarray(q), np.asarray(v)

    return (
        Problem("knife edge", knife_edge.system(), start(knife_edge), knife_edge.exact, (1.0, 1.0, 1.0),
                lambda m, q: (SLOPE, 0.0, 0.0), _knife_forms, _knife_acceleration),
        Problem("rolling disk", rolling_disk.system(), start(rolling_disk), rolling_disk.exact,
                (1.0, 1.0, 0.25, 0.5), lambda m, q: (0.0,) * 4, _disk_forms, _disk_acceleration),
        Problem("particle", nonholonomic_particle.system(k=0.0), start(nonholonomic_particle),
                nonholonomic_particle.exact, (1.0,) * 3, lambda m, q: (0.0,) * 3, _particle_forms,
                _particle_acceleration),
        Problem("gearbox", gearbox.system(), start(gearbox), None, (1.0,) * 3, _gearbox_force, _gearbox_forms,
                _gearbox_acceleration),
    )  # fmt: skip
