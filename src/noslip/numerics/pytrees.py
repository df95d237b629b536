"""Frozen dataclasses that JAX can carry through loops and differentiate."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar, dataclass_transform

import jax
import jax.numpy as jnp
import numpy as np

_T = TypeVar("_T")
PyTree = Any  # any nesting of arrays that JAX can take apart


@dataclass_transform(frozen_default=True)
def pytree(cls: type[_T]) -> type[_T]:
    """Make `cls` a frozen dataclass all of whose fields are pytree children."""
    return jax.tree_util.register_dataclass(dataclass(frozen=True)(cls))


def anatomy(tree: PyTree) -> tuple[list[Any], jax.tree_util.PyTreeDef, tuple[tuple[int, ...], ...]]:
    """Leaves, structure and shapes of a pytree; the last two name the code that runs it."""
    leaves, structure = jax.tree.flatten(tree)
    return leaves, structure, tuple(() if type(leaf) is float else np.shape(leaf) for leaf in leaves)


def of_leaves(function: Callable[..., Any], *args: PyTree) -> tuple[Callable[..., Any], list[Any]]:
    """The function of the leaves of its arguments, and these: for JAX, which keeps the structure of what it
    is given for long, and with a system's its functions."""
    leaves, structure = jax.tree.flatten(args)
    return lambda *x: function(*jax.tree.unflatten(structure, x)), leaves


def replaced(value: _T, **changes: Any) -> _T:
    """The same with some fields changed; `dataclasses.replace` for what JAX may have made of it."""
    return type(value)(**{**vars(value), **changes})


def either(choice: jax.Array, a: _T, b: _T) -> _T:
    """One of two pytrees."""
    return jax.tree.map(lambda x, y: jnp.where(choice, x, y), a, b)
