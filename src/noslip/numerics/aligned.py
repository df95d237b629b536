"""Memory that others can use as it is: JAX takes an array of the host without a copy where it begins at a
multiple of 64 bytes, and NumPy begins wherever it likes. Small arrays are not worth the care."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, DTypeLike

from noslip.numerics.threads import in_ranges

LINE, LARGE = 64, 1 << 16  # bytes
MANY = 1 << 22  # bytes that are worth several threads


def empty(shape: tuple[int, ...], dtype: DTypeLike = np.float64) -> np.ndarray:
    """As NumPy's, and aligned where it is large."""
    kind = np.dtype(dtype)
    size = math.prod(shape) * kind.itemsize
    if size < LARGE:
        return np.empty(shape, kind)
    memory = np.empty(size + LINE, np.uint8)
    first = -memory.ctypes.data % LINE
    return memory[first : first + size].view(kind).reshape(shape)


def copied(array: np.ndarray, dtype: DTypeLike) -> np.ndarray:
    """`array.astype(dtype)`, aligned."""
    out = empty(array.shape, dtype)
    out[...] = array
    return out


def stacked(arrays: Sequence[ArrayLike], threads: int = 1) -> np.ndarray:
    """NumPy's `stack` of arrays that are alike, aligned; large ones are copied by so many threads."""
    first = np.asarray(arrays[0])
    out = empty((len(arrays), *first.shape), first.dtype)

    def copy(a: int, b: int) -> None:
        np.stack(arrays[a:b], out=out[a:b])

    in_ranges(copy, len(arrays), threads if out.nbytes > MANY else 1)
    return out


def joined(arrays: Sequence[np.ndarray]) -> np.ndarray:
    """NumPy's `concatenate` of arrays that are alike but for their number of rows, aligned."""
    first = arrays[0]
    out = empty((sum(map(len, arrays)), *first.shape[1:]), first.dtype)
    return np.concatenate(arrays, out=out)
