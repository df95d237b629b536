"""WebAssembly has the bits of native code: its multiply-add against fractions, its runs against native."""

import ctypes
import functools
import itertools
import math
import re
from fractions import Fraction

import numpy as np
import pytest

from benchmarks.in_node import NODE, in_node, module_task, native_row, run_task, text
from noslip import System, integrators, systems
from noslip.engine.backends import native, wasm, wasm_fma, wasm_object, wasm_twins
from noslip.engine.backends.llvm_dense import ROUTINES, spacing
from noslip.engine.backends.llvm_text import LlvmWriter
from noslip.engine.program import CannotTranslate
from noslip.engine.translate import translate
from noslip.run.pairing import pairing_of

needs_node = pytest.mark.skipif(NODE is None, reason="node, which runs WebAssembly, is not installed")
TINY, LEAST, LARGEST = 5e-324, 2.0**-1022, 1.7976931348623157e308
SPECIAL = [
    0.0, TINY, 3 * TINY, LEAST - TINY, LEAST, LEAST + TINY, 2.0**-537, 1.5 * 2.0**-538, 2.0**-450, 2.0**-451,
    1 - 2.0**-53, 1.0, 1 + 2.0**-52, 1 + 2.0**-26, 3.0, 2.0**451, 2.0**511 * 1.5, 2.0**960, 2.0**961,
    LARGEST / 2, LARGEST, 2.0**-1074 * 2**27, 2.0**53 + 2, 2.0**-53,
    2.0**-900, 1.25 * 2.0**994, 2.0**995,
]  # fmt: skip
LOOP = """
define void @many(ptr %given, ptr %made, i64 %n) {
entry:
  br label %body
body:
  %k = phi i64 [ 0, %entry ], [ %k1, %body ]
  %at = mul i64 %k, 3
  %pa = getelementptr double, ptr %given, i64 %at
  %pb = getelementptr double, ptr %pa, i64 1
  %pc = getelementptr double, ptr %pa, i64 2
  %a = load double, ptr %pa
  %b = load double, ptr %pb
  %c = load double, ptr %pc
  %x = call double @fused(double %a, double %b, double %c)
  %px = getelementptr double, ptr %made, i64 %k
  store double %x, ptr %px
  %k1 = add i64 %k, 1
  %more = icmp slt i64 %k1, %n
  br i1 %more, label %body, label %leave
leave:
  ret void
}
"""


def exact(a: float, b: float, c: float) -> float:
    """a b + c of finite numbers, rounded once: Python divides whole numbers so."""
    total = Fraction(a) * Fraction(b) + Fraction(c)
    if total == 0:
        return a * b + c if a == 0 or b == 0 else 0.0
    try:
        return total.numerator / total.denominator
    except OverflowError:
        return math.inf if total > 0 else -math.inf


def special() -> np.ndarray:
    """Every three of the special numbers, of both signs where it matters."""
    signed = [(a, b, s * c) for a, b, c in itertools.product(SPECIAL, repeat=3) for s in (1.0, -1.0)]
    signs = [(s * a, t * b, u * c) for a, b, c in itertools.product(SPECIAL[:3], repeat=3)
             for s, t, u in itertools.product((1.0, -1.0), repeat=3)]  # fmt: skip
    return np.array(signed + signs)


def random(count: int, seed: int) -> np.ndarray:
    """Any finite numbers, and sums that nearly cancel or that lie near a tie of two roundings."""
    rng = np.random.default_rng(seed)

    def of_exponents(low: int, high: int) -> np.ndarray:
        sizes = np.ldexp(rng.uniform(1, 2, count), rng.integers(low, high, count))
        return sizes * rng.choice([-1.0, 1.0], count)

    far = np.array([of_exponents(-1074, 1024) for _ in range(3)]).T
    a, b = of_exponents(-560, 520), of_exponents(-560, 500)
    with np.errstate(over="ignore"):
        near = np.clip(-(a * b), -LARGEST, LARGEST)
        shifted = np.clip(near * np.ldexp(1.0, rng.integers(-108, 108, count)), -LARGEST, LARGEST)
    cancelling, close = (np.array([a, b, c]).T for c in (near, shifted))
    rough = np.array([np.rint(16 * x) for x in rng.uniform(-1, 1, (3, count))]).T
    ties = rough * np.array([1.0, 2.0**52, 2.0**-3])
    return np.concatenate([far, cancelling, close, ties])


