"""Scalar programs on rows of arrays: columns, in lanes and one by one, with the bits of the program."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from noslip.engine.backends import native
from noslip.engine.backends.native_columns import columns_function
from noslip.engine.translate import translate
from noslip.numerics.linear import solve


def several(fixed, at):
    """What varies by lane: a loop that ends where it likes, a choice, functions, a solve."""
    x, t = at

    def longer(z):
        return z[0] + jnp.abs(x[0]) + 0.3, z[1] * t

    y = jax.lax.while_loop(lambda z: z[0] < 5.0, longer, (t, x[1]))[1]
    chosen = jnp.where(x[0] > 0, jnp.sin(x[0]) * fixed["a"], jnp.exp(x[1]))
    matrix = fixed["b"] + jnp.outer(x, x)
    return jnp.array([y, chosen, t]), solve(matrix, x)


_several = jax.jit(several)


@pytest.fixture(scope="module")
def program():
    def of(*shape):
        return jax.ShapeDtypeStruct(shape, float)

    return translate(several, {"a": of(), "b": of(2, 2)}, (of(2), of()))


@pytest.mark.parametrize("rows", [0, 1, 7, 8, 61])
def test_columns_are_those_of_the_function_for_any_number_of_rows(program, rows):
    rng = np.random.default_rng(3)
    x, t, width = rng.normal(size=(rows, 2)), rng.uniform(0.5, 1.5, rows), native.lanes()
    fixed = np.array([1.7, 3.0, 0.2, 0.1, 2.0])
    found = {}
    for lanes in (1, width):
        out = np.full((5, rows + lanes - 1), np.nan)
        columns_function(program, lanes, (2, 1))(fixed, out, rows, out.shape[1], x, t)
        found[lanes] = out[:, :rows]
    assert np.array_equal(found[1], found[width])
    own = {"a": 1.7, "b": fixed[1:].reshape(2, 2)}
    for k in range(rows):
        expected = np.concatenate([np.ravel(y) for y in _several(own, (x[k], t[k]))])
        np.testing.assert_allclose(found[1][:, k], expected, rtol=1e-13)
