"""Time in a system: functions that take t before p, and the system at one time.

To the rest of the house time is one more parameter. `Timed` makes f(q, v, t, p) a function of (q, v, p) that
finds t among the parameters, under a name that nobody can give; `System.at(t)` puts it there. So whatever is
derived from a system is derived from it at its time, and a system without t is what it always was.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

T = TypeVar("T")
TIME = "(time)"  # among the parameters of a system whose functions take t


@dataclass(frozen=True)
class Timed:
    """f(..., t, p) as a function of (..., p); equal for equal f, so equal systems share compiled code."""

    __wrapped__: Callable[..., Any]

    def __post_init__(self) -> None:
        for name in functools.WRAPPER_ASSIGNMENTS:  # where it is from, for those who ask a function
            if hasattr(self.__wrapped__, name):
                object.__setattr__(self, name, getattr(self.__wrapped__, name))

    def __call__(self, *arguments: Any) -> Any:
        *state, p = arguments
        return self.__wrapped__(*state, p[TIME], p)


def timed(function: Any, count: int) -> Any:
    """The function as it is if it takes `count` arguments, as `Timed` if it takes t as well."""
    if isinstance(function, Timed) or not callable(function):
        return function
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):  # of a builtin that does not say
        return function
    return Timed(function) if not _fits(signature, count) and _fits(signature, count + 1) else function


def _fits(signature: inspect.Signature, count: int) -> bool:
    try:
        signature.bind(*range(count))
    except TypeError:
        return False
    return True


def visible(parameters: Mapping[str, T]) -> dict[str, T]:
    """The parameters that the user gave."""
    return {name: value for name, value in parameters.items() if not name.startswith("(")}
