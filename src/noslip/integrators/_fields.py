"""The parameters of a method are of the kinds that its fields declare, or refused when the method is made."""

from __future__ import annotations

import functools
import types
from collections.abc import Callable
from dataclasses import fields
from typing import TYPE_CHECKING, Any, Union, get_args, get_origin, get_type_hints

import numpy as np

from noslip.errors import shown

if TYPE_CHECKING:
    from noslip.integrators.base import Integrator

KINDS: dict[type, tuple[tuple[type, ...], str]] = {
    bool: ((bool, np.bool_), "True or False"),
    int: ((int, np.integer), "a whole number"),
    float: ((int, float, np.integer, np.floating), "a number"),
    str: ((str,), "a text"),
}


def check_first(own: Callable[[Integrator], None]) -> Any:
    """A `__post_init__` that begins with `refuse_other_kinds`."""

    @functools.wraps(own)
    def both(self: Integrator) -> None:
        refuse_other_kinds(self)
        own(self)

    return both


def refuse_other_kinds(method: Integrator) -> None:
    """Refuse a value that is not of its field's kind, where the field is a plain one."""
    for name, kinds in _declared(type(method)).items():  # type: ignore[arg-type]
        value = getattr(method, name)
        if not any(_is_a(value, kind) for kind in kinds):
            wanted = " or ".join(_said(kind) for kind in kinds)
            raise TypeError(f"`{name}` must be {wanted}, but {shown(value)} was provided")


@functools.cache
def _declared(cls: Any) -> dict[str, tuple[type, ...]]:
    """Of each field that is of plain kinds only: these."""
    from noslip.integrators.base import Integrator

    try:
        hints = get_type_hints(cls)
    except (NameError, TypeError):  # names that are imported for type checkers only
        return {}
    found = {}
    for field in fields(cls):
        hint = hints[field.name]
        parts = get_args(hint) if get_origin(hint) in (Union, types.UnionType) else (hint,)
        if all(
            isinstance(x, type) and (x in KINDS or x is type(None) or issubclass(x, Integrator))
            for x in parts
        ):
            # which integrators it takes a method says itself
            found[field.name] = tuple(Integrator if issubclass(x, Integrator) else x for x in parts)
    return found


def _is_a(value: object, kind: type) -> bool:
    if kind is not bool and isinstance(value, bool | np.bool_):
        return False
    return isinstance(value, KINDS[kind][0] if kind in KINDS else kind)


def _said(kind: type) -> str:
    return KINDS[kind][1] if kind in KINDS else "None" if kind is type(None) else "an integrator"
