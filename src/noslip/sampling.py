"""Random initial states that satisfy the constraint, on or off a shell of given energy; for ensembles.

Let M be the mass matrix, D_q the velocities that the constraint admits at q (k = n - m dimensions), P the
M-orthogonal projection onto them, V the potential and v_n the M-shortest admissible velocity (zero for
linear constraints). A nonholonomic motion need not preserve any volume, so there is no measure that every
ensemble must follow; these two are independent of the choice of a frame of D and are stated in full:

    on_constraint      q uniform in the region (Lebesgue in the coordinates),
                       v of density exp(-T(v - v_n) / temperature) on D_q
    on_energy_shell    delta(E(q, v) - energy) dvol(q) dv, dvol = sqrt(det M) dq the volume of the kinetic
                       metric, dv its Lebesgue measure on D_q; that is, q in the region of density
                       sqrt(det M) (energy - E(q, v_n))^(k/2 - 1), found by rejection, and v - v_n
                       uniform on the sphere in D_q that has the right kinetic energy

Rotations are drawn uniformly from all of them, whatever the region has there, which must be a box; dq is then
that measure, M its part along the turns, and k is one less for each. u has u0 >= 0, since -u is the same.

With holonomic constraints g(q) = 0 a draw from the region is moved to a position that satisfies them, as
`System.project_position` does: by Newton's method along M^-1 G^T with M of the draw, where the coordinates
`fixed` stay as drawn, by default those of rotations. What is said of dq above is then said of the draws, and
D_q has one dimension less for each. So where g determines the others, the fixed ones keep their law: a body
on a plane that is given by all but its height has uniform x, y and rotations. A draw from which no such
position is found is an error, not left out.

Member i is drawn from the seed and i alone: `members=range(a, b)` are rows a to b of any larger sample, so
that neither the number of workers nor the size of chunks changes a state.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from noslip.engine.kept import jitted
from noslip.errors import shown
from noslip.rotations import frame
from noslip.run.arguments import as_floats, whole
from noslip.run.choose import on_cpu
from noslip.system import System, positions

BLOCK = 2**13  # proposals of one compiled call
AT_ONCE = 32  # blocks that are proposed before one looks who still waits
PILOT = 2**13  # proposals from which the largest density is sought
MARGIN = 0.1  # by how much its logarithm may be underestimated
MOST = 2**26  # proposals without a single success after which the region is called too large


@dataclass(frozen=True)
class Box:
    """low <= q <= high, coordinate by coordinate."""

    low: Any
    high: Any

    def checked(self, n: int) -> Box:
        low, high = (as_floats(name, x, (n,), False) for name, x in (("low", self.low), ("high", self.high)))
        if not (np.all(np.isfinite(low) & np.isfinite(high)) and np.all(low <= high)):
            raise ValueError(f"`low` must be finite and below `high`, but {low} and {high} were provided")
        return Box(low, high)

    def draw(self, key: Array) -> Array:
        return self.low + (self.high - self.low) * jax.random.uniform(key, jnp.shape(self.low), float)


@dataclass(frozen=True)
class Ball:
    """|q - centre| <= radius, in the coordinates."""

    centre: Any
    radius: Any

    def checked(self, n: int) -> Ball:
        centre, radius = (
            as_floats("centre", self.centre, (n,), False),
            float(as_floats("radius", self.radius, (), False)),
        )
        if not (np.all(np.isfinite(centre)) and np.isfinite(radius) and radius > 0):
            raise ValueError(f"a ball must be finite, but {centre} and radius {radius!r} were provided")
        return Ball(centre, radius)

    def draw(self, key: Array) -> Array:
        direction, size = jax.random.split(key)
        x = jax.random.normal(direction, jnp.shape(self.centre), float)
        length = jax.random.uniform(size, (), float) ** (1 / x.size)
        return self.centre + self.radius * length * x / jnp.linalg.norm(x)


jax.tree_util.register_dataclass(Box, ["low", "high"], [])
jax.tree_util.register_dataclass(Ball, ["centre", "radius"], [])
Region = Box | Ball


def on_constraint(
    system: System,
    members: int | range,
    *,
    region: Region,
    seed: int,
    temperature: float = 1.0,
    fixed: Iterable[str] | None = None,
) -> tuple[np.ndarray, np.ndarray]:
    """States (q0s, v0s), q uniform in the region, v normal on D_q: T has the mean temperature k / 2. `fixed`
    are the coordinates that holonomic constraints do not move, by default those of rotations."""
    numbers, region, key = _checked(system, members, region, seed)
    free = _movable(system, fixed)
    temperature = float(as_floats("temperature", temperature, (), False))
    if not 0 <= temperature < np.inf:
        raise ValueError(f"`temperature` must be a number >= 0, but {shown(temperature)} was provided")
    scale = jnp.asarray(temperature)
    with on_cpu():
        drawn = _in_blocks(lambda numbers: _normal_states(system, region, free, key, scale, numbers), numbers)
    return _placed_all(system, *drawn)


def on_energy_shell(
    system: System,
    energy: float,
    members: int | range,
    *,
    region: Region,
    seed: int,
    fixed: Iterable[str] | None = None,
) -> tuple[np.ndarray, np.ndarray]:
    """States (q0s, v0s) of that energy; the region must hold all positions that matter, or it truncates.
    `fixed` is that of `on_constraint`."""
    numbers, region, key = _checked(system, members, region, seed)
    if not np.isfinite(energy):
        raise ValueError(f"`energy` must be finite, but {shown(energy)} was provided")
    count = _free(system)
    if count < 2:
        raise ValueError(f"an energy shell needs two free velocities or more, but this system has {count}")
    free = _movable(system, fixed)
    level = jnp.asarray(as_floats("energy", energy, (), False))
    with on_cpu():
        bound = _largest_density(system, region, free, jax.random.fold_in(key, 0), level)
        draws = jax.random.fold_in(key, 1)
        turns = _first_accepted(system, region, free, draws, level, bound, numbers)
        drawn = _in_blocks(
            lambda *which: _shell_states(system, region, free, draws, level, *which), numbers, turns
        )
    return _placed_all(system, *drawn)


def _checked(
    system: System, members: int | range, region: Region, seed: int
) -> tuple[np.ndarray, Any, Array]:
    if not isinstance(system, System):
        raise TypeError(f"`system` must be a System, but {shown(system)} was provided")
    if system.kind == "nonlinear":
        raise ValueError("sampling needs linear or affine constraints, but these are nonlinear")
    if not isinstance(region, Region):
        raise TypeError(f"`region` must be a Box or a Ball, but {shown(region)} was provided")
    if system.rotations and not isinstance(region, Box):
        raise ValueError("the region of a system with rotations must be a Box, but a Ball was provided")
    numbers = members if isinstance(members, range) else range(whole("members", members, 1))
    if len(numbers) == 0 or numbers.step != 1 or numbers.start < 0:
        raise ValueError(
            f"`members` must be a number or a range from a >= 0 up, but {shown(members)} was provided"
        )
    return np.asarray(numbers), region.checked(system.n), jax.random.key(whole("seed", seed, 0))


def _free(system: System) -> int:
    """The dimensions of D_q."""
    return system.n - system.m - system.k - len(system.rotations)


def _movable(system: System, fixed: Iterable[str] | None) -> Array:
    """1 for each coordinate that holonomic constraints may move, 0 for those that are fixed."""
    if isinstance(fixed, str):
        raise TypeError(f"`fixed` must be a tuple of names, but the string '{fixed}' was provided")
    turned = {k for block in system.blocks for k in block} if system.rotations else set()
    held = turned if fixed is None else {system.index(name) for name in fixed}
    if system.n - len(held) < system.k:
        raise ValueError(
            f"{system.k} holonomic constraints must be met by as many coordinates, but only "
            f"{system.n - len(held)} are not in `fixed`"
        )
    return jnp.array([0.0 if k in held else 1.0 for k in range(system.n)])


def _placed_all(system: System, q: np.ndarray, v: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    lost = ~np.all(np.isfinite(q), axis=1)
    if system.k and np.any(lost):
        raise ValueError(_no_position(int(np.sum(lost)), len(q)))
    return q, v


def _no_position(lost: int, of: int) -> str:
    return (
        f"every draw must find a position with g(q) = 0 near it, but {lost} of {of} found none; give a "
        "smaller region, or other coordinates in `fixed`"
    )


def _drawn(system: System, region: Region, key: Array) -> Array:
    """A draw: in the region, with rotations from all."""
    q = region.draw(key)
    for k, block in enumerate(system.blocks if system.rotations else ()):
        u = jax.random.normal(jax.random.fold_in(key, k + 1), (4,), float)
        u = jnp.where(u[0] < 0, -u, u) / jnp.sqrt(jnp.dot(u, u))
        q = q.at[jnp.array(block)].set(u)
    return q


def _turns(system: System, q: Array) -> Array:
    """Orthonormal directions of all coordinates, but for the lengths of quaternions."""
    directions, turned = [], {k for block in system.blocks for k in block} if system.rotations else set()
    directions.append(jnp.eye(system.n)[:, [k for k in range(system.n) if k not in turned]])
    for block in system.blocks if system.rotations else ():
        rows = jnp.zeros((system.n, 3))
        directions.append(rows.at[jnp.array(block)].set(2 * frame("body")(q[jnp.array(block)])))
    return jnp.concatenate(directions, axis=1)


def _filled(numbers: np.ndarray) -> np.ndarray:
    """Up to one block, by repeating the last: one size, one compilation."""
    return np.concatenate([numbers, np.repeat(numbers[-1:], BLOCK - len(numbers))])


def _in_blocks(function: Callable[..., Any], *which: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """A function of members, block by block. XLA uses the processors by itself; asked from several threads at
    once it was seen to leave a block unfinished for ever."""
    blocks = range(0, len(which[0]), BLOCK)
    parts = [[np.asarray(x) for x in function(*(_filled(x[a : a + BLOCK]) for x in which))] for a in blocks]
    first, second = (np.concatenate(of) for of in zip(*parts, strict=True))
    return first[: len(which[0])], second[: len(which[0])]


def _shortest(system: System, q: Array) -> Array:
    """v_n."""
    zero = jnp.zeros(system.n)
    return zero if system.kind == "linear" else system.project_velocity(q, zero)


def _normal(system: System, q: Array, key: Array) -> Array:
    """A vector of D_q - v_n, standard normal in the kinetic metric, as a projection of one on T_qQ."""
    factor = jnp.linalg.cholesky(system.mass_matrix(q))
    free = jax.scipy.linalg.solve_triangular(factor.T, jax.random.normal(key, (system.n,), float))
    return system.project_velocity(q, free) - _shortest(system, q)


@jitted
def _normal_states(
    system: System, region: Region, free: Array, key: Array, temperature: Array, numbers: Array
) -> tuple[Array, Array]:
    def one(number: Array) -> tuple[Array, Array]:
        place, speed = jax.random.split(jax.random.fold_in(key, number))
        q = positions.placed(system, free, _drawn(system, region, place))
        v = _shortest(system, q) + jnp.sqrt(temperature) * _normal(system, q, speed)
        return q, system.project_velocity(q, v)  # off by round-off before

    return jax.vmap(one)(numbers)


def _log_density(system: System, free: Array, energy: Array, q: Array) -> Array:
    """Of a draw on the shell; -inf where the energy does not suffice, NaN where it finds no position."""
    q, _ = system.shown(q, q)
    q = positions.placed(system, free, q)
    room = energy - system.energy(q, _shortest(system, q))
    M = system.mass_matrix(q)
    if system.rotations:
        M = _turns(system, q).T @ M @ _turns(system, q)
    volume = jnp.sum(jnp.log(jnp.diagonal(jnp.linalg.cholesky(M))))
    exponent = _free(system) / 2 - 1
    found = jnp.where(room > 0, volume + exponent * jnp.log(jnp.where(room > 0, room, 1.0)), -jnp.inf)
    return jnp.where(jnp.isnan(room), jnp.nan, found) if system.k else found


_log_density_of_one = jitted(_log_density)


@partial(jitted, static=("size",))
def _pilot(
    system: System, region: Region, free: Array, key: Array, energy: Array, size: int
) -> tuple[Array, Array]:
    q = jax.vmap(lambda key: _drawn(system, region, key))(jax.random.split(key, size))
    return q, jax.vmap(lambda q: _log_density(system, free, energy, q))(q)


def _largest_density(system: System, region: Region, free: Array, key: Array, energy: Array) -> float:
    """An upper bound of the logarithm: the best of a pilot sample, climbed from, and a margin."""
    import scipy.optimize

    places, values = (np.asarray(x) for x in _pilot(system, region, free, key, energy, PILOT))
    if np.any(np.isnan(values)):
        raise ValueError(_no_position(int(np.sum(np.isnan(values))), PILOT))
    if not np.isfinite(values).any():
        raise ValueError(f"the region must hold states of energy {float(energy):g}, but none was found in it")
    low, high = np.min(places, axis=0), np.max(places, axis=0)
    best = float(np.max(values))

    def descend(q: np.ndarray) -> float:
        found = -float(_log_density_of_one(system, free, energy, np.clip(q, low, high)))
        return found if not np.isnan(found) else np.inf

    for start in places[np.argsort(values)[-4:]]:
        top = scipy.optimize.minimize(descend, start, method="Nelder-Mead")
        best = max(best, -float(top.fun))
    return best + MARGIN


def _keys(key: Array, number: Array, turn: Array) -> Array:
    """Of position, velocity and luck of a member's proposal."""
    return jax.random.split(jax.random.fold_in(jax.random.fold_in(key, number), turn), 3)


