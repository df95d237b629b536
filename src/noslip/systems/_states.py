"""How typical states are computed."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import ParamSpec, TypeVar

import jax

P = ParamSpec("P")
R = TypeVar("R")


def in_one_program(make: Callable[P, R]) -> Callable[P, R]:
    """The same, compiled as a whole for each choice of its arguments: dozens of small programs, one for each
    operation, take much longer."""
    compiled = jax.jit(make, static_argnames=tuple(inspect.signature(make).parameters))

    @functools.wraps(make)
    def call(*args: P.args, **named: P.kwargs) -> R:
        made: R = compiled(*args, **named)
        return made

    return call
