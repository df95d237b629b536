"""The usual case of a program: as a program of its own, shorter and with fewer values alive at a time, or as
the first part of the program, which leaves to the second what becomes of other cases."""

from __future__ import annotations

import copy
from collections.abc import Sequence

from noslip.engine.program import (
    Block,
    Called,
    Dense,
    Item,
    Loop,
    Node,
    Program,
    Rolled,
    drop_unneeded,
    made_by,
    needed_for,
)


def usual(program: Program, outputs: int, true: Sequence[int]) -> Program:
    """The first `outputs` of a program where no rare loop is entered and these further outputs hold.

    It is made from the finished program, so that what is left is computed by the same operations: where the
    assumptions are right, the bits are those of the program.
    """
    nodes = [Node(n.op, n.args, n.kind, n.home, n.value) for n in program.nodes]
    setup, main = copy.deepcopy(program.setup), copy.deepcopy(program.main)
    nodes.append(Node("const", (), "b", -1, True))
    same = {program.outputs[k]: len(nodes) - 1 for k in true}  # what stands for another node

    def now(node: int) -> int:
        return same.get(node, node)

    def visit(block: Block) -> None:
        kept: list[Item] = []
        for item in block.items:
            if isinstance(item, Loop):
                item.enter, item.inits = now(item.enter), [now(a) for a in item.inits]
                if item.rare:
                    same.update(zip(item.results, item.inits, strict=True))
                    continue
                visit(item.before)
                visit(item.body)
                item.outs, item.again = [now(a) for a in item.outs], now(item.again)
            elif isinstance(item, Rolled):
                item.inits = [now(a) for a in item.inits]
                item.tables = [[now(a) for a in table] for table in item.tables]
                visit(item.body)
                item.outs, item.writes = [now(a) for a in item.outs], [now(a) for a in item.writes]
            elif isinstance(item, Dense | Called):
                item.inputs = [now(a) for a in item.inputs]
            else:
                node = nodes[item]
                node.args = tuple(now(a) for a in node.args)
                if node.op == "select" and nodes[node.args[0]].value is True:
                    same[item] = node.args[1]
                if item in same:
                    continue
            kept.append(item)
        block.items = kept

    visit(setup)
    visit(main)
    assumed = {program.outputs[k] for k in true}
    assert assumed.isdisjoint(program.outputs[:outputs]), "an assumption must not be a result"
    wanted = [now(o) for o in program.outputs[:outputs]]
    drop_unneeded(nodes, setup, main, wanted)
    return Program(nodes, program.inputs, program.fixed, setup, main, wanted)


def usual_first(program: Program, outputs: int, true: Sequence[int]) -> tuple[Program, Block]:
    """The program in two parts. The first makes its first `outputs` as they are where these further outputs
    hold, and these; with what it has made, the block after it makes all outputs of every other case."""
    nodes, truths = program.nodes, [program.outputs[k] for k in true]

    def holds(node: int) -> bool:
        return node in truths or (nodes[node].op == "and" and all(map(holds, nodes[node].args)))

    def chosen(node: int) -> int:
        while nodes[node].op == "select" and holds(nodes[node].args[0]):
            node = nodes[node].args[1]
        return node

    wanted = [*map(chosen, program.outputs[:outputs]), *truths]
    needed = needed_for(nodes, program.setup, program.main, wanted)
    first, rest = Block(), Block()
    for item in program.main.items:
        block = rest if needed.isdisjoint(made_by(item)) else first
        block.items.append(item)
    return Program(nodes, program.inputs, program.fixed, program.setup, first, wanted), rest
