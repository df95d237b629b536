"""What a user would take instead of noslip, on the same problems: each peer makes a ready solver.

A peer is a function (problem, tolerance) -> solver; calling the solver runs from the initial state to the end
and returns (q, v). Compilation, where there is any, happens before the first timed call. Right sides are
plain formulas of `problems`, in the fastest form that the peer takes: Python floats, JAX, heyoka expressions.
"""

from __future__ import annotations

import functools
import importlib.metadata
import importlib.util
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from benchmarks import simulators
from benchmarks.problems import Problem, taylor

Solver = Callable[[], tuple[Any, Any]]
EPS = float(np.finfo(float).eps)  # heyoka's own tolerance


@dataclass(frozen=True)
class Peer:
    """A package and one of its methods."""

    package: str
    module: str
    method: str
    make: Callable[[Problem, float], Solver]
    finest: float = 0.0  # the smallest tolerance that is worth its time
    steps: tuple[int, ...] = ()  # numbers of them, where steps are of a fixed size

    @property
    def name(self) -> str:
        return f"{self.package} {self.method}"

    @property
    def absent(self) -> bool:
        return importlib.util.find_spec(self.module) is None

    @property
    def version(self) -> str:
        return importlib.metadata.version(self.package)


def _right_side(problem: Problem) -> Callable[[float, Any], list[Any]]:
    n, acceleration = problem.system.n, problem.acceleration
    if problem.arrays:
        return _compiled_right_side(problem)

    def right_side(t: float, y: Any) -> list[Any]:
        x = y.tolist()  # Python's floats are several times faster here than NumPy's
        q, v = x[:n], x[n:]
        return [*v, *acceleration(math, q, v)]

    return right_side


def _compiled_right_side(problem: Problem) -> Callable[[float, Any], Any]:
    """Of arrays, by XLA: quicker than NumPy, if not by much."""
    import jax

    slope = jax.jit(functools.partial(_jax_field, problem))

    def right_side(t: float, y: Any) -> Any:
        return np.asarray(slope(y))

    return right_side


def _jax_field(problem: Problem, y: Any) -> Any:
    import jax.numpy as jnp

    n = problem.system.n
    q, v = y[:n], y[n:]
    slopes = problem.acceleration(jnp, q, v)
    return jnp.concatenate([v, slopes if problem.arrays else jnp.stack([*slopes])])


def _start(problem: Problem) -> np.ndarray:
    return np.concatenate(problem.state)


def _scipy(method: Any) -> Callable[[Problem, float], Solver]:
    def make(problem: Problem, tolerance: float) -> Solver:
        from scipy.integrate import solve_ivp

        f, y0, n = _right_side(problem), _start(problem), problem.system.n

        def run() -> tuple[Any, Any]:
            done = solve_ivp(
                f,
                (0.0, problem.span),
                y0,
                method=method,
                rtol=tolerance,
                atol=tolerance,
                t_eval=[problem.span],
            )
            _require(done.success, done.message)
            return done.y[:n, -1], done.y[n:, -1]

        return run

    return make


def _dae(problem: Problem) -> tuple[Callable[[Any, Any], list[float]], np.ndarray, np.ndarray]:
    """The DAE of index 1 in (q, v, lam), with consistent initial values and slopes.

    q' = v, v' = force + M^-1 mu^T lam, mu v' + mudot v = 0.
    """
    n, m, masses = problem.system.n, problem.system.m, problem.masses
    applied, forms = problem.force, problem.forms
    assert applied is not None, f"the {problem.name} has no such formulas"
    assert forms is not None, f"the {problem.name} has no such formulas"

    def residual(y: Any, slope: Any) -> list[float]:
        y, slope = y.tolist(), slope.tolist()
        q, v, lam, a = y[:n], y[n : 2 * n], y[2 * n :], slope[n : 2 * n]
        force, (mu, rate) = applied(math, q), forms(math, q, v)
        dynamics = [a[i] - force[i] - sum(mu[k][i] * lam[k] for k in range(m)) / masses[i] for i in range(n)]
        hidden = [sum(mu[k][i] * a[i] + rate[k][i] * v[i] for i in range(n)) for k in range(m)]
        return [slope[i] - v[i] for i in range(n)] + dynamics + hidden

    q, v = problem.state
    lam = np.asarray(problem.system.multipliers(q, v))
    y0 = np.concatenate([q, v, lam])
    return (
        residual,
        y0,
        np.concatenate([v, np.asarray(problem.acceleration(math, q.tolist(), v.tolist())), np.zeros(m)]),
    )


def _ida(problem: Problem, tolerance: float) -> Solver:
    from sksundae.ida import IDA

    residual, y0, slope0 = _dae(problem)
    n = problem.system.n

    def fill(t: float, y: Any, slope: Any, out: Any) -> None:
        out[:] = residual(y, slope)

    def run() -> tuple[Any, Any]:
        solver = IDA(
            fill,
            rtol=tolerance,
            atol=tolerance,
            algebraic_idx=list(range(2 * n, len(y0))),
            max_num_steps=10**5,
        )
        done = solver.solve(np.array([0.0, problem.span]), y0, slope0)
        _require(done.success, done.message)
        return done.y[-1, :n], done.y[-1, n : 2 * n]

    return run


