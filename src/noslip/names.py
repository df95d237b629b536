"""Code by its name: `file.py:name` in a file of the user, or a name that an installed package offers.

A package offers systems and integrators by entry points of the groups "noslip.systems" (a module like those
of the catalogue) and "noslip.integrators" (a class):

    [project.entry-points."noslip.integrators"]
    Backward = "my_package.backward:Backward"
"""

from __future__ import annotations

import sys
import traceback
from collections.abc import Mapping
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from importlib.util import module_from_spec, spec_from_file_location
from inspect import Parameter, signature
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Any, NamedTuple

from noslip.errors import first_line, unknown_name


class _File(NamedTuple):
    path: str  # as the user wrote it
    text: bytes
    module: ModuleType


_opened: dict[Path, _File] = {}
_ANY_NUMBER = (Parameter.VAR_POSITIONAL, Parameter.VAR_KEYWORD)


def in_a_file(word: str) -> bool:
    """Whether the word names something in a file, whatever the file is."""
    return ":" in word or word.endswith(".py")


def attribute(word: str, kind: str, known: type) -> tuple[ModuleType, Any]:
    """The module of `file.py:name` and what it has of that name. Instances and subclasses of `known` are what
    the user may have meant, and where a system is wanted, functions that can be called with nothing. The file
    is run: give this only words that the user wrote."""
    path, _, name = word.rpartition(":") if not word.endswith(".py") else (word, "", "")
    module = open_file(path)
    names = [key for key, x in vars(module).items() if _is_a(x, known, module)]
    if kind == "system":
        names += [key for key, x in vars(module).items() if _may_make_one(x, module)]
    if not name:
        article = "an" if kind[0] in "aeiou" else "a"
        raise ValueError(
            f"'{word}' must name {article} {kind} in that file, as in {path}:{names[0] if names else 'NAME'}"
        )
    if not hasattr(module, name):
        raise ValueError(unknown_name(f"{kind} in {path}", name, names))
    return module, getattr(module, name)


def _is_a(value: object, known: type, module: ModuleType) -> bool:
    if isinstance(value, type):
        return issubclass(value, known) and value.__module__ == module.__name__
    return isinstance(value, known)


def _may_make_one(value: Any, module: ModuleType) -> bool:
    """Whether it is a function of the file that can be called with nothing, other than its typical state."""
    if not isinstance(value, FunctionType) or value.__module__ != module.__name__:
        return False
    needed = [
        x for x in signature(value).parameters.values() if x.default is x.empty and x.kind not in _ANY_NUMBER
    ]
    return not needed and value.__name__ != "typical_state"


def open_file(path: str) -> ModuleType:
    """The module that a file is; run once, and again when the file has changed."""
    file = Path(path)
    if not file.is_file():
        raise ValueError(f"there is no file '{path}'")
    where, text = file.resolve(), file.read_bytes()
    spec = spec_from_file_location(_module_name(where), file)
    if spec is None:
        raise ValueError(f"'{path}' must be a Python file, with a name that ends in .py")
    if where in _opened and _opened[where].text == text:
        return _opened[where].module
    module = module_from_spec(spec)
    sys.modules[spec.name] = module
    sys.path.insert(0, str(where.parent))  # as Python does for a script
    try:
        exec(compile(text, str(file.absolute()), "exec"), vars(module))
    except (Exception, SystemExit) as error:
        del sys.modules[spec.name]
        frames = traceback.extract_tb(error.__traceback__)
        lines = [frame.lineno for frame in frames if Path(frame.filename) == file.absolute()]
        line = error.lineno if isinstance(error, SyntaxError) else lines[-1] if lines else "?"
        raise ValueError(f"'{path}', line {line}: {type(error).__name__}: {first_line(error)}") from error
    finally:
        sys.path.remove(str(where.parent))
    _opened[where] = _File(path, text, module)
    return module


def _module_name(where: Path) -> str:
    """One for each file, also for two of one name in different folders."""
    if where in _opened:
        return _opened[where].module.__name__
    name, taken = f"_noslip_user_{where.stem}", {file.module.__name__ for file in _opened.values()}
    return name if name not in taken else f"{name}_{len(taken)}"


def file_of(module: str) -> str:
    """The file that was opened as this module, as the user wrote it; empty for all other modules."""
    return next((file.path for file in _opened.values() if file.module.__name__ == module), "")


def installed(group: str) -> Mapping[str, EntryPoint]:
    """What installed packages offer in that group, by name; nothing is imported."""
    return _installed(group, tuple(sys.path))


@cache  # a search of all folders of sys.path costs more than a short run
def _installed(group: str, folders: tuple[str, ...]) -> Mapping[str, EntryPoint]:
    found: dict[str, EntryPoint] = {}
    for point in sorted(entry_points(group=group), key=lambda point: point.name):
        other = found.setdefault(point.name, point)
        if other.value != point.value:
            raise ValueError(
                f"installed packages must offer different names for {group}, but '{point.name}' is both "
                f"{other.value} and {point.value}"
            )
    return found


def load(point: EntryPoint) -> object:
    """What an installed package offers by that name."""
    try:
        return point.load()
    except (ImportError, AttributeError) as error:
        package = point.dist.name if point.dist else "an installed package"
        raise ImportError(
            f"'{point.name}' of {package} ({point.value}) could not be loaded: {first_line(error)}"
        ) from error
