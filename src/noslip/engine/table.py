"""How pytrees of arrays lie in memory for compiled code: 8-byte slots, [group][slot][lane]."""

from __future__ import annotations

import functools
import itertools
import math
from typing import Any

import jax
import numpy as np


class Table:
    """The slots of a pytree of arrays; whole numbers and truths are stored as int64."""

    def __init__(self, shape: Any):
        leaves, self.structure = jax.tree.flatten(shape)
        self.shapes = [tuple(np.shape(leaf)) for leaf in leaves]
        self.dtypes = [np.dtype(getattr(leaf, "dtype", np.float64)) for leaf in leaves]
        self.sizes = [math.prod(shape) for shape in self.shapes]
        self.slots = sum(self.sizes)

    @functools.cached_property
    def first_slots(self) -> Any:
        """The pytree with the number of its first slot in the place of each array."""
        ends = itertools.accumulate(self.sizes, initial=0)
        return jax.tree.unflatten(self.structure, list(ends)[:-1])

    def pack(self, tree: Any, members: int, width: int) -> np.ndarray:
        """Arrays (members, ...) as a table; the last group is filled up with its last member.
        An array without the leading axis belongs to every member."""
        columns = []
        for leaf, shape, dtype in zip(jax.tree.leaves(tree), self.shapes, self.dtypes, strict=True):
            array = np.asarray(leaf).astype(np.float64 if dtype.kind == "f" else np.int64)
            if array.shape == shape:
                array = np.broadcast_to(array, (members, *shape))
            columns.append(np.ascontiguousarray(array).reshape(members, -1).view(np.int64))
        flat = np.concatenate(columns, axis=1) if columns else np.empty((members, 0), np.int64)
        groups = -(-members // width)
        full = np.concatenate([flat, np.repeat(flat[-1:], groups * width - members, axis=0)])
        return np.ascontiguousarray(full.reshape(groups, width, self.slots).transpose(0, 2, 1))

    def unpack(self, table: np.ndarray, members: int) -> Any:
        """Arrays (members, ...) of a table [group][slot][lane], or (rows, members, ...) of one with rows
        [group][row][slot][lane]."""
        groups, *rows, _, width = table.shape
        slots_last = table.transpose((1, 0, 3, 2) if rows else (0, 2, 1))
        flat = slots_last.reshape(*rows, groups * width, self.slots)[..., :members, :]
        return self._tree(flat, bits=True)

    def split(self, values: np.ndarray) -> Any:
        """Arrays (rows, ...) of the numbers in the slots, (rows, slots)."""
        return self._tree(values, bits=False)

    def _tree(self, flat: np.ndarray, bits: bool) -> Any:
        leaves, first = [], 0
        for shape, dtype, size in zip(self.shapes, self.dtypes, self.sizes, strict=True):
            part = np.ascontiguousarray(flat[..., first : first + size])
            part = part.view(np.float64) if bits and dtype.kind == "f" else part.astype(dtype)
            leaves.append(part.reshape(*flat.shape[:-1], *shape))
            first += size
        return jax.tree.unflatten(self.structure, leaves)
