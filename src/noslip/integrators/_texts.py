"""Methods from texts and back: the grammar of `parse`, the options of the command line, the words of files.

A text is a name, or a name with arguments in parentheses:

    DiscreteGradient
    VelocityNonholonomic(beta=0.3)
    Composition(base=DiscreteGradient('mean_value'))
    mine.py:Backward(beta=1)
    Composition(base=mine.py:Backward())

Arguments are numbers, strings, True, False, None, tuples, lists and methods. A path with spaces, commas or
brackets is put in quotes together with its class: 'my files/mine.py:Backward'(beta=1).
"""

from __future__ import annotations

import ast
import dataclasses
import re
from collections.abc import Callable, Mapping
from typing import Any, get_type_hints

from noslip import names, texts
from noslip.errors import first_line, shown, unknown_name
from noslip.integrators.base import Integrator

Find = Callable[[str], type[Integrator]]
_FILE = r"""(?:\b[A-Za-z]:)?[^\s()\[\]{},=:'"]+:[^\W\d]\w*"""  # path.py:Class; a path may begin with a drive
_TOKEN = re.compile(rf"""('[^']*'|"[^"]*")|({_FILE})""")


def parse(text: str, find: Find | None = None) -> Integrator:
    """The method that a text such as "Composition(base=DiscreteGradient('mean_value'))" stands for.

    `find` gives the class of a name; the usual one runs the files that the text names.
    """
    if find is None:
        from noslip.integrators import find as usual

        find = usual
    if not isinstance(text, str):
        raise TypeError(f"an integrator must be written as a text, but {shown(text)} was provided")
    files: list[str] = []

    def mark(found: re.Match[str]) -> str:
        if found[1]:
            return found[1]
        files.append(found[2])
        return f"_file_{len(files) - 1}"

    try:
        tree = ast.parse(_TOKEN.sub(mark, text.strip()), mode="eval").body
        named = isinstance(tree, ast.Name | ast.Call)
        made = _Reader(text, find, files).read(tree) if named else None
    except (SyntaxError, RecursionError, MemoryError):
        made = None
    if not isinstance(made, Integrator):
        raise ValueError(f"an integrator must be written like DiscreteGradient(), but '{text}' was provided")
    return made


@dataclasses.dataclass(frozen=True)
class _Reader:
    text: str
    find: Find
    files: list[str]

    def read(self, tree: ast.expr) -> Any:
        """A value; a name alone is that method with its defaults."""
        if isinstance(tree, ast.Name):
            return built(self._class(tree), (), {})
        if isinstance(tree, ast.Call):
            names = [word.arg for word in tree.keywords]
            if None in names or len({*names}) < len(names):
                raise ValueError(
                    "an integrator must be written with each argument once and by its name, but "
                    f"'{self.text}' was provided"
                )
            named = {str(word.arg): self.read(word.value) for word in tree.keywords}
            return built(self._class(tree.func), tuple(map(self.read, tree.args)), named)
        try:
            return ast.literal_eval(tree)
        except (ValueError, TypeError):
            part = ast.unparse(tree)
            raise ValueError(
                f"an argument of an integrator must be a number, a text or another integrator, but '{part}' "
                f"in '{self.text}' is not"
            ) from None

    def _class(self, tree: ast.expr) -> type[Integrator]:
        if isinstance(tree, ast.Constant) and isinstance(tree.value, str):
            return self.find(tree.value)
        if not isinstance(tree, ast.Name):
            raise SyntaxError
        marked = re.fullmatch(r"_file_(\d+)", tree.id)
        return self.find(self.files[int(marked[1])] if marked and self.files else tree.id)


def _fields(cls: type[Integrator]) -> list[dataclasses.Field[Any]]:
    return [f for f in dataclasses.fields(cls) if f.init]  # type: ignore[arg-type]


