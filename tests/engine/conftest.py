"""The engine is tested with the optimisations that users have."""

import pytest

from noslip.engine.backends import native
from noslip.run import many as runners
from noslip.run import one_native as native_loop


def forget_compiled_code():
    native_loop._loop_of.cache_clear()
    runners._native_code.cache_clear()


@pytest.fixture(scope="module", autouse=True)
def optimisations_of_users():
    quick, native.OPTIMIZE = native.OPTIMIZE, 1
    forget_compiled_code()
    yield
    native.OPTIMIZE = quick
    forget_compiled_code()
