"""What the command line is told, as objects: systems, integrators, states and values from words."""

from __future__ import annotations

import dataclasses
import importlib.util
import inspect
import sys
import traceback
import types
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Union, get_args, get_origin, get_type_hints

import typer

from noslip.errors import unknown_name

if TYPE_CHECKING:
    from noslip.integrators.base import Integrator
    from noslip.system import System


@dataclasses.dataclass(frozen=True)
class Source:
    """Where a system comes from: a System, or a function that makes one; and its typical state."""

    label: str
    maker: Any
    typical: Callable[..., Any] | None

    def _known(self) -> tuple[dict[str, Any], bool]:
        """Names and types of the maker's arguments, and whether it takes any name."""
        from noslip.system import System

        if isinstance(self.maker, System):
            return {}, False
        hints = get_type_hints(self.maker) if inspect.isfunction(self.maker) else {}
        parameters = inspect.signature(self.maker).parameters
        open_ended = any(p.kind is p.VAR_KEYWORD for p in parameters.values())
        return {
            k: hints.get(k, Any) for k, p in parameters.items() if p.kind is not p.VAR_KEYWORD
        }, open_ended

    def arguments(self, texts: Mapping[str, str]) -> dict[str, Any]:
        """--set values in the types of the maker's arguments."""
        types, _ = self._known()
        return {k: _value(f"parameter '{k}'", text, types.get(k, Any)) for k, text in texts.items()}

    def build(self, arguments: Mapping[str, Any]) -> System:
        """The system; what the maker does not take goes to the parameters of what it makes."""
        from noslip.system import System

        types, open_ended = self._known()
        mine = {k: v for k, v in arguments.items() if k in types or open_ended}
        if isinstance(self.maker, System):
            made: Any = self.maker
        else:
            try:
                inspect.signature(self.maker).bind(**mine)
            except TypeError as error:
                raise ValueError(f"'{self.label}' needs --set: {error}") from None
            try:
                made = self.maker(**mine)
            except (KeyError, AttributeError, ArithmeticError) as error:
                raise ValueError(f"'{self.label}' failed with {type(error).__name__}: {error}") from None
        if not isinstance(made, System):
            raise ValueError(
                f"'{self.label}' must be a System or a function that returns one, but it is {made!r}"
            )
        rest = {k: v for k, v in arguments.items() if k not in mine}
        for name in rest:
            if name not in made.parameters:
                raise ValueError(unknown_name("parameter", name, {*types, *made.parameters}))
        return made.with_parameters(rest) if rest else made


def open_source(label: str) -> Source:
    """A catalogue name, or `path.py:name`."""
    if ":" not in label and not label.endswith(".py"):
        from noslip.systems import find

        module = find(label)
        return Source(label, module.system, module.typical_state)
    path, _, name = label.rpartition(":") if not label.endswith(".py") else (label, "", "")
    module = _import_file(path)
    from noslip.system import System

    names = [k for k, x in vars(module).items() if isinstance(x, System)]
    if not name:
        raise ValueError(
            f"'{label}' must name a system in that file, as in {path}:{names[0] if names else 'NAME'}"
        )
    if not hasattr(module, name):
        raise ValueError(unknown_name(f"system in {path}", name, names))
    maker = getattr(module, name)
    if not callable(maker) and not isinstance(maker, System):
        raise ValueError(f"'{label}' must be a System or a function that returns one, but it is {maker!r}")
    return Source(label, maker, getattr(module, "typical_state", None))


