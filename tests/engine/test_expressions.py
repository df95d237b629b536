"""Programs as expressions of heyoka and SymPy have the values of the functions that they were made from."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import sympy as sp
from jax import lax
from numpy.testing import assert_allclose

from noslip.engine.backends.expressions import NotExpressible
from noslip.engine.backends.heyoka_expressions import heyoka_expressions
from noslip.engine.backends.sympy_formulas import exact, sympy_formulas
from noslip.engine.program import Dense, Rolled, walk
from noslip.engine.translate import translate
from noslip.numerics.linear import inverse, solve, spd_solve


def program_of(function, x):
    return translate(lambda _, x: function(x), (), jax.ShapeDtypeStruct(np.shape(x), float), expand=False)


def by_heyoka(function, x):
    hy = pytest.importorskip("heyoka")
    variables = [hy.expression(f"x{k}") for k in range(x.size)]
    outputs = heyoka_expressions(program_of(function, x), variables)
    return hy.cfunc(outputs, variables)(x.ravel())


def by_sympy(function, x):
    symbols = sp.symbols(f"x:{x.size}")
    values = dict(zip(symbols, map(sp.Float, x.ravel().tolist()), strict=True))
    return [float(f.subs(values)) for f in sympy_formulas(program_of(function, x), symbols)]


@functools.cache
def by_xla(function):
    """At X."""
    return np.ravel(jax.jit(function)(X))


BACKENDS = pytest.mark.parametrize("values", [by_heyoka, by_sympy])
X = np.array([0.3, 0.7, 0.45])
FUNCTIONS = {
    "arithmetic": lambda x: jnp.stack([-x[0] / x[1] + 1, x[0] * x[1] - x[2], x[2] - x[0] * x[1], x[1] ** -3]),
    "roots and powers": lambda x: jnp.stack([jnp.sqrt(x[0]), x[1] ** x[2], x[0] ** 1.5, 1 / jnp.sqrt(x[2])]),
    "trigonometric": lambda x: jnp.concatenate([jnp.sin(x), jnp.cos(x), jnp.tan(x)]),
    "inverse": lambda x: jnp.concatenate([jnp.arcsin(x), jnp.arccos(x), jnp.arctan(x)]),
    "of two": lambda x: jnp.arctan2(x[0], -x[1]),
    "exponential": lambda x: jnp.concatenate([jnp.exp(x), jnp.log(x), jnp.exp2(x)]),
    "small": lambda x: jnp.concatenate([jnp.expm1(1e-9 * x), jnp.log1p(1e-9 * x)]),
    "hyperbolic": lambda x: jnp.concatenate([jnp.sinh(x), jnp.cosh(x), jnp.tanh(x)]),
    "inverse hyperbolic": lambda x: jnp.concatenate([jnp.arcsinh(x), jnp.arccosh(1 + x), jnp.arctanh(x)]),
    "sigmoids": lambda x: jnp.concatenate([jax.nn.sigmoid(x), jax.scipy.special.erf(x)]),
    "movement": lambda x: jnp.roll(x, 1)[::-1] + sum(y for y in x) + jnp.stack([*x]) @ jnp.outer(x, x),
}


@BACKENDS
@pytest.mark.parametrize("name", FUNCTIONS)
def test_the_expressions_have_the_values_of_the_function(values, name):
    wanted = by_xla(FUNCTIONS[name])
    small = name == "small" and values is by_sympy  # SymPy writes exp(x) - 1, which is for reading
    assert_allclose(values(FUNCTIONS[name], X), wanted, rtol=1e-6 if small else 3e-15)


def general(x):
    """A regular matrix whose first pivots are zero."""
    return jnp.array([[0.0, x[0], 1.0], [x[1], 0.0, x[2]], [1.0, x[0], 0.0]])


def definite(x, n):
    spread = jnp.sin(jnp.outer(jnp.arange(1.0, n + 1), jnp.arange(1.0, n + 1)) * x[0])
    return spread @ spread.T / n + (1 + x[1]) * jnp.eye(n)


SOLVES = {
    "two unknowns": lambda x: solve(general(x)[1:, 1:], x[:2]),
    "zero pivots": lambda x: solve(general(x), x),
    "inverse": lambda x: inverse(general(x)),
    "small definite": lambda x: spd_solve(definite(x, 3), x),
    "large definite": lambda x: spd_solve(definite(x, 13), jnp.linspace(0, x[2], 13)),
    "inverse of a large definite": lambda x: spd_solve(definite(x, 13), jnp.eye(13)),
}


@pytest.mark.parametrize("name", SOLVES)
def test_solves_are_written_out(name):
    wanted = by_xla(SOLVES[name])
    assert_allclose(by_heyoka(SOLVES[name], X), wanted, rtol=0, atol=1e-13 * np.abs(wanted).max())
    dense = [item for item in walk(program_of(SOLVES[name], X).main) if isinstance(item, Dense)]
    assert bool(dense) == (name != "small definite")


def test_a_small_solve_is_a_formula():
    a, b, c = sp.symbols("a b c")
    (x, y) = sympy_formulas(
        program_of(lambda x: solve(jnp.array([[0.0, x[0]], [x[1], x[2]]]), x[:2]), X), (a, b, c)
    )
    assert (sp.simplify(x - (b - c) / b), sp.simplify(y - 1)) == (0, 0)


def test_a_rolled_loop_is_written_out():
    def function(x):
        def turn(carry, k):
            new = sum((jnp.sin(carry * k + i) for i in range(50)), carry)
            return 0.01 * new, new

        return jnp.concatenate([jnp.ravel(y) for y in lax.scan(turn, x[:2], jnp.arange(1.0, 6.0))])

    assert any(isinstance(item, Rolled) for item in walk(program_of(function, X).main))
    assert_allclose(by_heyoka(function, X), by_xla(function), rtol=1e-13)


@pytest.mark.parametrize("fixed", [-0.4, 0.0, 0.7, 1.0, 1.3])
def test_heyoka_chooses_among_numbers_that_stay(fixed):
    hy = pytest.importorskip("heyoka")
    number = jax.ShapeDtypeStruct((), float)
    x, p = hy.make_vars("x", "p")

    def function(p, x):
        chosen = [jnp.where(p > 0, p, 3.0), jnp.where(p >= 1, 5.0, 7.0), jnp.where(p == 0, 2.0, p)]
        return jnp.stack([*chosen, jnp.where(p != 1, 2 * p, 9.0)]) * x

    outputs = heyoka_expressions(translate(function, number, number, expand=False), [p, x])
    found = hy.cfunc(outputs, [x, p])([0.6, fixed])
    wanted = [fixed if fixed > 0 else 3, 5 if fixed >= 1 else 7, 2 if fixed == 0 else fixed]
    assert_allclose(found, 0.6 * np.array([*wanted, 2 * fixed if fixed != 1 else 9]), rtol=1e-15)
    among_states = translate(lambda p, x: jnp.where(p > 0, x, -x), number, number, expand=False)
    with pytest.raises(NotExpressible, match="the operation 'select' has no analytic"):
        heyoka_expressions(among_states, [p, x])


REFUSED = {
    "the operation 'select' has no analytic": lambda x: jnp.where(x[0] < x[1], x[0], x[1]),
    "the operation 'lt' has no analytic": lambda x: x[0] < x[1],
    "the operation 'max' has no analytic": lambda x: jnp.maximum(x[0], x[1]),
    "the operation 'floor' has no analytic": lambda x: jnp.floor(x),
    "a loop that ends by a condition": lambda x: lax.while_loop(lambda y: y < 9, lambda y: y * y + 1, x[0]),
    "a solve of 5 unknowns that chooses pivots": lambda x: solve(
        jnp.outer(jnp.arange(5.0), jnp.ones(5)) + x[0], jnp.ones(5)
    ),
}


@BACKENDS
@pytest.mark.parametrize("message", REFUSED)
def test_what_has_no_analytic_expression_is_named(values, message):
    with pytest.raises(NotExpressible, match=message):
        values(REFUSED[message], X)


def test_numbers_are_shown_as_they_are_read():
    assert [exact(x) for x in (0.5, 3, 1 / 3, 0.1)] == [
        sp.Rational(1, 2),
        3,
        sp.Rational(1, 3),
        sp.Rational(1, 10),
    ]
    assert exact(np.pi) == sp.Float(np.pi)
    assert exact(np.inf) == sp.oo
