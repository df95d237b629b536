"""Rotations among the coordinates of a system: quaternions u that are never renormalised.

Functions are written for unit u. With u / |u| and du / |u| in the place of u and du, written q^ and v^, they
become homogeneous of degree 0, so that a factor of u is a matter of taste that no motion sees:

    L(q^, v^) + (c / 2) s^2,   s = u . du / |u|^2,      mu(q^) dv^/dv,      g(q^),      force dv^/dv,      X
    with |u| X_u

and s = 0 is one more row of mu for each rotation, after all others; c makes the mass matrix definite. What L
has of s adds nothing to the motion: s is the time derivative of ln |u|, so a term s B(q, v) adds a reaction
along the row of s and no more. What is shown is u / |u| with du tangent to the unit sphere. Charts of the
group would have to be changed within a run; renormalising plain quaternions costs reversibility and energy.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass
from types import ModuleType
from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from numpy.typing import ArrayLike

from noslip.errors import unknown_name
from noslip.numerics.tracing import Either, has_tracers
from noslip.rotations import names
from noslip.system.time import Timed

if TYPE_CHECKING:
    from noslip.system import System

Blocks = tuple[tuple[int, ...], ...]  # the places of each rotation among the coordinates
OF_VELOCITY = ("lagrangian", "constraint", "force")
OF_POSITION = ("one_forms", "drift", "frame", "holonomic")


def scaled(blocks: Blocks, q: Array, x: Array, power: int = -1) -> Array:
    """x with its parts along each u divided, or multiplied, by |u|."""
    for block in blocks:
        place = jnp.array(block)
        square = jnp.dot(q[place], q[place])
        x = x.at[place].set(x[place] / jnp.sqrt(square) if power < 0 else x[place] * jnp.sqrt(square))
    return x


def tangent(blocks: Blocks, q: Array, v: Array) -> Array:
    """v^ at q without its s."""
    for block in blocks:
        place = jnp.array(block)
        u, du = q[place], v[place]
        square = jnp.dot(u, u)
        v = v.at[place].set((du - u * (jnp.dot(u, du) / square)) / jnp.sqrt(square))
    return v


def stretch(blocks: Blocks, q: Array, v: Array) -> Array:
    """u . du / |u|^2 of each rotation."""
    pairs = [(q[jnp.array(block)], v[jnp.array(block)]) for block in blocks]
    return jnp.stack([jnp.dot(u, du) / jnp.dot(u, u) for u, du in pairs])


@dataclass(frozen=True)
class Homogeneous:
    """A function of the system for u of any length; equal for equal functions, as `Timed` is."""

    __wrapped__: Callable[..., Any]
    kind: str
    blocks: Blocks

    def __post_init__(self) -> None:
        for name in functools.WRAPPER_ASSIGNMENTS:
            if hasattr(self.__wrapped__, name):
                object.__setattr__(self, name, getattr(self.__wrapped__, name))

    def __call__(self, q: Array, *rest: Any) -> Any:
        q, blocks = jnp.asarray(q), self.blocks
        at = scaled(blocks, q, q)
        if self.kind in OF_POSITION:
            value = jnp.asarray(self.__wrapped__(at, *rest))
            if self.kind == "one_forms":
                return jax.vmap(lambda row: scaled(blocks, q, row))(value)
            if self.kind == "frame":
                return jax.vmap(lambda column: scaled(blocks, q, column, 1), 1, 1)(value)
            return value
        v, others = rest[0], rest[1:]
        value = jnp.asarray(self.__wrapped__(at, scaled(blocks, q, v), *others))
        if self.kind == "force":
            return scaled(blocks, q, value)
        if self.kind == "lagrangian":
            weights = [weight(self.__wrapped__, block, q.size, others) for block in blocks]
            return value + jnp.dot(jnp.stack(weights), stretch(blocks, q, v) ** 2) / 2
        return value


def homogeneous(function: Any, kind: str, blocks: Blocks) -> Any:
    """The function for u of any length; None stays None, and what is homogeneous already stays as it is."""
    inner = function.__wrapped__ if isinstance(function, Timed) else function
    if inner is None or isinstance(inner, Homogeneous) or not callable(inner):
        return function
    made = Homogeneous(inner, kind, blocks)
    return Timed(made) if isinstance(function, Timed) else made


def blocks_of(system: System) -> Blocks:
    """Where the rotations are; refuses names that are not there."""
    found = []
    for name in system.rotations:
        for coordinate in names(name):
            if coordinate not in system.coordinates:
                raise ValueError(unknown_name("coordinate of a rotation", coordinate, system.coordinates))
            if coordinate in system.angles:
                raise ValueError(f"'{coordinate}' must not be both an angle and of a rotation, but it is")
        found.append(tuple(system.coordinates.index(x) for x in names(name)))
    return tuple(found)


def weight(function: Callable[..., Any], block: tuple[int, ...], n: int, rest: tuple[Any, ...]) -> Array:
    """The c of a rotation: of the size of its inertia, as L has it at some position; 1 where it has none. It
    contains the parameters and no state, so that a step computes it once."""
    q, v, place = np.random.default_rng(0).uniform(0.3, 0.9, n), np.zeros((3, n)), list(block)
    q[place] = [1.0, 0.0, 0.0, 0.0]
    v[:, place] = np.eye(4)[1:]
    still = function(q, np.zeros(n), *rest)
    twice = sum((function(q, x, *rest) + function(q, -x, *rest) - 2 * still for x in v), jnp.zeros(()))
    return jnp.where(twice > 0, twice, 3.0) / 3


def _unit(blocks: Blocks, q: Array, v: Array) -> tuple[Array, Array]:
    return scaled(blocks, q, q), tangent(blocks, q, v)


_unit_of_numbers = jax.jit(_unit, static_argnums=0)


class Turned:
    """What a system can do about its rotations."""

    rotations: tuple[str, ...]

    @functools.cached_property
    def blocks(self) -> Blocks:
        """The places of the quaternions among the coordinates."""
        return blocks_of(self)  # type: ignore[arg-type]

    def shown(self, q: ArrayLike, v: ArrayLike) -> tuple[Either, Either]:
        """A state with quaternions of length 1: what is saved."""
        if not self.rotations:
            return q, v
        if has_tracers(q, v):
            return _unit(self.blocks, jnp.asarray(q), jnp.asarray(v))
        return _unit_of_numbers(self.blocks, q, v)

    def alike(self, q: ArrayLike, v: ArrayLike, to: ArrayLike) -> tuple[Either, Either]:
        """The same states, of any number of rows, with each u or -u as is nearer to that of `to`: for
        differences, to which these would be two."""
        if not self.rotations:
            return q, v
        xp: ModuleType = jnp if has_tracers(q, v, to) else np
        x, w, near = (xp.asarray(a) for a in (q, v, to))
        for block in self.blocks:
            place = np.array(block)
            other = xp.sum(x[..., place] * near[..., place], axis=-1, keepdims=True) < 0
            turned = other & np.isin(np.arange(x.shape[-1]), place)
            x, w = xp.where(turned, -x, x), xp.where(turned, -w, w)
        return x, w

    def made_homogeneous(self) -> dict[str, object]:
        """The functions of the system for quaternions of any length, by name."""
        system: Any = self
        blocks, kinds = self.blocks, (*OF_VELOCITY, *OF_POSITION)
        made = {kind: homogeneous(getattr(system, kind), kind, blocks) for kind in kinds}
        integrals = system.first_integrals.items()
        return made | {"first_integrals": {k: homogeneous(f, "constraint", blocks) for k, f in integrals}}
