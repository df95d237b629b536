"""Scalar programs as bytes, and back: numbers and words only, so that reading them runs nothing."""

from __future__ import annotations

import dataclasses
import functools
import hashlib
import importlib
import json
import re
import weakref
import zlib
from collections.abc import Iterator
from typing import Any

import jax
import numpy as np

from noslip.engine.program import (
    DROPPED,
    Block,
    Called,
    CannotTranslate,
    Dense,
    Loop,
    Node,
    Number,
    Program,
    PyTree,
    Rolled,
    TooLarge,
    walk,
)

_functions: weakref.WeakValueDictionary[str, Program] = weakref.WeakValueDictionary()  # by what they say
Said = dict[str, Any]  # a program as JSON
PARTS = {kind.__name__: kind for kind in (Block, Loop, Rolled, Dense, Called)}


class Unreadable(Exception):
    """Bytes that are no program, or a pytree that cannot be written."""


def to_bytes(program: Program) -> bytes:
    """A program with those that it calls; raises `Unreadable` where its shape could not be read again."""
    shape = _tree(program.shape)
    again = _tree_of(shape)
    if jax.tree.flatten(again) != jax.tree.flatten(program.shape):
        raise Unreadable("the shape of the program cannot be written")
    called = {id(function): function for function in _called(program)}
    if any(True for function in called.values() for _ in _called(function)):
        raise Unreadable("a function that calls others cannot be written")
    numbers = {key: k for k, key in enumerate(called)}
    said = _said(program, numbers) | {"shape": shape, "functions": [_said(f, {}) for f in called.values()]}
    return zlib.compress(json.dumps(said, separators=(",", ":")).encode(), 1)


def _called(program: Program) -> Iterator[Program]:
    for block in (program.setup, program.main):
        yield from (item.function for item in walk(block) if isinstance(item, Called))


def _said(program: Program, functions: dict[int, int]) -> Said:
    return {
        "nodes": [0 if n is DROPPED else [n.op, n.args, n.kind, n.home, n.value] for n in program.nodes],
        "inputs": program.inputs,
        "fixed": program.fixed,
        "setup": _part(program.setup, functions),
        "main": _part(program.main, functions),
        "outputs": program.outputs,
    }


def refusal_to_bytes(refusal: CannotTranslate) -> bytes:
    """That there is no program, and why."""
    said = {"refused": str(refusal), "too large": isinstance(refusal, TooLarge)}
    return zlib.compress(json.dumps(said).encode(), 1)


def from_bytes(data: bytes) -> Program:
    """The program that was written; raises the refusal if that was."""
    try:
        said = json.loads(zlib.decompress(data))
        if "refused" in said:
            raise (TooLarge if said["too large"] else CannotTranslate)(str(said["refused"]))
        functions = [_function(function) for function in said["functions"]]
        return _program(said, functions, _tree_of(said["shape"]))
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError, zlib.error) as error:
        raise Unreadable(str(error)) from None


def _function(said: Said) -> Program:
    """One that programs call: the same object for all of them, as it was when they were made, so that it is
    compiled once and machine code of an earlier process is found."""
    key = hashlib.sha256(json.dumps(said).encode()).hexdigest()
    if (found := _functions.get(key)) is None:
        found = _functions[key] = _program(said, [], None)
    return found


def _program(said: Said, functions: list[Program], shape: PyTree) -> Program:
    nodes = [DROPPED if node == 0 else _node(*node) for node in said["nodes"]]
    setup, main = _part_of(said["setup"], functions), _part_of(said["main"], functions)
    inputs, outputs = list(map(int, said["inputs"])), list(map(int, said["outputs"]))
    return Program(nodes, inputs, int(said["fixed"]), setup, main, outputs, shape)


def _node(op: str, args: list[int], kind: str, home: int, value: Number | None) -> Node:
    _refuse_other_words(op)
    return Node(op, tuple(map(int, args)), kind, int(home), value)


@functools.cache
def _refuse_other_words(op: str) -> None:
    if not re.fullmatch(r"[a-z0-9_:]+", op):
        raise ValueError(f"{op} is no operation")


def _part(value: Any, functions: dict[int, int]) -> Any:
    """A block, loop, solve or call as a list that begins with its name; a function by its number."""
    if isinstance(value, Program):
        return functions[id(value)]
    if isinstance(value, Block | Loop | Rolled | Dense | Called):
        own = {f.name: _part(getattr(value, f.name), functions) for f in dataclasses.fields(value)}
        return {"is": type(value).__name__} | {k: x for k, x in own.items() if k not in ("known", "groups")}
    if isinstance(value, list):
        return [x if type(x) is int else _part(x, functions) for x in value]
    return value


def _part_of(value: Any, functions: list[Program]) -> Any:
    if isinstance(value, dict):
        own = {k: _part_of(x, functions) for k, x in value.items() if k != "is"}
        if "size" in own:
            own["size"] = tuple(own["size"])
        if value["is"] == "Called":
            own["function"] = functions[own["function"]]
        return PARTS[value["is"]](**own)
    if isinstance(value, list):
        return [x if type(x) is int else _part_of(x, functions) for x in value]
    return value


def _tree(tree: PyTree) -> Any:
    """A nest of tuples, lists, dicts and dataclasses of noslip, with shapes of arrays in it."""
    if tree is None:
        return None
    if isinstance(tree, (tuple, list)) and type(tree) in (tuple, list):
        return [type(tree).__name__, [_tree(x) for x in tree]]
    if type(tree) is dict:
        return ["dict", [[k, _tree(x)] for k, x in tree.items()]]
    if isinstance(tree, jax.ShapeDtypeStruct):
        return ["array", list(tree.shape), str(tree.dtype), bool(tree.weak_type)]
    kind = type(tree)
    if not dataclasses.is_dataclass(tree) or not kind.__module__.startswith("noslip."):
        raise Unreadable(f"a {kind.__name__} cannot be written")
    fields = [[f.name, _tree(getattr(tree, f.name))] for f in dataclasses.fields(tree)]
    return ["of noslip", kind.__module__, kind.__qualname__, fields]


def _tree_of(said: Any) -> PyTree:
    if said is None:
        return None
    match said:
        case ["tuple", parts]:
            return tuple(map(_tree_of, parts))
        case ["list", parts]:
            return list(map(_tree_of, parts))
        case ["dict", pairs]:
            return {k: _tree_of(x) for k, x in pairs}
        case ["array", shape, dtype, weak]:
            return jax.ShapeDtypeStruct(tuple(shape), np.dtype(dtype), weak_type=weak)
        case ["of noslip", module, name, fields]:
            kind = getattr(importlib.import_module(module), name) if module.startswith("noslip.") else None
            if not (isinstance(kind, type) and dataclasses.is_dataclass(kind)):
                raise ValueError(f"{module} has no class {name}")
            return kind(**{k: _tree_of(x) for k, x in fields})
    raise ValueError("no shape")
