"""The house of the engine: one reader of traced functions, no import upwards; test_house.py has the rest."""

import ast
from pathlib import Path

from sources import trees


def test_traced_functions_are_read_in_one_room():
    readers = {
        path
        for path, tree in trees().items()
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute)
        and node.attr in ("eqns", "jaxpr", "invars", "outvars", "call_jaxpr")
    }
    assert {str(Path(path).parent) for path in readers} == {"engine/translate"}


def test_the_engine_imports_nothing_above_it():
    below = ("noslip.engine", "noslip.numerics", "noslip.errors", "noslip.files", "noslip.version")
    for path, tree in trees().items():
        if not path.startswith("engine/"):
            continue
        for node in ast.walk(tree):
            names = [node.module] if isinstance(node, ast.ImportFrom) else []
            names += [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            assert [n for n in names if n.startswith("noslip") and not n.startswith(below)] == [], path
