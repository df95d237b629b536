"""The scalar program: straight blocks of scalar operations, nested loops and selects.

Values are whole numbers that name nodes. Three types: "f" (float64), "i" (int64), "b" (truth). A program is
made by `Builder`, which simplifies; `finish` drops what no output needs and fuses products that feed a single
sum, so that every backend rounds alike.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, TypeAlias, TypeVar

PyTree: TypeAlias = Any  # a nest of tuples, dicts and dataclasses of arrays, or of their shapes
Number: TypeAlias = float | int | bool
V = TypeVar("V")  # a value of a node, as whoever evaluates a program has it
SHORT = 100  # operations of a function of one number that is called only with others
UNUSED = -1  # in place of a result of a loop that only the loop itself needs


class CannotTranslate(Exception):
    """A function that the scalar program cannot express; the text says which operation or size."""


class TooLarge(CannotTranslate):
    """A function that XLA runs better."""


@dataclass(slots=True)
class Node:
    """One scalar operation. `home` is the number of the block that computes it; -1 for constants."""

    op: str
    args: tuple[int, ...]
    kind: str
    home: int
    value: Number | None = None


DROPPED = Node("dropped", (), "f", -1)  # in place of all nodes that no output needs


@dataclass(slots=True)
class Block:
    """Operations, loops and dense solves in order. While it is written, it knows the nodes made so far, by
    operation and operands, and groups of nodes that were made together."""

    items: list[Item] = field(default_factory=list)
    known: dict[tuple[str, tuple[int, ...]], int] = field(default_factory=dict)
    groups: dict[Hashable, tuple[int, ...]] = field(default_factory=dict)


@dataclass(slots=True)
class Loop:
    """Run `body` while its condition holds; `enter` says whether the first turn is run at all.

    `before` is run once, if the loop is entered: what does not change inside, but is not needed without it.
    A `rare` loop is one that hardly any call enters.
    """

    enter: int
    params: list[int]
    inits: list[int]
    before: Block
    body: Block
    outs: list[int]
    again: int
    results: list[int]
    rare: bool = False


@dataclass(slots=True)
class Rolled:
    """for k in range(length): `body`, which reads entry k of tables, carries values, and writes entry k.

    Table j is the list tables[j], read as the node reads[j]; the values of writes[j] end up as stacked[j].
    """

    length: int
    params: list[int]
    inits: list[int]
    tables: list[list[int]]
    reads: list[int]
    body: Block
    outs: list[int]
    writes: list[int]
    results: list[int]
    stacked: list[list[int]]


@dataclass(slots=True)
class Dense:
    """A call of a rolled linear-algebra routine on a small array: "inverse" of A, or "solve" of [A | B].

    Where A is known to be symmetric and positive definite, elimination needs no exchange of rows.
    """

    routine: str
    size: tuple[int, ...]
    inputs: list[int]
    results: list[int]
    definite: bool = False


@dataclass(slots=True)
class Called:
    """A call of another program, written once however often it is called: its outputs at `inputs`."""

    function: Program
    inputs: list[int]
    results: list[int]

    def is_short(self) -> bool:
        """Whether one call by itself takes longer than the function written in its place."""
        return len(self.inputs) == 1 and self.function.operations() < SHORT

    def __deepcopy__(self, memo: dict[int, object]) -> Called:
        return Called(self.function, list(self.inputs), list(self.results))


Item: TypeAlias = int | Loop | Rolled | Dense | Called  # a whole number is the operation of that node


@dataclass(slots=True, weakref_slot=True)
class Program:
    """A pure function of scalars. `setup` needs only the first `fixed` inputs; `main` needs all.

    `shape` is the pytree of arrays that the outputs make up.
    """

    nodes: list[Node]
    inputs: list[int]
    fixed: int
    setup: Block
    main: Block
    outputs: list[int]
    shape: PyTree = None

    def constant(self, node: int) -> Number:
        """The number that a node without operation is."""
        value = self.nodes[node].value
        assert value is not None, f"node {node} ('{self.nodes[node].op}') is no constant"
        return value

    def operations(self) -> int:
        """How many scalar operations one pass through every block costs."""
        return count(self.setup) + count(self.main)

    def size(self) -> int:
        """How many scalar operations are written down; what is rolled or called counts once."""
        items = [item for block in (self.setup, self.main) for item in walk(block)]
        called = {id(item.function): item.function for item in items if isinstance(item, Called)}
        own = count(self.setup, rolled=1) + count(self.main, rolled=1)
        return own + sum(function.size() for function in called.values())


def count(block: Block, rolled: int = 0) -> int:
    """Operations of a block, those of rolled parts as often as they run, or `rolled` times."""
    total = 0
    for item in block.items:
        if isinstance(item, int):
            total += 1
        elif isinstance(item, Loop):
            total += count(item.before, rolled) + count(item.body, rolled)
        elif isinstance(item, Rolled):
            total += (rolled or item.length) * count(item.body, rolled)
            total += rolled * sum(map(len, item.stacked))
        elif isinstance(item, Dense):
            total += rolled * len(item.inputs) or item.size[0] ** 2 * item.size[-1]
        else:
            called = rolled and not item.is_short()
            total += len(item.inputs) if called else item.function.operations()
    return total


class Visitor:
    """Goes through a block in order; whoever runs or writes a program says what each kind of item means."""

    def block(self, block: Block) -> None:
        for item in block.items:
            self.item(item)

    def item(self, item: Item) -> None:
        if isinstance(item, int):
            self.operation(item)
        elif isinstance(item, Loop):
            self.loop(item)
        elif isinstance(item, Rolled):
            self.rolled(item)
        elif isinstance(item, Dense):
            self.dense(item)
        else:
            self.call_of(item)

    def operation(self, number: int) -> None:
        raise NotImplementedError(f"{type(self).__name__} must define operation")

    def loop(self, loop: Loop) -> None:
        raise NotImplementedError(f"{type(self).__name__} must define loop")

    def rolled(self, item: Rolled) -> None:
        raise NotImplementedError(f"{type(self).__name__} must define rolled")

    def dense(self, item: Dense) -> None:
        raise NotImplementedError(f"{type(self).__name__} must define dense")

    def call_of(self, item: Called) -> None:
        raise NotImplementedError(f"{type(self).__name__} must define call_of")


class Evaluation(Visitor, Generic[V]):
    """A visitor that has a value of its kind for each node that was met."""

    values: dict[int, V]

    def value(self, node: int) -> V:
        raise NotImplementedError(f"{type(self).__name__} must define value")

    def rolled(self, item: Rolled) -> None:
        x = [self.value(i) for i in item.inits]
        for k in range(item.length):
            self.values.update(zip(item.params, x, strict=True))
            self.values.update((r, self.value(t[k])) for r, t in zip(item.reads, item.tables, strict=True))
            self.block(item.body)
            x = [self.value(o) for o in item.outs]
            self.values.update((s[k], self.value(w)) for s, w in zip(item.stacked, item.writes, strict=True))
        self.values.update(zip(item.results, x, strict=True))


def walk(block: Block) -> Iterator[Item]:
    """Every item of a block and of the loops in it."""
    for item in block.items:
        yield item
        if isinstance(item, int):
            continue
        if isinstance(item, Loop):
            yield from walk(item.before)
        if isinstance(item, Loop | Rolled):
            yield from walk(item.body)


def uses(nodes: list[Node], item: Item) -> Sequence[int]:
    """The values that an item reads, those inside the body of a loop excepted."""
    if isinstance(item, int):
        return nodes[item].args
    if isinstance(item, Loop):
        return [item.enter, *item.inits, *item.outs, item.again]
    if isinstance(item, Rolled):
        return [*item.inits, *item.outs, *item.writes, *(a for table in item.tables for a in table)]
    return item.inputs


def finish(
    nodes: list[Node], blocks: list[Block], inputs: list[int], fixed: int, outputs: list[int], shape: PyTree
) -> Program:
    """Drop what no output needs, fuse products into sums, and close the program."""
    setup, main = blocks
    drop_unneeded(nodes, setup, main, outputs)
    program = Program(nodes, inputs, fixed, setup, main, outputs, shape)
    _fuse(program)
    return program


def drop_unneeded(nodes: list[Node], setup: Block, main: Block, outputs: list[int]) -> None:
    """Leave out of the blocks what no output needs."""
    needed = needed_for(nodes, setup, main, outputs)
    for block in (main, setup):
        _sweep(block, needed)
    for number, node in enumerate(nodes):
        if number not in needed and node.op != "input":
            nodes[number] = DROPPED


def needed_for(nodes: list[Node], setup: Block, main: Block, outputs: list[int]) -> set[int]:
    """These outputs and all that they are made from."""
    needed, before = set(outputs), -1
    while len(needed) > before:  # values carried by loops can ask for more on a second look
        before = len(needed)
        for block in (main, setup):
            _mark(nodes, block, needed)
    return needed


def _mark(nodes: list[Node], block: Block, needed: set[int]) -> None:
    """Add to `needed` what its members are made from, last to first."""
    for item in reversed(block.items):
        if isinstance(item, int):
            if item in needed:
                needed.update(nodes[item].args)
        elif isinstance(item, Loop):
            if needed.isdisjoint(item.results):
                continue
            needed.update((item.enter, item.again))
            before = -1
            while len(needed) > before:
                before = len(needed)
                for param, init, out, result in _carried(item):
                    if result in needed or param in needed:
                        needed.update((param, init, out))
                _mark(nodes, item.body, needed)
                _mark(nodes, item.before, needed)
        elif isinstance(item, Rolled):
            if not needed.isdisjoint(made_by(item)):
                needed.update(uses(nodes, item))
                _mark(nodes, item.body, needed)
        elif not needed.isdisjoint(item.results):
            needed.update(item.inputs)


def made_by(item: Item) -> Sequence[int]:
    """All values that come out of an item."""
    if isinstance(item, int):
        return (item,)
    if isinstance(item, Rolled):
        return [*item.results, *(a for table in item.stacked for a in table)]
    return item.results


def _carried(loop: Loop) -> list[tuple[int, int, int, int]]:
    return list(zip(loop.params, loop.inits, loop.outs, loop.results, strict=True))


def _sweep(block: Block, needed: set[int]) -> None:
    kept: list[Item] = []
    for item in block.items:
        if isinstance(item, int):
            if item in needed:
                kept.append(item)
        elif needed.isdisjoint(made_by(item)):
            continue
        elif isinstance(item, Loop):
            rows = [row for row in _carried(item) if row[0] in needed]
            item.params, item.inits, item.outs, item.results = map(list, zip(*rows, strict=True))
            item.results = [r if r in needed else UNUSED for r in item.results]
            _sweep(item.before, needed)
            _sweep(item.body, needed)
            kept.append(item)
        else:
            if isinstance(item, Rolled):
                _sweep(item.body, needed)
            kept.append(item)
    block.items = kept
    block.known.clear()
    block.groups.clear()


def _fuse(program: Program) -> None:
    """Turn a b + c into one fused operation where a b is used nowhere else."""
    nodes = program.nodes
    readers: dict[int, int] = {}
    for block in (program.setup, program.main):
        for item in walk(block):
            for a in uses(nodes, item):
                readers[a] = readers.get(a, 0) + 1
    for a in program.outputs:
        readers[a] = readers.get(a, 0) + 1

    def product(a: int, home: int) -> bool:
        return nodes[a].op == "mul" and readers[a] == 1 and nodes[a].home == home

    def visit(block: Block) -> None:
        dropped = set()
        for item in block.items:
            if not isinstance(item, int):
                if isinstance(item, Loop):
                    visit(item.before)
                if isinstance(item, Loop | Rolled):
                    visit(item.body)
                continue
            node = nodes[item]
            if node.op not in ("add", "sub"):
                continue
            a, b = node.args
            if product(b, node.home) and b not in dropped:
                x, y = nodes[b].args
                node.op, node.args = ("fma" if node.op == "add" else "fnma"), (x, y, a)
                dropped.add(b)
            elif product(a, node.home) and a not in dropped:
                x, y = nodes[a].args
                node.op, node.args = ("fma" if node.op == "add" else "fms"), (x, y, b)
                dropped.add(a)
        block.items = [i for i in block.items if not (isinstance(i, int) and i in dropped)]

    visit(program.setup)
    visit(program.main)
