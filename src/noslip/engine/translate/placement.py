"""Where the nodes of a scalar program live.

A node lives in the outermost block in which all its operands are known, so invariant work leaves the loops
by itself, but never a block that may not run at all. Equal nodes of a block are one node.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Hashable, Iterator, Sequence
from typing import NamedTuple

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

LIMIT = 80_000  # operations written down; larger programs take LLVM many seconds and are XLA's
COMMUTATIVE = {"add", "mul", "and", "or", "xor", "eq", "ne", "max", "min", "iadd", "imul"}


class _Snapshot(NamedTuple):
    """How far a translation had come: number of nodes, constants, and of each open block its length and what
    it knew."""

    nodes: int
    constants: dict[tuple[str, Number | bytes], int]
    blocks: list[tuple[Block, int, dict[tuple[str, tuple[int, ...]], int], dict[Hashable, tuple[int, ...]]]]


class Blocks:
    """The nodes made so far, the blocks that are open, and where a new node goes."""

    def __init__(self, limit: int = LIMIT) -> None:
        self.nodes: list[Node] = []
        self.blocks: list[Block] = []
        self.constants: dict[tuple[str, Number | bytes], int] = {}
        self.floor = 0  # the innermost block that may not run at all: nothing moves out of it
        self.limit = limit

    # ---- nodes ------------------------------------------------------------------------------------
    def const(self, value: Number) -> int:
        """A constant of the type that Python gives it."""
        kind = "b" if isinstance(value, bool) else "i" if isinstance(value, int) else "f"
        key: tuple[str, Number | bytes] = (kind, struct.pack("<d", value) if kind == "f" else value)
        found = self.constants.get(key)
        if found is None:
            found = self._append(Node("const", (), kind, -1, value))
            self.constants[key] = found
        return found

    def _append(self, node: Node) -> int:
        if len(self.nodes) > 4 * self.limit:
            raise TooLarge(f"the step has more than {self.limit} scalar operations")
        self.nodes.append(node)
        return len(self.nodes) - 1

    def input(self, kind: str, block: int) -> int:
        return self._append(Node("input", (), kind, block))

    def value(self, node: int) -> Number | None:
        """The constant that a node is, or None."""
        return self.nodes[node].value

    def raw(self, op: str, kind: str, *args: int) -> int:
        """A node as it stands, shared with an equal one."""
        if op in COMMUTATIVE and args[0] > args[1]:
            args = (args[1], args[0])
        home = max(0, *(self.nodes[a].home for a in args))
        key, found = (op, args), None
        for block in self.blocks[home : max(home, self.floor) + 1]:
            found = block.known.get(key)
            if found is not None:
                return found
        found = self._append(Node(op, args, kind, max(home, self.floor)))
        block.known[key] = found
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
        blocks = [(b, len(b.items), dict(b.known), dict(b.groups)) for b in self.blocks]
        return _Snapshot(len(self.nodes), dict(self.constants), blocks)

    def restore(self, state: _Snapshot) -> None:
        """Forget what was translated since the snapshot."""
        del self.nodes[state.nodes :]
        self.constants = state.constants
        for block, length, known, groups in state.blocks:
            del block.items[length:]
            block.known, block.groups = known, groups

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
