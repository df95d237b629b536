"""What the page draws of a system: the parts that stay, as data, and the numbers that move, as a function of
the state. The data are those of a scene: bodies with poses (7 numbers: position, quaternion) and sizes (3),
marks that leave trails (3), arrows of forces (6: position, force)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import Array

from noslip.system import System

ORANGE = "#E69F00"


@dataclass(frozen=True)
class Looks:
    """`numbers(system, (q, multipliers, t))`: poses and sizes of all bodies, then marks, then arrows."""

    parts: dict[str, Any]
    numbers: Callable[[System, tuple[Array, Array, Array]], Any]


def looks_of(system: System) -> Looks:
    """A point that moves in x, y, z, or else in the first coordinates that are no angles."""
    lengths = [name for name in system.coordinates if name not in system.angles]
    named = [name for name in ("x", "y", "z") if name in lengths]
    chosen = list(dict.fromkeys([*named, *lengths, *system.coordinates]))[:3]
    places = np.array([system.coordinates.index(name) for name in chosen])
    flat = len(chosen) < 3

    def numbers(_: System, state: tuple[Array, Array, Array]) -> Array:
        return jnp.concatenate([state[0][places], jnp.zeros(3 - len(places))])

    camera = {"azimuth": -90.0 if flat else -60.0, "elevation": 90.0 if flat else 25.0, "follow": True}
    mark = {"name": "state", "colour": ORANGE, "trail": True}
    parts = {"bodies": [], "marks": [mark], "arrows": [], "camera": camera, "axes": [*chosen, "", ""][:3]}
    return Looks(parts, numbers)