def soft(triples: np.ndarray) -> np.ndarray:
    """The plain form of the multiply-add, as machine code of the host."""
    call = _many()
    made = np.empty(len(triples))
    call(np.ascontiguousarray(triples), made, len(triples))
    return made


@functools.cache
def _many() -> native.NativeFunction:
    module = native.Module(wasm_fma.with_fma(LOOP, relaxed=False))
    return module.function("many", ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64)


def same_bits(made: np.ndarray, wanted: np.ndarray) -> bool:
    return np.array_equal(made.view(np.int64), np.asarray(wanted).view(np.int64))


def held_to_fractions(triples: np.ndarray) -> None:
    wanted = np.array([exact(*row) for row in triples.tolist()])
    wrong = soft(triples).view(np.int64) != wanted.view(np.int64)
    assert not wrong.any(), (triples[wrong][0].tolist(), soft(triples)[wrong][0], wanted[wrong][0])


def test_the_plain_multiply_add_is_that_of_fractions():
    held_to_fractions(special()[::7])
    held_to_fractions(random(1500, seed=0))


@pytest.mark.slow
def test_the_plain_multiply_add_is_that_of_fractions_for_a_million_arguments():
    held_to_fractions(special())
    for seed in range(10):
        held_to_fractions(random(25_000, seed))


def test_what_is_not_finite_goes_through_the_multiply_add_as_ieee_says():
    inf, nan = math.inf, math.nan
    given = [(inf, 2.0, 1.0), (-inf, 2.0, 1.0), (inf, 0.0, 1.0), (inf, 1.0, -inf), (LARGEST, LARGEST, -inf),
             (2.0, 3.0, inf), (nan, 1., 1.), (1., nan, 1.), (1.0, 1.0, nan), (0.0, 5.0, -inf)]  # fmt: skip
    wanted = [inf, -inf, nan, nan, -inf, inf, nan, nan, nan, -inf]
    np.testing.assert_array_equal(soft(np.array(given)), wanted)


def _module() -> wasm.WasmModule:
    """A module without a loop."""
    double = translate(lambda fixed, x: 2.0 * x, (), np.float64(0))
    return wasm.module_of({"double": double})


@needs_node
@pytest.mark.parametrize("plainly", [True, False], ids=["plain", "relaxed"])
def test_the_multiply_add_of_node_is_that_of_the_host(plainly):
    triples = np.concatenate([special()[::3], random(2000, seed=1)])
    (answer,) = in_node([{**module_task(_module(), plainly), "triples": text(triples)}])
    assert same_bits(answer["made"], soft(triples))
    assert not plainly or answer["form"] == "plain"


def pairs(systems_of: list[str], methods: list[str]) -> list[tuple]:
    """Those with native code."""
    found = []
    for name, method in itertools.product(systems_of, methods):
        module, chosen = systems.find(name), integrators.parse(method)
        if chosen.host_driven:
            continue
        pairing = pairing_of(module.system(), chosen)
        q, v = module.typical_state()
        if pairing.refusal or pairing.refusal_near(np.asarray(q, float), np.asarray(v, float)):
            continue
        try:
            _ = pairing.programs
        except CannotTranslate:
            continue
        found.append((pairing.system, chosen, q, v))
    return found


def held_to_native(found: list[tuple], steps: int) -> None:
    """Both forms of each."""
    tasks = [run_task(*pair, 0.05, steps) for pair in found]
    answers = in_node([*tasks, *({**task, "plainly": True} for task in tasks)])
    for pair, *both in zip(found, answers[: len(found)], answers[len(found) :], strict=True):
        wanted = native_row(*pair, 0.05, steps)
        for answer in both:
            assert same_bits(answer["made"], wanted), (pair[1], answer["form"])


def eliminated(routine: str, size: tuple[int, ...], table: np.ndarray, at_once: int) -> np.ndarray:
    """What a routine of linear algebra makes of a table, as machine code of the host."""
    w = LlvmWriter(1)
    w.side_by_side = at_once
    ROUTINES[routine](w, *size)
    w.line("ret void")
    text = w.module([w.function("void @dense(ptr noalias %array)")])
    assert (f"<{at_once} x double>" in text) == (1 < at_once <= table.shape[1])
    made = np.zeros((len(table), spacing(w, table.shape[1])))
    made[:, : table.shape[1]] = table
    native.Module(text).function("dense", ctypes.c_void_p)(made)
    return made[:, : table.shape[1]].copy()


