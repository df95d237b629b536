"""How pytrees of arrays lie in memory for compiled code: 8-byte slots, [group][slot][lane]."""

from __future__ import annotations

import functools
import itertools
import math

import jax
import numpy as np

from noslip.engine.program import PyTree
from noslip.numerics import aligned
from noslip.numerics.threads import in_ranges


class Table:
    """The slots of a pytree of arrays; whole numbers and truths are stored as int64."""

    def __init__(self, shape: PyTree):
        leaves, self.structure = jax.tree.flatten(shape)
        self.shapes = [tuple(np.shape(leaf)) for leaf in leaves]
        self.dtypes = [np.dtype(getattr(leaf, "dtype", np.float64)) for leaf in leaves]
        ends = list(itertools.accumulate(map(math.prod, self.shapes), initial=0))
        self.places = [slice(*ends) for ends in itertools.pairwise(ends)]
        self.slots = ends[-1]

    @functools.cached_property
    def first_slots(self) -> PyTree:
        """The pytree with the number of its first slot in the place of each array."""
        return jax.tree.unflatten(self.structure, [place.start for place in self.places])

    def pack(self, tree: PyTree, members: int, width: int) -> np.ndarray:
        """Arrays (members, ...) as a table; the last group is filled up with its last member.
        An array without the leading axis belongs to every member."""
        groups = -(-members // width)
        flat = np.empty((groups * width, self.slots), np.int64)
        numbers = flat.view(np.float64)  # the same memory
        for leaf, shape, dtype, place in zip(
            jax.tree.leaves(tree), self.shapes, self.dtypes, self.places, strict=True
        ):
            array, target = np.asarray(leaf), numbers if dtype.kind == "f" else flat
            leading = array.shape[: array.ndim - len(shape)]
            target[:members, place] = array.reshape(*leading, place.stop - place.start)
        flat[members:] = flat[members - 1]
        return np.ascontiguousarray(flat.reshape(groups, width, self.slots).transpose(0, 2, 1))

    def unpack(self, table: np.ndarray, members: int, threads: int = 1) -> PyTree:
        """Arrays (members, ...) of a table [group][slot][lane]; large ones are copied by so many threads."""
        groups, _, width = table.shape
        numbers, leaves, copies = table.view(np.float64), [], []
        for shape, dtype, place in zip(self.shapes, self.dtypes, self.places, strict=True):
            out = aligned.empty((groups, width, place.stop - place.start), dtype)
            copies.append((out, (numbers if dtype.kind == "f" else table)[:, place].transpose(0, 2, 1)))
            leaves.append(out.reshape(groups * width, *shape)[:members])

        def copy(a: int, b: int) -> None:
            for out, slots_last in copies:
                out[a:b] = slots_last[a:b]

        in_ranges(copy, groups, threads if table.nbytes > aligned.MANY else 1)
        return jax.tree.unflatten(self.structure, leaves)

    def split_bits(self, flat: np.ndarray) -> PyTree:
        """Arrays (rows, ...) of the bits in the slots, (rows, slots)."""
        return self._tree(np.ascontiguousarray(flat).view(np.float64), flat)

    def split(self, values: np.ndarray) -> PyTree:
        """Arrays (rows, ...) of the numbers in the slots, (rows, slots)."""
        return self._tree(values, values)

    def _tree(self, numbers: np.ndarray, wholes: np.ndarray) -> PyTree:
        """Copies of the arrays, out of floats and whole numbers (..., slots)."""
        leaves, rows = [], numbers.shape[:-1]
        copy = aligned.copied if numbers.nbytes >= aligned.LARGE else np.ndarray.astype
        for shape, dtype, place in zip(self.shapes, self.dtypes, self.places, strict=True):
            source = numbers if dtype.kind == "f" else wholes
            leaves.append(copy(source[..., place], dtype).reshape(rows + shape))
        return jax.tree.unflatten(self.structure, leaves)
