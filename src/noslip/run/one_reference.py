"""Host-driven runs of the reference flow: heyoka's Taylor method, or SciPy's DOP853 without it."""

from __future__ import annotations

import copy
import importlib.util
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from noslip.engine.backends.heyoka_expressions import heyoka_expressions
from noslip.engine.backends.numpy_rows import evaluate_anyhow
from noslip.engine.kept import jitted
from noslip.engine.program import CannotTranslate
from noslip.engine.translate import translate
from noslip.integrators.solve import Status
from noslip.numerics.forks import require_xla
from noslip.numerics.pytrees import anatomy, replaced
from noslip.run import step as steps
from noslip.run.driving import fed, of_step
from noslip.run.of_states import OfStates
from noslip.run.pairing import Pairing
from noslip.run.runner import NOTHING, Happened, Piece, joined, last_of
from noslip.run.step import Carry, Interval, Row
from noslip.system import System
from noslip.system.inputs import Drive, Held
from noslip.system.positions import put_back

BLOCK = 256  # steps between restarts of the adaptive flow
KEPT = 64  # compiled flows; the oldest goes first
_compiled: dict[Any, Any] = {}


class ReferenceTrajectory:
    """The interface of the compiled loop, on top of an adaptive flow that lands on every saved time."""

    first_piece, brief, grain = 64, 0, BLOCK
    join, last = staticmethod(joined), staticmethod(last_of)

    def __init__(
        self, pairing: Pairing, q: np.ndarray, v: np.ndarray, t: float, h: float, inputs: Drive = None
    ):
        require_xla()
        system = self.system = pairing.system
        self.integrator, self.inputs = pairing.integrator, inputs
        self.steered = isinstance(inputs, Held) and system.inputs_within(inputs.values)[1]
        self.h, self.t0 = h, t
        q, self.v = (np.asarray(x) for x in system.shown(q, v))
        self.step, self.saved = 0, 0
        self.q, self.turns = self._wrap(q, np.zeros(system.n))
        self.flow, self.backend = _flow(system)
        self.observed, self.projected = OfStates(_observed, system), OfStates(_projected, system)
        self.first = self._rows([0], self.q[None], self.v[None])

    def step_size(self, h: float) -> None:
        self.t0, self.h = self.t0 + self.step * (self.h - h), h

    def feed(self, drive: Drive) -> None:
        self.inputs = fed(self.inputs, self.step, drive)

    def happened(self) -> Happened:
        return NOTHING

    def snapshot(self) -> Carry:
        t, h = self.t0 + self.step * self.h, self.h
        here = [jnp.asarray(x) for x in (self.q, self.v, t, h)]
        state = self.integrator.init(self._system_at_node(self.step), *here)
        since = replaced(Interval.empty(), steps=jnp.asarray(self.step - self.saved))
        drive = of_step(self.inputs, max(self.step - 1, 0))
        return Carry(state, jnp.asarray(self.step), jnp.asarray(self.turns), since, drive=drive)

    def restore(self, carry: Carry) -> None:
        seen = self.integrator.observe(carry.state)
        self.q, self.v, self.turns = np.asarray(seen.q), np.asarray(seen.v), np.asarray(carry.turns)
        self.step, self.saved = int(carry.step), int(carry.step - carry.interval.steps)

    def to(self, stop: int, last: int, every: int) -> Piece[Row]:
        """Advance past step `stop`; rows at the multiples of `every` and at `last`.

        The flow is restarted at the multiples of BLOCK and nowhere else, so that the states do not depend
        on how the host cuts the run into calls. There angles are wrapped and the velocity is put back on
        the constraint: both lose digits along the way (1e-11 in 1e4 time units of the rotating gearbox).
        """
        failed, waiting = False, list[_Seen]()
        while self.step < stop and not failed:
            failed = self._block(min((self.step // BLOCK + 1) * BLOCK, last), last, every, waiting)
        rows = self._shown(waiting)
        if failed:
            rows.interval.status[-1], rows.interval.failed_step[-1] = Status.NOT_FINITE, self.step + 1
        return Piece(rows, self.step, failed)

    def aside(self, parts: np.ndarray) -> Row:
        """The motion from the start of the block, at these times; a failure is a row that is not finite."""
        n, ahead = self.system.n, parts > 0
        times = self.t0 + (self.step + parts) * self.h
        states = np.tile(np.concatenate([self.q, self.v]), (len(parts), 1))
        if ahead.any():
            start = self.t0 + self.step * self.h
            found, reached = self._flow_through(states[0], np.append(start, times[ahead]), parts[ahead])
            states[ahead] = np.nan
            states[np.flatnonzero(ahead)[:reached]] = found[:reached]
        steps = np.floor(self.step + parts).astype(int)
        nodes = np.ceil(self.step + parts).astype(int).tolist()
        rows = self._rows(steps.tolist(), states[:, :n], states[:, n:], times, nodes)
        lost = ~np.isfinite(states).all(axis=1)
        rows.interval.status[lost], rows.interval.failed_step[lost] = Status.NOT_FINITE, steps[lost] + 1
        return rows

    def _block(self, end: int, last: int, every: int, waiting: list[_Seen]) -> bool:
        """On to step `end`; whether it failed. What is seen on the way waits to be shown."""
        marks = np.arange((self.step // every + 1) * every, end + 1, every)
        if not len(marks) or marks[-1] < end:
            marks = np.append(marks, end)
        times = self.t0 + np.append(self.step, marks) * self.h
        states, reached = self._flow_through(np.concatenate([self.q, self.v]), times, marks - self.step)
        failed, n = reached < len(marks), self.system.n
        marks, states = marks[:reached], states[:reached]
        self.step = int(marks[-1]) if reached else self.step
        due = (marks % every == 0) | (marks == last) | (failed & (marks == self.step))
        keep = slice(None) if due.all() else due
        waiting.append(self._seen(marks[keep], states[keep, :n], states[keep, n:]))
        if failed and not due.any():  # the failure belongs to the row before, which `simulate` merges
            waiting.append(self._seen(np.array([self.step]), self.q[None], self.v[None]))
        if reached:
            self._stand_at(states[-1])
        return failed

    def _stand_at(self, state: np.ndarray) -> None:
        """Begin anew from there, with angles wrapped and the velocity on the constraint."""
        n, t = self.system.n, self.t0 + self.step * self.h
        self.q, self.turns = self._wrap(state[:n], self.turns)
        if self.inputs is None:
            self.v = self.projected(self.q[None], state[None, n:], np.array([t]))[0]
        else:
            system = self._system_at_node(self.step)
            self.v = np.asarray(system.project_velocity(self.q, state[n:], t))

    def _flow_through(self, y: np.ndarray, times: np.ndarray, parts: np.ndarray) -> tuple[np.ndarray, int]:
        """The states at times[1:], so many steps further, and how many were reached; with inputs, each step
        by itself. Where there are holonomic constraints, these and phi are met in every state."""
        found, reached = self._freely_through(y, times, parts)
        if (self.system.k or self.system.rotations) and reached:
            rows = np.array(found[:reached]), times[1 : reached + 1]
            return evaluate_anyhow(_put_back, None, self.system, *rows), reached
        return found, reached

    def _freely_through(self, y: np.ndarray, times: np.ndarray, parts: np.ndarray) -> tuple[np.ndarray, int]:
        """The same as the flow finds it: positions and velocities leave their constraints by its errors."""
        if self.inputs is None:
            return self.flow(self.system, y, times)
        n, found = self.system.n, []
        for k in range(int(np.ceil(parts[-1]))):
            system, start = self._system_at_node(self.step + k + 1), self.t0 + (self.step + k) * self.h
            if self.steered:  # a constraint that has switched
                y = np.concatenate([y[:n], system.project_velocity(y[:n], y[n:], start)])
            inside = [t for t, part in zip(times[1:], parts, strict=True) if k < part < k + 1]
            states, reached = self.flow(system, y, np.array([start, *inside, start + self.h]))
            found += list(states[: min(reached, len(inside))])
            if reached <= len(inside):
                break
            y = states[-1]
            found += [y] if k + 1 in parts else []
        return np.array(found).reshape(-1, 2 * n), len(found)

    def _system_at_node(self, k: int) -> System:
        """With the inputs of the step that leads to node k, or of the first."""
        return self.system.driven(of_step(self.inputs, max(k - 1, 0)))

    def _wrap(self, q: np.ndarray, before: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Declared angles in [-pi, pi], and the turns taken off in all."""
        if not self.system.angles:
            return q, np.zeros(q.shape)
        turns = np.where(self.system.angle_mask, np.round(q / steps.TURN), 0.0)
        return q - turns * steps.TURN - turns * steps.TURN_LOW, before + turns

    def _rows(
        self,
        steps: list[int],
        q: np.ndarray,
        v: np.ndarray,
        times: np.ndarray | None = None,
        nodes: list[int] | None = None,
    ) -> Row:
        """Rows after so many steps; `nodes` are the ends of the steps whose inputs they have."""
        ends = None if nodes is None else np.array(nodes, dtype=int)
        return self._shown([self._seen(np.array(steps, dtype=int), q, v, times, ends)])

    def _seen(
        self,
        k: np.ndarray,
        q: np.ndarray,
        v: np.ndarray,
        times: np.ndarray | None = None,
        nodes: np.ndarray | None = None,
    ) -> _Seen:
        t = self.t0 + k * self.h if times is None else times
        return _Seen(k, k if nodes is None else nodes, t, *self._wrap(q, self.turns), v)

    def _shown(self, parts: list[_Seen]) -> Row:
        together = parts[0] if len(parts) == 1 else map(np.concatenate, zip(*parts, strict=True))
        k, nodes, t, wrapped, turns, v = together
        if not len(k):
            return jax.tree.map(lambda x: x[:0], self.first)
        if self.inputs is None:
            lam, *energies = self.observed(wrapped, v, t)
        else:
            states = zip(nodes.tolist(), wrapped, v, t, strict=True)
            seen = [_observed_by_xla(self._system_at_node(j), *state) for j, *state in states]
            lam, *energies = jax.tree.map(lambda *x: np.stack(x), *seen)
        counts, sizes = np.zeros(len(k), dtype=int), np.zeros(len(k))
        taken = np.diff(k, prepend=self.saved)
        self.saved = int(k[-1]) if len(k) else self.saved
        records: list[Any] = [taken, counts, sizes, sizes, counts.copy(), counts - 1]
        columns: list[Any] = [k, t, wrapped, turns, v, lam, t, *energies, Interval(*records)]
        return Row(*columns)


class _Seen(NamedTuple):
    """States on the way, that have not been shown yet."""

    step: np.ndarray
    node: np.ndarray
    t: np.ndarray
    q: np.ndarray
    turns: np.ndarray
    v: np.ndarray


def _observed(system: System, q: Array, v: Array, t: Array) -> Any:
    return system.multipliers(q, v, t), *steps.energies(system.at(t), q, v)


def _put_back(_: None, system: System, y: Array, t: Array) -> Array:
    """The state (q, v) nearby with g = 0, phi = 0 and quaternions of length 1."""
    q = put_back(system.at(t), y[: system.n])
    return jnp.concatenate(system.shown(q, system.project_velocity(q, y[system.n :], t)))


_observed_by_xla = jitted(_observed)


def _projected(system: System, q: Array, v: Array, t: Array) -> Array:
    return system.project_velocity(q, v, t)


@jitted
def _acceleration(system: System, q: Array, v: Array, t: Array) -> Array:
    return system.acceleration(q, v, t)


def _flow(system: System) -> tuple[Any, str]:
    """(system, state, times) -> (states at times[1:], how many were reached), and the name of the method."""
    if importlib.util.find_spec("heyoka") is not None:
        try:
            return _taylor_flow(system), "heyoka"
        except CannotTranslate:
            pass  # the backend of the result says so
    return _runge_kutta_flow, "scipy DOP853"


def vector_field(system: System) -> list[tuple[Any, Any]]:
    """heyoka's variables (q, then v) and their time derivatives; the parameters are its par[i], in order."""
    import heyoka as hy

    q, v = ([hy.expression(f"{x}{i}") for i in range(system.n)] for x in "qv")
    shapes = jax.tree.map(lambda leaf: jax.ShapeDtypeStruct(np.shape(leaf), float), system)
    x, t = jax.ShapeDtypeStruct((system.n,), float), jax.ShapeDtypeStruct((), float)
    program = translate(lambda s, at: s.acceleration(*at), shapes, (x, x, t), expand=False)
    pars = [hy.par[k] for k in range(program.fixed)]
    slopes = [*v, *heyoka_expressions(program, [*pars, *q, *v, hy.time])]
    return list(zip([*q, *v], slopes, strict=True))


def _taylor_flow(system: System) -> Any:
    import heyoka as hy

    key = anatomy(system)[1:]
    if key not in _compiled:
        while len(_compiled) >= KEPT:
            del _compiled[next(iter(_compiled))]
        pairs = vector_field(system)
        made = hy.taylor_adaptive(pairs, [0.0] * len(pairs), compact_mode=True, high_accuracy=True)
        _compiled[key] = made, []
    one, free = _compiled[key]  # the solver, and copies of it that nobody uses now
    known: list[Any] = [None, None]  # the last system, and its parameters in a row

    def flow(system: System, state: np.ndarray, times: np.ndarray) -> tuple[np.ndarray, int]:
        solver = free.pop() if free else copy.deepcopy(one)
        if known[0] is not system:
            known[:] = system, np.concatenate([np.empty(0), *map(np.ravel, jax.tree.leaves(system))])
        solver.pars[:] = known[1][: len(solver.pars)]  # heyoka keeps none after the last that is used
        solver.time, solver.state[:] = times[0], state
        outcome, *_, grid = solver.propagate_grid(times)
        free.append(solver)
        if outcome == hy.taylor_outcome.time_limit:
            return grid[1:], len(times) - 1
        good = int(np.sum(np.all(np.isfinite(grid[1:]), axis=1)))
        return grid[1:], min(good, max(len(grid) - 1, 0))

    return flow


def _runge_kutta_flow(system: System, state: np.ndarray, times: np.ndarray) -> tuple[np.ndarray, int]:
    from scipy.integrate import solve_ivp

    n = system.n

    def rhs(t: float, y: np.ndarray) -> np.ndarray:
        return np.concatenate([y[n:], _acceleration(system, y[:n], y[n:], t)])

    options = {"method": "DOP853", "rtol": 2.3e-14, "atol": 1e-15}
    found = solve_ivp(rhs, (times[0], times[-1]), state, t_eval=times, **options)  # type: ignore[call-overload]
    return found.y.T[1:], found.y.shape[1] - 1
