"""Runs that must be the same, for the tests of this folder, and the events that two of them watch."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np

from noslip import Event, Trajectory
from noslip.systems import nonholonomic_particle

PARTICLE = nonholonomic_particle.system()
STATE = nonholonomic_particle.typical_state()


def back(q, v, p):
    return q, -0.9 * v


EVENTS = {
    "often": Event(lambda q, v, p: jnp.sin(5 * q[0])),
    "wall": Event(lambda q, v, p: q[1] - 0.5, direction=1, reset=back),
    "late": Event(lambda q, v, t, p: t - 6.789, terminal=True),
}


def assert_same(a: Trajectory, b: Trajectory) -> None:
    """Every array has the same bits, and the record is the same."""
    first, second = a.columns(), b.columns()
    assert set(first) == set(second)
    for name, (dimensions, column) in first.items():
        x, y = np.asarray(column), np.asarray(second[name][1])
        assert (dimensions, x.dtype, x.shape) == (second[name][0], y.dtype, y.shape), name
        assert x.tobytes() == y.tobytes(), name
    assert a.info.attributes() == b.info.attributes()
