"""Whether JAX is tracing: then values are unknown and nothing can be judged by them."""

from __future__ import annotations

from typing import Any, TypeAlias

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.extend.core import get_opaque_trace_state

Real: TypeAlias = float | np.ndarray | Array  # a number, which may be traced
Values: TypeAlias = np.ndarray | Array  # an array whose numbers are known, or traced
Either: TypeAlias = Any  # the same in a result, whose reader knows which of them it is

with jax.ensure_compile_time_eval():
    _EAGER = get_opaque_trace_state()


def is_eager() -> bool:
    """Whether surely nothing is traced but by its own value."""
    return bool(get_opaque_trace_state() == _EAGER)


def is_traced(*values: object) -> bool:
    """Whether a JAX transformation is under way: traced values, or an enclosing jit that stages all."""
    if is_eager():  # the usual case, without an operation
        return has_tracers(values)
    return has_tracers(values, jnp.zeros(()))


def has_tracers(*values: object) -> bool:
    """Whether some of these values are traced."""
    return any(isinstance(leaf, jax.core.Tracer) for leaf in jax.tree.leaves(values))