def _solve_dae(method: str) -> Callable[[Problem, float], Solver]:
    def make(problem: Problem, tolerance: float) -> Solver:
        from solve_dae.integrate import solve_dae

        residual, y0, slope0 = _dae(problem)
        n, span = problem.system.n, (0.0, problem.span)

        def f(t: float, y: Any, slope: Any) -> np.ndarray:
            return np.array(residual(y, slope))

        def run() -> tuple[Any, Any]:
            done = solve_dae(f, span, y0, slope0, method=method, rtol=tolerance, atol=tolerance)
            _require(done.success, done.message)
            return done.y[:n, -1], done.y[n : 2 * n, -1]

        return run

    return make


def _require(success: bool, message: str) -> None:
    if not success:
        raise ArithmeticError(message)


def _pydy(problem: Problem, tolerance: float) -> Solver:
    """PyDy's generated right side in the integrator that PyDy takes, SciPy's LSODA."""
    import sympy
    from pydy.codegen.ode_function_generators import LambdifyODEFunctionGenerator
    from scipy.integrate import odeint
    from sympy.physics.mechanics import dynamicsymbols

    n = problem.system.n
    q, v = (list(dynamicsymbols(f"{letter}:{n}")) for letter in "qu")
    formula = sympy.Matrix([*v, *problem.acceleration(sympy, q, v)])
    f = LambdifyODEFunctionGenerator(formula, q, v, []).generate()
    y0 = _start(problem)

    def run() -> tuple[Any, Any]:
        y = odeint(f, y0, [0.0, problem.span], rtol=tolerance, atol=tolerance, mxstep=10**6)[-1]
        return y[:n], y[n:]

    return run


def _diffrax(solver: str) -> Callable[[Problem, float], Solver]:
    def make(problem: Problem, tolerance: float) -> Solver:
        from noslip.run.choose import on_cpu

        solve, n = _diffrax_solve(problem, solver), problem.system.n

        def run() -> tuple[Any, Any]:
            with on_cpu():
                y = np.asarray(solve(_start(problem), tolerance))
            return y[:n], y[n:]

        return run

    return make


@functools.lru_cache(maxsize=2)
def _diffrax_solve(problem: Problem, solver: str) -> Any:
    """Compiled once for all tolerances."""
    import diffrax
    import jax

    def field(t: Any, y: Any, args: Any) -> Any:
        return _jax_field(problem, y)

    @jax.jit
    def solve(y0: Any, tolerance: Any) -> Any:
        return diffrax.diffeqsolve(
            diffrax.ODETerm(field), getattr(diffrax, solver)(), 0.0, problem.span, None, y0,
            saveat=diffrax.SaveAt(t1=True), max_steps=None,
            stepsize_controller=diffrax.PIDController(rtol=tolerance, atol=tolerance),
        ).ys[-1]  # fmt: skip

    return solve


def heyoka_rows(problem: Problem, rows: int) -> Solver:
    """heyoka as it comes, with so many rows on the way to the end; for the end alone it needs no grid."""
    if rows == 1:
        return _heyoka(problem, EPS)
    n, y0, solver = problem.system.n, _start(problem), taylor(problem)
    times = np.linspace(0.0, problem.span, rows + 1)

    def run() -> tuple[Any, Any]:
        solver.time = 0.0
        solver.state[:] = y0
        y = solver.propagate_grid(times)[-1][-1]
        return y[:n], y[n:]

    return run


def _heyoka(problem: Problem, tolerance: float) -> Solver:
    n, y0, solver = problem.system.n, _start(problem), taylor(problem, tol=tolerance)

    def run() -> tuple[Any, Any]:
        solver.time = 0.0
        solver.state[:] = y0
        solver.propagate_until(problem.span)
        return solver.state[:n].copy(), solver.state[n:].copy()

    return run


PEERS = (
    Peer("scipy", "scipy", "RK45", _scipy("RK45"), 1e-11),
    Peer("scipy", "scipy", "DOP853", _scipy("DOP853"), 1e-13),
    Peer("scipy", "scipy", "Radau", _scipy("Radau"), 1e-11),
    Peer("scikit-sundae", "sksundae", "IDA", _ida, 1e-11),
    Peer("solve_dae", "solve_dae", "Radau", _solve_dae("Radau"), 1e-7),
    Peer("solve_dae", "solve_dae", "BDF", _solve_dae("BDF"), 1e-9),
    Peer("pydy", "pydy", "LSODA", _pydy, 1e-13),
    Peer("diffrax", "diffrax", "Dopri8", _diffrax("Dopri8"), 1e-13),
    Peer("diffrax", "diffrax", "Kvaerno5", _diffrax("Kvaerno5"), 1e-11),
    Peer("heyoka", "heyoka", "Taylor", _heyoka, 1e-16),
)
"""Those on the small problems."""
OF_BODIES = (
    *(peer for peer in PEERS if peer.name in ("scipy DOP853", "diffrax Dopri8", "heyoka Taylor")),
    Peer("diffrax", "diffrax", "Tsit5", _diffrax("Tsit5"), 1e-9),
)
SIMULATORS = {
    "ball": tuple(
        Peer("mujoco", "mujoco", name, simulators.mujoco_ball(name), steps=(500, 2000, 8000))
        for name in ("RK4", "Euler")
    ),
    "bicycle": tuple(
        Peer("exudyn", "exudyn", name, simulators.exudyn_bicycle(name), steps=(500, 2000, 8000))
        for name in ("TrapezoidalIndex2", "GeneralizedAlpha")
    ),
}


def peers_of(problem: Problem) -> tuple[Peer, ...]:
    """Those that the problem is written for."""
    return PEERS if problem.forms is not None else OF_BODIES + SIMULATORS[problem.name]
