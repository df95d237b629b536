"""The forces of constraints by name, from the multipliers of a run.

The rows of a contact are the gap, a length along the normal, and the speeds of what slips, along unit
vectors; so the multipliers are forces in these directions, on the body that rolls.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import Array

from noslip.bodies.mechanism import Mechanism
from noslip.bodies.parts import Edge, RollingContact
from noslip.bodies.redundant import left_open
from noslip.engine.backends.numpy_rows import evaluate_anyhow
from noslip.errors import shown
from noslip.numerics.tracing import Values
from noslip.system import System
from noslip.system.derived import Parameters

CUT = 1e-9  # of the greatest normal force


class LiftOff(UserWarning):
    """A normal force that pulls."""


@dataclass(frozen=True)
class Reaction:
    """Of a contact, loop or edge, one row per saved time. `force` acts on the first body of it, in space: on
    what rolls, on that of a loop's first point, on the one with the edge. A contact has its `normal` force
    and the rest of it, `friction`, which is `along` and `sideways` of what rolls; `torque` is about its
    normal, where it is of rubber. NaN stands for what rigid bodies leave open, as the shares of two wheels
    that slip sideways together, and None for what there is not."""

    t: np.ndarray
    force: np.ndarray
    normal: np.ndarray | None = None
    friction: np.ndarray | None = None
    torque: np.ndarray | None = None
    along: np.ndarray | None = None
    sideways: np.ndarray | None = None


def reactions(system: System, mechanism: Mechanism, run: Any) -> dict[str, Reaction]:
    """See `Model.reactions`."""
    if tuple(run.info.coordinates) != system.coordinates:
        raise ValueError(
            f"the run must be one of this model, with coordinates {', '.join(system.coordinates)}, but it "
            f"has {shown(', '.join(run.info.coordinates))}"
        )
    parameters = {name: run.info.parameters.get(name, x) for name, x in system.parameters.items()}
    t = np.asarray(run.multiplier_t, float)
    directions = evaluate_anyhow(
        _directions, mechanism, parameters, np.asarray(run.q, float), np.asarray(run.t)
    )
    is_open = left_open(mechanism, parameters, np.asarray(run.q, float), np.asarray(run.t))
    k = len(mechanism.position_rows)
    by_position = _by_row(
        mechanism.position_rows, mechanism.kept_positions, run.holonomic_multipliers, is_open[:, :k]
    )
    by_velocity = _by_row(mechanism.velocity_rows, mechanism.kept_velocities, run.multipliers, is_open[:, k:])
    found = {}
    parts: tuple[RollingContact | Edge, ...] = (*mechanism.contacts, *mechanism.edges)
    for part, vectors in zip(parts, directions, strict=True):
        along = np.zeros((len(t), 3))
        for k, x in enumerate(part.directions[:2]):
            along = along + by_velocity[part.name, x][:, None] * vectors[:, k]
        if isinstance(part, Edge):
            found[part.name] = Reaction(t, along)
            continue
        normal = by_position[part.name, "normal"]
        force = along + normal[:, None] * vectors[:, 2]
        spin, *slips = (by_velocity.get((part.name, x)) for x in ("spin", "along", "sideways"))
        found[part.name] = Reaction(t, force, normal, along, spin, *slips)
        _warn_of_lift_off(part.name, t, normal)
    for closure in mechanism.closures:
        force = np.stack([by_position[closure.name, x] for x in "xyz"], axis=1)
        found[closure.name] = Reaction(t, force)
    return found


def _by_row(
    rows: tuple[tuple[str, str], ...], kept: tuple[int, ...] | None, multipliers: Values, is_open: np.ndarray
) -> dict[tuple[str, str], np.ndarray]:
    """The multiplier of every row; NaN where it is open. One that was kept where another was left out is that
    of both."""
    values = np.full((len(multipliers), len(rows)), np.nan)
    values[:, list(kept or ())] = np.asarray(multipliers)
    values[is_open] = np.nan
    return {row: values[:, k] for k, row in enumerate(rows)}


def _directions(mechanism: Mechanism, p: Parameters, q: Array, t: Array) -> tuple[Array, ...]:
    """Of each contact along, sideways and the normal; of each edge its normal."""
    motion = mechanism.motion(q, jnp.zeros_like(q), t, p)
    touches = [motion.touch(contact) for contact in mechanism.contacts]
    rows = [jnp.stack([jnp.asarray(e, float) for e in (x.along, x.sideways, x.normal)]) for x in touches]
    edges = [(motion.axes(edge.body).A @ np.array(edge.normal))[None] for edge in mechanism.edges]
    return (*rows, *edges)


def _warn_of_lift_off(name: str, t: np.ndarray, normal: np.ndarray) -> None:
    pulls = normal < -CUT * np.max(np.abs(normal), initial=0.0)
    if np.any(pulls):
        first = int(np.argmax(pulls))
        warnings.warn(
            f"the normal force of '{name}' is {normal[first]:.3g} at t = {t[first]:g}: there it lifts off, "
            "and what follows is the motion of a body that is held down",
            LiftOff,
            stacklevel=4,
        )
