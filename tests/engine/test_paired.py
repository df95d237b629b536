"""Calls of one function in pairs: which are made together, and that no bit depends on it."""

import jax
import jax.numpy as jnp
import numpy as np
from native_rows import compiled

from engine.test_sweeps import Made, everything_called  # noqa: F401
from noslip.engine.backends.llvm_text import LlvmWriter
from noslip.engine.backends.native import map_text
from noslip.engine.backends.paired import Pair, in_pairs
from noslip.engine.program import Called, Loop, uses, walk
from noslip.engine.translate import translate
from noslip.numerics import blocks

ROWS = np.random.default_rng(3).uniform(-0.5, 0.5, size=(7, 3))


BENT = Made(lambda x: jnp.sin(x[0] * x[1]) * jnp.sqrt(1 + x[2] ** 2) / (2 + jnp.cos(x[1])), ())


def f(x):
    """A function of three numbers that is long enough to be called."""
    return blocks.block(BENT, (0, 0), x)[0]


def g(x):
    """Another one."""
    return blocks.block(BENT, (0, 0), x, along={0: jnp.ones(3)})[0]


def ordered(function):
    """How many pairs of calls the function's program has, calls in both lanes, and calls alone; without the
    sines, which are short."""
    program = translate(lambda _, x: function(x), 0.0, jax.ShapeDtypeStruct((3,), float))
    items = in_pairs(program.nodes, program.main)
    assert_each_after_what_it_reads(program, items)
    pairs = [x.first is x.second for x in items if isinstance(x, Pair) and not x.first.is_short()]
    alone = [item for item in items if isinstance(item, Called) and not item.is_short()]
    return pairs.count(False), pairs.count(True), len(alone)


def assert_each_after_what_it_reads(program, items):
    ready = {k for k, node in enumerate(program.nodes) if node.op == "input" or node.value is not None}
    flat = [x for item in items for x in (item if isinstance(item, Pair) else (item,))]
    assert {id(x) for x in flat} == {id(x) for x in program.main.items}
    for item in items:
        both = item if isinstance(item, Pair) else (item,)
        for x in both:
            inner = [*walk(x.before), *walk(x.body)] if isinstance(x, Loop) else []
            inside = {a for y in inner for a in ([y] if isinstance(y, int) else y.results)}
            assert {a for y in (x, *inner) for a in uses(program.nodes, y)} <= ready | inside
        ready |= {a for x in both for a in ([x] if isinstance(x, int) else x.results)}


def one_after_the_other(x):
    return f(jnp.sin(f(x)))


def three_of_one(x):
    return f(x) + f(2 * x) * g(x) + f(jnp.cos(x))


def crosswise(x):
    """f(x) is needed by the second g, g(x) by the second f: one pair at most."""
    first, other = f(x), g(x)
    return g(jnp.sin(first)) + f(jnp.sin(other))


def test_calls_are_made_in_pairs_where_neither_needs_the_other(everything_called):  # noqa: F811
    assert ordered(one_after_the_other) == (0, 0, 2)
    assert ordered(three_of_one) == (1, 1, 1)  # the third in both lanes, so that the function is written once
    assert ordered(crosswise) == (1, 0, 2)


def test_a_pair_is_one_call_with_the_bits_of_two(everything_called):  # noqa: F811
    for function in (one_after_the_other, three_of_one, crosswise):
        np.testing.assert_array_equal(compiled(function, ROWS, 1), compiled(function, ROWS, 4))
    assert calls(three_of_one) == (5, 3)  # f, f; f; g; the sines of x, 2 x; and of cos x
    assert calls(one_after_the_other) == (2, 1)  # a sine by itself is written in its place


def calls(function):
    """How many calls the text of a function has, and how many functions are called."""
    program = translate(lambda _, x: function(x), 0.0, jax.ShapeDtypeStruct((3,), float))
    w = LlvmWriter(1)
    made = map_text(w, program, "map").count("call void @function")
    return made, sum(name.startswith("function") for name in w.routines)
