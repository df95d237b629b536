"""Events that could never happen are refused before the run."""

import jax.numpy as jnp
import pytest

from noslip import Event, System, ensemble, simulate
from noslip.integrators import RungeKutta4

FALLING = System(lambda q, v, p: jnp.dot(v, v) / 2 - q[1], coordinates=("x", "y"))


@pytest.mark.parametrize(
    ("function", "sentence"),
    [
        (lambda q, v, p: q[1] < 0.5, r"number that changes its sign, such as q\[0\] - 1.0"),
        (lambda q, v, p: jnp.any(q < 0.5), "number that changes its sign"),
        (lambda q, v, p: q[7], r"`events\['low'\]` uses a coordinate that does not exist: index 7"),
        (lambda q, v, t, p: v[2], "does not exist: index 2"),
    ],
)
@pytest.mark.parametrize("run", [simulate, ensemble])
def test_what_never_crosses_zero_and_coordinates_that_do_not_exist(run, function, sentence):
    events = {"low": Event(function, terminal=True)}
    with pytest.raises(ValueError, match=sentence):
        run(FALLING, RungeKutta4(), [0.0, 1.0], [0.3, 0.0], step_size=0.1, steps=20, events=events)
