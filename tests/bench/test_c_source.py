"""The C printed from a program computes the bits of native code: the benchmark compares the same work."""

import shutil

import numpy as np
import pytest

from benchmarks import c_source
from noslip.engine.backends import native
from noslip.integrators.semi_implicit_dla import SemiImplicitDLA
from noslip.run.one_native import NativeTrajectory
from noslip.run.pairing import pairing_of
from noslip.systems import gearbox

pytestmark = [
    pytest.mark.native,
    pytest.mark.skipif(shutil.which("gcc") is None, reason="gcc is needed for the benchmark alone"),
]


def test_printed_c_gives_the_same_bits_in_scalars_and_in_lanes(tmp_path):
    q, v = (np.asarray(x) for x in gearbox.typical_state())
    runner = NativeTrajectory(
        pairing_of(gearbox.system(), SemiImplicitDLA()), q, v, np.float64(0), np.float64(0.1)
    )
    source, start = c_source.time_loop(runner.programs.step), runner.carry.copy()
    runner.to(200, 200, 200)
    for width in (1, native.lanes()):
        advance = c_source.compile_c(source, width, tmp_path)
        fixed, carry = (np.repeat(x, width, axis=2).copy() for x in (runner.fixed, start))
        advance(fixed, carry, 1, 200)
        state = slice(0, 14)  # of (t, q, v) with their sums; the record of solves was reset by the save
        np.testing.assert_array_equal(carry[0, state, 0], runner.carry[0, state, 0])
        np.testing.assert_array_equal(carry[0, :, 0], carry[0, :, -1])
