"""The engine is tested with the optimisations that users have."""

import pytest

from noslip.engine import native, native_loop, runners


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
