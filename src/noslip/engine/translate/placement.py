"""Where the nodes of a scalar program live.

A node lives in the outermost block in which all its operands are known, so invariant work leaves the loops
by itself, but never a block that may not run at all. Equal nodes of a block are one node.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Callable, Hashable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

from noslip.engine.program import (
    Block,
    Called,
    Dense,
    Loop,
    Node,
    Number,
    Program,
    Rolled,
    TooLarge,
    uses,
    walk,
)

LIMIT = 500_000  # operations written down: some ten seconds to the first step; more are XLA's
KIND = {float: "f", int: "i", bool: "b"}
COMMUTATIVE = {"add", "mul", "and", "or", "xor", "eq", "ne", "max", "min", "iadd", "imul"}


class Abandoned(Exception):
    """What was being translated has become longer than it may."""


class _Snapshot(NamedTuple):
    """How far a translation had come: the number of nodes and of constants, the innermost block that may not
    run, and of each open block its length and how much it knew."""

    nodes: int
    constants: int
    floor: int
    blocks: list[tuple[Block, int, int, int]]


class Blocks:
    """The nodes made so far, the blocks that are open, and where a new node goes."""

    def __init__(self, limit: int = LIMIT) -> None:
        self.nodes: list[Node] = []
        self.blocks: list[Block] = []
        self.constants: dict[tuple[str, Number | bytes], int] = {}
        self.floor = 0  # the innermost block that may not run at all: nothing moves out of it
        self.limit = limit
        self.most: float = 4 * limit  # nodes; there may come fewer of what is only tried

    # ---- nodes ------------------------------------------------------------------------------------
    def const(self, value: Number) -> int:
        """A constant of the type that Python gives it."""
        kind = KIND.get(type(value)) or _kind(value)
        key: tuple[str, Number | bytes] = (kind, value)
        if kind == "f" and (value == 0 or value != value):  # by its bits: signs of zero, and NaN
            key = (kind, struct.pack("<d", value))
        found = self.constants.get(key)
        if found is None:
            found = self._append(Node("const", (), kind, -1, value))
            self.constants[key] = found
        return found

    def _append(self, node: Node) -> int:
        count = len(self.nodes)
        if count > self.most:
            raise Abandoned if count <= 4 * self.limit else self._too_large()
        self.nodes.append(node)
        return count

    def _too_large(self) -> TooLarge:
        return TooLarge(f"the step has more than {self.limit} scalar operations")

    def input(self, kind: str, block: int) -> int:
        return self._append(Node("input", (), kind, block))

    def value(self, node: int) -> Number | None:
        """The constant that a node is, or None."""
        return self.nodes[node].value

    def raw(self, op: str, kind: str, *args: int) -> int:
        """A node as it stands, shared with an equal one."""
        nodes, floor, home = self.nodes, self.floor, 0
        if op in COMMUTATIVE and args[0] > args[1]:
            args = (args[1], args[0])
        for a in args:
            if (inside := nodes[a].home) > home:
                home = inside
        key = (op, args)
        while True:
            block = self.blocks[home]
            if (found := block.known.get(key)) is not None:
                return found
            if home >= floor:
                break
            home += 1
        found = block.known[key] = self._append(Node(op, args, kind, home))
        block.items.append(found)
        return found

    def recall(self, key: Hashable) -> tuple[int, ...] | None:
        """The nodes that were made together from these arguments before, in a block that is still open."""
        return next((found for b in self.blocks if (found := b.groups.get(key)) is not None), None)

    def remember(self, key: Hashable, made: tuple[int, ...]) -> None:
        """Keep several nodes made from the same arguments for `recall`."""
        self.blocks[max(self.floor, *(self.nodes[a].home for a in made))].groups[key] = made

    # ---- structure --------------------------------------------------------------------------------
    def loop(
        self,
        inits: Sequence[int],
        condition: Callable[[list[int]], int],
        body: Callable[[list[int]], list[int]],
        rare: bool = False,
    ) -> list[int]:
        """results of `while condition(x): x = body(x)`; values that a turn never changes leave the loop."""
        enter = condition(list(inits))
        if self.value(enter) is False:
            return list(inits)
        with self.at_most(math.inf):  # what is translated once more is not yet counted
            return self._loop(enter, inits, condition, body, rare)

    def _loop(
        self,
        enter: int,
        inits: Sequence[int],
        condition: Callable[[list[int]], int],
        body: Callable[[list[int]], list[int]],
        rare: bool,
    ) -> list[int]:
        varying, floor = set(range(len(inits))), self.floor
        while True:
            state = self.snapshot()
            before, block = Block(), Block()
            self.blocks += [before, block]
            if self.value(enter) is None:
                self.floor = len(self.blocks) - 2
            home = len(self.blocks) - 1
            params = {i: self.input(self.nodes[inits[i]].kind, home) for i in sorted(varying)}
            x = [params.get(i, init) for i, init in enumerate(inits)]
            outs = body(x)
            again = condition(outs)
            del self.blocks[-2:]
            self.floor = floor
            fixed = {i for i in varying if outs[i] in (params[i], inits[i])}
            if not fixed:
                break
            varying -= fixed  # translate once more, now that these are known to be invariant
            self.restore(state)
        order = sorted(varying)
        carried = [[x[i] for i in order] for x in (params, inits, outs)]
        home = max(floor, *self._homes((before, block), [enter, again, *carried[1], *carried[2]]))
        results = [self._append(Node("result", (), self.nodes[inits[i]].kind, home)) for i in order]
        loop = Loop(enter, carried[0], carried[1], before, block, carried[2], again, results, rare)
        self.blocks[home].items.append(loop)
        found = dict(zip(order, results, strict=True))
        return [found.get(i, init) for i, init in enumerate(inits)]

    def rolled(
        self,
        length: int,
        inits: Sequence[int],
        tables: Sequence[Sequence[int]],
        body: Callable[[list[int], list[int]], tuple[list[int], list[int]]],
    ) -> tuple[list[int], list[list[int]]]:
        """Carry `inits` through body(carry, entry k of each table) -> (carry, what to stack) for every k."""
        block = Block()
        self.blocks.append(block)
        home = len(self.blocks) - 1
        params = [self.input(self.nodes[a].kind, home) for a in inits]
        reads = [self.input(self.nodes[table[0]].kind, home) for table in tables]
        outs, writes = body(params, reads)
        self.blocks.pop()
        used = [*inits, *outs, *writes, *(a for table in tables for a in table)]
        home = max(self.floor, *self._homes((block,), used))
        results = [self._append(Node("result", (), self.nodes[a].kind, home)) for a in inits]
        stacked = [
            [self._append(Node("result", (), self.nodes[a].kind, home)) for _ in range(length)]
            for a in writes
        ]
        self.blocks[home].items.append(
            Rolled(
                length,
                params,
                list(inits),
                list(map(list, tables)),
                reads,
                block,
                outs,
                writes,
                results,
                stacked,
            )
        )
        return results, stacked

    def snapshot(self) -> _Snapshot:
        """All that translating on may change."""
        blocks = [(b, len(b.items), len(b.known), len(b.groups)) for b in self.blocks]
        return _Snapshot(len(self.nodes), len(self.constants), self.floor, blocks)

    def restore(self, state: _Snapshot) -> None:
        """Forget what was translated since the snapshot: what came last goes first."""
        del self.nodes[state.nodes :]
        _shorten(self.constants, state.constants)
        self.floor = state.floor
        self.blocks = [block for block, *_ in state.blocks]
        for block, items, known, groups in state.blocks:
            del block.items[items:]
            _shorten(block.known, known)
            _shorten(block.groups, groups)

    @contextmanager
    def at_most(self, nodes: float) -> Iterator[None]:
        """Raise `Abandoned` as soon as there are more nodes than that."""
        outside, self.most = self.most, min(nodes, 4 * self.limit)
        try:
            yield
        finally:
            self.most = outside

    def _homes(self, inner: Sequence[Block], more: Sequence[int]) -> Iterator[int]:
        """The blocks, outside a loop, that compute what the loop uses."""
        inside = len(self.blocks)
        yield 0
        for read in (more, *(uses(self.nodes, item) for block in inner for item in walk(block))):
            yield from (self.nodes[a].home for a in read if self.nodes[a].home < inside)

    def dense(
        self, routine: str, size: tuple[int, ...], inputs: Sequence[int], outputs: int, definite: bool
    ) -> list[int]:
        """Call a rolled routine of linear algebra."""
        home = max(self.floor, *(self.nodes[a].home for a in inputs))
        results = [self._append(Node("result", (), "f", home)) for _ in range(outputs)]
        self.blocks[home].items.append(Dense(routine, size, list(inputs), results, definite))
        return results

    def call(self, function: Program, inputs: Sequence[int]) -> list[int]:
        """Call another program."""
        home = max(self.floor, *(self.nodes[a].home for a in inputs))
        kinds = [function.nodes[a].kind for a in function.outputs]
        results = [self._append(Node("result", (), kind, home)) for kind in kinds]
        self.blocks[home].items.append(Called(function, list(inputs), results))
        return results


def _kind(value: Number) -> str:
    return "b" if isinstance(value, bool) else "i" if isinstance(value, int) else "f"


def _shorten(entries: dict[Any, Any], length: int) -> None:
    """Leave the first entries."""
    while len(entries) > length:
        entries.popitem()
