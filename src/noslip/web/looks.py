"""What the page draws of a system: the parts of its scene, as data, and the numbers that move, as a function
of the state that is compiled with its methods."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from jax import Array

from noslip.scenes import Numbers, Stage
from noslip.scenes.stage import generic
from noslip.system import System
from noslip.system.time import visible


@dataclass(frozen=True)
class Looks:
    """`numbers(system, (q, multipliers, t))`: poses and sizes of all bodies, then marks, then arrows."""

    parts: dict[str, Any]
    numbers: Callable[[System, tuple[Array, Array, Array]], Numbers]


def looks_of(system: System, stage: Stage) -> Looks:
    """The looks of a system on a stage: `scenes.scene(system)`, or `as_a_point`."""

    def numbers(system: System, state: tuple[Array, Array, Array]) -> Numbers:
        q, multipliers, t = state
        return stage.numbers(q, multipliers, t, system.parameters)

    return Looks(stage.parts(system.n).data(), numbers)


def as_a_point(system: System) -> Stage:
    """For a scene that has no scalar form: a point in the space of three coordinates."""
    return Stage(generic(system.coordinates, system.angles), visible(system.parameters))
