"""Derivatives made on scalar programs against JAX's; functions that programs call, with their bits."""

import dataclasses
import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

from engine.host_device import HostDevice
from engine.test_kernels import assert_same_bits
from noslip import simulate
from noslip.engine import kept, written
from noslip.engine.backends import llvm_functions, native
from noslip.engine.backends.numpy_rows import evaluate
from noslip.engine.program import Called, CannotTranslate, walk
from noslip.engine.translate import lower, sweeps, translate
from noslip.integrators.discrete_gradient import DiscreteGradient
from noslip.integrators.semi_implicit_dla import SemiImplicitDLA
from noslip.numerics import blocks
from noslip.run.many_gpu import GpuMembers
from noslip.run.many_native import NativeMembers
from noslip.run.member import Member, MemberGroup, MemberInputs
from noslip.run.pairing import pairing_of
from noslip.testing.frameless import charged_pair

POINT = (np.array(0.7), np.array([0.4, -0.3]), np.array([0.9, 0.2, -0.6]))
DIRECTIONS = {0: np.array(-0.4), 1: np.array([1.3, 0.5]), 2: np.array([0.2, -0.8, 0.7])}


@dataclasses.dataclass(frozen=True)
class Made:
    """A function with the shape of its value."""

    function: object
    shape: tuple[int, ...]

    def __call__(self, *x):
        return self.function(*x)


def number(c, x, y):
    """Every operation that has a rule, in a value that mixes all arguments."""
    u, w = c * x[0] + y[1] ** 2, jnp.dot(y, y) + x[1] * y[2]
    ordinary = jnp.sin(u) * jnp.exp(0.3 * w) / (2.0 + jnp.cos(w)) + jnp.tanh(u * w) - jnp.sqrt(1.0 + w * w)
    inverse = jnp.arctan2(u, 2.0 + w) + jnp.arcsin(0.3 * u) - jnp.arccos(0.2 * w) + jnp.arctan(u - w)
    hyperbolic = jnp.sinh(0.3 * u) * jnp.cosh(0.2 * w) + jnp.arcsinh(u) + jnp.arctanh(0.2 * w)
    growing = jnp.log(3.0 + u) + jnp.log1p(u * u) + jnp.expm1(0.1 * w) + jnp.exp2(0.3 * u)
    others = jnp.abs(u) * jnp.maximum(w, y[0]) + jnp.minimum(u, x[1]) * y[1] + jnp.mod(5.0 + u, 0.7) * w
    pieces = jnp.where(u > w, u * w**3, jnp.sin(w)) + (2.0 + u) ** 1.7 + jnp.tan(0.2 * u) + jnp.floor(w) * u
    special = jax.scipy.special.erf(0.5 * u) + jax.scipy.special.erfc(w - u) * w + jax.nn.sigmoid(w)
    return ordinary + inverse + hyperbolic + growing + others + pieces + special


def rows(c, x, y):
    return jnp.array([c * jnp.sin(x[0]) * y[0] + x[1] * y[2], y[1] ** 2 * jnp.cos(c * x[1])])


NUMBER, ROWS = Made(number, ()), Made(rows, (2,))


def at_the_point(function):
    """A function of the three arguments by NumPy, from its scalar program."""
    found = evaluate(lambda _, __, *x: function(*x), None, 0.0, *(x[None] for x in POINT))
    return jax.tree.map(lambda x: x[0], found)


def by_jax(function, orders, along=()):
    """JAX's derivatives; the program that evaluates them has no block."""

    def plain(*x):
        directions = [jnp.asarray(DIRECTIONS[i]) for i in along]
        return blocks.plain(*x, *directions, function=function, orders=orders, along=along, lead=0)

    return plain


def by_blocks(function, orders, along=()):
    directions = {i: jnp.asarray(DIRECTIONS[i]) for i in along}
    return lambda *x: blocks.block(function, orders, *x, along=directions)


@pytest.mark.parametrize(
    ("function", "orders", "along"),
    [
        (NUMBER, (), ()),
        (NUMBER, (1,), ()),
        (NUMBER, (0, 2), ()),
        (NUMBER, (2, 2), ()),
        (NUMBER, (1, 2), ()),
        (NUMBER, (1,), (2,)),
        (NUMBER, (2, 2), (1,)),
        (NUMBER, (), (1, 2)),
        (ROWS, (1,), ()),
        (ROWS, (2,), (1,)),
        (ROWS, (1, 2), ()),
    ],
)
def test_a_block_is_what_jax_makes_of_the_function(function, orders, along):
    found = at_the_point(by_blocks(function, orders, along))
    expected = at_the_point(by_jax(function, orders, along))
    assert found.shape == expected.shape
    np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-12)
    assert lower._straight(function, tuple(x.shape for x in POINT)), "made on the nodes, not by JAX"


@pytest.mark.parametrize("function", [NUMBER, ROWS])
def test_derivatives_of_blocks_are_those_of_jax_however_they_are_taken(function):
    """Forward, reverse and mapped, three orders deep."""

    def twisted(made, c, x, y):
        inner = jax.jacfwd(lambda x: made(function, (1,))(c, x, y))(x)
        mapped = jax.vmap(lambda s: made(function, ())(c, x, s * y))(jnp.arange(1.0, 4.0))
        return jnp.sum(jnp.sin(inner)) + jnp.sum(mapped)

    inside, expected = (
        at_the_point(jax.grad(functools.partial(twisted, made), (0, 1, 2))) for made in (by_blocks, by_jax)
    )
    for a, b in zip(inside, expected, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-10, atol=1e-11)


