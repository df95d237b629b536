"""Where a system comes from: the catalogue, an installed package, a file of the user, or an object."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import ModuleType
from typing import Any, NamedTuple, get_type_hints

import numpy as np

from noslip import texts
from noslip.errors import first_line, unknown_name
from noslip.system import System


class Start(NamedTuple):
    """An initial state; `projected` says that its velocity is not the typical one, but the nearest
    admissible."""

    q: np.ndarray
    v: np.ndarray
    projected: bool


@dataclass(frozen=True)
class Source:
    """A System, or a function that makes one, with what is known beside it."""

    name: str
    maker: System | Callable[..., System]
    typical_state: Callable[..., Any] | None = None
    exact: Callable[..., Any] | None = None
    picture: Callable[..., Any] | None = None

    @classmethod
    def beside(cls, name: str, maker: Any, module: ModuleType) -> Source:
        """With the typical state, the closed form and the picture that stand in the same module."""
        if not callable(maker) and not isinstance(maker, System):
            raise ValueError(f"'{name}' must be a System or a function that returns one, but it is {maker!r}")
        return cls(name, maker, *(getattr(module, x, None) for x in ("typical_state", "exact", "picture")))

    def _known(self) -> tuple[dict[str, Any], bool]:
        """Names and types of the maker's arguments, and whether it takes any name."""
        if isinstance(self.maker, System):
            return {}, False
        hints = get_type_hints(self.maker) if inspect.isfunction(self.maker) else {}
        try:
            parameters = inspect.signature(self.maker).parameters
        except (ValueError, TypeError):
            raise ValueError(f"'{self.name}' must be a function that says what it takes") from None
        open_ended = any(p.kind is p.VAR_KEYWORD for p in parameters.values())
        return {
            k: hints.get(k, Any) for k, p in parameters.items() if p.kind is not p.VAR_KEYWORD
        }, open_ended

    def arguments(self, given: Mapping[str, str]) -> dict[str, Any]:
        """Texts as values of the types of the maker's arguments."""
        types, _ = self._known()
        return {k: texts.value(f"parameter '{k}'", text, types.get(k, Any)) for k, text in given.items()}

    def build(self, arguments: Mapping[str, Any]) -> System:
        """The system; what the maker does not take goes to the parameters of what it makes."""
        types, open_ended = self._known()
        mine = {k: v for k, v in arguments.items() if k in types or open_ended}
        made: Any = self.maker if isinstance(self.maker, System) else self._made(self.maker, mine)
        if not isinstance(made, System):
            raise ValueError(
                f"'{self.name}' must be a System or a function that returns one, but it is {made!r}"
            )
        rest = {k: v for k, v in arguments.items() if k not in mine}
        for name in rest:
            if name not in made.parameters:
                raise ValueError(unknown_name("parameter", name, {*types, *made.parameters}))
        return made.with_parameters(rest) if rest else made

    def _made(self, maker: Callable[..., System], arguments: Mapping[str, Any]) -> System:
        try:
            inspect.signature(maker).bind(**arguments)
        except TypeError as error:
            raise ValueError(f"'{self.name}' needs --set NAME=VALUE, or an argument: {error}") from None
        return self._called(maker, arguments)

    def _called(self, function: Callable[..., Any], arguments: Mapping[str, Any]) -> Any:
        """What a function of the user returns; what it did not expect is said in one sentence."""
        try:
            return function(**arguments)
        except (ValueError, TypeError):
            raise
        except Exception as error:
            raise ValueError(
                f"'{self.name}' failed with {type(error).__name__}: {first_line(error)}"
            ) from error

    def start(self, model: System, arguments: Mapping[str, Any], q0: Any = None, v0: Any = None) -> Start:
        """q0 and v0, or the typical ones; a typical velocity that the parameters or q0 have moved off the
        constraint is projected onto it."""
        if q0 is not None and v0 is not None:
            return Start(q0, v0, False)
        if self.typical_state is None:
            raise ValueError(f"'{self.name}' has no typical_state, so --q0 and --v0 must both be given")
        takes = inspect.signature(self.typical_state).parameters
        typical = self._called(self.typical_state, {k: x for k, x in arguments.items() if k in takes})
        if any(np.shape(x) != (model.n,) for x in typical):
            raise ValueError(
                f"the typical state of '{self.name}' must have {model.n} coordinates, but it has shapes "
                f"{', '.join(str(np.shape(x)) for x in typical)}; give --q0 and --v0"
            )
        q = np.asarray(typical[0]) if q0 is None else q0
        if v0 is not None:
            return Start(q, v0, False)
        v = np.asarray(typical[1])
        if model.is_admissible(q, v):
            return Start(q, v, False)
        return Start(q, np.asarray(model.project_velocity(q, v)), True)