@pytest.mark.parametrize("n", [1, 2, 7, 8, 33])
def test_several_columns_at_once_have_the_bits_of_one(n):
    rng = np.random.default_rng(n)
    A, B = rng.normal(size=(n, n)), rng.normal(size=(n, 3))
    A[0, 0] = 0.0 if n > 1 else 2.0  # another row is the pivot
    inverses = [eliminated("inverse", (n, n), A, at_once) for at_once in (1, 2, 4)]
    assert same_bits(inverses[0], inverses[1])
    assert same_bits(inverses[0], inverses[2])
    np.testing.assert_allclose(inverses[0] @ A, np.eye(n), atol=1e-10)
    tables = [eliminated("solve", (n, 3, n + 3), np.hstack([A, B]), at_once) for at_once in (1, 2, 4)]
    assert same_bits(tables[0], tables[1])
    assert same_bits(tables[0], tables[2])
    np.testing.assert_allclose(tables[0][:, n:], np.linalg.solve(A, B), rtol=1e-9, atol=1e-10)


MIXED = """
declare <2 x double> @multiply_add_pair(<2 x double>, <2 x double>, <2 x double>)
declare double @multiply_add(double, double, double)
declare double @llvm.fabs.f64(double)
declare double @llvm.sqrt.f64(double)
define double @twice(double %a, i1 %c) noinline {
entry:
  br i1 %c, label %one, label %two
one:
  %m = fmul double %a, 3.000000e+00
  br label %two
two:
  %p = phi double [ %a, %entry ], [ %m, %one ]
  %s = fadd double %p, %a
  ret double %s
}
define void @mixed(ptr %given, ptr %made) {
entry:
  %a = load double, ptr %given
  %pb = getelementptr double, ptr %given, i64 1
  %b = load double, ptr %pb
  %n = fneg double %a
  %p = fmul double %b, 2.500000e+00
  %d = fsub double %p, %n
  %s.1 = fmul double %d, %n
  %x = insertelement <2 x double> poison, double %d, i64 0
  %y = insertelement <2 x double> %x, double %a, i64 1
  %z = call <2 x double> @multiply_add_pair(<2 x double> %x, <2 x double> %y, <2 x double> %x)
  %w = extractelement <2 x double> %z, i64 0
  %w1 = extractelement <2 x double> %y, i64 1
  %q = fdiv double %w, %d
  %size = tail call double @llvm.fabs.f64(double %q)
  %root = call double @llvm.sqrt.f64(double %size)
  %more = call double @multiply_add(double %root, double %w1, double -0.000000e+00)
  %four = load <4 x double>, ptr %given, align 8
  %wide = fadd <4 x double> %four, %four
  %third = extractelement <4 x double> %wide, i64 2
  %bits = bitcast double %third to i64
  %whole = lshr i64 %bits, 1
  %odd = and i64 %bits, 1
  %even = icmp eq i64 %odd, 0
  %sign = select i1 %even, i64 0, i64 -9223372036854775808
  %with = select i1 %even, i64 %whole, i64 %odd
  %signed = xor i64 %with, %bits
  %back = bitcast i64 %signed to double
  %less = fcmp olt double %q, %n
  %least = select i1 %less, double %q, double %n
  %called = call double @twice(double %least, i1 %less)
  br i1 %less, label %below, label %join
below:
  %e = fsub double 1.000000e+00, %w
  br label %join
join:
  %r = phi double [ %q, %entry ], [ %e, %below ]
  %r2 = phi double [ 2.500000e+00, %entry ], [ %b, %below ]
  %s = fadd double %r, %r2
  %u = fsub double %s, %s.1
  store double %u, ptr %made
  %p1 = getelementptr double, ptr %made, i64 1
  store double %more, ptr %p1
  %p2 = getelementptr double, ptr %made, i64 2
  store double %back, ptr %p2
  %p3 = getelementptr double, ptr %made, i64 3
  store double %called, ptr %p3
  %p4 = getelementptr double, ptr %made, i64 4
  store <4 x double> %wide, ptr %p4, align 8
  ret void
}
"""


def of_llvm(text: str) -> str:
    """With LLVM's own multiply-adds."""
    return text.replace(wasm_fma.TWO + "(", "llvm.fma.v2f64(").replace(wasm_fma.ONE + "(", "llvm.fma.f64(")


