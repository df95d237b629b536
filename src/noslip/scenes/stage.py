"""The scene of a system as functions of its state, which JAX and the engine can compile."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from numpy.typing import ArrayLike

from noslip.engine.backends.numpy_rows import evaluate_anyhow
from noslip.numerics.tracing import Either, Real
from noslip.scenes.parts import ORANGE, Camera, Mark, Scene
from noslip.system import System
from noslip.system.derived import Parameters
from noslip.system.time import TIME, timed, visible

Draw = Callable[..., Scene]  # of q and p, or of q, t and p


class Numbers(NamedTuple):
    """The numbers of a scene at one state, in the order of its parts; of `Stage.rows` with time first."""

    poses: Either  # (bodies, 7): position, unit quaternion with the scalar first
    sizes: Either  # (bodies, 3): of the shape, then zeros
    marks: Either  # (marks, 3)
    arrows: Either  # (arrows, 6): position, force


@dataclass(frozen=True)
class Stage:
    """What a system looks like: its scene at every state, with its own parameters where none are given."""

    draw: Draw
    parameters: Parameters = field(default_factory=dict)

    def scene(self, q: ArrayLike, t: Real = 0.0, parameters: Parameters | None = None) -> Scene:
        """What is to be seen at one state."""
        p = {**self.parameters, **(parameters or {}), TIME: t}
        drawn = timed(self.draw, 2)(jnp.asarray(q, float), p)
        if not isinstance(drawn, Scene):
            given = type(drawn).__name__
            raise ValueError(f"`scene` must return a noslip.scenes.Scene, but it returned a {given}")
        return drawn

    def numbers(
        self, q: ArrayLike, multipliers: ArrayLike, t: Real = 0.0, parameters: Parameters | None = None
    ) -> Numbers:
        """All that moves; `multipliers` are those of the velocity constraints, then of the holonomic ones."""
        scene, lam = self.scene(q, t, parameters), jnp.asarray(multipliers, float)
        for x in scene.arrows:
            if x.directions.shape[:1] != lam.shape:
                raise ValueError(
                    f"`directions` of the arrow '{x.name}' must have a row for each of the {lam.size} "
                    f"constraints, but {len(x.directions)} were provided"
                )
        return Numbers(
            _stacked([body.pose for body in scene.bodies], 7),
            _stacked([body.sizes for body in scene.bodies], 3),
            _stacked([mark.position for mark in scene.marks], 3),
            _stacked([jnp.concatenate([x.position, lam @ x.directions]) for x in scene.arrows], 6),
        )

    def poses(self, q: ArrayLike, t: Real = 0.0, parameters: Parameters | None = None) -> Array:
        """Position and unit quaternion of every body, shape (bodies, 7)."""
        return _stacked([body.pose for body in self.scene(q, t, parameters).bodies], 7)

    def parts(self, coordinates: int) -> Scene:
        """The parts alone, at no particular place, for a system of so many coordinates."""
        found: list[Scene] = []

        def trace(q: Array, t: Array, p: Parameters) -> Array:
            found.append(self.scene(q, t, p).without_numbers())
            return q

        number = jax.ShapeDtypeStruct((), float)
        p = {name: jax.ShapeDtypeStruct(np.shape(x), float) for name, x in self.parameters.items()}
        jax.eval_shape(trace, jax.ShapeDtypeStruct((coordinates,), float), number, p)
        return found[0]

    def rows(self, q: ArrayLike, multipliers: ArrayLike, t: ArrayLike) -> Numbers:
        """`numbers` at many states, arrays of NumPy with time first."""
        states = (np.asarray(x, float) for x in (q, multipliers, t))
        parameters = {name: np.asarray(x, float) for name, x in self.parameters.items()}
        found: Numbers = evaluate_anyhow(_numbers, self.draw, parameters, *states)
        return found

    def json(self, q: ArrayLike, t: float = 0.0, parameters: Parameters | None = None) -> str:
        """The scene at one state as text: shapes, colours, names, and the numbers there."""
        return json.dumps(self.scene(q, t, parameters).data(), allow_nan=False)


def scene(system: System) -> Stage:
    """What the system looks like: what it says itself by `System(..., scene=)`, else a point that moves in
    the space of three of its coordinates."""
    draw = generic(system.coordinates, system.angles) if system.scene is None else system.scene
    return Stage(draw, visible(system.parameters))


def generic(coordinates: tuple[str, ...], angles: tuple[str, ...] = ()) -> Draw:
    """A point in x, y, z, or else in the first coordinates that are no angles."""
    lengths = [name for name in coordinates if name not in angles]
    order = [*(name for name in ("x", "y", "z") if name in lengths), *lengths, *coordinates]
    return in_coordinates(coordinates, *list(dict.fromkeys(order))[:3])


def in_coordinates(coordinates: tuple[str, ...], *shown: str) -> Draw:
    """The scene of a point whose place in space are up to three coordinates, chosen by their names."""
    places = np.array([coordinates.index(name) for name in shown])
    names = (*shown, "", "")[:3]

    def draw(q: Array, p: Parameters) -> Scene:
        position = jnp.concatenate([q[places], jnp.zeros(3 - len(places))])
        return Scene(
            marks=(Mark(position, name="state", colour=ORANGE),),
            camera=Camera() if len(places) == 3 else Camera(azimuth=-90.0, elevation=90.0),
            axes=names,
        )

    return draw


def _numbers(draw: Draw, parameters: Parameters, q: Array, multipliers: Array, t: Array) -> Numbers:
    return Stage(draw, parameters).numbers(q, multipliers, t)


def _stacked(rows: list[Array], width: int) -> Array:
    return jnp.stack(rows) if rows else jnp.zeros((0, width))
