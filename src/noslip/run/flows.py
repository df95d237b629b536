"""The motion itself: heyoka's Taylor method, or SciPy's DOP853 without it."""

from __future__ import annotations

import copy
import importlib.util
import math
from dataclasses import dataclass
from typing import Any, Protocol

import jax
import numpy as np
from jax import Array

from noslip.engine.backends.heyoka_expressions import heyoka_expressions
from noslip.engine.kept import Large, jitted, kept
from noslip.engine.program import CannotTranslate
from noslip.engine.translate import translate
from noslip.numerics.pytrees import anatomy
from noslip.run.programs import Shapes
from noslip.system import System

LEAST, MOST = 256, 4096  # steps between restarts
OWN = 32  # of the flow's own steps between them
OF_TAYLOR = 32_000  # nodes; heyoka's code takes some megabytes, like so many
UNROLLED = (
    32  # operations up to which heyoka makes code without loops in half a second; it runs twice as fast
)


class Flow(Protocol):
    """The motion of one kind of system."""

    name: str

    def through(self, system: System, state: np.ndarray, times: np.ndarray) -> tuple[np.ndarray, int]:
        """The states at times[1:] from that at times[0], and how many of them were reached."""

    def grain(self, system: System, state: np.ndarray, t: float, h: float) -> int:
        """After how many steps of h a flow that begins there should begin anew."""


def grain_of(own: float, h: float) -> int:
    """As many steps of h as are 32 of the flow's `own`, a power of two: errors grow with the time since
    the state was put back on its constraints, and each beginning takes up to a step."""
    count = OWN * abs(own / h)
    return MOST if count >= MOST else 2 ** int(math.log2(count)) if count > LEAST else LEAST


def flow_of(system: System, tolerance: float) -> Flow:
    """By heyoka where it is installed and has expressions for the equations; the backend of a result says.
    The tolerance is the error of a step, relative to the state."""
    if importlib.util.find_spec("heyoka") is not None:
        try:
            return _taylor(*anatomy(system)[1:], tolerance)
        except CannotTranslate:
            pass
    return RungeKutta(tolerance)


def vector_field(system: System) -> tuple[list[tuple[Any, Any]], int]:
    """heyoka's variables (q, then v) with their time derivatives, and the number of operations in these; the
    parameters are its par[i], in order."""
    import heyoka as hy

    q, v = ([hy.expression(f"{x}{i}") for i in range(system.n)] for x in "qv")
    shapes = jax.tree.map(lambda leaf: jax.ShapeDtypeStruct(np.shape(leaf), float), system)
    x, t = jax.ShapeDtypeStruct((system.n,), float), jax.ShapeDtypeStruct((), float)
    program = translate(lambda s, at: s.acceleration(*at), shapes, (x, x, t), expand=False)
    pars = [hy.par[k] for k in range(program.fixed)]
    slopes = [*v, *heyoka_expressions(program, [*pars, *q, *v, hy.time])]
    return list(zip([*q, *v], slopes, strict=True)), len(program.setup.items) + len(program.main.items)


class Taylor(Large):
    """heyoka's solver, and copies of it that nobody uses now, each with its state and parameters as arrays:
    a call takes one for itself."""

    name = "heyoka"

    def __init__(self, solver: Any):
        import heyoka as hy

        self.solver, self.reached = solver, hy.taylor_outcome.time_limit
        self.free: list[tuple[Any, np.ndarray, np.ndarray]] = []
        self.known: tuple[Any, np.ndarray] = (None, np.empty(0))  # the last system, its parameters in a row

    def nodes(self) -> int:
        return OF_TAYLOR

    def through(self, system: System, state: np.ndarray, times: np.ndarray) -> tuple[np.ndarray, int]:
        taken = self._at(system, state, times[0])
        outcome, *_, grid = taken[0].propagate_grid(times)
        self.free.append(taken)
        if outcome == self.reached:
            return grid[1:], len(times) - 1
        good = int(np.sum(np.all(np.isfinite(grid[1:]), axis=1)))
        return grid[1:], min(good, max(len(grid) - 1, 0))

    def _at(self, system: System, state: np.ndarray, t: float) -> tuple[Any, np.ndarray, np.ndarray]:
        """A solver, which stands there."""
        taken = self.free.pop() if self.free else self.another()
        solver, y, pars = taken
        whose, numbers = self.known
        if whose is not system:
            numbers = np.concatenate([np.empty(0), *map(np.ravel, jax.tree.leaves(system))])
            self.known = system, numbers
        pars[:] = numbers[: len(pars)]  # heyoka keeps none after the last that is used
        y[:], solver.time = state, t
        return taken

    def grain(self, system: System, state: np.ndarray, t: float, h: float) -> int:
        taken = self._at(system, state, t)
        own = taken[0].step()[1]
        self.free.append(taken)
        return grain_of(own, h)

    def another(self) -> tuple[Any, np.ndarray, np.ndarray]:
        """A solver for one run at a time, its state and its parameters."""
        solver = copy.deepcopy(self.solver)
        return solver, solver.state, solver.pars


@kept
def _taylor(structure: jax.tree_util.PyTreeDef, leaves: Shapes, tolerance: float) -> Taylor:
    import heyoka as hy

    pairs, operations = vector_field(jax.tree.unflatten(structure, [np.zeros(shape) for shape in leaves]))
    rolled = operations > UNROLLED
    return Taylor(hy.taylor_adaptive(pairs, [0.0] * len(pairs), tol=tolerance, compact_mode=rolled))


@dataclass(frozen=True)
class RungeKutta:
    """SciPy's method of order 8, by default at its tightest tolerance."""

    tolerance: float = 0.0
    name = "scipy DOP853"

    def through(self, system: System, state: np.ndarray, times: np.ndarray) -> tuple[np.ndarray, int]:
        from scipy.integrate import solve_ivp

        n = system.n

        def slope(t: float, y: np.ndarray) -> np.ndarray:
            return np.concatenate([y[n:], _acceleration(system, y[:n], y[n:], t)])

        rtol, atol = max(2.3e-14, self.tolerance), max(1e-15, self.tolerance / 10)
        options = {"method": "DOP853", "rtol": rtol, "atol": atol}
        found = solve_ivp(slope, (times[0], times[-1]), state, t_eval=times, **options)  # type: ignore[call-overload]
        return found.y.T[1:], found.y.shape[1] - 1

    def grain(self, system: System, state: np.ndarray, t: float, h: float) -> int:
        return LEAST


@jitted
def _acceleration(system: System, q: Array, v: Array, t: Array) -> Array:
    return system.acceleration(q, v, t)
