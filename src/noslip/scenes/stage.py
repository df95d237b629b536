"""The scene of a system as functions of its state, which JAX and the engine can compile."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
from jax import Array

from noslip.scenes.parts import ORANGE, Camera, Mark, Scene
from noslip.system import System
from noslip.system.time import TIME, timed

Drawn = Callable[..., Scene]  # of q and p, or of q, t and p


class Numbers(NamedTuple):
    """The numbers of a scene at one state, in the order of its parts."""

    poses: Array  # (bodies, 7): position, unit quaternion with the scalar first
    sizes: Array  # (bodies, 3): of the shape, then zeros
    marks: Array  # (marks, 3)
    arrows: Array  # (arrows, 6): position, force


@dataclass(frozen=True)
class Stage:
    """What a system looks like: its scene at every state. All methods take NumPy arrays or JAX's."""

    system: System
    draw: Drawn

    def scene(self, q: Any, t: Any = 0.0, parameters: Mapping[str, Any] | None = None) -> Scene:
        """What is to be seen at one state, with the system's own parameters or others."""
        p = dict(self.system.parameters) | dict(parameters or {})
        drawn = timed(self.draw, 2)(jnp.asarray(q, float), p | {TIME: t})
        if not isinstance(drawn, Scene):
            raise ValueError(
                f"`scene` must return a noslip.scenes.Scene, but it returned {type(drawn).__name__}"
            )
        return drawn

    def numbers(
        self, q: Any, multipliers: Any, t: Any = 0.0, parameters: Mapping[str, Any] | None = None
    ) -> Numbers:
        """All that moves; `multipliers` are those of the velocity constraints, then of the holonomic ones."""
        scene = self.scene(q, t, parameters)
        lam = jnp.asarray(multipliers, float)
        for x in scene.arrows:
            if x.directions.shape[:1] != lam.shape:
                raise ValueError(
                    f"`directions` of the arrow '{x.name}' must have a row for each of the {lam.size} "
                    f"constraints, but {len(x.directions)} were provided"
                )
        return Numbers(
            _rows([body.pose for body in scene.bodies], 7),
            _rows([body.sizes for body in scene.bodies], 3),
            _rows([mark.position for mark in scene.marks], 3),
            _rows([jnp.concatenate([x.position, lam @ x.directions]) for x in scene.arrows], 6),
        )

    def poses(self, q: Any, t: Any = 0.0, parameters: Mapping[str, Any] | None = None) -> Array:
        """Position and unit quaternion of every body, shape (bodies, 7)."""
        return _rows([body.pose for body in self.scene(q, t, parameters).bodies], 7)

    def json(self, q: Any, t: float = 0.0, parameters: Mapping[str, Any] | None = None) -> str:
        """The scene at one state as text: shapes, colours, names, and the numbers there."""
        return json.dumps(self.scene(q, t, parameters).data(), allow_nan=False)


def scene(system: System) -> Stage:
    """What the system looks like: what it says itself by `System(..., scene=)`, else a point that moves in
    the space of three of its coordinates."""
    return Stage(system, generic(system) if system.scene is None else system.scene)


def generic(system: System) -> Drawn:
    """A point in x, y, z, or else in the first coordinates that are no angles."""
    names = system.coordinates
    lengths = [name for name in names if name not in system.angles]
    order = list(dict.fromkeys([*(n for n in ("x", "y", "z") if n in lengths), *lengths, *names]))[:3]
    return in_coordinates(names, *order)


def in_coordinates(names: tuple[str, ...], *shown: str) -> Drawn:
    """The scene of a point whose place in space are up to three coordinates, chosen by their names."""
    places = [names.index(name) for name in shown]
    padded = (*shown, "", "")[:3]

    def draw(q: Array, p: Mapping[str, Any]) -> Scene:
        position = jnp.concatenate([q[np.array(places)], jnp.zeros(3 - len(places))])
        flat = len(places) < 3
        return Scene(
            marks=(Mark(position, name="state", colour=ORANGE),),
            camera=Camera(elevation=90.0, azimuth=-90.0) if flat else Camera(),
            axes=padded,
        )

    return draw


def _rows(rows: list[Array], width: int) -> Array:
    return jnp.stack(rows) if rows else jnp.zeros((0, width))
