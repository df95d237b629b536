"""What is made from a user's functions and kept for the next call: all in one place, and bounded.

Programs, machine code and the traces that JAX keeps are made from the functions of a system and hold on to
them. What has been longest without use goes when there is no more room; machine code is freed when nobody
holds it any more, so never under a run. What has gone is made again when it is asked for, the same. What only
helps to make other things, the functions of a system as nodes, has a room of its own: that of a large system
would put everything else out.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Hashable, Sequence
from typing import Any, TypeVar, TypeVarTuple

import jax
from jax import Array
from jax.tree_util import PyTreeDef

from noslip.engine.program import CannotTranslate, PyTree

T = TypeVar("T")
Ts = TypeVarTuple("Ts")
ROOM = 4096  # each thing takes one, and one for each NODES of its programs: about 0.1 MB; scaffolds have half
NODES = 500
OF_XLA = 50_000  # nodes; XLA's code of a step takes some ten megabytes, like so many


class Large:
    """Something whose size counts."""

    def nodes(self) -> int:
        """How many nodes its programs have."""
        raise NotImplementedError(f"{type(self).__name__} must define nodes")


class _Room:
    """Things in the order in which they were last asked for; who knows a thing weakly does not ask. No lock,
    which a child of fork could find locked: what is done at a time is one operation. Listing a dict compares
    no keys, which may run other code; an OrderedDict does."""

    def __init__(self, part: int):
        self.part = part  # of `ROOM` that it has: a half, a third
        self.things: dict[Hashable, tuple[Any, int]] = {}
        # what they take together, or more: to count them takes longer than to make many a thing
        self.at_most = 0

    def keep(self, key: Hashable, thing: object) -> None:
        size = 1 + thing.nodes() // NODES if isinstance(thing, Large) else 1
        self.things[key] = (thing, size)
        self.at_most += size
        room = ROOM // self.part
        if self.at_most <= room:
            return
        # what another thread adds from here on may count twice, never not at all
        self.at_most = 0
        for oldest in list(self.things)[:-1]:
            if self.taken() <= room:
                break
            self.things.pop(oldest, None)
        self.at_most += self.taken()

    def taken(self) -> int:
        return sum(size for _, size in list(self.things.values()))


_results, _scaffolds = _Room(1), _Room(2)


def kept(make: Callable[[*Ts], T], room: _Room = _results) -> Callable[[*Ts], T]:
    """Keep what is made from equal arguments, and also that it cannot be made."""

    @functools.wraps(make)
    def call(*arguments: *Ts) -> T:
        key = (make, *(_mark(x) for x in arguments if type(x) is PyTreeDef), *arguments)
        if (entry := room.things.pop(key, None)) is not None:
            room.things[key] = entry
            found = entry[0]
        else:
            try:
                found = make(*arguments)
            except CannotTranslate as refusal:
                room.keep(key, type(refusal)(str(refusal)))
                raise
            room.keep(key, found)
        if isinstance(found, CannotTranslate):
            raise type(found)(str(found))
        return found

    return call


def scaffold(make: Callable[[*Ts], T]) -> Callable[[*Ts], T]:
    """Keep what only helps to make other things, which do not need it any more when they are made."""
    return kept(make, _scaffolds)


def _mark(structure: PyTreeDef) -> int:
    """JAX's hash of a structure is that of its form alone, the same for all systems with as many parameters;
    here it is also of what the nodes hold, so that a search among many systems stays short."""
    kind, data = structure.node_data() or (None, None)
    if kind in (tuple, dict):
        return hash(tuple(map(_mark, structure.children())))
    try:
        return hash(data)
    except TypeError:  # of something that can be compared, but not hashed
        return 0


def taken() -> int:
    """How much of the room is taken."""
    return _results.taken() + _scaffolds.taken()


def forget() -> None:
    """Leave nothing; what is in use lives on."""
    _results.things.clear()
    _scaffolds.things.clear()


class _Jitted(Large):
    def __init__(self, call: Callable[..., PyTree], nodes: int):
        self.call, self._nodes = call, nodes

    def nodes(self) -> int:
        return self._nodes


def jitted(
    function: Callable[..., PyTree], static: Sequence[str] = (), nodes: int = 0
) -> Callable[..., PyTree]:
    """jax.jit(function, static_argnames=static), with a life of its own for each structure of the arguments.
    It counts like a program of so many `nodes`.

    JAX holds what it has traced as long as the function that it was asked to compile, and the structure of
    its arguments for longer; a system is part of both. So this function is kept here, and given arrays.
    """
    signature = inspect.signature(function)

    @kept
    def of_structure(structure: PyTreeDef, fixed: tuple[tuple[str, Hashable], ...]) -> _Jitted:
        def of_arrays(*leaves: Array) -> PyTree:
            args, named = jax.tree.unflatten(structure, leaves)
            return function(*args, **named, **dict(fixed))

        of_arrays.__name__ = function.__name__
        return _Jitted(jax.jit(of_arrays), nodes)

    @functools.wraps(function)
    def call(*args: PyTree, **named: PyTree) -> PyTree:
        fixed: tuple[tuple[str, Hashable], ...] = ()
        if static:
            if not named.keys() >= set(static):
                args, named = (), signature.bind(*args, **named).arguments
            fixed = tuple((name, named.pop(name)) for name in static if name in named)
        leaves, structure = jax.tree.flatten((args, named))
        return of_structure(structure, fixed).call(*leaves)

    return call
