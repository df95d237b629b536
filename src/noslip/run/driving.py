"""Tables of inputs, one entry per step, as the runners read them."""

from __future__ import annotations

import jax
import numpy as np
from jax import Array

from noslip.system.inputs import Drive


def of_step(table: Drive, k: int | np.ndarray | Array) -> Drive:
    """The inputs of step k; the steps are the last axis."""
    return None if table is None else jax.tree.map(lambda x: x[..., k], table)


def fed(table: Drive, k: int, drive: Drive) -> Drive:
    """The table with these inputs for step k, and room for others after it."""

    def column(x: np.ndarray, new: np.ndarray) -> np.ndarray:
        longer = np.resize(x, 2 * len(x)) if k >= len(x) else np.array(x)
        longer[k] = new
        return longer

    return jax.tree.map(column, table, drive)


def driving_table(table: Drive, members: int, width: int) -> np.ndarray:
    """For native code, [group][step][slot][lane]; one group where all members share the inputs."""
    leaves = [np.asarray(x, float) for x in jax.tree.leaves(table)]
    own = any(x.ndim > 1 for x in leaves)
    groups = -(-members // width) if own else 1
    rows = members if own else 1
    flat = np.empty((groups * width, len(leaves), leaves[0].shape[-1]))
    for slot, x in enumerate(leaves):
        flat[:rows, slot] = x
    flat[rows:] = flat[rows - 1]  # filled up with the last
    lanes_last = flat.reshape(groups, width, *flat.shape[1:]).transpose(0, 3, 2, 1)
    return np.ascontiguousarray(lanes_last)
