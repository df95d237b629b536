"""Scalar programs compiled for the host by LLVM and called outside the interpreter's lock.

Memory is a table of 8-byte slots, [group][slot][lane]: whole numbers and truths are stored as int64.
"""

from __future__ import annotations

import ctypes
import functools
from typing import TYPE_CHECKING

from noslip.engine import stored
from noslip.engine.backends.improved import ImprovedFunction, NativeFunction
from noslip.engine.backends.llvm_dense import counting
from noslip.engine.backends.llvm_text import LlvmWriter, rare_module
from noslip.engine.backends.rarely import Rarely
from noslip.engine.program import Program
from noslip.engine.usual import usual_first

if TYPE_CHECKING:
    from llvmlite.binding import ModuleRef, TargetMachine
    from llvmlite.binding.newpassmanagers import PassBuilder
    from llvmlite.binding.object_file import ObjectFileRef

Type = type[ctypes._SimpleCData]
LARGE = 8000  # lines of text from which on the standard passes take longer than they gain
PASSES = ("sroa", "loop_simplify", "lcssa", "loop_rotate", "loop_unroll", "simplify_cfg")  # the most useful
LONG = 20_000  # lines from which on LLVM's quick choice of instructions is anything but quick
OPTIMIZE = 1  # the programs come simplified: more passes take twice as long and gain nothing (measured)


@functools.cache
def features() -> dict[str, bool]:
    """What the host's processor can do, in LLVM's words."""
    import llvmlite.binding as llvm

    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    return llvm.get_host_cpu_features()


def _machine(optimize: int) -> TargetMachine:
    """A code generator for the host; each module takes one for itself."""
    import llvmlite.binding as llvm

    target = llvm.Target.from_triple(llvm.get_process_triple())
    flags = features().flatten()  # type: ignore[attr-defined]
    return target.create_target_machine(cpu=llvm.get_host_cpu_name(), features=flags, opt=optimize, jit=True)


@functools.cache
def lanes() -> int:
    """Doubles in one vector register of this machine."""
    return 8 if features().get("avx512f") else 4 if features().get("avx") else 2


@functools.cache
def _find_library_functions() -> None:
    """Tell LLVM where the C library's functions are that it calls where the processor has no instruction."""
    import llvmlite.binding as llvm

    places = (None, "libm.so.6")
    for place in places:
        try:
            library = ctypes.CDLL(place)
        except (OSError, TypeError):
            continue
        for name in ("fma", "floor", "ceil", "rint", "memset", "memcpy"):
            if hasattr(library, name):
                llvm.add_symbol(name, ctypes.cast(getattr(library, name), ctypes.c_void_p).value)


def run_passes(module: ModuleRef, passes: PassBuilder) -> None:
    """The usual passes. llvmlite never frees their manager by itself: 0.1 MB and more for each module."""
    from llvmlite.binding.newpassmanagers import NewPassManager

    manager = passes.getModulePassManager()
    manager.run(module, passes)
    NewPassManager._dispose(manager)
    manager.detach()


def few_passes(module: ModuleRef, passes: PassBuilder) -> None:
    """The most useful passes, for large modules."""
    import llvmlite.binding as llvm

    few = llvm.create_new_function_pass_manager()
    for name in PASSES:
        getattr(few, f"add_{name}_pass")()
    for function in module.functions:
        if not function.is_declaration:
            few.run(function, passes)


def _surroundings() -> str:
    """What decides the machine code of a text."""
    import llvmlite
    import llvmlite.binding as llvm

    flags = features().flatten()  # type: ignore[attr-defined]
    return f"{llvmlite.__version__} {llvm.get_process_triple()} {llvm.get_host_cpu_name()} {flags}"


def _machine_code(text: str, quickly: bool) -> ObjectFileRef:
    """Optimised, or `quickly` as it stands: four times as fast to make and half as fast to run. The bits of
    results do not depend on it."""
    import llvmlite.binding as llvm

    code = stored.code(_words(text, quickly), lambda: _compiled(text, quickly))
    return llvm.object_file.ObjectFileRef.from_data(code)


def _words(text: str, quickly: bool) -> str:
    """What machine code is made from."""
    return f"code {_surroundings()} {'quickly' if quickly else OPTIMIZE}\n{text}"


