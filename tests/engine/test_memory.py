"""Tables of many members: what lies by group, slot and lane comes back whole, by any number of threads."""

import jax
import numpy as np
import pytest

from noslip.engine.memory import Table
from noslip.numerics import aligned

WIDTH = 8
SHAPE = {
    "q": jax.ShapeDtypeStruct((3,), np.float64),
    "failed": jax.ShapeDtypeStruct((), np.bool_),
    "turns": jax.ShapeDtypeStruct((2,), np.int64),
    "M": jax.ShapeDtypeStruct((2, 2), np.float64),
}


def some(members):
    rng = np.random.default_rng(members)
    return {
        "q": rng.normal(size=(members, 3)),
        "failed": rng.random(members) < 0.5,
        "turns": rng.integers(-(2**60), 2**60, (members, 2)),
        "M": rng.normal(size=(members, 2, 2)),
    }


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("members", [5, 2**16 + 3])
def test_what_is_packed_is_unpacked(members, threads):
    table, given = Table(SHAPE), some(members)
    packed = table.pack(given, members, WIDTH)
    assert (packed.nbytes > aligned.MANY) == (members > 5)
    found = table.unpack(packed, members, threads)
    for name, values in given.items():
        assert found[name].dtype == values.dtype
        np.testing.assert_array_equal(found[name], values, err_msg=name)


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("rows", [3, 1000])
def test_rows_are_stacked_in_their_order(rows, threads):
    given = [np.full(1000, float(k)) for k in range(rows)]
    made = aligned.stacked(given, threads)
    assert (made.nbytes > aligned.MANY) == (rows > 3)
    np.testing.assert_array_equal(made, given)
