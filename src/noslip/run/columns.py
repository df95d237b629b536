"""Columns of a run on disk: arrays that are read when they are indexed, and in blocks to be summed up."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.lib.mixins import NDArrayOperatorsMixin
from numpy.typing import DTypeLike

if TYPE_CHECKING:
    import xarray
    import zarr


class Column(NDArrayOperatorsMixin):
    """Rows of an array on disk, as many as there were when it was opened.

    Indexing by numbers and slices reads only what it shows. Sums, largest and smallest values are formed
    block by block. All else that an array of NumPy can do reads the whole column first.
    """

    def __init__(self, array: zarr.Array, rows: int):
        self.array, self.dtype = array, array.dtype
        self.shape: tuple[int, ...] = (rows, *array.shape[1:])
        self.block = int(array.chunks[0])  # rows that lie together

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def size(self) -> int:
        return int(np.prod(self.shape))

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, index: Any) -> Any:
        first, *rest = index if isinstance(index, tuple) else (index,)
        if isinstance(first, slice) and first.indices(len(self))[2] > 0:
            start, stop, step = first.indices(len(self))
            rows: slice | int = slice(start, max(start, stop), step)
            others = (slice(None), *rest)
        elif isinstance(first, int | np.integer) and not isinstance(first, bool):
            if not -len(self) <= first < len(self):
                raise IndexError(f"there is no row {first} among {len(self)}")
            rows, others = int(first) % len(self), tuple(rest)
        else:
            return np.asarray(self)[index]
        if all(isinstance(x, int | np.integer | slice) for x in rest):
            return self.array[(rows, *rest)][()]
        return self.array[rows][others]

    def __array__(self, dtype: DTypeLike | None = None, copy: bool | None = None) -> np.ndarray:
        return np.asarray(self.array[: len(self)], dtype)

    def __array_ufunc__(self, function: np.ufunc, method: str, *inputs: object, **how: object) -> Any:
        plain = [np.asarray(x) if isinstance(x, Column) else x for x in inputs]
        return getattr(function, method)(*plain, **how)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        return getattr(np.asarray(self), name)

    def __repr__(self) -> str:
        return f"Column(shape {self.shape}, {self.dtype}, on disk)"

    def blocks(self) -> Iterator[np.ndarray]:
        """All rows, some at a time."""
        for start in range(0, len(self), self.block):
            yield self[start : start + self.block]

    def max(self, axis: int | None = None, **how: object) -> Any:
        return self._folded(np.max, axis, how)

    def min(self, axis: int | None = None, **how: object) -> Any:
        return self._folded(np.min, axis, how)

    def sum(self, axis: int | None = None, **how: object) -> Any:
        return self._folded(np.sum, axis, how)

    def any(self, axis: int | None = None, **how: object) -> Any:
        return self._folded(np.any, axis, how)

    def _folded(self, fold: Callable[..., Any], axis: int | None, how: dict[str, object]) -> Any:
        given = {k: x for k, x in how.items() if x is not None}
        if axis is not None or given or not self.size:
            return fold(np.asarray(self), axis=axis, **how)
        return fold(np.array([fold(block) for block in self.blocks()]))


def lazily(dimensions: tuple[str, ...], column: Column) -> xarray.Variable:
    """A variable of xarray that is read when it is needed; in blocks for Dask where that is installed."""
    import xarray
    from xarray.backends import BackendArray
    from xarray.core import indexing

    class OnDisk(BackendArray):
        shape, dtype = column.shape, column.dtype

        def __getitem__(self, key: indexing.ExplicitIndexer) -> np.ndarray:
            plain = indexing.IndexingSupport.BASIC
            return indexing.explicit_indexing_adapter(key, self.shape, plain, column.__getitem__)

    variable = xarray.Variable(dimensions, indexing.LazilyIndexedArray(OnDisk()))
    if importlib.util.find_spec("dask") is None:
        return variable
    return variable.chunk({dimensions[0]: column.block})
