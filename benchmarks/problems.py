"""Problems that noslip and its peers solve alike: the equations of motion by hand, and the true end.

Each is written once for any module that has `sin` and `cos` (math, jax.numpy, heyoka), solved for the
accelerations and the multipliers, as a person would who knows that one problem. The bicycle is written by
arrays, for NumPy and jax.numpy.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from benchmarks import by_hand
from noslip.bench import ball, bicycle
from noslip.run.flows import vector_field
from noslip.system import System
from noslip.systems import gearbox, knife_edge, nonholonomic_particle, rolling_disk

Numbers = Sequence[Any]


@dataclass(frozen=True, eq=False)
class Problem:
    """A system, its initial state, and for the peers: applied forces and mu, mudot as plain formulas.

    `force(np, q)` are the accelerations without reaction (M = diag(masses)), `forms(np, q, v)` the rows of mu
    and of its time derivative; both are None where M is not diagonal. `arrays` says that `acceleration` takes
    and gives arrays.
    """

    name: str
    system: System
    state: tuple[np.ndarray, np.ndarray]
    exact: Callable[..., Any] | None
    masses: tuple[float, ...]
    force: Callable[[Any, Numbers], Numbers] | None
    forms: Callable[[Any, Numbers, Numbers], tuple[list[Numbers], list[Numbers]]] | None
    acceleration: Callable[[Any, Any, Any], Any]
    span: float = 50.0
    arrays: bool = False

    @functools.cached_property
    def end(self) -> tuple[np.ndarray, np.ndarray]:
        """(q, v) after `span`: a closed form, or a flow of the equations by hand; none of it is noslip's."""
        if self.exact is not None:
            q, v, *_ = self.exact(np.array([self.span]), *self.state)
            return q[0], v[0]
        y = by_dop853(self, 0.0) if self.arrays else _in_long_double(self)
        return y[: self.system.n], y[self.system.n :]


def by_dop853(problem: Problem, tolerance: float) -> np.ndarray:
    """The end by SciPy, from the formulas with NumPy; its own least tolerance for 0."""
    from scipy.integrate import solve_ivp

    n, acceleration = problem.system.n, problem.acceleration

    def rate(t: float, y: np.ndarray) -> np.ndarray:
        return np.concatenate([y[n:], acceleration(np, y[:n], y[n:])])

    how = {"method": "DOP853", "rtol": max(tolerance, 2.3e-14), "atol": max(tolerance, 1e-15)}
    found = solve_ivp(rate, (0.0, problem.span), np.concatenate(problem.state), **how)  # type: ignore[call-overload]
    return np.asarray(found.y[:, -1])


def taylor(problem: Problem, **how: Any) -> Any:
    """heyoka's solver of the problem, at its initial state."""
    import heyoka

    n, y0 = problem.system.n, np.concatenate(problem.state).astype(how.get("fp_type", float))
    if problem.arrays:  # heyoka knows no arrays: the formulas that noslip derives
        pairs, _ = vector_field(problem.system)
        return heyoka.taylor_adaptive(pairs, y0, **{"compact_mode": True} | how)
    variables = heyoka.make_vars(*(f"{letter}{i}" for letter in "qv" for i in range(n)))
    q, v = list(variables[:n]), list(variables[n:])
    slopes = [*v, *(heyoka.expression(0.0) + a for a in problem.acceleration(heyoka, q, v))]
    return heyoka.taylor_adaptive(list(zip(variables, slopes, strict=True)), y0, **how)


def _in_long_double(problem: Problem) -> np.ndarray:
    """The end by heyoka's Taylor method, with three or more digits than the result has."""
    solver = taylor(problem, fp_type=np.longdouble, compact_mode=True)
    solver.propagate_until(np.longdouble(problem.span))
    return np.asarray(solver.state, float)


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


def _start(module: Any) -> tuple[np.ndarray, np.ndarray]:
    q, v = module.typical_state()
    return np.asarray(q), np.asarray(v)


def problems() -> tuple[Problem, ...]:
    """Three with closed forms, and the gearbox."""
    return (
        Problem("knife edge", knife_edge.system(), _start(knife_edge), knife_edge.exact, (1.0, 1.0, 1.0),
                lambda m, q: (SLOPE, 0.0, 0.0), _knife_forms, _knife_acceleration),
        Problem("rolling disk", rolling_disk.system(), _start(rolling_disk), rolling_disk.exact,
                (1.0, 1.0, 0.25, 0.5), lambda m, q: (0.0,) * 4, _disk_forms, _disk_acceleration),
        Problem("particle", nonholonomic_particle.system(k=0.0), _start(nonholonomic_particle),
                nonholonomic_particle.exact, (1.0,) * 3, lambda m, q: (0.0,) * 3, _particle_forms,
                _particle_acceleration),
        Problem("gearbox", gearbox.system(), _start(gearbox), None, (1.0,) * 3, _gearbox_force,
                _gearbox_forms, _gearbox_acceleration),
    )  # fmt: skip


def bodies() -> tuple[Problem, ...]:
    """What people bring: a ball in quaternions and a bicycle, without frames, from `noslip.bench`."""
    return (
        Problem("ball", ball.system(), _start(ball), None, (), None, None, by_hand.ball, 20.0),
        Problem(
            "bicycle", bicycle.system(), _start(bicycle), None, (), None, None, by_hand.bicycle, 5.0, True
        ),
    )
