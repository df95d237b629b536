"""Scalar programs as LLVM IR, for one trajectory (scalars) or for a group of members (lanes).

The text is written directly; LLVM is told nothing that would let it change a rounding, so a lane computes
the same bits as scalar code. A loop in lanes runs until no lane wants another turn; lanes that are done keep
their values.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping, Sequence

from noslip.engine.backends import llvm_dense, llvm_functions
from noslip.engine.backends.paired import Pair, in_pairs
from noslip.engine.program import (
    UNUSED,
    Block,
    Called,
    Dense,
    Loop,
    Node,
    Number,
    Program,
    Rolled,
    Visitor,
    count,
)
from noslip.engine.translate import library

SCALAR = {"f": "double", "i": "i64", "b": "i1"}
PLAIN = {
    "add": "fadd", "sub": "fsub", "mul": "fmul", "div": "fdiv",
    "iadd": "add", "isub": "sub", "imul": "mul", "idiv": "sdiv", "irem": "srem",
    "iand": "and", "ior": "or", "ixor": "xor", "ishl": "shl", "iashr": "ashr", "ilshr": "lshr",
    "and": "and", "or": "or", "xor": "xor",
}  # fmt: skip
COMPARE = {
    "f": {"lt": "fcmp olt", "le": "fcmp ole", "eq": "fcmp oeq", "ne": "fcmp une"},
    "i": {"lt": "icmp slt", "le": "icmp sle", "eq": "icmp eq", "ne": "icmp ne"},
}
INTRINSIC = {"abs": "fabs", "sqrt": "sqrt", "rint": "rint", "floor": "floor", "ceil": "ceil"}


class LlvmWriter(Visitor):
    """Text of one function body, with names for values and the label of the current block."""

    def __init__(self, lanes: int, pitch: int | None = None):
        self.lanes = lanes
        self.pitch = pitch or lanes  # members side by side in memory: those of all threads of a warp on a GPU
        self.lines: list[str] = []
        self.names: dict[int, str] = {}
        self.declared: set[str] = set()
        self.routines: dict[str, str] = {}
        self.functions: dict[tuple[int, int], str] = {}  # names of programs that are called, and their lanes
        self.rare: dict[str, Callable[[LlvmWriter], str]] = {}  # write what hardly ever runs, by name
        self.outlines = self.lanes == self.pitch  # whether rare loops become such functions
        # entries of a row that a dense solve takes at once
        self.side_by_side = 4 if self.lanes == self.pitch == 1 else 1
        self.pairs = self.lanes == self.pitch == 1  # whether calls of numbers are made in pairs
        self.allocas: list[str] = []
        self.label = "entry"
        self.mask: str | None = None  # the lanes that the innermost loop is running for
        self.used = 0

    def new(self, lanes: int) -> LlvmWriter:
        """A writer of this kind that has written nothing."""
        return LlvmWriter(lanes)

    def inner(self, lanes: int | None = None) -> LlvmWriter:
        """For another function of the same module: names of functions and tables are the module's."""
        writer = self.new(lanes or self.lanes)
        writer.used, writer.functions, writer.outlines = self.used, self.functions, self.outlines
        writer.side_by_side = self.side_by_side if writer.lanes == 1 else 1
        writer.pairs = self.pairs and writer.lanes == 1
        return writer

    def take(self, inner: LlvmWriter) -> None:
        """What another function of the module needs."""
        self.used = inner.used
        self.declared |= inner.declared
        self.routines |= inner.routines

    # ---- small parts ------------------------------------------------------------------------------
    def type(self, kind: str) -> str:
        return SCALAR[kind] if self.lanes == 1 else f"<{self.lanes} x {SCALAR[kind]}>"

    def mangled(self, kind: str) -> str:
        scalar = {"f": "f64", "i": "i64", "b": "i1"}[kind]
        return scalar if self.lanes == 1 else f"v{self.lanes}{scalar}"

    def literal(self, value: Number) -> str:
        if isinstance(value, bool):
            scalar = f"i1 {'true' if value else 'false'}"
        elif isinstance(value, int):
            scalar = f"i64 {value}"
        else:
            scalar = f"double 0x{struct.pack('>d', value).hex()}"
        return scalar.split(" ", 1)[1] if self.lanes == 1 else f"splat ({scalar})"

    def fresh(self, prefix: str = "x") -> str:
        self.used += 1
        return f"{prefix}{self.used}"

    def emit(self, text: str) -> str:
        self.used += 1
        name = f"%x{self.used}"
        self.lines.append(f"  {name} = {text}")
        return name

    def line(self, text: str) -> None:
        self.lines.append("  " + text)

    def start(self, label: str) -> None:
        self.lines.append(f"{label}:")
        self.label = label

    def call(self, function: str, kind: str, args: Sequence[tuple[str, str]]) -> str:
        """Call of a function of this kind's type, declared on first use."""
        types = ", ".join(t for t, _ in args)
        self.declared.add(f"declare {self.type(kind)} @{function}({types})")
        return self.emit(f"call {self.type(kind)} @{function}({', '.join(f'{t} {a}' for t, a in args)})")

    def intrinsic(self, name: str, kind: str, *args: str) -> str:
        return self.call(f"llvm.{name}.{self.mangled(kind)}", kind, [(self.type(kind), a) for a in args])

    def hint(self, loop: Loop) -> str:
        """To be added to the branch into a loop: one that hardly ever runs gets no registers of others."""
        if not (loop.rare and self.outlines):
            return ""
        self.declared.add('!0 = !{!"branch_weights", i32 1, i32 2000}')
        return ", !prof !0"

    def any(self, mask: str) -> str:
        """Whether some lane is true."""
        if self.lanes == 1:
            return mask
        bits = self.emit(f"bitcast {self.type('b')} {mask} to i{self.lanes}")
        return self.emit(f"icmp ne i{self.lanes} {bits}, 0")

    # ---- programs ---------------------------------------------------------------------------------
    def bind(self, program: Program, values: Sequence[str]) -> None:
        """Give names to the inputs of a program. Programs in one function have disjoint nodes."""
        self.program = program
        self.names = dict(zip(program.inputs, values, strict=True))

    def prepare(self, program: Program, fixed: Sequence[str]) -> dict[int, str]:
        """Write what depends on the fixed inputs alone; names of its values, for `inline`."""
        self.bind(program, [*fixed, *["undef"] * (len(program.inputs) - program.fixed)])
        self.block(program.setup)
        return dict(self.names)

    def inline(
        self, program: Program, inputs: Sequence[str], prepared: dict[int, str] | None = None
    ) -> list[str]:
        """Write the program for these inputs; names of its outputs."""
        self.bind(program, inputs)
        if prepared is None:
            self.block(program.setup)
        else:
            self.names = {**prepared, **self.names}
        self.block(program.main)
        return [self.name(o) for o in program.outputs]

    def name(self, node: int) -> str:
        found = self.names.get(node)
        if found is None:
            found = self.names[node] = self.literal(self.program.constant(node))
        return found

    def block(self, block: Block) -> None:
        for item in in_pairs(self.program.nodes, block) if self.pairs else block.items:
            if isinstance(item, Pair):
                llvm_functions.call_both(self, item)
            else:
                self.item(item)

    def operation(self, number: int) -> None:
        self.names[number] = self.expression(self.program.nodes[number])

    def expression(self, node: Node) -> str:
        op, kind, nodes = node.op, node.kind, self.program.nodes
        args = [self.name(a) for a in node.args]
        first = nodes[node.args[0]].kind
        if op in PLAIN:
            return self.emit(f"{PLAIN[op]} {self.type(kind)} {args[0]}, {args[1]}")
        if op in ("fma", "fnma", "fms"):
            x, y, z = args
            if op == "fnma":
                x = self.emit(f"fneg {self.type('f')} {x}")
            if op == "fms":
                z = self.emit(f"fneg {self.type('f')} {z}")
            return self.intrinsic("fma", "f", x, y, z)
        if op in COMPARE["f"]:
            return self.emit(f"{COMPARE[first][op]} {self.type(first)} {args[0]}, {args[1]}")
        if op in INTRINSIC:
            return self.intrinsic(INTRINSIC[op], "f", args[0])
        if op == "select":
            return self.select(kind, *args)
        if op in ("max", "min"):
            return self.extreme(op, *args)
        if op.startswith("libm:"):
            return self.library(op[5:], args)
        return self.conversion(op, kind, args[0])

    def conversion(self, op: str, kind: str, a: str) -> str:
        if op == "neg":
            return self.emit(f"fneg {self.type('f')} {a}")
        if op == "ineg":
            return self.emit(f"sub {self.type('i')} {self.literal(0)}, {a}")
        if op == "not":
            return self.emit(f"xor {self.type('b')} {a}, {self.literal(True)}")
        if op == "itof":
            return self.emit(f"sitofp {self.type('i')} {a} to {self.type('f')}")
        if op == "ftoi":  # saturating: a NaN becomes 0 instead of anything
            name = f"llvm.fptosi.sat.{self.mangled('i')}.{self.mangled('f')}"
            return self.call(name, "i", [(self.type("f"), a)])
        if op in ("ftobits", "bitstof"):
            before, after = ("f", "i") if op == "ftobits" else ("i", "f")
            return self.emit(f"bitcast {self.type(before)} {a} to {self.type(after)}")
        raise AssertionError(f"the operation '{op}' has no LLVM form")

    def select(self, kind: str, condition: str, yes: str, no: str) -> str:
        t = self.type(kind)
        return self.emit(f"select {self.type('b')} {condition}, {t} {yes}, {t} {no}")

    def extreme(self, op: str, a: str, b: str) -> str:
        """max or min that keeps NaN from either side."""
        better = self.emit(f"fcmp {'ogt' if op == 'max' else 'olt'} {self.type('f')} {a}, {b}")
        nan = self.emit(f"fcmp uno {self.type('f')} {a}, {a}")
        return self.select("f", self.emit(f"or {self.type('b')} {better}, {nan}"), a, b)

    def library(self, name: str, args: Sequence[str]) -> str:
        """One of our functions, once for each lane."""
        name = llvm_functions.of_numbers(self, name, library.program(name))
        if self.lanes == 1:
            return self.emit(f"call double @{name}({', '.join(f'double {a}' for a in args)})")
        t, out = self.type("f"), "poison"
        for k in range(self.lanes):
            parts = [self.emit(f"extractelement {t} {a}, i32 {k}") for a in args]
            value = self.emit(f"call double @{name}({', '.join(f'double {a}' for a in parts)})")
            out = self.emit(f"insertelement {t} {out}, double {value}, i32 {k}")
        return out

    def loop(self, loop: Loop) -> None:
        if loop.rare and self.outlines and count(loop.body, rolled=1) > llvm_functions.OUTLINED:
            llvm_functions.outlined(self, loop)
        else:
            self.written(loop)

    def written(self, loop: Loop) -> None:
        enter, nodes = self.name(loop.enter), self.program.nodes
        before, body, leave = (self.fresh(x) for x in ("before", "body", "leave"))
        kinds = [nodes[p].kind for p in loop.params]
        inits = [self.name(i) for i in loop.inits]
        always = nodes[loop.enter].value is True
        outer = self.mask
        if outer is not None and self.lanes > 1:  # lanes that the loop around is done with stay out
            enter = self.emit(f"and {self.type('b')} {enter}, {outer}")
        origin = self.label
        ways = f"label %{before}, label %{leave}{self.hint(loop)}"
        self.line(f"br label %{before}" if always else f"br i1 {self.any(enter)}, {ways}")
        self.start(before)
        self.mask = enter
        self.block(loop.before)
        entry = self.label
        self.line(f"br label %{body}")
        self.start(body)
        place = len(self.lines)  # the phi nodes go here, once the end of the body is known
        params = ["%" + self.fresh("p") for _ in loop.params]
        active = "%" + self.fresh("active")
        self.names.update(zip(loop.params, params, strict=True))
        self.mask = active
        self.block(loop.body)
        self.mask = outer
        outs, again = [self.name(o) for o in loop.outs], self.name(loop.again)
        if self.lanes > 1:
            outs = [
                o if r == UNUSED else self.select(k, active, o, p)  # what nobody reads may run on
                for k, o, p, r in zip(kinds, outs, params, loop.results, strict=True)
            ]
            again = self.emit(f"and {self.type('b')} {active}, {again}")
        phis = [
            f"  {p} = phi {self.type(k)} [ {i}, %{entry} ], [ {o}, %{self.label} ]"
            for p, k, i, o in zip(params, kinds, inits, outs, strict=True)
        ]
        if self.lanes > 1:
            phis.append(
                f"  {active} = phi {self.type('b')} [ {enter}, %{entry} ], [ {again}, %{self.label} ]"
            )
        self.lines[place:place] = phis
        self.line(f"br i1 {self.any(again)}, label %{body}, label %{leave}")
        end = self.label
        self.start(leave)
        for r, k, i, o in zip(loop.results, kinds, inits, outs, strict=True):
            if r == UNUSED:
                continue
            skipped = "" if always else f"[ {i}, %{origin} ], "
            self.names[r] = self.emit(f"phi {self.type(k)} {skipped}[ {o}, %{end} ]")

    def rolled(self, item: Rolled) -> None:
        """A counted loop; tables of constants are data of the module, all else is on the stack."""
        nodes = self.program.nodes
        inits = [self.name(a) for a in item.inits]
        tables = [self.table(table) for table in item.tables]
        arrays = [self.stack(nodes[a].kind, item.length) for a in item.writes]
        origin = self.label
        body, leave = self.fresh("body"), self.fresh("leave")
        self.line(f"br label %{body}")
        self.start(body)
        place_of_phis = len(self.lines)
        k, params = "%" + self.fresh("k"), ["%" + self.fresh("p") for _ in item.params]
        self.names.update(zip(item.params, params, strict=True))
        for read, (pointer, constant) in zip(item.reads, tables, strict=True):
            self.names[read] = self.entry(pointer, k, nodes[read].kind, constant)
        self.block(item.body)
        for array, write in zip(arrays, item.writes, strict=True):
            t = self.type(nodes[write].kind)
            at = self.emit(f"getelementptr {t}, ptr {array}, i64 {k}")
            self.line(f"store {t} {self.name(write)}, ptr {at}, align 8")
        outs, after = [self.name(o) for o in item.outs], self.emit(f"add nsw i64 {k}, 1")
        phis = [f"  {k} = phi i64 [ 0, %{origin} ], [ {after}, %{self.label} ]"]
        for p, a, i, o in zip(params, item.params, inits, outs, strict=True):
            phis.append(f"  {p} = phi {self.type(nodes[a].kind)} [ {i}, %{origin} ], [ {o}, %{self.label} ]")
        self.lines[place_of_phis:place_of_phis] = phis
        again = self.emit(f"icmp slt i64 {after}, {item.length}")
        self.line(f"br i1 {again}, label %{body}, label %{leave}")
        self.start(leave)
        self.names.update(zip(item.results, outs, strict=True))
        for array, column in zip(arrays, item.stacked, strict=True):
            for row, node in enumerate(column):
                self.names[node] = self.entry(array, str(row), nodes[node].kind, False)

    def table(self, values: list[int]) -> tuple[str, bool]:
        """Where the entries of a table lie, and whether they are constants of the module."""
        made = [self.program.nodes[a] for a in values]
        kind = made[0].kind
        if all(node.value is not None for node in made):
            name, scalar = "@" + self.fresh("table"), LlvmWriter(1)
            entries = ", ".join(f"{SCALAR[kind]} {scalar.literal(self.program.constant(a))}" for a in values)
            self.declared.add(f"{name} = private constant [{len(made)} x {SCALAR[kind]}] [{entries}]")
            return name, True
        array, t = self.stack(kind, len(values)), self.type(kind)
        for k, a in enumerate(values):
            at = self.emit(f"getelementptr {t}, ptr {array}, i64 {k}")
            self.line(f"store {t} {self.name(a)}, ptr {at}, align 8")
        return array, False

    def entry(self, pointer: str, k: str, kind: str, constant: bool) -> str:
        """Entry k of a table; a constant is the same in every lane."""
        t = SCALAR[kind] if constant else self.type(kind)
        at = self.emit(f"getelementptr {t}, ptr {pointer}, i64 {k}")
        value = self.emit(f"load {t}, ptr {at}, align 8")
        if not constant or self.lanes == 1:
            return value
        wide, zeros = self.type(kind), f"<{self.lanes} x i32> zeroinitializer"
        one = self.emit(f"insertelement {wide} poison, {t} {value}, i32 0")
        return self.emit(f"shufflevector {wide} {one}, {wide} poison, {zeros}")

    # ---- in memory --------------------------------------------------------------------------------
    def stack(self, kind: str, size: int = 1) -> str:
        """Memory of the function for `size` values."""
        name = "%" + self.fresh("array")
        self.allocas.append(f"  {name} = alloca [{size} x {self.type(kind)}], align 64")
        return name

    def dense(self, item: Dense) -> None:
        llvm_dense.call(self, item)

    def call_of(self, item: Called) -> None:
        llvm_functions.call(self, item)

    def function(self, signature: str) -> str:
        return "\n".join([f"define {signature} {{", "entry:", *self.allocas, *self.lines, "}"])

    def module(self, functions: Sequence[str]) -> str:
        """The text of a module of these functions with what they need."""
        return "\n".join([*sorted(self.declared), *self.routines.values(), *functions])

    # ---- memory -----------------------------------------------------------------------------------
    def load(self, pointer: str, slot: int, kind: str) -> str:
        place = self.emit(f"getelementptr i64, ptr {pointer}, i64 {slot * self.pitch}")
        stored = "f" if kind == "f" else "i"
        value = self.emit(f"load {self.type(stored)}, ptr {place}, align 8")
        return value if kind != "b" else self.emit(f"icmp ne {self.type('i')} {value}, {self.literal(0)}")

    def store(self, pointer: str, slot: int, kind: str, value: str) -> None:
        if kind == "b":
            value, kind = self.emit(f"zext {self.type('b')} {value} to {self.type('i')}"), "i"
        place = self.emit(f"getelementptr i64, ptr {pointer}, i64 {slot * self.pitch}")
        self.line(f"store {self.type(kind)} {value}, ptr {place}, align 8")


def rare_module(lanes: int, rare: Mapping[str, Callable[[LlvmWriter], str]]) -> str:
    """The text of a module of functions that hardly ever run, as a writer has kept them."""
    outer = LlvmWriter(lanes)
    outer.outlines = False
    return outer.module([write(outer) for write in rare.values()])
