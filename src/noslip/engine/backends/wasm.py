"""Scalar programs as WebAssembly: the same LLVM text as for the host, made into a module by LLVM's own back
end. Every operation rounds as on the host, so a page computes the bits of native code.

Memory is a table of 8-byte slots as in `native`, one member to a group. A module comes in two forms, with the
fused multiply-add of relaxed SIMD and without; `fused` is exported, so that whoever runs the first form can
try whether it rounds once.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from noslip.engine import stored
from noslip.engine.backends import wasm_fma
from noslip.engine.backends.llvm_text import LlvmWriter
from noslip.engine.backends.native import LARGE, advance_text, few_passes, map_text, run_passes
from noslip.engine.backends.wasm_object import Linked, linked
from noslip.engine.backends.wasm_twins import in_twins
from noslip.engine.program import Program

FEATURES = "+nontrapping-fptoint,+bulk-memory,+sign-ext,+mutable-globals,+simd128"
RELAXED = ",+relaxed-simd"
OPTIMIZE = 2
PAGE = 65536  # bytes; the unit of memory
FRAME = re.compile(r"alloca \[(\d+) x ", re.ASCII)


@dataclass(frozen=True)
class WasmModule:
    """A module in both forms. Memory up to `free` is taken, by its data and below its stack pointer."""

    relaxed: bytes
    plain: bytes
    free: int


def module_of(
    functions: Mapping[str, Program], loop: tuple[Program, Program] | None = None, inputs: int = 0
) -> WasmModule:
    """A module of functions name(fixed, values, out, groups), as `native.map_function` makes them, and with
    the time loop of (step, save) a function `advance`, as `native.advance_function` makes it."""
    text, names = _text(functions, loop, inputs)
    taken = sum(8 * int(size) + 64 for size in FRAME.findall(text))
    forms = [_linked(wasm_fma.with_fma(text, relaxed), names, relaxed) for relaxed in (True, False)]
    data = max(form.free for form in forms)
    # twice the memory of all functions: one that is written into several others has more than one
    free = -(-(data + 2 * taken + PAGE) // PAGE) * PAGE
    return WasmModule(forms[0].code, forms[1].code, free)


def _text(
    functions: Mapping[str, Program], loop: tuple[Program, Program] | None, inputs: int
) -> tuple[str, list[str]]:
    """LLVM's text of the module, and the names of its functions."""
    whole, texts = LlvmWriter(1), []
    whole.outlines = False  # one module is all there is
    whole.pairs, whole.side_by_side = False, 2  # as many as WebAssembly's vectors hold
    for name, program in functions.items():
        w = whole.inner()
        texts.append(map_text(w, program, name))
        whole.take(w)
    if loop is not None:
        w = whole.inner()
        texts.append(advance_text(w, loop[0], None, loop[1], inputs))
        whole.take(w)
    return whole.module(texts), [*functions, *(["advance"] if loop else [])]


def _linked(text: str, names: list[str], relaxed: bool) -> Linked:
    features = FEATURES + (RELAXED if relaxed else "")
    words = f"wasm {_version()} {features} {OPTIMIZE} pairs by name\n{text}"
    made = linked(stored.code(words, lambda: _compiled(text, features)), [*names, wasm_fma.NAME])
    assert not made.asked, f"the functions {made.asked} are not in the module"
    return made


def _version() -> str:
    import llvmlite

    return llvmlite.__version__


def _compiled(text: str, features: str) -> bytes:
    """The object file of a text."""
    import llvmlite.binding as llvm

    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    target = llvm.Target.from_triple("wasm32-unknown-unknown")
    machine = target.create_target_machine(opt=OPTIMIZE, features=features)
    module = llvm.parse_assembly(text)
    module.triple, module.data_layout = machine.triple, str(machine.target_data)
    options = llvm.create_pipeline_tuning_options(speed_level=OPTIMIZE)
    options.loop_vectorization = False
    options.slp_vectorization = True  # pairs of equal operations: 3 % faster
    passes = llvm.create_pass_builder(machine, options)
    if text.count("\n") > LARGE:
        few_passes(module, passes)
    else:
        run_passes(module, passes)
    if RELAXED in features:
        made = llvm.parse_assembly(in_twins(str(module)))
        made.triple, made.data_layout = module.triple, module.data_layout
        module = made
    return machine.emit_object(module)