@jitted
def _proposals(
    system: System,
    region: Region,
    free: Array,
    key: Array,
    energy: Array,
    bound: Array,
    numbers: Array,
    turns: Array,
) -> tuple[Array, Array]:
    """For each (member, turn): whether its position is accepted, and log(density / bound)."""

    def one(number: Array, turn: Array) -> tuple[Array, Array]:
        place, _, luck = _keys(key, number, turn)
        value = _log_density(system, free, energy, _drawn(system, region, place)) - bound
        return jnp.log(jax.random.uniform(luck, (), float)) < value, value

    return jax.vmap(one)(numbers, turns)


@jitted
def _shell_states(
    system: System, region: Region, free: Array, key: Array, energy: Array, numbers: Array, turns: Array
) -> tuple[Array, Array]:
    """The states of accepted proposals."""

    def one(number: Array, turn: Array) -> tuple[Array, Array]:
        place, speed, _ = _keys(key, number, turn)
        q = positions.placed(system, free, _drawn(system, region, place))
        shortest, y = _shortest(system, q), _normal(system, q, speed)
        square = jnp.dot(y, system.mass_matrix(q) @ y)
        room = energy - system.energy(q, shortest)
        return q, system.project_velocity(q, shortest + jnp.sqrt(2 * room / square) * y)

    return jax.vmap(one)(numbers, turns)


