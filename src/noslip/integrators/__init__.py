"""One file per method. A file is its own registration: `discover` finds every integrator here."""

import ast
import importlib
import pkgutil
from typing import Any

from noslip.errors import unknown_name
from noslip.integrators.base import Integrator


def discover() -> dict[str, type[Integrator]]:
    """All integrator classes of this package by name, in alphabetical order."""
    found = {}
    for info in pkgutil.iter_modules(__path__):
        if info.name.startswith("_"):
            continue
        module = importlib.import_module(f"{__name__}.{info.name}")
        for value in vars(module).values():
            own = isinstance(value, type) and value.__module__ == module.__name__
            if own and issubclass(value, Integrator) and value is not Integrator:
                found[value.__name__] = value
    return dict(sorted(found.items()))


def find(name: str) -> type[Integrator]:
    """The integrator class of that name."""
    classes = discover()
    if name not in classes:
        raise ValueError(unknown_name("integrator", name, classes))
    return classes[name]


def parse(text: str) -> Integrator:
    """The method that a text such as "Composition(base=DiscreteGradient('mean_value'))" stands for."""
    try:
        tree = ast.parse(text.strip(), mode="eval").body
    except SyntaxError:
        tree = None
    if isinstance(tree, ast.Name):
        return find(tree.id)()
    if not isinstance(tree, ast.Call):
        raise ValueError(f"an integrator must be written like DiscreteGradient(), but '{text}' was provided")
    made = _built(tree)
    assert isinstance(made, Integrator)
    return made


def _built(tree: ast.expr) -> Any:
    if isinstance(tree, ast.Call) and isinstance(tree.func, ast.Name):
        named = {word.arg: _built(word.value) for word in tree.keywords if word.arg is not None}
        return find(tree.func.id)(*map(_built, tree.args), **named)
    return ast.literal_eval(tree)
