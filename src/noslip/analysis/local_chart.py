"""A system with rotations in coordinates near a state: three small turns in the place of each quaternion.

With u0 the quaternion of the state and x the small turns, u = small(x) u0, and the system that has x among
its coordinates, without rotations, has the same motion. Half a turn away from u0 the chart ends.
"""

from __future__ import annotations

from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from numpy.typing import ArrayLike

from noslip.analysis.small_turns import SmallTurns, chart_of
from noslip.rotations import compose
from noslip.system import Parameters, System


@dataclass(frozen=True, eq=False)
class LocalChart:
    """Coordinates about the position `centre`; u and -u have the same."""

    turns: SmallTurns
    axes: np.ndarray
    centre: np.ndarray

    @classmethod
    def about(cls, system: System, q: ArrayLike) -> LocalChart:
        centre = np.asarray(q, float)
        turns, axes, _ = chart_of(system, centre, ())
        return cls(turns, axes, centre)

    def state(self, x: Array, w: Array) -> tuple[Array, Array]:
        """(q, v) of x and dx/dt."""
        place = lambda x: self.turns.position(jnp.asarray(self.centre), jnp.asarray(self.axes), x)  # noqa: E731
        return jax.jvp(place, (x,), (w,))

    def coordinates(self, q: Array) -> Array:
        """x of q."""
        found = [q[np.array(self.turns.plain, int)]]
        for turn, axes in zip(self.turns.turns, self.axes, strict=True):
            place = np.array(turn.place)
            back = self.centre[place] * np.array([1.0, -1.0, -1.0, -1.0])
            d = compose(q[place], back)
            found.append(axes.T @ (2 * d[1:] / d[0]))
        return jnp.concatenate(found)

    def velocity(self, q: Array, v: Array) -> Array:
        """dx/dt of v."""
        return jax.jvp(self.coordinates, (q,), (v,))[1]

    def system(self, system: System) -> System:
        """The same system in x."""

        def lagrangian(x: Array, w: Array, p: Parameters) -> Array:
            return system.lagrangian(*self.state(x, w), p)

        def one_forms(x: Array, p: Parameters) -> Array:
            q = self.state(x, jnp.zeros_like(x))[0]
            return jnp.asarray(system.one_forms(q, p)) @ self._slope(x)  # type: ignore[misc]

        def drift(x: Array, p: Parameters) -> Array:
            return system.drift(self.state(x, jnp.zeros_like(x))[0], p)  # type: ignore[misc]

        def force(x: Array, w: Array, t: Array, p: Parameters) -> Array:
            return system.force(*self.state(x, w), t, p) @ self._slope(x)  # type: ignore[misc]

        return System(
            lagrangian,
            one_forms=None if system.one_forms is None else one_forms,
            drift=None if system.drift is None else drift,
            force=None if system.force is None else force,
            coordinates=tuple(f"x{k}" for k in range(self.turns.size)),
            parameters=dict(system.parameters),
        )

    def _slope(self, x: Array) -> Array:
        """dq/dx."""
        return jax.jacfwd(lambda x: self.state(x, jnp.zeros_like(x))[0])(x)
