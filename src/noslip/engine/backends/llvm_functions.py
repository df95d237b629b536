"""Parts of a scalar program as LLVM functions of their own: what is called, and what hardly ever runs.

Both read their inputs from an array %given and write what they make to an array %made.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from noslip.engine.program import UNUSED, Called, Loop, Program, uses, walk

if TYPE_CHECKING:
    from noslip.engine.backends.llvm_text import LlvmWriter

OUTLINED = 3000  # operations from which on a loop that hardly ever runs is a function of its own
SIGNATURE = "void @{}(ptr noalias %given, ptr noalias %made)"


def call(w: LlvmWriter, item: Called) -> None:
    """Call a program, which is written on first use."""
    name, t = _function_of(w, item.function), w.type("f")
    given, made = w.stack("f", len(item.inputs)), w.stack("f", len(item.results))
    for k, a in enumerate(item.inputs):
        place = w.emit(f"getelementptr {t}, ptr {given}, i64 {k}")
        w.line(f"store {t} {w.name(a)}, ptr {place}, align 8")
    w.line(f"call void @{name}(ptr {given}, ptr {made})")
    for k, r in enumerate(item.results):
        place = w.emit(f"getelementptr {t}, ptr {made}, i64 {k}")
        w.names[r] = w.emit(f"load {t}, ptr {place}, align 8")


def _function_of(w: LlvmWriter, program: Program) -> str:
    """The name of the module's function that a program of floats is."""
    if id(program) not in w.functions:
        inner, t = w.inner(), w.type("f")
        places = [inner.emit(f"getelementptr {t}, ptr %given, i64 {k}") for k in range(len(program.inputs))]
        values = inner.inline(program, [inner.emit(f"load {t}, ptr {at}, align 8") for at in places])
        for k, value in enumerate(values):
            place = inner.emit(f"getelementptr {t}, ptr %made, i64 {k}")
            inner.line(f"store {t} {value}, ptr {place}, align 8")
        inner.line("ret void")
        name = inner.fresh("function")
        w.take(inner)
        w.routines[name] = inner.function(f"internal {SIGNATURE.format(name)} noinline")
        w.functions[id(program)] = name
    return w.functions[id(program)]


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
    """A loop that hardly ever runs as a function of another module, on which LLVM spends no effort."""
    nodes, masked = w.program.nodes, w.mask is not None and w.lanes > 1
    items = [loop, *walk(loop.before), *walk(loop.body)]
    used = {a for item in items for a in uses(nodes, item)}
    given = sorted(a for a in used if a in w.names and nodes[a].value is None)
    results = [r for r in loop.results if r != UNUSED]
    if w.rarely is None:
        w.rarely = w.inner()
        w.rarely.functions, w.rarely.outlines = {}, False
    w.rarely.used = w.used
    inner = w.rarely.inner()
    inner.program = w.program
    inner.names = {a: inner.load("%given", k, nodes[a].kind) for k, a in enumerate(given)}
    if masked:
        inner.mask = inner.load("%given", len(given), "b")
    inner.written(loop)
    for k, r in enumerate(results):
        inner.store("%made", k, nodes[r].kind, inner.name(r))
    inner.line("ret void")
    name = inner.fresh("rare")
    w.rarely.take(inner)
    w.used = inner.used
    w.rarely.outside.append(inner.function(SIGNATURE.format(name)))
    w.declared.add(f"declare void @{name}(ptr, ptr)")
    at, made = w.stack("i", len(given) + 1), w.stack("i", len(results))
    for k, a in enumerate(given):
        w.store(at, k, nodes[a].kind, w.name(a))
    if masked:
        assert w.mask is not None
        w.store(at, len(given), "b", w.mask)
    w.line(f"call void @{name}(ptr {at}, ptr {made})")
    for k, r in enumerate(results):
        w.names[r] = w.load(made, k, nodes[r].kind)
