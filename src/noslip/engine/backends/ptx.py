"""Scalar programs as kernels of a GPU: the same LLVM text as for the host, one thread for each member, made
into PTX by LLVM's own back end. Rounding is that of the host, so members have the bits of native code.

Memory is a table of 8-byte slots, [group][slot][lane], with the 32 threads of a warp for lanes: neighbours
read neighbours. Each kernel is a function of the number of its member and a thin entry that finds it.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager

from noslip.engine.backends.llvm_dense import when
from noslip.engine.backends.llvm_text import LlvmWriter
from noslip.engine.backends.native import kinds_of_state, run_passes
from noslip.engine.program import Dense, Program

WARP = 32
UNROLLED = 12  # the largest dense solve that is written out; a larger one does not stay in registers anyhow
# the newest instruction sets that LLVM and the drivers of the last years know, and the PTX that has them
TARGETS = {60: 50, 70: 60, 75: 63, 80: 70, 86: 71, 89: 78, 90: 78}


class ThreadWriter(LlvmWriter):
    """One member in scalars; small dense solves with known places, so that no array is left in memory."""

    def __init__(self) -> None:
        super().__init__(1, WARP)

    def new(self, lanes: int) -> ThreadWriter:
        return ThreadWriter()

    def when(self, condition: str) -> AbstractContextManager[None]:
        return when(self, condition)

    def dense(self, item: Dense) -> None:
        if item.size[0] > UNROLLED:
            super().dense(item)
        else:
            _Elimination(self, item).write()


class _Elimination:
    """`llvm_dense` written out entry by entry: the same operations in the same order."""

    def __init__(self, w: ThreadWriter, item: Dense):
        self.w, self.item, self.n = w, item, item.size[0]
        self.columns = len(item.inputs) // self.n
        self.cells = [[w.stack("f") for _ in range(self.columns)] for _ in range(self.n)]

    def get(self, i: int, j: int) -> str:
        return self.w.emit(f"load double, ptr {self.cells[i][j]}, align 8")

    def put(self, i: int, j: int, value: str) -> None:
        self.w.line(f"store double {value}, ptr {self.cells[i][j]}, align 8")

    def write(self) -> None:
        w, n, inverse = self.w, self.n, self.item.routine == "inverse"
        for k, a in enumerate(self.item.inputs):
            self.put(*divmod(k, self.columns), w.name(a))
        order = []
        for k in range(n):
            order.append(row := self.pivot(k))
            for i in range(k + 1, n):
                with w.when(w.emit(f"icmp eq i64 {row}, {i}")):
                    self.exchange([((k, j), (i, j)) for j in range(self.columns)])
            self.eliminate(k, inverse)
        if inverse:  # undo the exchanges, last first, in the columns
            for k in reversed(range(n)):
                for i in range(k + 1, n):
                    with w.when(w.emit(f"icmp eq i64 {order[k]}, {i}")):
                        self.exchange([((r, k), (r, i)) for r in range(n)])
        wide = len(self.item.results) // n
        for k, result in enumerate(self.item.results):
            i, j = divmod(k, wide)
            w.names[result] = self.get(i, self.columns - wide + j)

    def pivot(self, k: int) -> str:
        """The row at or below k with the largest entry in column k."""
        w = self.w
        best, row = w.intrinsic("fabs", "f", self.get(k, k)), str(k)
        for i in range(k + 1, self.n):
            size = w.intrinsic("fabs", "f", self.get(i, k))
            wins = w.emit(f"fcmp ogt double {size}, {best}")
            best, row = w.select("f", wins, size, best), w.select("i", wins, str(i), row)
        return row

    def exchange(self, pairs: Sequence[tuple[tuple[int, int], tuple[int, int]]]) -> None:
        for here, there in pairs:
            x, y = self.get(*here), self.get(*there)
            self.put(*here, y)
            self.put(*there, x)

    def eliminate(self, k: int, inverse: bool) -> None:
        w = self.w
        scale = w.emit(f"fdiv double {w.literal(1.0)}, {self.get(k, k)}")
        if inverse:
            self.put(k, k, w.literal(1.0))
        span = range(self.columns) if inverse else range(k + 1, self.columns)
        for j in span:
            self.put(k, j, w.emit(f"fmul double {self.get(k, j)}, {scale}"))
        for i in range(self.n):
            if i == k:
                continue
            factor = w.emit(f"fneg double {self.get(i, k)}")
            if inverse:
                self.put(i, k, w.literal(0.0))
            for j in span:
                self.put(i, j, w.intrinsic("fma", "f", factor, self.get(k, j), self.get(i, j)))


def map_kernel(program: Program) -> str:
    """run(fixed, values, out, members): the program on each member."""
    w = ThreadWriter()
    kinds = [program.nodes[i].kind for i in program.inputs]
    fixed = _at(w, "%fixed", program.fixed)
    values = _at(w, "%values", len(kinds) - program.fixed)
    out = _at(w, "%out", len(program.outputs))
    names = [w.load(fixed, k, kind) for k, kind in enumerate(kinds[: program.fixed])]
    names += [w.load(values, k, kind) for k, kind in enumerate(kinds[program.fixed :])]
    for k, (node, value) in enumerate(zip(program.outputs, w.inline(program, names), strict=True)):
        w.store(out, k, program.nodes[node].kind, value)
    w.line("ret void")
    return _module(w, ("fixed", "values", "out"), ())


def advance_kernel(step: Program, after: Program | None, *, usual: bool, inputs: int = 0) -> str:
    """run(fixed, full, left, count, members, steps): the time loop of each member, sums with it. Where a step
    reads `inputs` numbers after its state, run(..., count, inputs, members, steps, begin, stride): the table
    [step][slot][lane] of each group, so many slots apart, and the number of the first step.

    Of the `usual` step a member that cannot take it is left as it was at the call, marked in `left` and
    counted. The other kernel runs those that are marked, and no others.
    """
    w = ThreadWriter()
    own = kinds_of_state(step)
    own = own[: len(own) - inputs]
    kinds = own if after is None else kinds_of_state(after)
    finish = w.fresh("finish")
    mark = _at(w, "%left", 1)
    if not usual:
        marked = w.load(mark, 0, "b")
        _go_on(w, marked, finish)
    fixed_at, full_at = _at(w, "%fixed", step.fixed), _at(w, "%full", len(kinds))
    fixed = [w.load(fixed_at, k, step.nodes[i].kind) for k, i in enumerate(step.inputs[: step.fixed])]
    begin = [w.load(full_at, k, kind) for k, kind in enumerate(kinds)]
    prepared = w.prepare(step, fixed)
    prepared_sums = {} if after is None else w.prepare(after, fixed)
    loop, leave, origin = w.fresh("time"), w.fresh("leave"), w.label
    w.line(f"br label %{loop}")
    w.start(loop)
    place, now, k = len(w.lines), [f"%{w.fresh('c')}" for _ in kinds], f"%{w.fresh('k')}"
    given = _inputs_of_step(w, k, inputs) if inputs else []
    *new, alive = w.inline(step, [*fixed, *now[: len(own)], *given], prepared)[: len(own) + 1]
    sums = now[len(own) :]
    if after is not None:
        sums = w.inline(after, [*fixed, *new, *sums], prepared_sums)
    new += sums
    k1 = w.emit(f"add nsw i64 {k}, 1")
    if usual:
        failed = w.fresh("failed")
        _go_on(w, alive, failed)
        more = w.emit(f"icmp slt i64 {k1}, %steps")
    else:
        more = w.emit(f"and i1 {alive}, {w.emit(f'icmp slt i64 {k1}, %steps')}")
    w.lines[place:place] = [
        *(
            f"  {p} = phi {w.type(t)} [ {a}, %{origin} ], [ {b}, %{w.label} ]"
            for p, t, a, b in zip(now, kinds, begin, new, strict=True)
        ),
        f"  {k} = phi i64 [ 0, %{origin} ], [ {k1}, %{w.label} ]",
    ]
    w.line(f"br i1 {more}, label %{loop}, label %{leave}")
    w.start(leave)
    for slot, (kind, value) in enumerate(zip(kinds, new, strict=True)):
        w.store(full_at, slot, kind, value)
    if usual:
        w.store(mark, 0, "i", "0")
        w.line(f"br label %{finish}")
        w.start(failed)
        w.store(mark, 0, "i", "1")
        w.emit("atomicrmw add ptr %count, i64 1 monotonic")
    w.line(f"br label %{finish}")
    w.start(finish)
    w.line("ret void")
    if not inputs:
        return _module(w, ("fixed", "full", "left", "count"), ("steps",))
    return _module(w, ("fixed", "full", "left", "count", "inputs"), ("steps", "begin", "stride"))


def _inputs_of_step(w: ThreadWriter, k: str, count: int) -> list[str]:
    """What the step after `begin` + k others reads of its group's table."""
    group, lane = w.emit("lshr i64 %member, 5"), w.emit(f"and i64 %member, {WARP - 1}")
    number = w.emit(f"add i64 %begin, {k}")
    here = w.emit(f"add i64 {w.emit(f'mul i64 {number}, {count * WARP}')}, {lane}")
    place = w.emit(f"add i64 {w.emit(f'mul i64 {group}, %stride')}, {here}")
    at = w.emit(f"getelementptr i64, ptr %inputs, i64 {place}")
    return [w.load(at, slot, "f") for slot in range(count)]


