"""The motion itself: heyoka's Taylor method, or SciPy's DOP853 without it."""

from __future__ import annotations

import copy
import importlib.util
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

import jax
import numpy as np
from jax import Array

from noslip.engine.kept import Large, jitted, kept
from noslip.engine.program import CannotTranslate
from noslip.numerics.pytrees import anatomy
from noslip.run.flow_equations import equations, has_frame
from noslip.run.programs import Shapes
from noslip.system import System

if TYPE_CHECKING:
    import heyoka as hy

LEAST, MOST = 512, 4096  # steps between restarts
OWN = 32  # of the flow's own steps between them
OF_TAYLOR = 32_000  # nodes; heyoka's code takes some megabytes, like so many
UNROLLED = 42  # operations and numbers up to which heyoka makes code without loops in half a second; it runs
# twice as fast


class Flow(Protocol):
    """The motion of one kind of system."""

    name: str

    def size(self, n: int) -> int:
        """How many velocities of its own it has, for so many coordinates; its states are (q, these)."""

    def through(self, system: System, state: np.ndarray, times: np.ndarray) -> tuple[np.ndarray, int]:
        """The states at times[1:] from that at times[0], and how many of them were reached."""

    def grain(self, system: System, state: np.ndarray, t: float, h: float) -> int:
        """After how many steps of h a flow that begins there should begin anew."""


def grain_of(own: float, h: float) -> int:
    """As many steps of h as are 32 of the flow's `own`, a power of two: errors grow with the time since
    the state was put back on its constraints, and each beginning takes up to a step."""
    count = OWN * abs(own / h)
    return MOST if count >= MOST else 2 ** int(math.log2(count)) if count > LEAST else LEAST


def flow_of(system: System, tolerance: float, in_frame: bool) -> Flow:
    """By heyoka where it is installed and has expressions for the equations; the backend of a result says.
    The tolerance is the error of a step, relative to the state; `in_frame` it may have other velocities."""
    if importlib.util.find_spec("heyoka") is not None:
        try:
            return _taylor(*anatomy(system)[1:], tolerance, in_frame and has_frame(system))
        except CannotTranslate:
            pass
    return RungeKutta(tolerance)


def vector_field(
    system: System, in_frame: bool = False
) -> tuple[list[tuple[hy.expression, hy.expression]], int]:
    """heyoka's variables (q, then v, or u of v = X u) with their time derivatives, and the number of
    operations in these; the parameters are its par[i], in order."""
    import heyoka as hy

    way, framed = equations(system, in_frame)
    names = [("q", system.n), ("u", system.n - system.m) if framed else ("v", system.n)]
    y = [hy.expression(f"{x}{i}") for x, count in names for i in range(count)]
    pars = [hy.par[k] for k in range(way.program.fixed)]
    return list(zip(y, way.expressions([*pars, *y, hy.time]), strict=True)), way.operations


class Taylor(Large):
    """heyoka's solver, and copies of it that nobody uses now, each with its state and parameters as arrays:
    a call takes one for itself."""

    name = "heyoka"

    def __init__(self, solver: hy.taylor_adaptive_dbl):
        import heyoka as hy

        self.solver, self.reached = solver, hy.taylor_outcome.time_limit
        self.free: list[tuple[hy.taylor_adaptive_dbl, np.ndarray, np.ndarray]] = []
        self.known: tuple[System | None, np.ndarray] = (
            None,
            np.empty(0),
        )  # the last system, its parameters in a row

    def nodes(self) -> int:
        return OF_TAYLOR

    def size(self, n: int) -> int:
        return len(self.solver.state) - n

    def through(self, system: System, state: np.ndarray, times: np.ndarray) -> tuple[np.ndarray, int]:
        taken = self._at(system, state, times[0])
        grid = self.grid(*taken[:2], times)
        self.free.append(taken)
        if len(grid) == len(times):
            return grid[1:], len(times) - 1
        good = int(np.sum(np.all(np.isfinite(grid[1:]), axis=1)))
        return grid[1:], min(good, max(len(grid) - 1, 0))

    def grid(self, solver: hy.taylor_adaptive_dbl, y: np.ndarray, times: np.ndarray) -> np.ndarray:
        """The states at these times of a solver that stands at the first, with the state y; fewer where it
        fails. One alone costs less without dense output."""
        if len(times) > 2:
            states: np.ndarray = solver.propagate_grid(times)[-1]
            return states
        grid = np.empty((2, len(y)))
        grid[0] = y
        outcome = solver.propagate_until(times[1])[0]
        grid[1] = y
        return grid if outcome == self.reached else grid[:1]

    def _at(
        self, system: System, state: np.ndarray, t: float
    ) -> tuple[hy.taylor_adaptive_dbl, np.ndarray, np.ndarray]:
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

    def another(self) -> tuple[hy.taylor_adaptive_dbl, np.ndarray, np.ndarray]:
        """A solver for one run at a time, its state and its parameters."""
        solver = copy.deepcopy(self.solver)
        return solver, solver.state, solver.pars


@kept
def _taylor(structure: jax.tree_util.PyTreeDef, leaves: Shapes, tolerance: float, in_frame: bool) -> Taylor:
    import heyoka as hy

    system = jax.tree.unflatten(structure, [np.zeros(shape) for shape in leaves])
    pairs, operations = vector_field(system, in_frame)
    rolled = operations > UNROLLED
    return Taylor(hy.taylor_adaptive(pairs, [0.0] * len(pairs), tol=tolerance, compact_mode=rolled))


@dataclass(frozen=True)
class RungeKutta:
    """SciPy's method of order 8, by default at its tightest tolerance."""

    tolerance: float = 0.0
    name = "scipy DOP853"

    def size(self, n: int) -> int:
        return n

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
