"""A scalar program on the rows of arrays, as columns: machine code that reads rows as others leave them."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence

from noslip.engine.backends.llvm_dense import counting
from noslip.engine.backends.llvm_text import LlvmWriter
from noslip.engine.backends.native import NativeFunction, function_of
from noslip.engine.program import Program


def columns_function(program: Program, width: int, sizes: Sequence[int]) -> NativeFunction:
    """call(fixed, out, rows, stride, *values): the program on each row of some arrays, with `sizes` numbers
    of each, `width` rows at a time. What is fixed is there once; output k of row i goes to out[k][i], so that
    a column lies together. All numbers are floats. A column may take up to `width` - 1 more places."""
    w = LlvmWriter(width)
    pointers = [f"%values{k}" for k in range(len(sizes))]
    fixed = [_numbers(w, [_place(w, "%fixed", str(k))] * width) for k in range(program.fixed)]
    prepared = w.prepare(program, fixed)
    last, more = w.emit("sub i64 %rows, 1"), w.emit(f"add i64 %rows, {width - 1}")
    with counting(w, "0", w.emit(f"sdiv i64 {more}, {width}")) as group:
        first = w.emit(f"mul i64 {group}, {width}")
        rows = [_least(w, w.emit(f"add i64 {first}, {k}"), last) for k in range(width)]
        names = list(fixed)
        for pointer, size in zip(pointers, sizes, strict=True):
            starts = [_place(w, pointer, w.emit(f"mul i64 {row}, {size}")) for row in rows]
            names += [_numbers(w, [_place(w, start, str(k)) for start in starts]) for k in range(size)]
        out = _place(w, "%out", first)
        for k, value in enumerate(w.inline(program, names, prepared)):
            place = _place(w, out, w.emit(f"mul i64 %stride, {k}"))
            w.line(f"store {w.type('f')} {value}, ptr {place}, align 8")
    w.line("ret void")
    arguments = ["ptr noalias %fixed", "ptr noalias %out", "i64 %rows", "i64 %stride"]
    text = w.function(f"void @columns({', '.join([*arguments, *(f'ptr noalias {x}' for x in pointers)])})")
    kinds = [ctypes.c_void_p] * 2 + [ctypes.c_int64] * 2 + [ctypes.c_void_p] * len(sizes)
    return function_of(w, text, "columns", *kinds, well=True)


def _place(w: LlvmWriter, pointer: str, index: str) -> str:
    return w.emit(f"getelementptr i64, ptr {pointer}, i64 {index}")


def _least(w: LlvmWriter, a: str, b: str) -> str:
    return w.emit(f"select i1 {w.emit(f'icmp slt i64 {a}, {b}')}, i64 {a}, i64 {b}")


def _numbers(w: LlvmWriter, places: Sequence[str]) -> str:
    """What lies in these places, one for each lane."""
    numbers = [w.emit(f"load double, ptr {place}, align 8") for place in places]
    if w.lanes == 1:
        return numbers[0]
    together = "poison"
    for k, number in enumerate(numbers):
        together = w.emit(f"insertelement {w.type('f')} {together}, double {number}, i32 {k}")
    return together