def _import_file(path: str) -> types.ModuleType:
    file = Path(path)
    if not file.is_file():
        raise ValueError(f"there is no file '{path}'")
    spec = importlib.util.spec_from_file_location(f"_noslip_user_{file.stem}", file)
    if spec is None or spec.loader is None:
        raise ValueError(f"'{path}' must be a Python file, with a name that ends in .py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    sys.path.insert(0, str(file.resolve().parent))  # as Python does for a script
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        lines = [
            f.lineno for f in traceback.extract_tb(error.__traceback__) if Path(f.filename) == file.absolute()
        ]
        where = f", line {error.lineno if isinstance(error, SyntaxError) else lines[-1] if lines else '?'}"
        raise ValueError(f"'{path}'{where}: {type(error).__name__}: {first_line(error)}") from error
    finally:
        sys.path.pop(0)
    return module


def make_integrator(name: str, options: Mapping[str, Any]) -> Integrator:
    """The integrator of that name; texts become values of the fields' types."""
    from noslip.integrators import find

    cls = find(name)
    known = {f.name for f in dataclasses.fields(cls)}  # type: ignore[arg-type]
    types = get_type_hints(cls) if options else {}
    values = {}
    for key, value in options.items():
        if key not in known:
            raise ValueError(unknown_name(f"option of {name}", key, known))
        values[key] = _value(f"option '{key}'", value, types[key]) if isinstance(value, str) else value
    return cls(**values)


def initial_state(
    source: Source, model: System, arguments: Mapping[str, Any], q0: str | None, v0: str | None
) -> tuple[Any, Any]:
    """--q0 and --v0, or the typical state, projected onto the constraint if the parameters moved it."""
    import numpy as np

    from noslip.run.arguments import ADMISSIBLE

    q, v = (None if x is None else vector(f"--{k}", x, model) for k, x in (("q0", q0), ("v0", v0)))
    if q is not None and v is not None:
        return q, v
    if source.typical is None:
        raise ValueError(f"'{source.label}' has no typical_state, so --q0 and --v0 must both be given")
    takes = inspect.signature(source.typical).parameters
    typical = source.typical(**{k: x for k, x in arguments.items() if k in takes})
    if any(np.shape(x) != (model.n,) for x in typical):
        raise ValueError(
            f"the typical state of '{source.label}' must have {model.n} coordinates, but it has shapes "
            f"{', '.join(str(np.shape(x)) for x in typical)}; give --q0 and --v0"
        )
    q = np.asarray(typical[0]) if q is None else q
    if v is not None:
        return q, v
    v = np.asarray(typical[1])
    if not np.max(np.abs(model.phi(q, v))) <= ADMISSIBLE * (1 + np.linalg.norm(v)):
        v = np.asarray(model.project_velocity(q, v))
        typer.echo(
            f"the typical v0 violates the constraint here; projected to {','.join(map(repr, v.tolist()))}"
        )
    return q, v


def pairs(option: str, texts: Sequence[str] | None) -> dict[str, str]:
    pairs: dict[str, str] = {}
    for text in texts or ():
        name, equals, value = (part.strip() for part in text.partition("="))
        if not (name and equals and value):
            raise ValueError(f"`{option}` must be name=value, but '{text}' was provided")
        if name in pairs:
            raise ValueError(f"`{option}` must give each name once, but '{name}' was given twice")
        pairs[name] = value
    return pairs


def vector(option: str, text: str, model: System) -> Any:
    import numpy as np

    try:
        values = [float(part) for part in text.split(",")]
    except ValueError:
        raise ValueError(
            f"`{option}` must be numbers with commas between, but '{text}' was provided"
        ) from None
    if len(values) != model.n:
        names = ",".join(model.coordinates)
        raise ValueError(f"`{option}` must be {model.n} numbers ({names}), but {len(values)} were provided")
    return np.array(values)


def _value(what: str, text: str, wanted: Any) -> Any:
    """`text` as the type `wanted`; a type that says nothing means a number, whole if written so."""
    from noslip.integrators import Integrator, parse

    if isinstance(wanted, type) and issubclass(wanted, Integrator):
        return parse(text)
    union = get_origin(wanted) in (Union, types.UnionType)
    for choice in get_args(wanted) if union else (wanted,):
        try:
            return _as_type(text, choice)
        except ValueError:
            continue
    if get_origin(wanted) is Literal:
        raise ValueError(unknown_name(f"value of {what}", text, map(str, get_args(wanted))))
    kind = {bool: "true or false", int: "a whole number"}.get(wanted, "a number")
    raise ValueError(f"{what} must be {kind}, but '{text}' was provided")


_WORDS = {"true": True, "yes": True, "false": False, "no": False}


def _as_type(text: str, wanted: Any) -> Any:
    if wanted in (int, float, str):
        return wanted(text)
    if wanted in (bool, type(None)) or get_origin(wanted) is Literal:
        words: dict[str, Any] = {"none": None} if wanted is type(None) else dict(_WORDS)
        key = text.lower()
        if get_origin(wanted) is Literal:
            words, key = {str(value): value for value in get_args(wanted)}, text
        if key not in words:
            raise ValueError(f"'{text}' is none of {', '.join(words)}")
        return words[key]
    if "," in text:
        import numpy as np

        return np.array([float(part) for part in text.split(",")])
    try:
        return int(text)
    except ValueError:
        return float(text)


def as_saved(value: Any) -> Any:
    """A parameter from a saved file as it was before: a list there was an array."""
    import numpy as np

    return np.array(value) if isinstance(value, list) else value


def is_plain(value: Any) -> bool:
    """Whether a default can be shown in a table."""
    return isinstance(value, (bool, int, float, str)) or getattr(value, "ndim", 0) > 0


def listed(values: Mapping[str, Any]) -> str:
    """name=value, name=value; floats to six digits."""

    def short(value: Any) -> str:
        if getattr(value, "ndim", 0):
            return ",".join(f"{x:g}" for x in value.ravel())
        return f"{value:.6g}" if isinstance(value, float) else str(value)

    return ", ".join(f"{name}={short(value)}" for name, value in values.items())


def first_line(error: BaseException) -> str:
    return str(error).strip().partition("\n")[0] or type(error).__name__
