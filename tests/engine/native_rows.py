"""A function of many rows by native code, for the tests of this folder."""

import jax
import numpy as np

from noslip.engine.backends import native
from noslip.engine.memory import Table
from noslip.engine.translate import translate


def compiled(function, rows, width):
    """The function of every row by native code of that many lanes."""
    shape = jax.ShapeDtypeStruct(rows.shape[1:], float)
    program = translate(lambda _, x: function(x), 0.0, shape)
    out = Table(program.shape)
    values = Table(shape).pack(rows, len(rows), width)
    table = np.zeros((len(values), out.slots, width), np.int64)
    native.map_function(program, width)(np.zeros((len(values), 1, width)), values, table, len(values))
    return out.unpack(table, len(rows))
