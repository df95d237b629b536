"""What the functions of a system read beside their arguments: globals, closures, defaults, attributes.

JAX traces a function once and keeps what it saw, so such values are part of a system like its functions: two
systems are alike only if they captured equal values, and a value that changes after a system was made is
refused, since compiled code would go on with the old one while new code took the other.
"""

from __future__ import annotations

import dis
import functools
import sys
import types
from collections.abc import Callable, Hashable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import jax
import numpy as np

Read = Callable[[], object]
MISSING = "what is not there"
PLAIN = (bool, int, float, complex, str, bytes, type(None), type(Ellipsis), range)
THEMSELVES = (types.FunctionType, types.BuiltinFunctionType, types.ModuleType, type)
LIBRARIES = frozenset(sys.stdlib_module_names) | {"jax", "jaxlib", "numpy", "scipy", "sympy", "noslip"}


class Calls:
    """Something of noslip that calls functions of the user, and says which."""

    def called(self) -> Mapping[str, object]:
        """These functions, each with what it is to the user."""
        raise NotImplementedError(f"{type(self).__name__} must define called")


class Captured:
    """The values, each by the name under which a function finds it; equal if all of them are."""

    def __init__(self, functions: Mapping[str, object]):
        found: dict[str, _Value] = {}
        for name, function in functions.items():
            plain = _plain_function(function)
            if plain is not None and _root(plain) in LIBRARIES - {"noslip"}:  # such as jnp.sin
                continue
            for value in _values(f"`{name}`", function, set(), _root(function)):
                found.setdefault(value.name, value)
        self.values = tuple(found.values())
        self.seen = tuple((value.name, value.seen) for value in self.values)
        self._hash = hash(self.seen)

    def __hash__(self) -> int:
        return self._hash

    def __eq__(self, other: object) -> bool:
        return self is other or (isinstance(other, Captured) and self.seen == other.seen)

    def changed(self) -> str | None:
        """The name of a value that is no longer what it was, if there is one."""
        for value in self.values:
            now = value.read()
            if now is value.object and value.immutable:
                continue
            if _print(now, value.name) != value.seen:
                return value.name
        return None


@dataclass(frozen=True)
class _Value:
    name: str
    read: Read
    object: Any
    seen: Hashable
    immutable: bool


def _values(name: str, function: object, known: set[int], home: str) -> Iterator[_Value]:
    """The values that a function reads, and those that the functions among them read. `home` is the package
    of the system's own function: others that are installed are taken as they are."""
    if id(function) in known:
        return
    known.add(id(function))
    if (caller := _caller(function)) is not None:
        for label, called in caller.called().items():
            yield from _values(label, called, known, _root(called))
    elif isinstance(function, functools.partial):
        yield _value(f"the arguments of {name}", lambda: (function.args, function.keywords))
        yield from _values(name, function.func, known, home)
    elif isinstance(function, types.MethodType):
        yield _value(f"the object of {name}", lambda: function.__self__)
        yield from _values(name, function.__func__, known, home)
    elif (plain := _plain_function(function)) is not None:
        if _of_a_library(plain, home) and not plain.__closure__:
            return
        for label, read in _places(name, plain, home):
            thing = read()
            yield _value(label, read)
            yield from _values(label, thing, known, home)
    elif callable(function) and not isinstance(function, type) and _root(type(function)) not in LIBRARIES:
        yield _value(f"the object {name}", lambda: function)  # one of the user that can be called
        yield from _values(name, type(function).__call__, known, home)


def _caller(function: object) -> Calls | None:
    """What calls for a function that is wrapped."""
    while not isinstance(function, Calls):
        if (function := getattr(function, "__wrapped__", None)) is None:
            return None
    return function


def _places(name: str, function: types.FunctionType, home: str) -> Iterator[tuple[str, Read]]:
    """Where a function looks: its closure, its defaults, globals, and attributes of modules, types and
    objects among them."""
    cells = dict(zip(function.__code__.co_freevars, function.__closure__ or (), strict=True))
    for k, _ in enumerate(function.__defaults__ or ()):
        yield f"default {k} of {name}", functools.partial(_default, function, k)
    for key in function.__kwdefaults__ or {}:
        yield f"default '{key}' of {name}", functools.partial(_default, function, key)
    for variable in cells:
        yield f"'{variable}' in {name}", functools.partial(_content, cells[variable])
    fixed = _of_a_library(function, home) or _root(function) == "noslip"  # globals that do not change
    for path in _reads(function.__code__):
        variable, *attributes = path
        if variable in cells:
            read = functools.partial(_content, cells[variable])
        elif not fixed and variable in function.__globals__:
            read = functools.partial(function.__globals__.get, variable, MISSING)
            yield f"'{variable}'", read
        else:
            continue
        if attributes and _has_own_attributes(read(), home) and hasattr(read(), attributes[0]):
            yield f"'{'.'.join(path)}'", functools.partial(_attribute, read, attributes[0])


@functools.lru_cache(maxsize=4096)
def _reads(code: types.CodeType) -> tuple[tuple[str, ...], ...]:
    """The names of globals and closure variables in a function and those inside it, alone or with the
    attribute that is taken of them."""
    found: dict[tuple[str, ...], None] = {}
    last: str | None = None
    for instruction in dis.get_instructions(code):
        name = instruction.argval
        if instruction.opname in ("LOAD_ATTR", "LOAD_METHOD") and last is not None:
            found[last, str(name)] = None
        last = name if instruction.opname in ("LOAD_GLOBAL", "LOAD_NAME", "LOAD_DEREF") else None
        if last is not None:
            found[last,] = None
        if isinstance(name, types.CodeType):
            found |= dict.fromkeys(_reads(name))
    return tuple(found)