def _go_on(w: ThreadWriter, condition: str, otherwise: str) -> None:
    further = w.fresh("further")
    w.line(f"br i1 {condition}, label %{further}, label %{otherwise}")
    w.start(further)


def _at(w: ThreadWriter, table: str, slots: int) -> str:
    """Where the slots of this thread's member begin."""
    group, lane = w.emit("lshr i64 %member, 5"), w.emit(f"and i64 %member, {WARP - 1}")
    place = w.emit(f"add i64 {w.emit(f'mul i64 {group}, {slots * WARP}')}, {lane}")
    return w.emit(f"getelementptr i64, ptr {table}, i64 {place}")


def _module(w: ThreadWriter, tables: Sequence[str], numbers: Sequence[str]) -> str:
    """The member's function, and the kernel that calls it for the member of each thread."""
    pointers = [f"ptr noalias %{name}" for name in tables]
    wholes = [f"i64 %{name}" for name in numbers]
    body = w.function(f"internal void @member({', '.join([*pointers, 'i64 %member', *wholes])}) alwaysinline")
    given = ", ".join([*(f"ptr %{t}" for t in tables), "i64 %i", *wholes])
    entry = "\n".join(
        [
            f"define ptx_kernel void @run({', '.join([*pointers, 'i64 %members', *wholes])}) {{",
            *(f"  %{r} = call i32 @llvm.nvvm.read.ptx.sreg.{r}.x()" for r in ("ctaid", "ntid", "tid")),
            "  %first = mul i32 %ctaid, %ntid",
            "  %thread = add i32 %first, %tid",
            "  %i = zext i32 %thread to i64",
            "  %inside = icmp slt i64 %i, %members",
            "  br i1 %inside, label %go, label %leave",
            "go:",
            f"  call void @member({given})",
            "  br label %leave",
            "leave:",
            "  ret void",
            "}",
        ]
    )
    for register in ("ctaid", "ntid", "tid"):
        w.declared.add(f"declare i32 @llvm.nvvm.read.ptx.sreg.{register}.x()")
    return w.module([body, entry])


def compiled(text: str, capability: int) -> str:
    """The PTX of a module for GPUs of this compute capability, 90 for 9.0, and later ones."""
    import llvmlite.binding as llvm

    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    known = max((c for c in TARGETS if c <= capability), default=min(TARGETS))
    target = llvm.Target.from_triple("nvptx64-nvidia-cuda")
    machine = target.create_target_machine(cpu=f"sm_{known}", features=f"+ptx{TARGETS[known]}", opt=3)
    module = llvm.parse_assembly(text)
    module.triple, module.data_layout = machine.triple, str(machine.target_data)
    options = llvm.create_pipeline_tuning_options(speed_level=1)
    options.slp_vectorization = options.loop_vectorization = options.loop_unrolling = False
    passes = llvm.create_pass_builder(machine, options)
    run_passes(module, passes)
    return machine.emit_assembly(module)
