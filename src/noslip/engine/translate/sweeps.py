"""Derivatives of straight scalar programs: forward and reverse sweeps over the nodes of a function.

A function of arrays is traced once. Its nodes are never run: they are what `block` differentiates, in the
same builder, so that values, gradients and second derivatives share what they have in common and exact zeros
vanish as they are made. `replay` writes the nodes of a block into the program of whoever asks.
Loops, whole numbers and operations without a rule in `slopes` raise `CannotTranslate`; then JAX's
derivatives do it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from noslip.engine.kept import NODES, ROOM, Large
from noslip.engine.program import Block, CannotTranslate, Number, Program, TooLarge, finish, uses, walk
from noslip.engine.translate.arrays import Nodes
from noslip.engine.translate.builder import Builder
from noslip.engine.translate.functions import FUNCTIONS
from noslip.engine.translate.slopes import RULES

LIMIT = 200_000  # nodes of a function with all its derivatives; what is not asked for is not compiled
VISITS = 2_000_000  # of nodes by forward sweeps, some seconds; more are those of a large matrix without zeros
Readers: TypeAlias = dict[int, list[int]]  # for a node those that read it
Partials: TypeAlias = list[tuple[int, int]]  # an operand, and the derivative by it
Known: TypeAlias = tuple[Number | None, ...]  # for each argument its value, if that is a known number
Elementary: TypeAlias = Callable[..., int]  # writes an elementary function of that name
Lowered: TypeAlias = Callable[[Builder, list[Nodes]], Nodes]
Key: TypeAlias = tuple[tuple[int, ...], tuple[int, ...]]


def _empty() -> Builder:
    b = Builder(LIMIT)
    b.blocks = [Block(), Block()]
    return b


class Straight(Large):
    """A function of arrays as nodes, with its derivatives as far as they have been asked for."""

    def __init__(self, shapes: Sequence[tuple[int, ...]], lower: Lowered):
        self.b = _empty()
        self.arguments = [self._inputs(shape) for shape in shapes]
        value = lower(self.b, self.arguments)
        if not all(isinstance(item, int) for block in self.b.blocks for item in block.items):
            raise CannotTranslate("loops and dense solves are not differentiated as scalar programs")
        self.made: dict[Key, Nodes] = {((), ()): value}
        self.directions: dict[tuple[int, ...], list[Nodes]] = {(): []}
        self.orders: dict[tuple[int, ...], list[int]] = {}
        self.visits = 0
        self.functions: dict[tuple[Key, Known], BlockFunction] = {}
        self.slopes: dict[
            int, Partials
        ] = {}  # of the block that is being made, whose columns ask for the same

    def nodes(self) -> int:
        # with the derivatives that will be asked for; two of a large system find room together
        return min(8 * len(self.b.nodes), ROOM * NODES // 4 - NODES)

    def _inputs(self, shape: tuple[int, ...]) -> Nodes:
        count = math.prod(shape)
        return np.array([self.b.input("f", 1) for _ in range(count)], dtype=np.int64).reshape(shape)

    def inputs(self, along: tuple[int, ...]) -> list[Nodes]:
        """The arguments, and the directions of a block."""
        return [*self.arguments, *self._direction(along)]

    def block(self, orders: tuple[int, ...], along: tuple[int, ...]) -> Nodes:
        """The nodes of the derivative by the arguments `orders`, contracted with a direction for each of
        `along`."""
        key = (orders, along)
        if key not in self.made:
            self.made[key] = self._by_argument(*key) if orders else self._along(along)
            self.slopes.clear()
        return self.made[key]

    def is_long(self, key: Key) -> bool:
        """Whether a block is of the second order, or the first of an array, and has many operations."""
        orders, along = key
        order = len(orders) + len(along) + (self.made[(), ()].ndim > 0)
        return order >= 2 and len(self.ancestors(self.block(*key))) > CALLED

    def has_long(self) -> bool:
        """Whether the function itself has so many operations that its second derivatives are called."""
        return len(self.ancestors(self.made[(), ()])) > CALLED

    def function(self, key: Key, known: Known, elementary: Callable[[Builder], Elementary]) -> BlockFunction:
        """A block as a program to be called, where some of the arguments are known numbers."""
        needed = set(self.ancestors(self.block(*key)))
        inputs = (k for x in self.inputs(key[1]) for k in x.ravel().tolist())
        known = tuple(x if k in needed else None for k, x in zip(inputs, known, strict=True))
        if (key, known) not in self.functions:
            self.functions[key, known] = _function_of(self, key, known, elementary)
        return self.functions[key, known]

    def _along(self, along: tuple[int, ...]) -> Nodes:
        """A directional derivative of what is contracted with all directions but the last."""
        source = self.block((), along[:-1])
        x, direction = self.arguments[along[-1]], self._direction(along)[-1]
        seed = dict(zip(x.ravel().tolist(), direction.ravel().tolist(), strict=True))
        return self._tangents(source, seed, self._readers(source))

    def _direction(self, along: tuple[int, ...]) -> list[Nodes]:
        if along not in self.directions:
            shape = self.arguments[along[-1]].shape
            self.directions[along] = [*self._direction(along[:-1]), self._inputs(shape)]
        return self.directions[along]

    def _by_argument(self, orders: tuple[int, ...], along: tuple[int, ...]) -> Nodes:
        """By one argument of `orders`, of a block of one order less: the shortest of these."""
        rest = [(i, tuple(k for j, k in enumerate(orders) if j != orders.index(i))) for i in set(orders)]
        sources = [(i, self.block(other, along)) for i, other in sorted(rest)]
        i, source = min(sources, key=lambda pair: len(self.ancestors(pair[1])))
        if source.ndim == 0:
            return self._gradient(int(source), self.arguments[i])
        x, one = self.arguments[i], self.b.const(1.0)
        readers = self._readers(source)
        columns = [self._tangents(source, {k: one}, readers) for k in x.ravel().tolist()]
        out = np.stack(columns, axis=-1).reshape(*source.shape, *x.shape)
        before = out.ndim - x.ndim - sum(self.arguments[k].ndim for k in orders if k > i)
        out = np.moveaxis(out, range(out.ndim - x.ndim, out.ndim), range(before, before + x.ndim))
        if orders == (i, i) and x.ndim == 1 and out.ndim == 2:  # symmetric to the bit
            low = np.tril_indices(x.size, -1)
            out[low] = out.T[low]
        return out

    # ---- sweeps -----------------------------------------------------------------------------------
    def ancestors(self, outputs: Nodes) -> list[int]:
        """The nodes from which these are computed, themselves included, in order."""
        key = tuple(outputs.ravel().tolist())
        if key not in self.orders:
            self.orders[key] = _ancestors(self.b, key)
        return self.orders[key]

    def _readers(self, outputs: Nodes) -> Readers:
        """Which ancestors of the outputs read a node."""
        found: Readers = {}
        for k in self.ancestors(outputs):
            for a in self.b.nodes[k].args:
                found.setdefault(a, []).append(k)
        return found

    def _gradient(self, output: int, x: Nodes) -> Nodes:
        """Reverse: the derivatives of one number."""
        b, nodes = self.b, self.b.nodes
        wanted = x.ravel().tolist()
        order = self.ancestors(np.array(output))
        moved = set(wanted)
        moved.update(k for k in order if any(a in moved for a in nodes[k].args) or k in moved)
        bar = {output: b.const(1.0)} if output in moved else {}
        for k in reversed(order):
            if k not in bar or k not in moved or not nodes[k].args:
                continue
            for a, term in self._pulled(k, bar[k]):
                if a in moved:
                    bar[a] = b.add(bar[a], term) if a in bar else term
        zero = b.const(0.0)
        return np.array([bar.get(k, zero) for k in wanted], dtype=np.int64).reshape(x.shape)

    def _pulled(self, k: int, g: int) -> Partials:
        """What a node with the adjoint g adds to those of its operands."""
        b, node = self.b, self.b.nodes[k]
        if node.op == "select":  # no product: what is not chosen may be infinite
            c, yes, no = node.args
            zero = b.const(0.0)
            return [(yes, b.select(c, g, zero)), (no, b.select(c, zero, g))]
        return [(a, b.mul(g, slope)) for a, slope in self._partials(k)]

    def _tangents(self, outputs: Nodes, seed: Mapping[int, int], readers: Readers) -> Nodes:
        """Forward: the derivatives of many numbers in one direction."""
        b, nodes, zero = self.b, self.b.nodes, self.b.const(0.0)
        dot = dict(seed)
        reached = _reached(seed, readers)
        self.visits += len(reached)
        if self.visits > VISITS:
            raise TooLarge(f"derivatives of this function visit more than {VISITS} scalar operations")
        for k in reached:
            node = nodes[k]
            if k in dot or node.kind != "f" or not any(a in dot for a in node.args):
                continue
            if node.op == "select":
                c, yes, no = node.args
                total = b.select(c, dot.get(yes, zero), dot.get(no, zero))
            else:
                total = zero
                for a, slope in self._partials(k):
                    if a in dot:
                        total = b.add(total, b.mul(slope, dot[a]))
            if b.value(total) != 0:
                dot[k] = total
        flat = [dot.get(k, zero) for k in outputs.ravel().tolist()]
        return np.array(flat, dtype=np.int64).reshape(outputs.shape)

    def _partials(self, k: int) -> Partials:
        """The derivatives of a node by its operands."""
        if (found := self.slopes.get(k)) is None:
            found = self.slopes[k] = self._by_rule(k)
        return found

    def _by_rule(self, k: int) -> Partials:
        b, node = self.b, self.b.nodes[k]
        args = node.args
        if node.kind != "f" or node.op in ("rint", "floor", "ceil", "itof"):
            return []
        if node.op == "mul" and args[0] == args[1]:
            return [(args[0], b.mul(b.const(2.0), args[0]))]
        rule = RULES.get(node.op)
        if rule is None:
            raise CannotTranslate(f"the operation '{node.op}' has no derivative in scalar form")
        return list(zip(args, rule(b, k, *args), strict=True))


# ---- into another program -------------------------------------------------------------------------------
def _ancestors(b: Builder, outputs: Iterable[int]) -> list[int]:
    """The nodes from which these are computed, themselves included, each after its operands."""
    found: set[int] = set()
    stack = list(outputs)
    while stack:
        k = stack.pop()
        if k not in found:
            found.add(k)
            stack.extend(b.nodes[k].args)
    return sorted(found)  # a node has a larger number than its operands


def _reached(seed: Iterable[int], readers: Readers) -> list[int]:
    """The nodes that are computed from the seed, each after its operands."""
    found: set[int] = set()
    stack = list(seed)
    while stack:
        fresh = [k for k in readers.get(stack.pop(), ()) if k not in found]
        found.update(fresh)
        stack += fresh
    return sorted(found)


CALLED = 250  # operations from which on a block of the second order is a function of its own


class BlockFunction(NamedTuple):
    """A block as a program that is called: what it reads, each as an elementary function ("" for none) of one
    of the given numbers; and what each entry of the block is: an output of the program, one of the numbers
    that it reads, or a constant. `size` counts what the caller computes for it, too."""

    program: Program
    reads: list[tuple[str, int]]
    entries: list[tuple[str, Any]]
    size: int

    def inputs(self, elementary: Elementary, given: Sequence[int]) -> list[int]:
        """The nodes that the program reads: calls at the same numbers share their sines."""
        return [elementary(name, given[k]) if name else given[k] for name, k in self.reads]

    def entries_of(self, b: Builder, inputs: Sequence[int], made: Sequence[int]) -> list[int]:
        """The nodes of the block, `made` being the outputs of a call."""
        found: dict[str, Callable[[Any], int]] = {
            "constant": b.const,
            "input": inputs.__getitem__,
            "output": made.__getitem__,
        }
        return [found[kind](which) for kind, which in self.entries]


def _function_of(
    source: Straight, key: Key, known: Known, elementary: Callable[[Builder], Elementary]
) -> BlockFunction:
    """A block as a program of its own, of those arguments and directions that are not `known` numbers, and of
    their elementary functions."""
    b = _empty()
    write = elementary(b)
    given = [b.input("f", 1) if value is None else b.const(value) for value in known]
    reads = {("", k): number for k, number in enumerate(given) if known[k] is None}
    places = {number: k for (_, k), number in reads.items()}

    def shared(name: str, *x: int) -> int:
        if len(x) > 1 or x[0] not in places:
            return write(name, *x)
        return reads.setdefault((name, places[x[0]]), b.input("f", 1))

    made = replay(source, key, b, shared, given)
    used = {a for block in b.blocks for item in walk(block) for a in uses(b.nodes, item)}.union(made)
    reads = {read: number for read, number in reads.items() if number in used}
    own = {number: place for place, number in enumerate(reads.values())}
    results = list(dict.fromkeys(k for k in made if b.value(k) is None and k not in own))
    kinds = {k: ("output", place) for place, k in enumerate(results)}
    kinds |= {k: ("input", place) for k, place in own.items()}
    entries = [kinds.get(k, ("constant", b.value(k))) for k in made]
    program = finish(b.nodes, b.blocks, list(own), 0, results, None)
    return BlockFunction(program, list(reads), entries, program.size() + _size_of(reads, elementary))


def _size_of(reads: Iterable[tuple[str, int]], elementary: Callable[[Builder], Elementary]) -> int:
    """How many operations these elementary functions are."""
    b = _empty()
    x = {k: b.input("f", 1) for _, k in reads}
    made = [elementary(b)(name, x[k]) for name, k in reads if name]
    return finish(b.nodes, b.blocks, list(x.values()), 0, made, None).size()


def replay(
    source: Straight, key: Key, b: Builder, elementary: Callable[..., int], given: Sequence[int]
) -> list[int]:
    """The nodes of a block, written into another builder with `given` for the arguments and directions."""
    outputs, old = source.block(*key), source.b.nodes
    inputs = [k for x in source.inputs(key[1]) for k in x.ravel().tolist()]
    where = dict(zip(inputs, given, strict=True))
    for k in source.ancestors(outputs):
        if k in where:
            continue
        node = old[k]
        if node.value is not None:
            where[k] = b.const(node.value)
            continue
        args = [where[a] for a in node.args]
        if (write := WRITE.get(node.op)) is not None:
            where[k] = write(b, *args)
        elif node.op in FUNCTIONS:
            where[k] = elementary(node.op, *args)
        else:
            where[k] = b.raw(node.op, node.kind, *args)
    return [where[k] for k in outputs.ravel().tolist()]


WRITE: dict[str, Callable[..., int]] = {
    "add": Builder.add,
    "sub": Builder.sub,
    "mul": Builder.mul,
    "div": Builder.div,
    "neg": Builder.neg,
    "abs": Builder.abs,
    "sqrt": Builder.sqrt,
    "max": Builder.larger,
    "min": Builder.smaller,
    "libm:fmod": Builder.rem,
    "select": Builder.select,
    "and": Builder.both,
    "or": Builder.either,
    "xor": Builder.xor,
    "not": Builder.invert,
    **{op: (lambda b, x, y, op=op: b.compare(op, x, y)) for op in ("lt", "le", "eq", "ne")},
}
