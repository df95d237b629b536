"""The scalar program: what folds, what is shared, what leaves a loop, and what is dropped."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax
from native_rows import compiled

from noslip import System
from noslip.engine.backends import native
from noslip.engine.backends.numpy_rows import evaluate, short_function
from noslip.engine.program import CannotTranslate, Loop, Rolled, TooLarge
from noslip.engine.translate import translate
from noslip.integrators.runge_kutta4 import RungeKutta4
from noslip.run import programs
from noslip.run.pairing import pairing_of

X = jax.ShapeDtypeStruct((), float)


def operations(function, *shapes):
    program = translate(lambda _, x: function(*x), 0.0, shapes or (X,))
    return [program.nodes[i].op for i in program.main.items if isinstance(i, int)]


SCALAR = jax.tree.structure(0.0)


def test_zeros_ones_and_constants_leave_nothing_behind():
    assert operations(lambda x: 0.0 * x + 1.0 * x - 0.0) == []
    assert operations(lambda x: 0.5 * (2.0 * x)) == []
    assert operations(lambda x: jnp.array([[1.0, 0.0], [0.0, 2.0]]) @ jnp.stack([x, x])) == ["mul"]
    assert operations(lambda x: x / 4.0) == ["mul"]


def test_equal_parts_are_computed_once():
    assert operations(lambda x: (x * x + 1.0) * (x * x + 1.0)).count("mul") == 1


def test_the_difference_of_a_pair_is_computed_once_so_that_skew_stays_skew():
    def skew(x, y):
        K = jnp.array([[x * x, x * y], [x, y]])
        return K - K.T

    program = translate(lambda _, a: skew(*a), 0.0, (X, X))
    upper, lower = program.outputs[1], program.outputs[2]
    assert program.nodes[lower].op == "neg"
    assert program.nodes[lower].args == (upper,)


def test_a_gradient_costs_what_the_formula_costs():
    # d/dq of (q0^2 + q1^2)^2 / 4 is (q0^2 + q1^2) q: three products, one of them fused, and two more
    q = jax.ShapeDtypeStruct((2,), float)
    found = operations(jax.grad(lambda q: 0.25 * jnp.sum(q**2) ** 2), q)
    assert len(found) <= 5, found


def test_a_product_that_feeds_one_sum_is_fused_and_others_are_not():
    assert operations(lambda x, y: x * y + 1.0, X, X) == ["fma"]
    assert sorted(operations(lambda x, y: (x * y + 1.0) * (x * y), X, X)) == ["add", "mul", "mul"]


def test_invariant_work_leaves_the_loop():
    def function(x, y):
        return lax.while_loop(lambda s: s < 100.0, lambda s: s + jnp.sin(y) * x, x)

    program = translate(lambda _, a: function(*a), 0.0, (X, X))
    loop = next(i for i in program.main.items if isinstance(i, Loop) and len(i.params) == 1)
    assert [program.nodes[i].op for i in loop.body.items if isinstance(i, int)].count("add") == 1
    assert not any(program.nodes[i].op in ("mul", "fma") for i in loop.body.items if isinstance(i, int))


def test_what_may_not_run_is_not_moved_to_where_it_always_runs():
    def function(x):
        return lax.while_loop(lambda c: c[0] > 3.0, lambda c: (c[0] / 2.0, c[1] * x * x * x), (x, 1.0))[1]

    program = translate(lambda _, x: function(x), 0.0, X)
    loop = next(i for i in program.main.items if isinstance(i, Loop))
    assert not any(program.nodes[i].op == "mul" for i in program.main.items if isinstance(i, int))
    assert loop.before.items or loop.body.items
    values = np.array([0.5, 5.0, 40.0])
    expected = jax.vmap(function)(values)
    np.testing.assert_allclose(evaluate(lambda _, f, x: function(x), None, 0.0, values), expected)


def test_one_state_in_python_has_the_bits_of_many_in_numpy():
    def function(c, x, y):
        angles = jnp.array([jnp.sin(c * x) * y - x, jnp.arctan2(x, y), jnp.hypot(x, y) + jnp.exp(-(x**2))])
        truth = (x < y) & ~(x > 1.0)
        return angles / (1.0 + y * y), jnp.where(truth, x * y + 1.0, jnp.maximum(x, -y))

    x, y = 3.0 * np.random.default_rng(0).normal(size=(2, 4096))
    many = evaluate(lambda _, *arguments: function(*arguments), None, 1.1, x, y)
    one = short_function(function, SCALAR, ((),), ((), ()))
    for k in range(0, 4096, 64):
        assert list(one(1.1, x[k].item(), y[k].item())) == [*many[0][k], many[1][k]]


def test_what_needs_a_loop_is_not_for_python():
    assert short_function(lambda c, x: c / x, SCALAR, ((),), ((),))(1.0, 4.0) == (0.25,)
    doubled = lambda c, x: lax.while_loop(lambda y: y < c, lambda y: 2 * y, x)  # noqa: E731
    assert short_function(doubled, SCALAR, ((),), ((),)) is None


def test_values_that_only_the_loop_needs_do_not_come_out_of_it():
    def function(x):
        return lax.while_loop(
            lambda c: c[0] < 3.0, lambda c: (c[0] + 1.0, c[1] * 2.0, c[1] + c[2]), (0.0, x, x)
        )[2]

    program = translate(lambda _, x: function(x), 0.0, X)
    loop = next(i for i in program.main.items if isinstance(i, Loop))
    assert sum(r >= 0 for r in loop.results) == 1


def test_a_scan_that_grows_stays_a_loop():
    def function(x):
        return lax.map(lambda e: jnp.sin(x * e) / (1 + x @ e), jnp.eye(30))

    program = translate(lambda _, x: function(x), 0.0, jax.ShapeDtypeStruct((30,), float))
    assert any(isinstance(i, Rolled) for i in program.main.items)
    assert program.size() < program.operations() / 5


def test_an_operation_that_is_not_known_names_itself():
    with pytest.raises(CannotTranslate, match="'sort'"):
        translate(lambda _, x: jnp.sort(x), 0.0, jax.ShapeDtypeStruct((3,), float))


def test_single_precision_is_refused():
    with pytest.raises(CannotTranslate, match="float32"):
        translate(lambda _, x: x.astype(jnp.float32) * 2, 0.0, X)


def test_a_program_that_is_too_large_says_so():
    with pytest.raises(TooLarge, match="scalar operations"):
        translate(lambda _, x: jnp.cumsum(jnp.sin(x) * x), 0.0, jax.ShapeDtypeStruct((40,), float), limit=200)


FUNCTIONS = {
    "slices and pads": lambda x: jnp.pad(x[1:4:2], (1, 2))[::-1],
    "gather at known places": lambda x: x[jnp.array([3, 0, 0, 2])],
    "gather at a place known at run time": lambda x: x[jnp.argmax(x)] + x[jnp.argmin(x[:3]) + 1],
    "scatter": lambda x: x.at[2].add(1.5).at[0].set(7.0),
    "dynamic slice": lambda x: lax.dynamic_slice(x, (jnp.argmax(x[:2]),), (3,)),
    "dynamic update": lambda x: lax.dynamic_update_slice(x, x[:2] * 10, (jnp.argmax(x[1:3]),)),
    "cumulative": lambda x: jnp.cumsum(x) * jnp.cumprod(1 + x / 10),
    "reductions": lambda x: jnp.array(
        [x.max(), x.min(), x.sum(), jnp.prod(x), jnp.any(x > 1), jnp.all(x > -9)]
    ),
    "outer products": lambda x: jnp.einsum("i,j,j->ij", x, x, x + 1),
    "cond": lambda x: lax.cond(x[0] > 0, lambda y: y * 2, lambda y: y - 1, x),
    "switch": lambda x: lax.switch(jnp.argmax(x[:3]), [lambda y: y, lambda y: -y, lambda y: y * y], x),
    "scan": lambda x: lax.scan(lambda c, y: (c * 0.5 + y, c - y), 1.0, x)[1],
    "scan over a table": lambda x: lax.scan(
        lambda c, y: (c + jnp.tanh(y) * c, jnp.stack([c, y * c])), 1.0, jnp.tile(x, 60), reverse=True
    )[1],
    "map over constants": lambda x: lax.map(lambda e: jnp.cos(x * e) @ jnp.cos(x + e), jnp.eye(5)).sum() + x,
    "jacobian by columns": lambda x: (
        lax.map(
            lambda e: jax.jvp(lambda y: jnp.sin(y) * jnp.sum(y**3) / (1 + y @ y), (x,), (e,))[1], jnp.eye(5)
        ).T
    ),
    "long scan": lambda x: lax.scan(lambda c, _: (c * 0.9 + 0.1, None), x, None, length=200)[0],
    "nested loops": lambda x: lax.fori_loop(
        0, 3, lambda i, y: lax.while_loop(lambda z: jnp.sum(z) < 5, lambda z: z + 1 + i, y) * 0.5, x
    ),
    "powers": lambda x: jnp.abs(x) ** 1.5 + x**3 + x**-2 + jnp.sqrt(jnp.abs(x)) + lax.rsqrt(jnp.abs(x)),
    "whole powers": lambda x: (
        jnp.abs(x) ** jnp.arange(5) + (2 + jnp.abs(x)) ** (x * 5).astype(int) + (3 + x) ** -0.5
    ),
    "products of two types": lambda x: (
        jnp.arange(1, 6) @ x
        + (x > 0) @ x
        + jnp.einsum("i,ij", x, jnp.arange(25).reshape(5, 5))
        + (x > 0) @ (x > 1)
    ),
    "whole numbers": lambda x: jnp.floor_divide((x * 10).astype(int), 3) + (x * 10).astype(int) % 4,
    "rounding": lambda x: jnp.round(x) + jnp.floor(2 * x) - jnp.ceil(x) + jnp.sign(x) + jnp.trunc(x),
    "clip and where": lambda x: jnp.where(jnp.isfinite(x), jnp.clip(x, -0.5, 0.5), 0.0) + jnp.maximum(x, 0.1),
    "elementary": lambda x: (
        jnp.tanh(x) + jnp.arctan2(x, 2.0) + jnp.exp(x) + jnp.log(jnp.abs(x)) + jnp.cosh(x)
    ),
    "a branch with a loop that would not end": lambda x: lax.cond(
        x[0] > 0, lambda y: lax.while_loop(lambda z: z < 1.0, lambda z: 2 * z, y), lambda y: y - 7.0, x[0]
    ),
    "a loop in a loop that only some rows run": lambda x: lax.while_loop(
        lambda c: c[1] < 3,
        lambda c: (lax.while_loop(lambda z: z < 4.0, lambda z: z + jnp.abs(x[0]) / c[1], c[0]) - 3, c[1] + 1),
        (jnp.abs(x[1]), 1),
    )[0],
    "take that fills": lambda x: jnp.nan_to_num(jnp.take(x, (x[0] * 20).astype(int)), nan=-3.0),
    "get that fills": lambda x: x.at[(x[0] * 20).astype(int)].get(mode="fill", fill_value=5.0),
    "set that clips": lambda x: x.at[7].set(9.0, mode="clip") + x.at[7].set(9.0),
    "truths in order": lambda x: jnp.array([(x[0] > 0) < (x[1] > 0), (x[0] > 0) <= (x[1] > 0)]) * 1.0,
    "the place of a NaN": lambda x: jnp.argmax(x.at[3].set(jnp.sqrt(x[0]))) + 0.0,
    "interpolation": lambda x: jnp.interp(x, jnp.array([-1.0, 0.0, 1.0]), jnp.array([2.0, 0.0, 5.0])),
    "steep logistic": lambda x: jax.nn.sigmoid(3000 * (x - 2)),
    "nothing at all": lambda x: (
        jnp.sum(x[:0, None] * x[None, :], axis=1).sum() + x[:0] @ jnp.zeros((0, 3)) + 1.0
    ),
    "constants that are not finite": lambda x: jnp.where(x > 9, jnp.round(jnp.array(jnp.nan)), jnp.floor(x)),
    "gradient of a branch": jax.grad(
        lambda x: lax.cond(x[0] > 0, lambda y: y @ y, lambda y: jnp.sum(y**3), x)
    ),
    "solves": lambda x: jnp.linalg.norm(x) + jnp.stack([x, x * x]).T @ jnp.array([1.0, 2.0]),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_programs_compute_what_jax_computes(name):
    function = FUNCTIONS[name]
    rows = np.random.default_rng(3).normal(size=(11, 5))
    expected = np.stack(list(map(jax.jit(function), rows)))  # vmap would run all branches of all rows
    interpreted = evaluate(_rowwise(function), None, 0.0, rows)
    np.testing.assert_allclose(interpreted, expected, rtol=1e-13, atol=1e-14)
    for width in (1, native.lanes()):
        np.testing.assert_allclose(compiled(function, rows, width), expected, rtol=1e-13, atol=1e-14)


@pytest.mark.parametrize(
    "function",
    [
        lambda x: jnp.floor(x * 1000).astype(jnp.uint8).astype(float),
        lambda x: ((x * 1e6).astype(jnp.int32) * jnp.int32(12345)).astype(float),
        lambda x: (jnp.uint32(3) - (x * 20).astype(jnp.uint32)).astype(float),
        lambda x: lax.reduce(x, jnp.float64(0.3), lambda a, b: a * b + a + b, (0,)),
        lambda x: x + jax.random.normal(jax.random.key(0), (5,)),
    ],
    ids=["uint8", "int32", "uint32", "reduce", "random"],
)
def test_what_could_come_out_otherwise_is_refused(function):
    with pytest.raises(CannotTranslate):
        translate(lambda _, x: function(x), 0.0, jax.ShapeDtypeStruct((5,), float))


def test_a_refusal_is_remembered(monkeypatch):
    system = System(
        lambda q, v, p: 0.5 * v @ v - jnp.sort(q)[0],
        one_forms=lambda q, p: jnp.array([[-q[1], 0.0, 1.0]]),
        coordinates=("x", "y", "z"),
    )
    with pytest.raises(CannotTranslate):
        pairing_of(system, RungeKutta4()).programs  # noqa: B018
    monkeypatch.setattr(programs, "StepPrograms", None)  # it would fail otherwise if it were tried again
    with pytest.raises(CannotTranslate, match="sort"):
        pairing_of(system, RungeKutta4()).programs  # noqa: B018


def test_nan_survives_max_and_min():
    rows = np.array([[np.nan, 1.0], [1.0, np.nan], [2.0, 1.0]])
    function = lambda x: jnp.stack([jnp.maximum(x[0], x[1]), jnp.minimum(x[0], x[1])])  # noqa: E731
    for width in (1, native.lanes()):
        np.testing.assert_array_equal(compiled(function, rows, width), jax.vmap(function)(rows))


def _rowwise(function):
    return lambda _, fixed, x: function(x)
