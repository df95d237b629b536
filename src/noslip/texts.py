"""Values from texts: what a signature asks for decides what `0.5`, `yes` or `1,2,3` is; and back again."""

from __future__ import annotations

import types
from collections.abc import Mapping
from typing import Any, Literal, Union, get_args, get_origin

from noslip.errors import unknown_name

_WORDS = {"true": True, "yes": True, "false": False, "no": False}


def value(what: str, text: str, wanted: Any) -> Any:
    """`text` as the type `wanted`; a type that says nothing means a number, whole if written so."""
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


def listed(values: Mapping[str, object]) -> str:
    """name=value, name=value; floats to six digits."""

    def short(value: Any) -> str:
        if getattr(value, "ndim", 0):
            return ",".join(f"{x:g}" for x in value.ravel())
        return f"{value:.6g}" if isinstance(value, float) else str(value)

    return ", ".join(f"{name}={short(value)}" for name, value in values.items())