@functools.cache
def _choose_instructions_by_blocks() -> None:
    """LLVM's quick choice of instructions, one by one, takes a time that grows as the square of a block that
    reads many numbers: 27 s where the usual choice takes 1 s. The option is one of the process: from here on
    small programs that are made quickly take a third longer; bits and optimised code do not depend on it."""
    import llvmlite.binding as llvm

    llvm.set_option("noslip", "-fast-isel=false")


def _compiled(text: str, quickly: bool) -> bytes:
    import llvmlite.binding as llvm

    if quickly and text.count("\n") > LONG:
        _choose_instructions_by_blocks()
    machine = _machine(0 if quickly else OPTIMIZE)
    module = llvm.parse_assembly(text)
    module.triple, module.data_layout = machine.triple, str(machine.target_data)
    options = llvm.create_pipeline_tuning_options(speed_level=OPTIMIZE)
    options.slp_vectorization = options.loop_vectorization = False  # lanes are written out already
    passes = llvm.create_pass_builder(machine, options)
    if not quickly and text.count("\n") > LARGE:
        few_passes(module, passes)
    elif not quickly:
        run_passes(module, passes)
    return machine.emit_object(module)


class Module:
    """Machine code of some functions, made well or `quickly`; alive as long as the object. What it calls of
    `rare` hardly ever runs."""

    def __init__(self, text: str, rare: Rarely | None = None, quickly: bool = False):
        import llvmlite.binding as llvm

        features()
        _find_library_functions()
        # only the machine code is kept: an engine that owns the IR holds some ten megabytes per program
        self.engine = llvm.create_mcjit_compiler(llvm.parse_assembly(""), _machine(OPTIMIZE))
        self.engine.add_object_file(_machine_code(text, quickly))
        self.engine.finalize_object()
        if rare is not None:
            self.entrances = rare.entered_at([self.engine.get_global_value_address(x) for x in rare.names])

    def function(self, name: str, *types: Type) -> NativeFunction:
        call = ctypes.CFUNCTYPE(None, *types)(self.engine.get_function_address(name))
        return NativeFunction(call, self)


def function_of(w: LlvmWriter, text: str, name: str, *types: Type, well: bool = False) -> NativeFunction:
    """The function of this text in a module with what it needs. In lanes it is made `well` at once: many
    members take their time, and code made quickly much of the stack."""
    whole, lanes, seldom = w.module([text]), w.lanes, w.rare
    rare = Rarely(list(seldom), lambda: Module(rare_module(lanes, seldom), quickly=True)) if seldom else None
    if well or w.lanes > 1 or stored.has(_words(whole, False)):
        return Module(whole, rare).function(name, *types)
    return ImprovedFunction(whole, lambda text, quickly: Module(text, rare, quickly).function(name, *types))


def map_function(program: Program, width: int) -> NativeFunction:
    """call(fixed, values, out, groups): the program on each group of lanes."""
    w = LlvmWriter(width)
    text = map_text(w, program, "map")
    return function_of(w, text, "map", *[ctypes.c_void_p] * 3, ctypes.c_int64)


def map_text(w: LlvmWriter, program: Program, name: str) -> str:
    """The text of `map_function`'s function, by a new writer of the module."""
    kinds = [program.nodes[i].kind for i in program.inputs]
    outs = [program.nodes[o].kind for o in program.outputs]
    with counting(w, "0", "%groups") as g:
        fixed = _group(w, "%fixed", g, program.fixed)
        values = _group(w, "%values", g, len(kinds) - program.fixed)
        out = _group(w, "%out", g, len(outs))
        names = [w.load(fixed, k, kind) for k, kind in enumerate(kinds[: program.fixed])]
        names += [w.load(values, k, kind) for k, kind in enumerate(kinds[program.fixed :])]
        for k, (value, kind) in enumerate(zip(w.inline(program, names), outs, strict=True)):
            w.store(out, k, kind, value)
    w.line("ret void")
    arguments = "ptr noalias %fixed, ptr noalias %values, ptr noalias %out, i64 %groups"
    return w.function(f"void @{name}({arguments})")