def _first_accepted(
    system: System,
    region: Region,
    free: Array,
    key: Array,
    energy: Array,
    bound: float,
    numbers: np.ndarray,
) -> np.ndarray:
    """The turn at which each member finds a position; the fewer still search, the more turns in a call."""
    limit, turn, accepted = jnp.asarray(bound), np.zeros(len(numbers), int), np.full(len(numbers), -1)
    waiting, in_vain = np.arange(len(numbers)), 0
    while len(waiting):
        now, rest = waiting[: AT_ONCE * BLOCK], waiting[AT_ONCE * BLOCK :]
        ahead = max(1, BLOCK // len(now))
        slots = np.repeat(now, ahead)
        turns = turn[slots] + np.tile(np.arange(ahead), len(now))
        yes, value = _in_blocks(
            lambda *which: _proposals(system, region, free, key, energy, limit, *which), numbers[slots], turns
        )
        if np.any(np.isnan(value)):
            raise ValueError(_no_position(int(np.sum(np.isnan(value))), len(value)))
        if np.max(value) > 0:
            raise ValueError(
                "the density on the shell must be bounded by what a pilot sample finds, but it has a higher "
                "peak in the region; give a smaller region"
            )
        found, first = np.unique(slots[yes], return_index=True)
        accepted[found] = turns[yes][first]
        turn[now] += ahead
        in_vain = 0 if len(found) else in_vain + len(slots)
        if in_vain > MOST:
            raise ValueError(
                f"the region must be one that the shell fills well, but {in_vain} proposals in a row failed "
                f"when {np.sum(accepted < 0)} of {len(numbers)} states were missing; give a smaller region"
            )
        waiting = np.concatenate([now[accepted[now] < 0], rest])
    return accepted
