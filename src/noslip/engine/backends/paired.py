"""Calls of one function in pairs, as the two lanes of one call, which takes as long as one alone.

Items of a block are pure: any order will do in which each comes after what it reads. Two calls make a pair
where neither needs the other, whichever way it goes through pairs made before.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from noslip.engine.program import Block, Called, Item, Loop, Node, Program, Rolled, made_by, uses, walk


class Pair(NamedTuple):
    """Two calls of one function; the same one twice where it has found no other."""

    first: Called
    second: Called


def in_pairs(nodes: list[Node], block: Block) -> list[Item | Pair]:
    """The items of a block in an order in which calls are in pairs, those of functions that have any."""
    calls = [item for item in block.items if isinstance(item, Called)]
    if len({id(call.function) for call in calls}) == len(calls):
        return list(block.items)
    return list(_Order(nodes, block).items())


class _Order:
    def __init__(self, nodes: list[Node], block: Block):
        self.block = block
        maker = {r: k for k, item in enumerate(block.items) for r in made_by(item)}
        self.needs = [sorted({maker[a] for a in _reads(nodes, item) if a in maker}) for item in block.items]
        self.partner: dict[int, int] = {}
        self._choose()

    def _choose(self) -> None:
        """Each call with the first one before it, of its function, that it can be made with."""
        calls = [k for k, item in enumerate(self.block.items) if isinstance(item, Called)]
        before = self._calls_before(calls)
        free: dict[int, list[int]] = {}
        for k in calls:
            waiting = free.setdefault(id(self._function(k)), [])
            for other in waiting:
                self.partner |= {k: other, other: k}
                if not self._goes_round(before, k):
                    waiting.remove(other)
                    break
                del self.partner[k], self.partner[other]
            else:
                waiting.append(k)
        paired = {id(self._function(k)) for k in self.partner}
        self.partner |= {k: k for f, waiting in free.items() if f in paired for k in waiting}

    def _function(self, k: int) -> Program:
        item = self.block.items[k]
        assert isinstance(item, Called)
        return item.function

    def _calls_before(self, calls: list[int]) -> dict[int, list[int]]:
        """For each call those that it needs, itself excepted; on the way sets of calls are bits."""
        bit = {k: 1 << place for place, k in enumerate(calls)}
        found: list[int] = []
        for k, needs in enumerate(self.needs):
            bits = bit.get(k, 0)
            for a in needs:
                bits |= found[a]
            found.append(bits)
        return {k: [other for other in calls if other != k and found[k] & bit[other]] for k in calls}

    def _goes_round(self, before: dict[int, list[int]], start: int) -> bool:
        """Whether a call, or its partner, needs itself or its partner, through other pairs or directly."""
        pair, seen = {start, self.partner[start]}, set[int]()
        ahead = [start, self.partner[start]]
        while ahead:
            for k in before[ahead.pop()]:
                if k in pair:
                    return True
                if k not in seen:
                    both = {k, self.partner.get(k, k)}
                    seen |= both
                    ahead += both
        return False

    def items(self) -> Iterator[Item | Pair]:
        done: set[int] = set()
        most = 2 * len(self.needs) + 2 * sum(map(len, self.needs))
        for last in range(len(self.block.items)):
            stack = [last]
            while stack:
                k = stack[-1]
                both = {k, self.partner.get(k, k)}
                missing = [a for each in both for a in self.needs[each] if a not in done]
                if k in done or not missing:
                    stack.pop()
                    if k not in done:
                        yield self._item(k)
                        done |= both
                else:
                    stack += missing
                    assert len(stack) <= most, "a pair of calls needs itself"

    def _item(self, k: int) -> Item | Pair:
        item = self.block.items[k]
        if k not in self.partner:
            return item
        first, second = sorted((k, self.partner[k]))
        return Pair(self.block.items[first], self.block.items[second])  # type: ignore[arg-type]


def _reads(nodes: list[Node], item: Item) -> set[int]:
    """The values that an item reads, those inside the body of a loop as well."""
    read = set(uses(nodes, item))
    if isinstance(item, Loop):
        read.update(a for inner in walk(item.before) for a in uses(nodes, inner))
    if isinstance(item, Loop | Rolled):
        read.update(a for inner in walk(item.body) for a in uses(nodes, inner))
    return read
