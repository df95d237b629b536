"""Linear equations on D about an equilibrium or a steady motion, their eigenvalues and modes.

A state of D is (q, u), u being n - m speeds that determine v: the coefficients in the frame of a system with
linear constraints, v = X u, or, where it declares none, the velocities of coordinates from which the others
follow by phi(q, v) = 0. Its motion is

    dq/dt = v(q, u),      du/dt = w(q, u)

In a steady motion u and the coordinates r that are not cyclic stay constant while the cyclic ones move, and
neither v_r nor w contains these. Then with x = (r, u), and inputs s,

    d(dx)/dt = A dx + B ds,      A = d(v_r, w) / d(r, u),      B = d(v_r, w) / ds

by automatic differentiation. Holonomic constraints determine k of the coordinates by the others, which are
then no states either. A rotation has three small turns for coordinates and three rates for speeds in the
place of its quaternion, see `small_turns`; a frame is not used there. That the motion is steady and cyclic
coordinates are cyclic is checked.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from numpy.typing import ArrayLike
from scipy.linalg import qr

from noslip.analysis.small_turns import Cyclic, SmallTurns, chart_of
from noslip.engine.backends.numpy_rows import evaluate_anyhow
from noslip.numerics.linear import solve, spd_solve
from noslip.system import Parameters, System
from noslip.system.positions import placement
from noslip.system.time import Timed

STEADY = 1e-8  # of the sizes of velocities and accelerations


@dataclass(frozen=True)
class Linearization:
    """d(dx)/dt = matrix dx + input_matrix ds; `states` and `inputs` name their columns. Eigenvalues come with
    the largest real part first, and the columns of `modes` belong to them."""

    matrix: np.ndarray
    input_matrix: np.ndarray
    states: tuple[str, ...]
    inputs: tuple[str, ...]
    eigenvalues: np.ndarray
    modes: np.ndarray

    @property
    def growth(self) -> float:
        """The largest real part: the motion is unstable where it is positive."""
        return float(self.eigenvalues[0].real) if len(self.eigenvalues) else 0.0


@dataclass(frozen=True)
class Stability:
    """Eigenvalues of steady motions that a number tells apart; one row per value."""

    values: np.ndarray
    eigenvalues: np.ndarray


def linearize(
    system: System,
    q: ArrayLike,
    v: ArrayLike,
    *,
    t: float = 0.0,
    parameters: Parameters | None = None,
    cyclic: Cyclic = (),
) -> Linearization:
    """The linear equations about the steady motion through (q, v); coordinates in `cyclic` may move in it. Of
    a rotation `cyclic` has the name, if all turns in space leave the equations as they are, or axes: ("u",
    "space", "z") and ("u", "body", "y"), or three numbers for the letter."""
    system = (system if parameters is None else system.with_parameters(parameters)).at(float(t))
    q, v = np.asarray(q, float), np.asarray(v, float)
    chart, axes, moving = chart_of(system, q, cyclic)
    if system.moving or isinstance(system.frame, Timed):
        raise ValueError("linearize needs a system without t, but its Lagrangian or constraints contain it")
    if not system.is_admissible(q, v):
        raise ValueError(f"`v` must satisfy the constraint, but phi(q, v) = {np.asarray(system.phi(q, v))}")
    q, v = (np.asarray(x) for x in system.shown(q, v))
    here = _Local(system, chart, jnp.asarray(q), jnp.asarray(axes))
    x, w = (y[0] for y in evaluate_anyhow(_start, chart, system, q[None], v[None], axes[None]))
    _refuse_misplaced(system, q)
    mu, G = (y[0] for y in evaluate_anyhow(_rows, chart, system, *(y[None] for y in (x, w, q, axes))))
    placed = _placed(chart, G, moving)
    rest = tuple(k for k in range(chart.size) if k not in (*moving, *placed))
    speeds, u, names = _speeds(here, x, w, mu, moving)
    s = np.array([system.parameters[name] for name in system.inputs], float)
    rates, by_x, by_u, by_s = _slopes(
        (chart, speeds, rest, placed), system, (x, u, s), (w, q, axes, np.array(float(t)))
    )
    positions = chart.names(system)
    labels = (*(positions[k] for k in rest), *names)
    _refuse_unsteady(labels, rates, len(rest), v)
    cyclic_names = [positions[k] for k in moving]
    _refuse_not_cyclic(labels, by_x[:, list(moving)], cyclic_names, max(_size(by_x), _size(by_u)))
    A = np.concatenate([by_x[:, list(rest)], by_u], axis=1)
    eigenvalues, modes = np.linalg.eig(A)
    order = np.lexsort((-eigenvalues.imag, -eigenvalues.real))
    inputs = tuple(system.inputs)
    return Linearization(A, by_s.reshape(len(A), -1), labels, inputs, eigenvalues[order], modes[:, order])


def stability(
    system: System,
    motion: Callable[[float], tuple[Any, ...]],
    values: ArrayLike,
    *,
    cyclic: Cyclic = (),
) -> Stability:
    """Eigenvalues of the steady motions motion(value), which is (q, v) or (q, v, parameters)."""
    rows = []
    for value in np.asarray(values, float).tolist():
        q, v, *parameters = motion(value)
        found = linearize(system, q, v, parameters=parameters[0] if parameters else None, cyclic=cyclic)
        rows.append(found.eigenvalues)
    return Stability(np.asarray(values, float), np.array(rows))


@dataclass(frozen=True)
class _Local:
    """A system in the coordinates x and speeds w of a chart."""

    system: System
    chart: SmallTurns
    q0: Array
    axes: Array

    def state(self, v: Array) -> tuple[Array, Array]:
        """x and w of (q0, v)."""
        x = self.q0[jnp.array(self.chart.plain, int)]
        x = jnp.concatenate([x, jnp.zeros(3 * len(self.chart.turns))])
        return x, self.chart.speeds(self.q0, self.axes, x, v)

    def position(self, x: Array) -> Array:
        return self.chart.position(self.q0, self.axes, x)

    def velocity(self, x: Array, w: Array) -> Array:
        return self.chart.velocity(self.q0, self.axes, x, w)

    def phi(self, x: Array, w: Array) -> Array:
        """The constraints; the lengths of quaternions stay by themselves."""
        system = self.system
        return system.phi(self.position(x), self.velocity(x, w))[: system.m + system.k]

    def mu(self, x: Array, w: Array) -> Array:
        """dphi/dw."""
        system, spread = self.system, jax.linearize(lambda y: self.velocity(x, y), w)[1]
        rows = system.mu(self.position(x), self.velocity(x, w))[: system.m + system.k]
        return rows @ jax.vmap(spread, 1, 1)(jnp.eye(w.size)) if self.chart.turns else rows

    def G(self, x: Array) -> Array:
        """dg/dx."""
        return jax.jacfwd(lambda y: self.system.g(self.position(y)))(x)

    def motion(self, x: Array, w: Array, t: Array) -> tuple[Array, Array]:
        """dx/dt and dw/dt."""
        v = self.velocity(x, w)
        a = self.system.acceleration(self.position(x), v, t)
        dx = self.chart.rates(self.q0, self.axes, x, v)
        if not self.chart.turns:
            return dx, a
        turned = jax.jvp(lambda y: self.velocity(y, w), (x,), (dx,))[1]
        return dx, self.chart.speeds(self.q0, self.axes, x, a - turned)


@dataclass(frozen=True)
class _Speeds:
    """How the speeds u that are states determine all speeds w near a state with w0: they are the `free` ones,
    and the `bound` follow by the constraints; both None where u are coefficients in the frame."""

    free: tuple[int, ...] | None
    bound: tuple[int, ...] | None

    def all(self, local: _Local, x: Array, u: Array, w0: Array) -> Array:
        """w(x, u), exact at the state with its first derivatives."""
        if self.free is None:
            return _frame(local.system, x) @ u
        w = w0.at[jnp.array(self.free)].set(u)
        if not self.bound:
            return w
        # a step of Newton's method: phi vanishes at the state
        bound = jnp.array(self.bound)
        return w.at[bound].add(-solve(local.mu(x, w)[:, bound], local.phi(x, w)))

    def motion(self, local: _Local, x: Array, u: Array, w0: Array, t: Array) -> tuple[Array, Array]:
        """dx/dt and du/dt."""
        w = self.all(local, x, u, w0)
        dx, dw = local.motion(x, w, t)
        if self.free is not None:
            return dx, dw[jnp.array(self.free)]
        X = _frame(local.system, x)
        turned = jax.jvp(lambda y: self.all(local, y, u, w0), (x,), (dx,))[1]
        return dx, spd_solve(X.T @ X, X.T @ (dw - turned))


def _frame(system: System, q: Array) -> Array:
    assert system.frame is not None
    return jnp.asarray(system.frame(q, system.parameters), float)


def _speeds(
    here: _Local, x: np.ndarray, w: np.ndarray, mu: np.ndarray, moving: tuple[int, ...]
) -> tuple[_Speeds, np.ndarray, tuple[str, ...]]:
    """What determines v, its values at the state, and its names."""
    system, chart = here.system, here.chart
    if system.frame is not None and system.kind == "linear" and not chart.turns:
        u = np.linalg.lstsq(np.asarray(_frame(system, jnp.asarray(x))), w, rcond=None)[0]
        return _Speeds(None, None), u, tuple(f"u_{k + 1}" for k in range(len(u)))
    plain = np.arange(len(chart.plain))
    cyclic = np.array([k for k in moving if k in plain], int)
    bound = _dependent(mu, cyclic, np.setdiff1d(plain, cyclic))
    free = [k for k in range(chart.size) if k not in bound]
    names = chart.speed_names(system)
    return _Speeds(tuple(free), tuple(bound)), w[free], tuple(names[k] for k in free)


_Static = tuple[SmallTurns, _Speeds, tuple[int, ...], tuple[int, ...]]


def _slopes(
    static: _Static, system: System, state: tuple[np.ndarray, ...], rest: tuple[np.ndarray, ...]
) -> tuple[np.ndarray, ...]:
    """The rates of (r, u), and their derivatives by x, u and the inputs s: one row for each direction, so
    that the program is that of one."""
    sizes = [y.size for y in state]
    cuts = np.cumsum(sizes)[:-1]
    ways = np.eye(sum(sizes))
    rows = [np.repeat(y[None], len(ways), axis=0) for y in (*state, *rest)]
    found = evaluate_anyhow(_equations, static, system, *np.split(ways, cuts, axis=1), *rows)
    return found[0][0], *np.split(found[1].T, cuts, axis=1)


def _equations(
    static: _Static,
    system: System,
    dx: Array,
    du: Array,
    ds: Array,
    x: Array,
    u: Array,
    s: Array,
    w: Array,
    q: Array,
    axes: Array,
    t: Array,
) -> tuple[Array, ...]:
    """The rates of (r, u), and their derivative along (dx, du, ds)."""
    chart, speeds, rest, placed = static

    def rates(x: Array, u: Array, s: Array) -> Array:
        now = system.with_parameters(dict(zip(system.inputs, s, strict=True)))
        local = _Local(now, chart, q, axes)
        if placed:  # as for velocities: g vanishes at the state
            bound = jnp.array(placed)
            x = x.at[bound].add(-solve(local.G(x)[:, bound], now.g(local.position(x))))
        velocity, change = speeds.motion(local, x, u, w, t)
        return jnp.concatenate([velocity[jnp.array(rest, int)], change])

    return jax.jvp(rates, (x, u, s), (dx, du, ds))


def _start(chart: SmallTurns, system: System, q: Array, v: Array, axes: Array) -> tuple[Array, Array]:
    """x and w of (q, v)."""
    return _Local(system, chart, q, axes).state(v)


def _rows(
    chart: SmallTurns, system: System, x: Array, w: Array, q: Array, axes: Array
) -> tuple[Array, Array]:
    """dphi/dw and dg/dx."""
    local = _Local(system, chart, q, axes)
    return local.mu(x, w), local.G(x)


def _refuse_misplaced(system: System, q: np.ndarray) -> None:
    if system.k:
        g, allowed = (y[0] for y in evaluate_anyhow(placement, None, system, q[None]))
        if not np.all(np.abs(g) <= allowed):
            raise ValueError(f"`q` must satisfy the holonomic constraints, but g(q) = {g}")


def _placed(chart: SmallTurns, G: np.ndarray, moving: tuple[int, ...]) -> tuple[int, ...]:
    """k coordinates that the holonomic constraints determine, cyclic ones last."""
    plain, still = np.arange(len(chart.plain)), np.setdiff1d(np.arange(chart.size), np.array(moving, int))
    return tuple(_dependent(G, np.intersect1d(plain, still), np.setdiff1d(still, plain)))


def _dependent(mu: np.ndarray, *preferred: np.ndarray) -> list[int]:
    """m coordinates whose velocities the constraints determine, preferred ones where they can."""
    m, n = mu.shape
    chosen: list[int] = []
    for group in (*preferred, np.setdiff1d(np.arange(n), np.concatenate(preferred))):
        left = mu[:, group]
        if chosen:  # what the chosen columns do not span
            basis = np.linalg.qr(mu[:, chosen])[0]
            left = left - basis @ (basis.T @ left)
        if not left.size:
            continue
        _, R, order = qr(left, mode="economic", pivoting=True)
        sizes = np.abs(np.diagonal(R))
        count = int(np.sum(sizes > 1e-6 * np.max(np.abs(mu))))
        chosen += group[order[: min(count, m - len(chosen))]].tolist()
    return sorted(chosen)


def _refuse_unsteady(labels: tuple[str, ...], rates: np.ndarray, positions: int, v: np.ndarray) -> None:
    size = 1 + _size(v) ** 2
    k = int(np.argmax(np.abs(rates))) if len(rates) else 0
    if len(rates) and not abs(rates[k]) <= STEADY * size:
        hint = (
            "; name it in `cyclic`, or the axis about which it turns, if it is cyclic"
            if k < positions
            else ""
        )
        raise ValueError(
            f"the motion must be steady, but '{labels[k]}' changes at the rate {rates[k]:.3g}{hint}"
        )


def _refuse_not_cyclic(
    labels: tuple[str, ...], slopes: np.ndarray, cyclic: Sequence[str], size: float
) -> None:
    if not slopes.size:
        return
    row, column = divmod(int(np.argmax(np.abs(slopes))), slopes.shape[1])
    if not abs(slopes[row, column]) <= STEADY * (1 + size):
        raise ValueError(
            f"'{cyclic[column]}' must be cyclic, but the rate of '{labels[row]}' changes with it; a `frame` "
            "that moves with the body may help"
        )


def _size(x: np.ndarray) -> float:
    return float(np.max(np.abs(x), initial=0.0))
