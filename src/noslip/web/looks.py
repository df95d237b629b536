"""What the page draws of a system: the parts of its scene, as data, and the numbers that move, as a function
of the state: poses of all bodies (7 numbers: position, quaternion), their sizes (3), marks that leave trails
(3), arrows of forces (6: position, force)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from jax import Array

from noslip.scenes import Numbers, Stage, scene
from noslip.system import System
from noslip.system.time import visible


@dataclass(frozen=True)
class Looks:
    """`numbers(system, (q, multipliers, t))`, in the order of the fields of `Numbers`."""

    parts: dict[str, Any]
    numbers: Callable[[System, tuple[Array, Array, Array]], Numbers]


def looks_of(system: System) -> Looks:
    """The scene of the system."""
    stage = scene(system)

    def numbers(here: System, state: tuple[Array, Array, Array]) -> Numbers:
        return Stage(stage.draw, visible(here.parameters)).numbers(*state)

    return Looks(stage.parts(system.n).data(), numbers)
