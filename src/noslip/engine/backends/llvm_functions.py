"""Parts of a scalar program as LLVM functions of their own: what is called, and what hardly ever runs.

Both read their inputs from an array %given and write what they make to an array %made.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from noslip.engine.backends.paired import Pair
from noslip.engine.program import UNUSED, Called, Loop, Program, uses, walk

if TYPE_CHECKING:
    from noslip.engine.backends.llvm_text import LlvmWriter

OUTLINED = 3000  # operations from which on a loop that hardly ever runs is a function of its own
SIGNATURE = "void @{}(ptr noalias %given, ptr noalias %made)"


def call(w: LlvmWriter, item: Called) -> None:
    """Call a program, which is written on first use; a short one is written in its place."""
    if item.is_short():
        outer = w.program, w.names
        values = w.inline(item.function, [w.name(a) for a in item.inputs])
        w.program, w.names = outer
        w.names.update(zip(item.results, values, strict=True))
        return
    name, t = _function_of(w, item.function, w.lanes), w.type("f")
    given, made = w.stack("f", len(item.inputs)), w.stack("f", len(item.results))
    for k, a in enumerate(item.inputs):
        place = w.emit(f"getelementptr {t}, ptr {given}, i64 {k}")
        w.line(f"store {t} {w.name(a)}, ptr {place}, align 8")
    w.line(f"call void @{name}(ptr {given}, ptr {made})")
    for k, r in enumerate(item.results):
        place = w.emit(f"getelementptr {t}, ptr {made}, i64 {k}")
        w.names[r] = w.emit(f"load {t}, ptr {place}, align 8")


def call_both(w: LlvmWriter, pair: Pair) -> None:
    """Call a program of numbers in two lanes."""
    count, results = len(pair.first.inputs), len(pair.first.results)
    name = _function_of(w, pair.first.function, 2)
    given, made = w.stack("f", 2 * count), w.stack("f", 2 * results)
    for k, numbers in enumerate(zip(pair.first.inputs, pair.second.inputs, strict=True)):
        lanes = "poison"
        for lane, a in enumerate(numbers):
            lanes = w.emit(f"insertelement <2 x double> {lanes}, double {w.name(a)}, i32 {lane}")
        place = w.emit(f"getelementptr <2 x double>, ptr {given}, i64 {k}")
        w.line(f"store <2 x double> {lanes}, ptr {place}, align 8")
    w.line(f"call void @{name}(ptr {given}, ptr {made})")
    for lane, item in enumerate(pair):
        for k, r in enumerate(item.results):
            place = w.emit(f"getelementptr double, ptr {made}, i64 {2 * k + lane}")
            w.names[r] = w.emit(f"load double, ptr {place}, align 8")


def _function_of(w: LlvmWriter, program: Program, lanes: int) -> str:
    """The name of the module's function that a program of floats is in so many lanes."""
    key = (id(program), lanes)
    if key not in w.functions:
        inner = w.inner(lanes)
        t = inner.type("f")
        places = [inner.emit(f"getelementptr {t}, ptr %given, i64 {k}") for k in range(len(program.inputs))]
        values = inner.inline(program, [inner.emit(f"load {t}, ptr {at}, align 8") for at in places])
        for k, value in enumerate(values):
            place = inner.emit(f"getelementptr {t}, ptr %made, i64 {k}")
            inner.line(f"store {t} {value}, ptr {place}, align 8")
        inner.line("ret void")
        name = inner.fresh("function")
        w.take(inner)
        w.routines[name] = inner.function(f"internal {SIGNATURE.format(name)} noinline")
        w.functions[key] = name
    return w.functions[key]


def of_numbers(w: LlvmWriter, name: str, program: Program) -> str:
    """The module's function of numbers, not of lanes, that a program with one output is."""
    own = f"{name}_of_numbers"
    if own not in w.routines:
        inner, given = w.inner(1), [f"%x{k}" for k in range(len(program.inputs))]
        (value,) = inner.inline(program, given)
        inner.line(f"ret double {value}")
        w.take(inner)
        arguments = ", ".join(f"double {x}" for x in given)
        w.routines[own] = inner.function(f"internal double @{own}({arguments}) noinline")
    return own


def outlined(w: LlvmWriter, loop: Loop) -> None:
    """A loop that hardly ever runs as a function of another module, which is written when it is needed.
    Should that fail, what it makes is no number, and no solve."""
    program, nodes = w.program, w.program.nodes
    items = [loop, *walk(loop.before), *walk(loop.body)]
    used = {a for item in items for a in uses(nodes, item)}
    given = sorted(a for a in used if a in w.names and nodes[a].value is None)
    kept = [(i, r) for i, r in zip(loop.inits, loop.results, strict=True) if r != UNUSED]
    masked = w.mask is not None and w.lanes > 1
    name, yes, leave = w.fresh("rare"), w.fresh("yes"), w.fresh("leave")
    w.rare[name] = lambda outer: _written_outside(outer, name, program, loop, given, masked)
    w.declared.add(f"@{name} = global ptr null")
    enter = w.name(loop.enter)
    if masked:
        enter = w.emit(f"and {w.type('b')} {enter}, {w.mask}")
    inits, origin = [w.name(i) for i, _ in kept], w.label
    w.line(f"br i1 {w.any(enter)}, label %{yes}, label %{leave}")
    w.start(yes)
    at, made = w.stack("i", len(given) + 1), w.stack("i", len(kept))
    for k, a in enumerate(given):
        w.store(at, k, nodes[a].kind, w.name(a))
    if masked:
        assert w.mask is not None
        w.store(at, len(given), "b", w.mask)
    for k in range(len(kept)):
        w.store(made, k, "f", w.literal(math.nan))
    function = w.emit(f"load ptr, ptr @{name}, align 8")
    w.line(f"call void {function}(ptr {at}, ptr {made})")
    outs = [w.load(made, k, nodes[r].kind) for k, (_, r) in enumerate(kept)]
    end = w.label
    w.line(f"br label %{leave}")
    w.start(leave)
    for init, out, (_, r) in zip(inits, outs, kept, strict=True):
        w.names[r] = w.emit(f"phi {w.type(nodes[r].kind)} [ {init}, %{origin} ], [ {out}, %{end} ]")


def _written_outside(
    outer: LlvmWriter, name: str, program: Program, loop: Loop, given: list[int], masked: bool
) -> str:
    """The text of such a function, by a writer of its module."""
    inner, nodes = outer.inner(), program.nodes
    inner.program = program
    inner.names = {a: inner.load("%given", k, nodes[a].kind) for k, a in enumerate(given)}
    if masked:
        inner.mask = inner.load("%given", len(given), "b")
    inner.written(loop)
    results = [r for r in loop.results if r != UNUSED]
    for k, r in enumerate(results):
        inner.store("%made", k, nodes[r].kind, inner.name(r))
    inner.line("ret void")
    outer.take(inner)
    return inner.function(SIGNATURE.format(name))