def test_numbers_as_vectors_of_two_have_the_same_bits():
    twins = wasm_twins.in_twins(MIXED, multiply_add="llvm.fma.v2f64")
    mixed = twins.partition("define void @mixed")[2]
    assert not re.search(r"= (f(neg|add|sub|mul|div)|phi|select i1 %\w+,|call) double (?!@twice)", mixed)
    assert not re.search(r"= (and|xor|lshr) i64|= bitcast (double|i64)", mixed)
    assert not re.search("multiply_add", twins)
    assert "insertelement <2 x double> poison, double %d" not in twins
    calls = [
        native.Module(text).function("mixed", ctypes.c_void_p, ctypes.c_void_p)
        for text in (of_llvm(MIXED), twins)
    ]
    made = np.empty((2, 8))
    for given in np.random.default_rng(3).normal(size=(50, 4)):
        for call, out in zip(calls, made, strict=True):
            call(given, out)
        assert same_bits(made[0], made[1])


@needs_node
def test_runs_in_node_end_in_the_bits_of_native_runs():
    found = pairs(["chaplygin_sleigh"], ["SemiImplicitDLA()", "RungeKutta4()", "LobattoSpark()"])
    assert len(found) == 3
    held_to_native(found, 2000)


@needs_node
@pytest.mark.slow
@pytest.mark.matrix
@pytest.mark.parametrize("method", ["SemiImplicitDLA()", "DiscreteGradient()", "RungeKutta4()"])
@pytest.mark.parametrize("name", systems.names())
def test_the_methods_of_a_page_end_in_the_bits_of_native_runs_on_every_system(name, method):
    if not (found := pairs([name], [method])):
        pytest.skip("it has no native code")
    held_to_native(found, 2000)


@needs_node
@pytest.mark.all_pairs
@pytest.mark.parametrize("name", systems.names())
def test_every_method_with_native_code_ends_in_its_bits_in_node(name):
    found = pairs([name], [f"{method}()" for method in integrators.discover()])
    assert found
    held_to_native(found, 2000)


@needs_node
def test_a_multiply_add_of_constants_that_llvm_finds_is_rounded_once():
    """In a loop over a table, when it is written out."""
    import jax.numpy as jnp
    from jax import lax

    def lagrangian(q, v, p):
        def turn(total, node):
            w = lax.fori_loop(0, 60, lambda k, w: (w + node) * (1.5 / (w + 1.5)), node)
            return total + w * node + w * q[0] ** 2 * q[1], None

        return v @ v / 2 - 0.1 * lax.scan(turn, q[1], jnp.linspace(0.1, 0.9, 5))[0] ** 2

    def one_forms(q, p):
        return jnp.array([[jnp.sin(q[2]), -jnp.cos(q[2]), 0.0]])

    system = System(lagrangian, one_forms=one_forms, coordinates=("x", "y", "a"))
    v = np.asarray(system.project_velocity([0.3, 0.2, 0.5], [0.4, 0.3, 1.0]))
    methods = ("RungeKutta4()", "SemiImplicitDLA()", "LobattoSpark()")
    held_to_native([(system, integrators.parse(text), [0.3, 0.2, 0.5], v) for text in methods], 500)


@pytest.mark.parametrize("count", range(2, 10))
def test_any_number_of_equal_multiply_adds_becomes_pairs(count):
    program = translate(lambda fixed, x: 0.3 * x[:count][::-1] + x[count:], (), np.zeros(2 * count))
    assert wasm.module_of({"affine": program}).relaxed.startswith(b"\0asm")


@needs_node
def test_functions_of_the_library_and_huge_angles_have_the_bits_of_native_code():
    import jax.numpy as jnp
    from jax.scipy.special import erf, erfc

    def lagrangian(q, v, p):
        well = jnp.sin(1e12 * q[0]) * 1e-13 + jnp.arctan2(q[1], 2.0 + q[0]) + jnp.cosh(0.3 * q[1])
        well = well + erf(q[0]) * erfc(2 * q[1]) / 5
        return (1 + 0.1 * jnp.tanh(q[0])) * v @ v / 2 - well - (1 + q[0] ** 2) ** p["a"] - jnp.exp(-q[1])

    def one_forms(q, p):
        return jnp.array([[jnp.sin(q[2]), -jnp.cos(q[2]), 0.1]])

    system = System(lagrangian, one_forms=one_forms, coordinates=("x", "y", "a"), parameters={"a": 0.7})
    method = integrators.parse("RungeKutta4()")
    v = np.asarray(system.project_velocity([0.3, 0.2, 0.5], [0.4, 0.3, 1.0]))
    held_to_native([(system, method, [0.3, 0.2, 0.5], v)], 500)


def test_numbers_of_any_size_are_written_as_they_are_read():
    for value in (0, 1, 127, 128, 16383, 16384, 2**32 - 1):
        assert wasm_object._Reader(wasm_object.number(value)).number() == value
