"""The numbers of a model: each is a number, or the name of a parameter of the system."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import fields, is_dataclass
from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import Array

from noslip.errors import shown
from noslip.numerics.tracing import Values
from noslip.system.derived import Parameters

UNIT = {"x": (1.0, 0.0, 0.0), "y": (0.0, 1.0, 0.0), "z": (0.0, 0.0, 1.0)}


class ParameterName(str):
    """The name of a parameter in the place of a number."""


Number = float | ParameterName
Vector = tuple[Number, Number, Number]
OfTime = Callable[..., float | Array]  # f(t), or f(t, p)
NumberLike = float | str
VectorLike = Sequence[NumberLike] | Values
AxisLike = str | Sequence[float] | Values  # a letter, or a vector of any length
TensorLike = NumberLike | VectorLike | Sequence[VectorLike]
PointLike = tuple[str, VectorLike]  # a body and a place


def number(what: str, value: NumberLike) -> Number:
    """A finite number, or the name of a parameter."""
    if isinstance(value, str):
        return ParameterName(value)
    if isinstance(value, bool) or np.ndim(value) != 0 or np.asarray(value).dtype.kind not in "fiu":
        raise ValueError(f"{what} must be a number or the name of a parameter, but {shown(value)} was given")
    if not np.isfinite(value):
        raise ValueError(f"{what} must be finite, but {shown(value)} was given")
    return float(value)


def vector(what: str, value: VectorLike) -> Vector:
    """Three of them."""
    if isinstance(value, str) or np.ndim(value) != 1 or len(value) != 3:
        raise ValueError(f"{what} must be three numbers, but {shown(value)} was given")
    x, y, z = (number(what, part) for part in value)
    return x, y, z


def axis(what: str, value: AxisLike) -> tuple[float, float, float]:
    """A unit vector, from a letter or from three numbers of any length."""
    if isinstance(value, str) and value.lstrip("-") in UNIT and len(value) <= 2:
        sign = -1.0 if value.startswith("-") else 1.0
        x, y, z = (sign * part if part else 0.0 for part in UNIT[value.lstrip("-")])
        return x, y, z
    found = vector(what, value) if not isinstance(value, str) else None
    if found is None or any(isinstance(part, str) for part in found) or not any(found):
        raise ValueError(
            f"{what} must be 'x', 'y', 'z' or three numbers, not all zero, but {shown(value)} was given"
        )
    x, y, z = (np.array(found, float) / np.linalg.norm(np.array(found, float))).tolist()
    return x, y, z


def tensor(what: str, value: Any) -> tuple[Vector, Vector, Vector]:
    """Moments of inertia: one for all axes, three, or a symmetric matrix."""
    if isinstance(value, str) or np.ndim(value) == 0:
        value = (value,) * 3
    if np.ndim(value) == 1:
        a, b, c = vector(what, value)
        return (a, 0.0, 0.0), (0.0, b, 0.0), (0.0, 0.0, c)
    if np.shape(value) != (3, 3):
        raise ValueError(
            f"{what} must be a number, three, or a matrix of shape (3, 3), but {shown(value)} was given"
        )
    rows = [vector(what, row) for row in value]
    if any(rows[i][j] != rows[j][i] for i in range(3) for j in range(i)):
        raise ValueError(f"{what} must be symmetric, but {shown(value)} was given")
    return rows[0], rows[1], rows[2]


def of(x: Any, p: Parameters) -> Any:
    """The value: an array of NumPy where no parameter is in it."""
    if isinstance(x, ParameterName):
        return p[x]
    if not isinstance(x, tuple):
        return x
    parts = [of(part, p) for part in x]
    return jnp.stack([jnp.asarray(part, float) for part in parts]) if any(names_in(x)) else np.array(parts)


def names_in(x: object) -> Iterator[str]:
    """The parameters that something is made of."""
    if isinstance(x, ParameterName):
        yield str(x)
    elif isinstance(x, tuple):
        for part in x:
            yield from names_in(part)
    elif is_dataclass(x):
        for field in fields(x):
            yield from names_in(getattr(x, field.name))
