"""The house of the engine: names that mean one thing, one reader of traced functions, no import upwards."""

import ast
import collections
from pathlib import Path

import noslip

PACKAGE = Path(noslip.__file__).parent
FILES = {path.relative_to(PACKAGE).as_posix(): ast.parse(path.read_text()) for path in PACKAGE.rglob("*.py")}


def test_no_two_public_classes_have_one_name():
    places = collections.defaultdict(list)
    for path, tree in FILES.items():
        for node in tree.body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                places[node.name].append(path)
    assert {name: paths for name, paths in places.items() if len(paths) > 1} == {}


def test_traced_functions_are_read_in_one_room():
    readers = {
        path
        for path, tree in FILES.items()
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute)
        and node.attr in ("eqns", "jaxpr", "invars", "outvars", "call_jaxpr")
    }
    assert {str(Path(path).parent) for path in readers} == {"engine/translate"}


def test_the_engine_imports_nothing_above_it():
    below = ("noslip.engine", "noslip.numerics", "noslip.errors", "noslip.files", "noslip.version")
    for path, tree in FILES.items():
        if not path.startswith("engine/"):
            continue
        for node in ast.walk(tree):
            names = [node.module] if isinstance(node, ast.ImportFrom) else []
            names += [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            assert [n for n in names if n.startswith("noslip") and not n.startswith(below)] == [], path