def test_outside_of_scalar_programs_a_block_is_differentiated_and_mapped_as_well():
    def twisted(c, x, y):
        inner = jax.vmap(lambda s: blocks.block(ROWS, (1,), c, s * x, y))(jnp.arange(1.0, 3.0))
        return jnp.sum(jnp.sin(inner))

    value, slopes = jax.jit(jax.value_and_grad(twisted, (0, 1, 2)))(*POINT)
    expected = at_the_point(jax.value_and_grad(twisted, (0, 1, 2)))
    np.testing.assert_allclose(value, expected[0], rtol=1e-13)
    for a, b in zip(slopes, expected[1], strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-11, atol=1e-12)


def test_a_function_with_a_loop_is_differentiated_by_jax():
    """The one place that decides falls back: a loop too long to be written out has no derivative here."""

    def bent(c, x, y):
        return lax.fori_loop(0, 700, lambda k, s: s + 1e-3 * jnp.sin(s * y[0]), x[0]) * y[1] ** 2 * c

    function = Made(bent, ())
    for orders in ((), (2,), (1, 2)):
        found, expected = (at_the_point(made(function, orders)) for made in (by_blocks, by_jax))
        np.testing.assert_allclose(found, expected, rtol=1e-13)
    with pytest.raises(CannotTranslate, match="loops"):
        lower._straight(function, tuple(x.shape for x in POINT))


@pytest.fixture
def everything_called(monkeypatch):
    """As if every program were large: blocks are called, rare loops live elsewhere, few passes run."""
    monkeypatch.setattr(sweeps, "CALLED", 1)
    monkeypatch.setattr(llvm_functions, "OUTLINED", 0)
    monkeypatch.setattr(native, "LARGE", 0)
    kept.forget()
    yield
    kept.forget()


@pytest.mark.parametrize(
    "method", [SemiImplicitDLA(), pytest.param(DiscreteGradient(), marks=pytest.mark.slow)]
)
def test_large_programs_have_the_same_bits_alone_in_lanes_and_in_kernels(method, everything_called):
    """With steps so long that some members need Newton's method, which is in a module of its own."""
    system, q, v = charged_pair()
    count, h, steps = 9, 1.2, 4
    v0s = np.linspace(0.2, 2.0, count)[:, None] * np.asarray(v)
    inputs = MemberInputs(system, MemberGroup(np.tile(q, (count, 1)), v0s, {}, count), h, 0.0)
    programs = pairing_of(system, method).programs
    assert any(isinstance(item, Called) for item in walk(programs.step.main))
    lanes = NativeMembers(Member(method, ()), inputs, 1)
    kernels = GpuMembers(Member(method, ()), inputs, [HostDevice()])
    assert lanes.to(steps) == kernels.to(steps) == steps
    assert_same_bits(kernels.final(), lanes.final())
    assert kernels.shares[0].count.get((1,))[0] > 0, "some member must need Newton's method"
    rows = lanes.row()
    for k in range(count):
        run = simulate(
            system,
            method,
            q,
            v0s[k],
            step_size=h,
            steps=steps,
            save_every=steps,
            backend="native",
            throw=False,
        )
        if run.success:
            np.testing.assert_array_equal(run.v[-1], rows.v[k])
            np.testing.assert_array_equal(run.multipliers[-1], rows.multipliers[k])


def test_a_called_block_is_written_once(everything_called):
    """Two calls of one function in the text, and an argument that is a known number makes another one."""

    def twice(_, x):
        at = [blocks.block(NUMBER, (2, 2), jnp.asarray(0.7), y[:2], y) for y in (x, x + 1.0)]
        return at[0] + at[1] + blocks.block(NUMBER, (2, 2), x[0], x[:2], x)

    program = translate(twice, 0.0, jax.ShapeDtypeStruct((3,), float))
    called = [id(item.function) for item in walk(program.main) if isinstance(item, Called)]
    assert len(called) == 3
    assert len(set(called)) == 2
    again = written.from_bytes(written.to_bytes(program))
    assert written.to_bytes(again) == written.to_bytes(program)
    other = written.from_bytes(written.to_bytes(program))  # programs that were read share what they call
    read = [{id(item.function) for item in walk(x.main) if isinstance(item, Called)} for x in (again, other)]
    assert read[0] == read[1]
    outs, x = np.empty((2, 9)), np.array([0.3, 0.5, -0.2])
    for made, out in zip((program, again), outs, strict=True):
        native.map_function(made, 1)(np.zeros(1), x, out, 1)
    np.testing.assert_array_equal(*outs)


def test_functions_called_at_the_same_angles_share_their_sines(everything_called):
    """Each is computed once, by the caller; that of a sum of angles by each function."""
    turned = Made(lambda x: jnp.sin(x[0]) * jnp.cos(x[1]) * jnp.exp(x[2]) * jnp.sin(x[0] + x[1]), ())

    def three(_, x):
        along = {0: jnp.ones(3)}
        made = [blocks.block(turned, (0, 0), y) for y in (x, x + 1.0)]
        return *made, blocks.block(turned, (0, 0), x, along=along)

    program = translate(three, 0.0, jax.ShapeDtypeStruct((3,), float))
    called = [item.function for item in walk(program.main) if isinstance(item, Called)]
    own, *further = {id(function): function for function in called}.values()
    assert called.count(own) == 4
    sines = [sum(node.op == "libm:sin" for node in x.nodes) for x in (program, own, *further)]
    assert sines == [0, 1, 1, 1]
