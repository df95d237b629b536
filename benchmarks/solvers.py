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

from benchmarks.problems import Problem

Solver = Callable[[], tuple[Any, Any]]


@dataclass(frozen=True)
class Peer:
    """A package and one of its methods."""

    package: str
    module: str
    method: str
    make: Callable[[Problem, float], Solver]
    finest: float  # the smallest tolerance that is worth its time

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

    def right_side(t: float, y: Any) -> list[Any]:
        x = y.tolist()  # Python's floats are several times faster here than NumPy's
        q, v = x[:n], x[n:]
        return [*v, *acceleration(math, q, v)]

    return right_side


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

    def residual(y: Any, slope: Any) -> list[float]:
        y, slope = y.tolist(), slope.tolist()
        q, v, lam, a = y[:n], y[n : 2 * n], y[2 * n :], slope[n : 2 * n]
        force, (mu, rate) = problem.force(math, q), problem.forms(math, q, v)
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
    import jax.numpy as jnp

    n = problem.system.n

    def field(t: Any, y: Any, args: Any) -> Any:
        q, v = y[:n], y[n:]
        return jnp.concatenate([v, jnp.stack([*problem.acceleration(jnp, q, v)])])

    @jax.jit
    def solve(y0: Any, tolerance: Any) -> Any:
        return diffrax.diffeqsolve(
            diffrax.ODETerm(field), getattr(diffrax, solver)(), 0.0, problem.span, None, y0,
            saveat=diffrax.SaveAt(t1=True), max_steps=None,
            stepsize_controller=diffrax.PIDController(rtol=tolerance, atol=tolerance),
        ).ys[-1]  # fmt: skip

    return solve


def _taylor(problem: Problem, **how: Any) -> Any:
    """heyoka's solver of the problem, at its initial state."""
    import heyoka

    n, y0 = problem.system.n, _start(problem)
    names = [f"{letter}{i}" for letter in "qv" for i in range(n)]
    variables = heyoka.make_vars(*names)
    q, v = list(variables[:n]), list(variables[n:])
    slopes = [*v, *(heyoka.expression(0.0) + a for a in problem.acceleration(heyoka, q, v))]
    return heyoka.taylor_adaptive(list(zip(variables, slopes, strict=True)), y0, **how)


def heyoka_rows(problem: Problem, rows: int) -> Solver:
    """heyoka as it comes, with so many rows on the way to the end."""
    n, y0, taylor = problem.system.n, _start(problem), _taylor(problem)
    times = np.linspace(0.0, problem.span, rows + 1)

    def run() -> tuple[Any, Any]:
        taylor.time = 0.0
        taylor.state[:] = y0
        y = taylor.propagate_grid(times)[-1][-1]
        return y[:n], y[n:]

    return run


def _heyoka(problem: Problem, tolerance: float) -> Solver:
    n, y0, taylor = problem.system.n, _start(problem), _taylor(problem, tol=tolerance)

    def run() -> tuple[Any, Any]:
        taylor.time = 0.0
        taylor.state[:] = y0
        taylor.propagate_until(problem.span)
        return taylor.state[:n].copy(), taylor.state[n:].copy()

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
