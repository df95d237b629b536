"""Linear equations on D about an equilibrium or a steady motion, their eigenvalues and modes.

A state of D is (q, u), u being n - m speeds that determine v: the coefficients in the frame of a system with
linear constraints, v = X u, or, where it declares none, the velocities of coordinates from which the others
follow by phi(q, v) = 0. Its motion is

    dq/dt = v(q, u),      du/dt = w(q, u)

In a steady motion u and the coordinates r that are not cyclic stay constant while the cyclic ones move, and
neither v_r nor w contains these. Then with x = (r, u), and inputs s,

    d(dx)/dt = A dx + B ds,      A = d(v_r, w) / d(r, u),      B = d(v_r, w) / ds

by automatic differentiation. Holonomic constraints determine k of the coordinates by the others, which are
then no states either. That the motion is steady and the cyclic coordinates are cyclic is checked.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from scipy.linalg import qr

from noslip.engine.backends.numpy_rows import evaluate_anyhow
from noslip.errors import unknown_name
from noslip.numerics.linear import solve, spd_solve
from noslip.system import System
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
    q: Any,
    v: Any,
    *,
    t: float = 0.0,
    parameters: Any = None,
    cyclic: Sequence[str] = (),
) -> Linearization:
    """The linear equations about the steady motion through (q, v); coordinates in `cyclic` may move in it."""
    system = (system if parameters is None else system.with_parameters(parameters)).at(float(t))
    q, v = np.asarray(q, float), np.asarray(v, float)
    for name in cyclic:
        if name not in system.coordinates:
            raise ValueError(unknown_name("coordinate in `cyclic`", name, system.coordinates))
    if system.moving or isinstance(system.frame, Timed):
        raise ValueError("linearize needs a system without t, but its Lagrangian or constraints contain it")
    if not system.is_admissible(q, v):
        raise ValueError(f"`v` must satisfy the constraint, but phi(q, v) = {np.asarray(system.phi(q, v))}")
    moving = tuple(map(system.index, cyclic))
    placed = _placed(system, q, np.array(moving, int))
    rest = tuple(k for k in range(system.n) if k not in (*moving, *placed))
    speeds, u, names = _speeds(system, q, v, np.array(moving, int))
    s = np.array([system.parameters[name] for name in system.inputs], float)
    rows = [np.asarray(x)[None] for x in (q, u, s, v, float(t))]
    found = evaluate_anyhow(_equations, (speeds, rest, placed), system, *rows)
    rates, by_q, by_u, by_s = (x[0] for x in found)
    labels = (*(system.coordinates[k] for k in rest), *names)
    _refuse_unsteady(labels, rates, len(rest), v)
    _refuse_not_cyclic(labels, by_q[:, list(moving)], cyclic, max(_size(by_q), _size(by_u)))
    A = np.concatenate([by_q[:, list(rest)], by_u], axis=1)
    eigenvalues, modes = np.linalg.eig(A)
    order = np.lexsort((-eigenvalues.imag, -eigenvalues.real))
    inputs = tuple(system.inputs)
    return Linearization(A, by_s.reshape(len(A), -1), labels, inputs, eigenvalues[order], modes[:, order])


def stability(
    system: System, motion: Callable[[float], tuple[Any, ...]], values: Any, *, cyclic: Sequence[str] = ()
) -> Stability:
    """Eigenvalues of the steady motions motion(value), which is (q, v) or (q, v, parameters)."""
    rows = []
    for value in np.asarray(values, float).tolist():
        q, v, *parameters = motion(value)
        found = linearize(system, q, v, parameters=parameters[0] if parameters else None, cyclic=cyclic)
        rows.append(found.eigenvalues)
    return Stability(np.asarray(values, float), np.array(rows))


@dataclass(frozen=True)
class _Speeds:
    """How n - m speeds u determine v at q near a state with the velocity v0. `free` are the coordinates whose
    velocities they are, `bound` the others; both None where they are coefficients in the frame."""

    free: tuple[int, ...] | None
    bound: tuple[int, ...] | None

    def velocity(self, system: System, q: Array, u: Array, v0: Array) -> Array:
        """v(q, u), exact at the state with its first derivatives."""
        if self.free is None:
            return _frame(system, q) @ u
        v = v0.at[jnp.array(self.free)].set(u)
        if not self.bound:
            return v
        # a step of Newton's method: phi vanishes at the state
        bound = jnp.array(self.bound)
        return v.at[bound].add(-solve(system.mu(q, v)[:, bound], system.phi(q, v)))

    def motion(self, system: System, q: Array, u: Array, v0: Array, t: Array) -> tuple[Array, Array]:
        """dq/dt and du/dt."""
        v = self.velocity(system, q, u, v0)
        a = system.acceleration(q, v, t)
        if self.free is not None:
            return v, a[jnp.array(self.free)]
        X = _frame(system, q)
        turned = jax.jvp(lambda x: self.velocity(system, x, u, v0), (q,), (v,))[1]
        return v, spd_solve(X.T @ X, X.T @ (a - turned))


def _frame(system: System, q: Array) -> Array:
    assert system.frame is not None
    return jnp.asarray(system.frame(q, system.parameters), float)


def _speeds(
    system: System, q: np.ndarray, v: np.ndarray, cyclic: np.ndarray
) -> tuple[_Speeds, np.ndarray, tuple[str, ...]]:
    """What determines v, its values at the state, and its names."""
    if system.frame is not None and system.kind == "linear":
        u = np.linalg.lstsq(np.asarray(_frame(system, jnp.asarray(q))), v, rcond=None)[0]
        return _Speeds(None, None), u, tuple(f"u_{k + 1}" for k in range(len(u)))
    bound = _dependent(np.asarray(system.mu(q, v)), cyclic)
    free = [k for k in range(system.n) if k not in bound]
    return _Speeds(tuple(free), tuple(bound)), v[free], tuple(f"{system.coordinates[k]}'" for k in free)


def _equations(
    static: tuple[_Speeds, tuple[int, ...], tuple[int, ...]],
    system: System,
    q: Array,
    u: Array,
    s: Array,
    v: Array,
    t: Array,
) -> tuple[Array, ...]:
    """The rates of (r, u), and their derivatives by q, u and the inputs s."""
    speeds, rest, placed = static

    def rates(q: Array, u: Array, s: Array) -> Array:
        now = system.with_parameters(dict(zip(system.inputs, s, strict=True)))
        if placed:  # as for velocities: g vanishes at the state
            bound = jnp.array(placed)
            q = q.at[bound].add(-solve(now.G(q)[:, bound], now.g(q)))
        velocity, change = speeds.motion(now, q, u, v, t)
        return jnp.concatenate([velocity[jnp.array(rest, int)], change])

    return rates(q, u, s), *jax.jacfwd(rates, (0, 1, 2))(q, u, s)


def _placed(system: System, q: np.ndarray, cyclic: np.ndarray) -> tuple[int, ...]:
    """k coordinates that the holonomic constraints determine, cyclic ones last."""
    if system.rotations:
        raise ValueError("linearize needs coordinates without rotations, but this system has quaternions")
    if not system.k:
        return ()
    g, allowed = (x[0] for x in evaluate_anyhow(placement, None, system, q[None]))
    if not np.all(np.abs(g) <= allowed):
        raise ValueError(f"`q` must satisfy the holonomic constraints, but g(q) = {g}")
    return tuple(_dependent(np.asarray(system.G(q)), np.setdiff1d(np.arange(system.n), cyclic)))


def _dependent(mu: np.ndarray, cyclic: np.ndarray) -> list[int]:
    """m coordinates whose velocities the constraints determine, cyclic ones where they can."""
    m, n = mu.shape
    chosen: list[int] = []
    for group in (cyclic, np.setdiff1d(np.arange(n), cyclic)):
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
        hint = "; name it in `cyclic` if it is cyclic" if k < positions else ""
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
