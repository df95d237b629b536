"""What something is made of, as words that are the same in every process; the names of what is on disk.

Two things that are told alike behave alike: of a function that is its traced form with every number in it.
What cannot be told (a function with a derivative of its own, an object of somebody else's class) has no name
and is made anew in each process.
"""

from __future__ import annotations

import dataclasses
import functools
import hashlib
import importlib.metadata
import platform
import sys
import types
from collections.abc import Mapping, Sequence
from pathlib import Path

import jax
import numpy as np

from noslip.version import __version__

PLAIN = (bool, int, str, bytes, type(None))
DECIDE = ("jax", "jaxlib", "numpy", "llvmlite")  # packages whose versions decide what is made


class CannotTell(Exception):
    """Something has no name that another process would give it."""


class Told:
    """Something that says itself what it is made of."""

    def told(self) -> str:
        """The words; raises `CannotTell` where there are none."""
        raise NotImplementedError(f"{type(self).__name__} must define told")


def told(thing: object) -> str:
    """The words for a thing that programs are made from."""
    if isinstance(thing, Told):
        return thing.told()
    if isinstance(thing, PLAIN):
        return repr(thing)
    if isinstance(thing, float):
        return thing.hex()
    if isinstance(thing, (tuple, list)):
        return f"{type(thing).__name__}({', '.join(map(told, thing))})"
    if isinstance(thing, Mapping):
        return f"{{{', '.join(f'{told(k)}: {told(x)}' for k, x in thing.items())}}}"
    if isinstance(thing, (jax.ShapeDtypeStruct, jax.core.ShapedArray)):
        return f"{thing.dtype}{thing.shape}{getattr(thing, 'weak_type', False)}"
    if isinstance(thing, (np.ndarray, np.generic)) and thing.dtype != object:
        array = np.asarray(thing)
        return f"array {array.dtype.str}{array.shape} {array.tobytes().hex()}"
    if isinstance(thing, functools.partial):
        return f"partial({told(thing.func)}, {told(thing.args)}, {told(thing.keywords)})"
    if isinstance(thing, types.FunctionType):
        return _told_function(thing)
    if dataclasses.is_dataclass(thing) and not isinstance(thing, type) and _is_own(type(thing)):
        parts = [f"{f.name}={told(getattr(thing, f.name))}" for f in dataclasses.fields(thing)]
        return f"{_place(type(thing))}({', '.join(parts)})"
    raise CannotTell(f"a {type(thing).__name__} has no name")


@functools.cache
def surroundings() -> str:
    """What else decides: the versions, and the text of every file of noslip."""
    versions = [f"{name} {importlib.metadata.version(name)}" for name in DECIDE]
    files = digest_of_files(Path(__file__).parents[1])
    return " ".join([__version__, files, platform.python_version(), *versions])


def digest_of_files(root: Path) -> str:
    """Of every Python file in a folder, with its name."""
    digest = hashlib.sha256()
    for path in sorted(root.rglob("*.py")):
        digest.update(f"{path.relative_to(root).as_posix()} {path.stat().st_size}\n".encode())
        digest.update(path.read_bytes())
    return digest.hexdigest()


def settings() -> str:
    """How JAX has been told to trace."""
    values = jax.config.values
    return repr(sorted((k, x) for k, x in values.items() if isinstance(x, (bool, int, float, str))))


def _is_own(thing: object) -> bool:
    """Whether it is of this package, whose files `surroundings` knows."""
    return str(getattr(thing, "__module__", "")).partition(".")[0] == "noslip"


def _place(thing: type | types.FunctionType) -> str:
    return f"{thing.__module__}.{thing.__qualname__}"


def _told_function(function: types.FunctionType) -> str:
    found: object = sys.modules.get(function.__module__) if _is_own(function) else None
    for name in function.__qualname__.split("."):
        found = getattr(found, name, None)
    if found is not function:
        raise CannotTell(f"the function {function.__qualname__} is not one of noslip's")
    return _place(function)


def joined(parts: Sequence[object]) -> str:
    """The name of what is made from these parts, here and now."""
    return "\n".join([surroundings(), settings(), *map(told, parts)])
