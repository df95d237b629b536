"""The package as syntax trees, parsed once for all tests that read them."""

import ast
import functools
from pathlib import Path

import noslip

PACKAGE = Path(noslip.__file__).parent


@functools.cache
def trees():
    """By the path of each file inside the package."""
    return {
        path.relative_to(PACKAGE).as_posix(): ast.parse(path.read_text()) for path in PACKAGE.rglob("*.py")
    }
