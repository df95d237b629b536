"""Pages of these tests are compiled quickly rather than well."""

import pytest

from noslip.engine.backends import wasm


@pytest.fixture(autouse=True, scope="module")
def quickly_compiled(request):
    """But for those of `test_export.py`, which end in the bits of `simulate` as users get them."""
    with pytest.MonkeyPatch.context() as patch:
        if "test_export" not in request.node.name:
            patch.setattr(wasm, "OPTIMIZE", 0)
        yield
