"""The engine is tested with the optimisations that users have."""

import pytest

from noslip.engine.backends import native
from noslip.run import many_native, programs


def forget_compiled_code():
    programs.programs_of.cache_clear()
    many_native._native_code.cache_clear()


@pytest.fixture(scope="module", autouse=True)
def optimisations_of_users():
    quick, native.OPTIMIZE = native.OPTIMIZE, 1
    forget_compiled_code()
    yield
    native.OPTIMIZE = quick
    forget_compiled_code()