def built(cls: type[Integrator], unnamed: tuple[object, ...], named: Mapping[str, object]) -> Integrator:
    """The method with these arguments, or one sentence."""
    known, hints = [f.name for f in _fields(cls)], get_type_hints(cls)
    for name in named:
        if name not in known:
            raise ValueError(unknown_name(f"option of {cls.__name__}", name, known))
    for name, value in {**dict(zip(known, unnamed, strict=False)), **named}.items():
        if _is_integrator(hints[name]) and not isinstance(value, Integrator):
            raise ValueError(
                f"`{name}` of {cls.__name__} must be an integrator, but {shown(value)} was provided"
            )
    try:
        return cls(*unnamed, **named)
    except ValueError:
        raise
    except Exception as error:
        given = [*map(repr, unnamed), *(f"{name}={value!r}" for name, value in named.items())]
        raise ValueError(f"{cls.__name__}({', '.join(given)}) cannot be: {first_line(error)}") from error


def _is_integrator(hint: object) -> bool:
    return isinstance(hint, type) and issubclass(hint, Integrator)


def make(text: str, options: Mapping[str, object] | None = None) -> Integrator:
    """The method of a name or text, with options by name; texts become values of the fields' types."""
    from noslip.integrators import find

    if not isinstance(text, str):
        raise TypeError(f"an integrator must be written as a text, but {shown(text)} was provided")
    if not isinstance(options, Mapping | None):
        raise TypeError(f"`options` must be a mapping of names, but {shown(options)} was provided")
    if "(" not in text:
        return with_options(find(text), options or {}, find)
    method = parse(text, find)
    given = {f.name: getattr(method, f.name) for f in _fields(type(method))}
    return with_options(type(method), {**given, **(options or {})}, find)


def with_options(cls: type[Integrator], options: Mapping[str, object], find: Find) -> Integrator:
    """The method of that class; texts become values of the fields' types, with classes by `find`."""
    hints, values = get_type_hints(cls) if options else {}, {}
    for key, value in options.items():
        known = {f.name: f for f in _fields(cls)}
        if key not in known:
            raise ValueError(unknown_name(f"option of {cls.__name__}", key, known))
        if not isinstance(value, str):
            values[key] = value
        elif _is_integrator(hints[key]):
            values[key] = parse(value, find)
        else:
            values[key] = texts.value(f"option '{key}'", value, hints[key])
    return built(cls, (), values)


def is_method(word: str, value: object) -> type[Integrator]:
    """What a word stands for, if it is a class of methods."""
    if not (isinstance(value, type) and issubclass(value, Integrator) and value is not Integrator):
        what = value.__name__ if isinstance(value, type) else f"of type {type(value).__name__}"
        raise ValueError(
            f"'{word}' must be a class derived from noslip.integrators.base.Integrator, but it is {what}"
        )
    if not dataclasses.is_dataclass(value) or not value.__dataclass_params__.frozen:
        raise ValueError(f"'{word}' must be a frozen dataclass, but it is not; write @dataclass(frozen=True)")
    return value


def word_of(cls: type[Integrator]) -> str:
    """The word by which `find` gives this class; `module:Class` where it gives no such class, which says
    where the class is from."""
    if cls.__module__ == f"{__package__}.{cls.__module__.rpartition('.')[2]}":
        return cls.__name__
    if file := names.file_of(cls.__module__):
        return f"{file}:{cls.__qualname__}"
    from noslip.integrators import find

    word = f"{cls.__module__}:{cls.__qualname__}"
    points = names.installed(f"{__package__}").items()
    return next((name for name, point in points if point.value == word and find(name) is cls), word)


def spelled(method: Integrator) -> str:
    """The text from which `parse` makes an equal method; for those of noslip it is `repr`."""
    word = word_of(type(method))
    if names.in_a_file(word) and not re.fullmatch(_FILE, word):
        word = repr(word)
    parts = []
    for f in _fields(type(method)):
        value = getattr(method, f.name)
        parts.append(f"{f.name}={spelled(value) if isinstance(value, Integrator) else repr(value)}")
    return f"{word}({', '.join(parts)})"
