"""A bound of the round-off of a function, against the same function with more digits."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

from noslip.engine.translate.rounding import rounding

EPS = np.finfo(float).eps
FUNCTIONS = {
    "one minus cosine": lambda q, xp: 9.81 * (1 - xp.cos(q[0])),
    "height above something": lambda q, xp: 9.81 * ((2.5 + q[0]) - 1.5),
    "spring with an end": lambda q, xp: 500.0 * (q[0] - 3.0) ** 2 + q[1] ** 2,
    "matrix": lambda q, xp: q @ xp.asarray([[1.0, -2.0], [3.0, 0.5]]) @ q - 4.0,
    "length": lambda q, xp: xp.sqrt(q[0] ** 2 + q[1] ** 2) - 1.0,
    "quotient": lambda q, xp: 1.0 / (q[0] - q[1]) - 1.0 / (q[0] + q[1]),
}
POINTS = [(1e-6, 0.3), (3.0 + 1e-5, -0.2), (1.0, 1e-9), (-1.5707963, 0.7), (0.6, -0.8)]


@pytest.mark.parametrize("name", FUNCTIONS)
def test_it_is_a_bound_and_not_a_lavish_one(name):
    f, found, true = FUNCTIONS[name], [], []
    for point in POINTS:
        q = np.array(point)
        found.append(EPS / 2 * float(rounding(lambda q: f(q, jnp), jnp.asarray(q))))
        value = float(f(jnp.asarray(q), jnp))
        true.append(abs(float(f(q.astype(np.longdouble), np) - np.longdouble(value))))
    assert np.all(np.array(true) <= np.array(found))
    last_digits = [
        max(abs(f(np.array(p) * (1 + s * EPS), np) - f(np.array(p), np)) for s in (1, -1)) for p in POINTS
    ]
    assert np.all(np.array(found) <= 40 * np.maximum(np.max(last_digits), EPS))


def test_what_cancels_counts():
    assert float(rounding(lambda q: 1 - jnp.cos(q[0]), jnp.array([1e-6]))) >= 1.0
    assert float(rounding(lambda q: q[0] ** 2, jnp.array([1e-6]))) < 1e-11


def test_functions_within_functions_are_read():
    @jax.jit
    def inside(x):
        return 1 - jnp.cos(x)

    @jax.custom_jvp
    def own(x):
        return 1 - jnp.cos(x)

    own.defjvp(lambda x, dx: (own(x[0]), jnp.sin(x[0]) * dx[0]))
    for f in (inside, own):
        assert float(rounding(lambda q, f=f: f(q[0]), jnp.array([1e-6]))) >= 1.0


def test_what_has_no_derivatives_by_single_arguments_is_read_too():
    def solved(q):
        return q @ jnp.linalg.solve(jnp.diag(2 + q**2), q)

    @jax.custom_jvp
    def table(x):
        return jax.pure_callback(np.sin, jax.ShapeDtypeStruct((), float), x)

    table.defjvp(lambda x, dx: (table(x[0]), jnp.cos(x[0]) * dx[0]))
    for f in (solved, lambda q: table(q[0])):
        q = jnp.array([1.0, 2.0])
        assert abs(float(f(q))) <= float(rounding(f, q)) < 20 * abs(float(f(q)))


def test_loops_and_branches_are_single_operations_and_infinite_bounds_are_none():
    def loop(q):
        return lax.fori_loop(0, 3, lambda _, y: 0.5 * y, q[0])

    def branch(q):
        return lax.cond(q[0] > 0, lambda x: 2.0 * x, lambda x: x, q[0])

    for f in (loop, branch):  # of its own, and what comes into it
        assert float(rounding(f, jnp.array([2.0]))) == 2 * abs(float(f(jnp.array([2.0]))))
    assert float(rounding(lambda q: branch(1 - jnp.cos(q)), jnp.array([1e-6]))) >= 1.0
    assert float(rounding(lambda q: jnp.sqrt(q[0]), jnp.array([0.0]))) == 0.0
