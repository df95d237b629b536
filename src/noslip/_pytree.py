"""Frozen dataclasses that JAX can carry through loops and differentiate."""

from dataclasses import dataclass
from typing import Any, TypeVar, dataclass_transform

import jax

_T = TypeVar("_T")


@dataclass_transform(frozen_default=True)
def pytree(cls: type[_T]) -> type[_T]:
    """Make `cls` a frozen dataclass all of whose fields are pytree children."""
    return jax.tree_util.register_dataclass(dataclass(frozen=True)(cls))


def replaced(value: _T, **changes: Any) -> _T:
    """The same with some fields changed; `dataclasses.replace` for what JAX may have made of it."""
    return type(value)(**{**vars(value), **changes})