def advance_function(
    step: Program, after: Program | None, save: Program | None, width: int, inputs: int = 0
) -> NativeFunction:
    """call(fixed, carry, rows, groups, k, stop, last, every, capacity): the time loop of each group. Where a
    step reads `inputs` numbers after its state, the call ends with (inputs, stride): [step][slot][lane] for
    each group, so many bytes apart.

    `step` maps the state to the next one and says next whether the member goes on; its further outputs are
    truths of a usual step, after which it does. `after` maps (state, sums) to sums; `save` maps the state to
    a row and to the state again. A row is written at the multiples of `every` and at `last`. The loop ends
    early when no lane goes on.
    """
    w = LlvmWriter(width)
    text = advance_text(w, step, after, save, inputs)
    driven = (ctypes.c_void_p, ctypes.c_int64) if inputs else ()
    return function_of(w, text, "advance", *[ctypes.c_void_p] * 3, *[ctypes.c_int64] * 6, *driven)


def advance_text(
    w: LlvmWriter, step: Program, after: Program | None, save: Program | None, inputs: int = 0
) -> str:
    """The text of `advance_function`'s function, by a new writer of the module."""
    state, full, row = (kinds_of_state(p) for p in (step, after or step, save))
    state = state[: len(state) - inputs]
    full = state if after is None else full
    if save is not None:
        row = [save.nodes[o].kind for o in save.outputs[: len(save.outputs) - len(full)]]
    fixed_kinds = [step.nodes[i].kind for i in step.inputs[: step.fixed]]
    with counting(w, "0", "%groups") as g:
        fixed_at = _group(w, "%fixed", g, step.fixed)
        carry_at = _group(w, "%carry", g, len(full))
        size = w.emit(f"mul i64 %capacity, {8 * w.lanes * len(row)}")
        rows_at = w.emit(f"getelementptr i8, ptr %rows, i64 {w.emit(f'mul i64 {g}, {size}')}")
        inputs_at = (
            w.emit(f"getelementptr i8, ptr %inputs, i64 {w.emit(f'mul i64 {g}, %stride')}") if inputs else ""
        )
        fixed = [w.load(fixed_at, k, kind) for k, kind in enumerate(fixed_kinds)]
        carry = [w.load(carry_at, k, kind) for k, kind in enumerate(full)]
        done = w.emit("srem i64 %first, %every")
        until = w.emit(f"sub i64 %every, {done}")
        prepared = w.prepare(step, fixed)
        prepared_sums = {} if after is None else w.prepare(after, fixed)
        loop, leave, finish = w.fresh("time"), w.fresh("leave"), w.fresh("finish")
        origin, some = w.label, w.emit("icmp slt i64 %first, %stop")
        w.line(f"br i1 {some}, label %{loop}, label %{finish}")
        w.start(loop)
        place = len(w.lines)
        now = [f"%{w.fresh('c')}" for _ in full]
        k, left, index = (f"%{w.fresh(x)}" for x in ("k", "left", "index"))
        given = _inputs_of_step(w, inputs_at, k, inputs) if inputs else []
        new, alive = _stepped(w, step, [*fixed, *now[: len(state)], *given], prepared, len(state))
        sums = now[len(state) :]
        if after is not None:
            sums = w.inline(after, [*fixed, *new, *sums], prepared_sums)
        new += sums
        k1 = w.emit(f"add nsw i64 {k}, 1")
        left1 = w.emit(f"sub nsw i64 {left}, 1")
        due = w.emit(f"or i1 {w.emit(f'icmp eq i64 {left1}, 0')}, {w.emit(f'icmp eq i64 {k1}, %last')}")
        kept, left2, index2 = new, left1, index
        if save is not None:
            kept, left2, index2 = _save_if(w, due, save, fixed, new, left1, index, rows_at, row)
        join = w.label
        phis = [
            f"  {p} = phi {w.type(t)} [ {a}, %{origin} ], [ {b}, %{join} ]"
            for p, t, a, b in zip(now, full, carry, kept, strict=True)
        ]
        for name, begin, next_ in ((k, "%first", k1), (left, until, left2), (index, "0", index2)):
            phis.append(f"  {name} = phi i64 [ {begin}, %{origin} ], [ {next_}, %{join} ]")
        w.lines[place:place] = phis
        more = w.emit(f"and i1 {w.any(alive)}, {w.emit(f'icmp slt i64 {k1}, %stop')}")
        w.line(f"br i1 {more}, label %{loop}, label %{leave}")
        w.start(leave)
        for slot, (kind, value) in enumerate(zip(full, kept, strict=True)):
            w.store(carry_at, slot, kind, value)
        w.line(f"br label %{finish}")
        w.start(finish)
    w.line("ret void")
    names = ("groups", "first", "stop", "last", "every", "capacity")
    return w.function(
        "void @advance(ptr noalias %fixed, ptr noalias %carry, ptr noalias %rows, "
        + ", ".join(f"i64 %{n}" for n in names)
        + (", ptr noalias %inputs, i64 %stride)" if inputs else ")")
    )


