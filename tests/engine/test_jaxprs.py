"""What is read off traced functions: the types that they compute in, and whether they use an argument."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

from noslip.engine.translate import depends_on
from noslip.engine.translate.jaxprs import float_types, has_loop
from noslip.numerics.linear import solve

X = jax.ShapeDtypeStruct((3,), float)
THIRDS = np.full(3, 1 / 3, np.float32)


def single(x):
    return x.astype(jnp.float32).astype(float)


@jax.custom_jvp
def with_a_rule(x):
    return single(x)


with_a_rule.defjvp(lambda x, dx: (x[0], dx[0]))

NESTED = {
    "plain": single,
    "jit": jax.jit(single),
    "checkpoint": jax.checkpoint(single),
    "a rule of its own": with_a_rule,
    "cond": lambda x: lax.cond(x[0] > 0, lambda y: y, single, x),
    "scan": lambda x: lax.scan(lambda c, y: (single(c + y), y), x, x)[0],
    "while": lambda x: lax.while_loop(lambda y: y[0] < 1, single, x),
    "linear solve": lambda x: lax.custom_linear_solve(lambda y: 2 * y, x, lambda _, y: single(y) / 2),
    "constant": lambda x: x + THIRDS,
    "deep": lambda x: jax.jit(lambda y: lax.cond(y[0] > 0, jax.jit(single), lambda z: z, y))(x),
}


@pytest.mark.parametrize("name", NESTED)
def test_single_precision_is_found_wherever_it_hides(name):
    assert np.dtype(np.float32) in float_types(jax.make_jaxpr(NESTED[name])(X))


def test_double_precision_keys_and_whole_numbers_are_no_single_precision():
    def draws(x):
        return x * jnp.arange(3) + jax.random.normal(jax.random.key(0), 3)

    assert float_types(jax.make_jaxpr(draws)(X)) == {np.dtype(np.float64)}


def test_a_loop_is_found_inside_branches_and_calls():
    loop = jax.jit(lambda x: lax.while_loop(lambda y: y[0] < 1, lambda y: y + 1, x))
    assert has_loop(jax.make_jaxpr(lambda x: lax.cond(x[0] > 0, loop, lambda y: y, x))(X))
    assert not has_loop(jax.make_jaxpr(lambda x: lax.cond(x[0] > 0, jnp.sin, lambda y: y, x))(X))


DEPENDENT = {
    "chosen": lambda a, b: jnp.where(a > 0, a * b, 0.0),
    "chooses": lambda a, b: jnp.where(b > 0, a, 0.0),
    "output": lambda a, b: (a, b),
    "in a loop": lambda a, b: lax.while_loop(lambda x: x[0] < 9, lambda x: x + b**2, a),
    "ends a loop": lambda a, b: lax.while_loop(lambda x: x[0] < b[0], lambda x: x + 1, a),
    "in a solve": lambda a, b: solve(jnp.outer(a, a) + jnp.diag(b), a),
    "not translated": lambda a, b: jnp.sort(a),
}
INDEPENDENT = {
    "left out": lambda a, b: jnp.linalg.norm(a) + 0 * a,
    "dropped by a call": lambda a, b: jax.jit(lambda u, w: (u, w))(a, b)[0],
    "times zero": lambda a, b: a + 0.0 * b,
    "zero derivative": lambda a, b: jax.grad(lambda x: jnp.dot(x, x) + jnp.dot(b, b))(a),
    "carried but not read": lambda a, b: lax.scan(lambda c, _: ((c[0] * 2, c[1] + b), None), (a, b), None, 3)[
        0
    ][0],
}


@pytest.mark.parametrize("name", DEPENDENT)
def test_dependence_is_seen(name):
    assert depends_on(DEPENDENT[name], 1, X, X)


@pytest.mark.parametrize("name", INDEPENDENT)
def test_independence_is_certain(name):
    assert not depends_on(INDEPENDENT[name], 1, X, X)


def test_arguments_of_dependence_may_be_trees_and_numbers():
    def function(p, x, t):
        return p["k"] * x

    arguments = ({"k": 1.0, "l": np.ones((2, 2))}, X, 0.0)
    assert [depends_on(function, k, *arguments) for k in range(3)] == [True, True, False]


def test_a_value_of_an_enclosing_trace_counts_as_unknown():
    answers = []

    @jax.jit
    def outer(y):
        answers.append(depends_on(lambda a, b: a * y, 1, X, X))
        return y

    outer(2.0)
    assert answers == [True]
