"""Methods by name: `from noslip.integrators import X`, what editors are told, files, packages, and texts.

`python tests/integrators/test_names.py` writes the lines for editors into noslip/integrators/__init__.py;
`make format` then breaks the long ones.
"""

from __future__ import annotations

import ast
import re
from pathlib import Path

from noslip import integrators

FILE = Path(integrators.__file__)
BLOCK = re.compile(r"(?<=writes these lines\n).*?(?=\n\n)", re.DOTALL)


def lines_for_editors() -> list[str]:
    """One import for each class that a file of the package defines."""
    found = [cls for cls in integrators.discover().values() if cls.__module__.startswith("noslip.")]
    return sorted(f"from {cls.__module__} import {cls.__name__} as {cls.__name__}" for cls in found)


def test_editors_and_mypy_are_told_of_every_method() -> None:
    block = next(node for node in ast.parse(FILE.read_text()).body if isinstance(node, ast.If))
    assert [ast.unparse(line) for line in block.body] == lines_for_editors()


if __name__ == "__main__":
    FILE.write_text(BLOCK.sub("\n".join(f"    {line}" for line in lines_for_editors()), FILE.read_text(), 1))
