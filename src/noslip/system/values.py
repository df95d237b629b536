"""The numbers of a system: parameters, and the inputs that are among them."""

from __future__ import annotations

import jax
import numpy as np
from numpy.typing import ArrayLike

from noslip.errors import shown
from noslip.numerics.tracing import Either


def as_input(name: str, value: ArrayLike) -> float:
    """The number that an input is where a run gives none."""
    number = as_parameter(name, value)
    if np.shape(number) != () or isinstance(number, jax.core.Tracer):
        raise ValueError(f"input '{name}' must have a number as its default, but {shown(value)} was provided")
    return float(number)


def as_parameter(name: str, value: ArrayLike) -> Either:
    """A float64, or an array of them, or a tracer."""
    if isinstance(value, jax.core.Tracer):
        return value
    if np.asarray(value).dtype.kind not in "fiu":
        raise ValueError(f"parameter '{name}' must be a number, but {shown(value)} was provided")
    if np.asarray(value).dtype in (np.float32, np.float16):
        why = "; import noslip before making JAX arrays, which are 32-bit until then"
        raise ValueError(
            f"parameter '{name}' must be float64, but {np.asarray(value).dtype} was provided"
            f"{why if isinstance(value, jax.Array) else ''}"
        )
    array = np.asarray(value, dtype=float)
    if not np.all(np.isfinite(array)):
        raise ValueError(f"parameter '{name}' must be finite, but {shown(value)} was provided")
    return array if array.ndim else float(array)