def _stepped(
    w: LlvmWriter, step: Program, inputs: list[str], prepared: dict[int, str], count: int
) -> tuple[list[str], str]:
    """Write a step: its state of so many numbers, and whether the member goes on. For one member a branch
    tells usual steps from others: it is foreseen, whereas a choice of each number would have the next step
    wait for the verdict on this one."""
    truths = range(count + 1, len(step.outputs))
    if w.lanes > 1 or not truths:
        new = w.inline(step, inputs, prepared)
        return new[:count], new[count]
    first, rest = usual_first(step, count, truths)
    new = w.inline(first, inputs, prepared)
    usual = functools.reduce(lambda a, b: w.emit(f"and i1 {a}, {b}"), new[count:])
    origin, odd, join = w.label, w.fresh("odd"), w.fresh("stepped")
    w.line(f"br i1 {usual}, label %{join}, label %{odd}")
    w.start(odd)
    w.block(rest)
    others, end = [w.name(o) for o in step.outputs[: count + 1]], w.label
    w.line(f"br label %{join}")
    w.start(join)
    joined = [
        w.emit(f"phi {w.type(step.nodes[o].kind)} [ {a}, %{origin} ], [ {b}, %{end} ]")
        for o, a, b in zip(step.outputs, [*new[:count], "true"], others, strict=False)
    ]
    return joined[:count], joined[count]


def _inputs_of_step(w: LlvmWriter, inputs: str, k: str, count: int) -> list[str]:
    """What step k reads of its group's table."""
    offset = w.emit(f"mul i64 {k}, {8 * w.lanes * count}")
    here = w.emit(f"getelementptr i8, ptr {inputs}, i64 {offset}")
    return [w.load(here, slot, "f") for slot in range(count)]


def kinds_of_state(program: Program | None) -> list[str]:
    return [] if program is None else [program.nodes[i].kind for i in program.inputs[program.fixed :]]


def _save_if(
    w: LlvmWriter,
    due: str,
    save: Program,
    fixed: list[str],
    state: list[str],
    left: str,
    index: str,
    rows: str,
    row: list[str],
) -> tuple[list[str], str, str]:
    """Where a row is due, write it and count it: the state, the steps to the next one, rows so far."""
    keep, join, unsaved = w.fresh("save"), w.fresh("join"), w.label
    w.line(f"br i1 {due}, label %{keep}, label %{join}")
    w.start(keep)
    saved = w.inline(save, [*fixed, *state])
    offset = w.emit(f"mul i64 {index}, {8 * w.lanes * len(row)}")
    target = w.emit(f"getelementptr i8, ptr {rows}, i64 {offset}")
    for slot, kind in enumerate(row):
        w.store(target, slot, kind, saved[slot])
    counted = w.emit(f"add nsw i64 {index}, 1")
    end = w.label
    w.line(f"br label %{join}")
    w.start(join)

    def joined(t: str, old: str, fresh: str) -> str:
        return w.emit(f"phi {t} [ {old}, %{unsaved} ], [ {fresh}, %{end} ]")

    kinds = kinds_of_state(save)
    kept = [joined(w.type(t), a, b) for t, a, b in zip(kinds, state, saved[len(row) :], strict=True)]
    return kept, joined("i64", left, "%every"), joined("i64", index, counted)


def _group(w: LlvmWriter, pointer: str, group: str, slots: int) -> str:
    offset = w.emit(f"mul i64 {group}, {8 * w.lanes * slots}")
    return w.emit(f"getelementptr i8, ptr {pointer}, i64 {offset}")
