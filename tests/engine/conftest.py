"""The engine is tested with the optimisations that users have."""

import pytest

from noslip.engine import kept
from noslip.engine.backends import native


@pytest.fixture(scope="module", autouse=True)
def optimisations_of_users():
    quick, native.OPTIMIZE = native.OPTIMIZE, 1
    kept.forget()
    yield
    native.OPTIMIZE = quick
    kept.forget()