def _has_own_attributes(thing: object, home: str) -> bool:
    """Whether attributes of it are values of the user: it is a module, type or object of no library."""
    if isinstance(thing, (*PLAIN, np.ndarray, jax.Array, types.FunctionType)):
        return False
    place = thing if isinstance(thing, types.ModuleType | type) else type(thing)
    return _root(place) not in LIBRARIES or _root(place) == home != "noslip"


def _default(function: types.FunctionType, key: int | str) -> object:
    if isinstance(key, str):
        return (function.__kwdefaults__ or {}).get(key, MISSING)
    return (function.__defaults__ or ())[key] if key < len(function.__defaults__ or ()) else MISSING


def _attribute(read: Read, name: str) -> object:
    return getattr(read(), name, MISSING)


def _content(cell: types.CellType) -> object:
    try:
        return cell.cell_contents
    except ValueError:  # not filled yet, or no more
        return MISSING


def _value(name: str, read: Read) -> _Value:
    thing = read()
    return _Value(name, read, thing, _print(thing, name), _is_immutable(thing))


def _plain_function(thing: object) -> types.FunctionType | None:
    while not isinstance(thing, types.FunctionType):
        if (thing := getattr(thing, "__wrapped__", None)) is None:
            return None
    return thing


def _root(thing: object) -> str:
    """The package in which something is defined."""
    name = thing.__name__ if isinstance(thing, types.ModuleType) else getattr(thing, "__module__", None)
    return str(name or "").partition(".")[0]


def _of_a_library(function: types.FunctionType, home: str) -> bool:
    """Whether it is of Python or an installed package other than the system's own."""
    root = _root(function)
    if root == home and root != "noslip":
        return False
    return root in LIBRARIES or "site-packages" in function.__code__.co_filename


def _is_immutable(thing: object) -> bool:
    if isinstance(thing, tuple):
        return all(map(_is_immutable, thing))
    return isinstance(thing, (*PLAIN, *THEMSELVES, jax.Array, np.generic)) or _is_an_operation(thing)


def _is_an_operation(thing: object) -> bool:
    """A ufunc, a compiled function, an operator."""
    return callable(thing) and _root(type(thing)) in LIBRARIES and not isinstance(thing, functools.partial)


def _print(thing: object, name: str, path: tuple[int, ...] = ()) -> Hashable:
    """A value as something that can be hashed and compared; functions, types and modules are themselves."""
    if isinstance(thing, jax.core.Tracer):
        raise ValueError(_refusal(name, "it is traced (grad, jit, vmap)"))
    if isinstance(thing, PLAIN):
        return type(thing), repr(thing) if isinstance(thing, (float, complex)) else thing
    if isinstance(thing, THEMSELVES):
        return thing
    if id(thing) in path:
        return "itself", len(path) - path.index(id(thing))
    inner = functools.partial(_print, name=name, path=(*path, id(thing)))
    if isinstance(thing, np.ndarray) and thing.dtype == object:
        return "objects", thing.shape, tuple(map(inner, thing.ravel().tolist()))
    if isinstance(thing, (np.ndarray, np.generic, jax.Array)):
        array = np.asarray(thing)
        return "array", array.shape, str(array.dtype), array.tobytes()
    if isinstance(thing, Mapping):
        return type(thing), tuple((inner(k), inner(x)) for k, x in thing.items())
    if isinstance(thing, (list, tuple)):
        return type(thing), tuple(map(inner, thing))
    if isinstance(thing, (set, frozenset)):
        return type(thing), frozenset(map(inner, thing))
    if isinstance(thing, functools.partial):
        return functools.partial, inner(thing.func), inner(thing.args), inner(thing.keywords)
    if isinstance(thing, types.MethodType):
        return types.MethodType, thing.__func__, inner(thing.__self__)
    return thing if _is_an_operation(thing) else _print_object(thing, inner, name)


def _print_object(thing: object, inner: Callable[[object], Hashable], name: str) -> Hashable:
    slots = [s for kind in type(thing).__mro__ for s in getattr(kind, "__slots__", ())]
    if not hasattr(thing, "__dict__") and not slots:
        raise ValueError(_refusal(name, f"a {type(thing).__name__} cannot be compared"))
    leaves, structure = jax.tree.flatten(thing)
    if not (len(leaves) == 1 and leaves[0] is thing):  # a pytree says itself what it is made of
        return structure, tuple(map(inner, leaves))
    parts = {k: x for kind in reversed(type(thing).__mro__) for k, x in _class_values(kind)}
    parts |= getattr(thing, "__dict__", {})
    parts |= {s: getattr(thing, s) for s in slots if isinstance(s, str) and hasattr(thing, s)}
    return type(thing), tuple((k, inner(x)) for k, x in parts.items())


def _class_values(kind: type) -> Iterator[tuple[str, object]]:
    """What a class of the user holds for its objects, beside what can be called or computes."""
    for name, value in vars(kind).items() if _root(kind) not in LIBRARIES else ():
        if not name.startswith("__") and not callable(value) and not hasattr(value, "__get__"):
            yield name, value


def _refusal(name: str, why: str) -> str:
    return (
        f"a function of the system reads {name}, which must be numbers, arrays, functions or containers of "
        f"them, but {why}; make it one of the `parameters`"
    )
