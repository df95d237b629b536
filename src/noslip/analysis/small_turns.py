"""Coordinates near a state with rotations: three small turns in the place of each quaternion.

With u0 the quaternion of the state, e an axis of space and b one of the body about which the motion may turn,

    u = R(e, x_1) small(x_2 n) u0 R(b, x_3)

where R turns by an angle about an axis, and small(y) by about |y| about y: n is orthogonal to e and A b.
Where one of the axes is missing, or both, the small turns have two or three components. Speeds that do not
change where e and b are symmetries are the rates along axes that turn with x_1, or, without b, in the body.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from numpy.typing import ArrayLike

from noslip.errors import shown, unknown_name
from noslip.numerics.linear import spd_solve
from noslip.rotations import AXES, compose, frame, from_axis, matrix
from noslip.system import System

PARALLEL = 1e-6  # the sine between axes that give no third one
Cyclic = Sequence[str | tuple[str, str, ArrayLike]]


@dataclass(frozen=True)
class Turn:
    """One rotation: its place among the coordinates, and about which of its axes the motion may turn. `axes`
    are the columns e, n, b below, those of the small turns in the place of missing ones."""

    name: str
    place: tuple[int, ...]
    space: bool
    body: bool
    whole: bool

    def position(self, u0: Array, axes: Array, x: Array) -> Array:
        """u."""
        first, last = int(self.space), 3 - int(self.body)
        y = axes[:, first:last] @ x[first:last]
        u = compose(jnp.concatenate([jnp.ones(1), y / 2]) / jnp.sqrt(1 + jnp.dot(y, y) / 4), u0)
        u = compose(from_axis(axes[:, 0], x[0]), u) if self.space else u
        return compose(u, from_axis(axes[:, 2], x[2])) if self.body else u

    def columns(self, u: Array, axes: Array, x: Array) -> Array:
        """du of unit speeds, shape (4, 3)."""
        if not self.body:
            return frame("body")(u)
        spatial = frame("space")(u)
        return spatial @ matrix(from_axis(axes[:, 0], x[0])) if self.space else spatial

    @property
    def names(self) -> tuple[str, ...]:
        """Of the three."""
        if not (self.space or self.body):
            return tuple(f"{self.name}_{x}" for x in AXES)
        small = [f"{self.name}_{k + 1}" for k in range(3 - self.space - self.body)]
        first = [f"{self.name} about its axis of space"] if self.space else []
        return (*first, *small, f"{self.name} about its axis of the body") if self.body else (*first, *small)

    @property
    def cyclic(self) -> tuple[bool, bool, bool]:
        """Which of the three may move in the motion."""
        return self.whole or self.space, self.whole, self.whole or self.body


@dataclass(frozen=True)
class SmallTurns:
    """Local coordinates: those that are no quaternions, then three for each rotation."""

    plain: tuple[int, ...]
    turns: tuple[Turn, ...]

    @property
    def size(self) -> int:
        return len(self.plain) + 3 * len(self.turns)

    def _parts(self, x: Array) -> list[tuple[Turn, slice]]:
        first = len(self.plain)
        return [(turn, slice(first + 3 * k, first + 3 * k + 3)) for k, turn in enumerate(self.turns)]

    def position(self, q0: Array, axes: Array, x: Array) -> Array:
        """q."""
        if not self.turns:
            return x
        q = q0.at[jnp.array(self.plain, int)].set(x[: len(self.plain)])
        for k, (turn, part) in enumerate(self._parts(x)):
            place = jnp.array(turn.place)
            q = q.at[place].set(turn.position(q0[place], axes[k], x[part]))
        return q

    def velocity(self, q0: Array, axes: Array, x: Array, w: Array) -> Array:
        """v of the speeds w."""
        if not self.turns:
            return w
        q = self.position(q0, axes, x)
        v = jnp.zeros(q.size).at[jnp.array(self.plain, int)].set(w[: len(self.plain)])
        for k, (turn, part) in enumerate(self._parts(x)):
            place = jnp.array(turn.place)
            v = v.at[place].set(turn.columns(q[place], axes[k], x[part]) @ w[part])
        return v

    def rates(self, q0: Array, axes: Array, x: Array, v: Array) -> Array:
        """dx/dt of the velocity v."""
        if not self.turns:
            return v
        found = [v[jnp.array(self.plain, int)]]
        for k, (turn, part) in enumerate(self._parts(x)):
            place = jnp.array(turn.place)
            u0, fixed = q0[place], axes[k]
            slope = jax.jacfwd(lambda y, turn=turn, u0=u0, fixed=fixed: turn.position(u0, fixed, y))(x[part])
            found.append(spd_solve(slope.T @ slope, slope.T @ v[place]))
        return jnp.concatenate(found)

    def speeds(self, q0: Array, axes: Array, x: Array, v: Array) -> Array:
        """The w of a v: `velocity` backwards. At a state it takes v or any rate of it, as it is linear."""
        if not self.turns:
            return v
        q = self.position(q0, axes, x)
        found = [v[jnp.array(self.plain, int)]]
        for k, (turn, part) in enumerate(self._parts(x)):
            place = jnp.array(turn.place)
            found.append(4 * turn.columns(q[place], axes[k], x[part]).T @ v[place])  # columns / 2 are unit
        return jnp.concatenate(found)

    def names(self, system: System) -> tuple[str, ...]:
        """Of the local coordinates."""
        return (*(system.coordinates[k] for k in self.plain), *(x for turn in self.turns for x in turn.names))

    def speed_names(self, system: System) -> tuple[str, ...]:
        """Of the speeds."""
        rates = [f"{turn.name}_{x}'" for turn in self.turns for x in AXES]
        return (*(f"{system.coordinates[k]}'" for k in self.plain), *rates)


def chart_of(system: System, q: np.ndarray, cyclic: Cyclic) -> tuple[SmallTurns, np.ndarray, tuple[int, ...]]:
    """The chart at a state, its axes of shape (rotations, 3, 3), and the places of the cyclic ones in it."""
    about = _named(system, cyclic)
    turns, axes = [], []
    for name, place in zip(system.rotations, system.blocks, strict=True):
        space, body, whole = (about.get((name, kind)) for kind in ("space", "body", "whole"))
        turns.append(Turn(name, place, space is not None, body is not None, whole is not None))
        axes.append(_axes(name, np.asarray(matrix(q[list(place)])), space, body))
    turned = {k for block in system.blocks for k in block}
    chart = SmallTurns(tuple(k for k in range(system.n) if k not in turned), tuple(turns))
    may_move = [system.coordinates[k] in cyclic for k in chart.plain]
    may_move += [x for turn in turns for x in turn.cyclic]
    return chart, np.array(axes).reshape(-1, 3, 3), tuple(np.flatnonzero(may_move).tolist())


def _named(system: System, cyclic: Cyclic) -> dict[tuple[str, str], Any]:
    """The axes that `cyclic` names, by rotation and "space" or "body", or "whole" without an axis."""
    turned = {system.coordinates[k]: name for name, block in zip(system.rotations, system.blocks, strict=True)
              for k in block}  # fmt: skip
    known, found = (*system.coordinates, *system.rotations), {}
    if isinstance(cyclic, str):
        raise TypeError(f"`cyclic` must be a tuple of names, but the string '{cyclic}' was provided")
    for entry in cyclic:
        name, kind, axis = entry if isinstance(entry, tuple) and len(entry) == 3 else (entry, "whole", 0)
        if name in turned:
            raise ValueError(
                f"'{name}' is of a rotation, and cannot be cyclic alone; name the rotation, or an axis as "
                f"('{turned[name]}', 'space', 'z')"
            )
        if name not in known or (entry is not name and name not in system.rotations):
            raise ValueError(unknown_name("coordinate in `cyclic`", str(name), known))
        if entry is not name and kind not in ("space", "body"):
            raise ValueError(
                f"the axis of '{name}' must be of 'space' or 'body', but {shown(kind)} was provided"
            )
        if name in system.rotations:
            found[name, kind] = axis if kind == "whole" else _axis(name, axis)
    return found


def _axis(name: str, axis: ArrayLike) -> np.ndarray:
    if isinstance(axis, str) and len(axis) == 1 and axis in AXES:
        return np.eye(3)[AXES.index(axis)]
    value = np.asarray(axis, float) if not isinstance(axis, str) else np.zeros(0)
    if value.shape != (3,) or not 0 < np.linalg.norm(value) < np.inf:
        raise ValueError(
            f"the axis of '{name}' must be x, y, z or three numbers, but {shown(axis)} was provided"
        )
    return value / np.linalg.norm(value)


def _axes(name: str, A: np.ndarray, space: np.ndarray | None, body: np.ndarray | None) -> np.ndarray:
    """The columns of `Turn`."""
    if body is None:
        return A if space is None else np.stack([space, *_across(space)], axis=1)
    if space is None:
        return np.stack([*_across(A @ body), body], axis=1)
    node = np.cross(space, A @ body)
    if np.linalg.norm(node) < PARALLEL:
        raise ValueError(
            f"the axes of '{name}' in `cyclic` must not be parallel, but they are in this state, where they "
            "are one turn; name one of them"
        )
    return np.stack([space, node / np.linalg.norm(node), body], axis=1)


def _across(e: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Two unit vectors orthogonal to e and to each other."""
    one = np.cross(e, np.eye(3)[np.argmin(np.abs(e))])
    one = one / np.linalg.norm(one)
    return one, np.cross(e, one)
