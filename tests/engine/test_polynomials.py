"""Programs in sums of products: what cancels is gone, what is shared is there once, values are the same."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from numpy.testing import assert_allclose

from noslip.engine.backends.expressions import NotExpressible, expressions
from noslip.engine.backends.heyoka_expressions import _heyoka, _in_sums, cheapest
from noslip.engine.translate import translate

X, P = np.array([0.3, 0.7, 0.45, -1.2]), np.array([1.7, 0.4])


def program_of(function):
    shapes = (jax.ShapeDtypeStruct(x.shape, float) for x in (P, X))
    return translate(function, *shapes, expand=False)


def values(program, write):
    hy = pytest.importorskip("heyoka")
    x, p = ([hy.expression(f"{name}{k}") for k in range(size)] for name, size in (("x", 4), ("p", 2)))
    return hy.cfunc(write(program, [*p, *x], _heyoka()), [*p, *x])(np.concatenate([P, X]))


FUNCTIONS = {  # with the dear operations that are left
    "a circle": (lambda p, x: p[0] * (jnp.sin(x[0]) ** 2 + jnp.cos(x[0]) ** 2), 0),
    "circles in a metric": (
        lambda p, x: p[1] + p[0] * x[1] * jnp.sin(x[0]) ** 2 + jnp.cos(x[0]) * x[1] * (jnp.cos(x[0]) * p[0]),
        0,
    ),
    "no circle": (lambda p, x: p[0] * jnp.sin(x[0]) ** 2 + p[1] * jnp.cos(x[0]) ** 2, 4),
    "opposites": (lambda p, x: x[0] * (x[1] * x[2]) - (x[2] * x[0]) * x[1] + p[0] * x[3], 0),
    "a quotient by itself": (lambda p, x: (p[0] * x[0] * x[1]) / (x[1] * p[0]), 0),
    "shared products": (lambda p, x: jnp.stack([x[0] * x[1] * x[2], x[2] * x[1], x[1] * (x[2] * x[3])]), 3),
    "shared quotients": (lambda p, x: jnp.stack([x[0] / x[1], x[2] * x[0] / x[1], x[3] * (x[0] / x[1])]), 3),
    "two below": (lambda p, x: jnp.stack([x[0] / (x[1] * x[2]), x[3] / (x[2] * x[1])]), 3),
    "what stays": (lambda p, x: x[0] * jnp.sin(p[0]) * jnp.exp(p[1]) / (p[0] + p[1] * p[0]), 0),
    "a sum as a factor": (lambda p, x: (x[0] - x[1]) * x[2] + x[3] / (x[1] - x[0]) - p[0], 2),
    "numbers": (lambda p, x: jnp.stack([jnp.zeros(()), 2.0 * x[0] - x[0] - x[0], 0.0 * x[1] + 3.0]), 0),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_what_is_left_has_the_values_of_the_program_and_few_operations(name):
    function, dear = FUNCTIONS[name]
    program = program_of(function)
    wanted = np.ravel(function(jnp.asarray(P), jnp.asarray(X)))
    for write in (expressions, _in_sums):
        assert_allclose(values(program, write), wanted, rtol=1e-14, atol=1e-15)
    assert cheapest(program).dear == dear


def test_a_divisor_that_cancels_is_left_as_it_stands():
    program = program_of(lambda p, x: x[0] / (x[3] * (x[1] * x[2]) - x[2] * (x[1] * x[3])))
    with pytest.raises(NotExpressible, match="a division by zero"):
        values(program, _in_sums)
    assert cheapest(program).write is expressions
