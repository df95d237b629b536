"""The rooms of the package: what CONTRIBUTING draws is what the code does."""

import ast
import collections
import functools
import re
import sys
from pathlib import Path

import pytest

from noslip import simulate
from noslip.integrators import discover
from noslip.integrators.discrete_gradient import DiscreteGradient
from noslip.systems import gearbox
from sources import trees

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "src" / "noslip"
SECTION = (ROOT / "CONTRIBUTING.md").read_text().partition("## The rooms\n")[2].partition("\n## ")[0]
LAYERS, WAY = re.findall(r"```\n(.*?)```", SECTION, re.DOTALL)
# imports that point up, each inside a function, with the reason
DEFERRED = {
    ("noslip.trajectory", "noslip.plots.of_run"): "run.plot() is what people type; plots are an extra",
}


def module_name(file: Path) -> str:
    parts = file.relative_to(PACKAGE.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


# `python -m noslip` asks for a file of that name, which calls the command line and is no room
MODULES = {module_name(file): file for file in PACKAGE.rglob("*.py") if file.name != "__main__.py"}


def tree(module: str) -> ast.Module:
    return trees()[MODULES[module].relative_to(PACKAGE).as_posix()]


def room(module: str) -> str:
    """The folder or file at the top of the house; the door itself is `noslip`."""
    return module.split(".")[1] if "." in module else "noslip"


def imports(module: str) -> list[tuple[str, bool]]:
    """The modules of the package that a module imports anywhere, and whether only inside a function."""
    found = []
    nodes: list[tuple[ast.AST, bool]] = [(tree(module), False)]
    while nodes:
        node, inside = nodes.pop()
        inside = inside or isinstance(node, ast.FunctionDef)
        nodes += [(child, inside) for child in ast.iter_child_nodes(node) if isinstance(child, ast.stmt)]
        names = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{module} imports relative to itself"
            inner = [f"{node.module}.{alias.name}" for alias in node.names]
            names = [name if name in MODULES else node.module for name in inner]
        found += [(name, inside) for name in names if name in MODULES]
    return found


def layers() -> list[str]:
    names = [name for line in LAYERS.splitlines() for name in re.split(r" {2,}", line)[0].split(", ")]
    return [name.strip() for name in names]


def test_every_room_is_in_the_drawing_once():
    rooms = {room(module) for module in MODULES}
    assert collections.Counter(layers()) == dict.fromkeys(rooms, 1)


def test_imports_point_down():
    rank = {name: number for number, name in enumerate(layers())}
    up = {
        (module, name): deferred
        for module in MODULES
        for name, deferred in imports(module)
        if rank[room(name)] > rank[room(module)]
    }
    assert up.keys() == DEFERRED.keys()
    assert all(up.values())  # inside functions


def test_what_is_private_is_inside_a_room():
    assert not [name for name in layers() if name.startswith("_")]


def test_no_two_public_classes_have_one_name():
    places = collections.defaultdict(list)
    for module in MODULES:
        for node in tree(module).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                places[node.name].append(module)
    assert {name: where for name, where in places.items() if len(where) > 1} == {}


@pytest.mark.parametrize("folder", ["src", "tests", "benchmarks"])
def test_files_can_be_read_in_one_sitting(folder):
    long = {file: len(file.read_text().splitlines()) for file in (ROOT / folder).rglob("*.py")}
    assert {str(file.relative_to(ROOT)): n for file, n in long.items() if n > 400} == {}


def test_the_file_of_a_method_shows_its_paper_on_a_hundred_lines():
    files = {MODULES[kind.__module__] for kind in discover().values() if kind.__module__ in MODULES}
    assert len(files) > 15
    assert {file.name: n for file in files if (n := len(file.read_text().splitlines())) > 100} == {}


def test_jaxprs_are_read_in_one_place():
    readers = {m for m, file in MODULES.items() if re.search(r"\.eqns\b|make_jaxpr", file.read_text())}
    apart = {m for m in readers if not m.startswith("noslip.engine.translate")}
    # the store keeps the text of a jaxpr as a fingerprint; the checks trace a function for its shape
    assert apart <= {"noslip.run.store_layout", "noslip.system.checks"}
    assert not [m for m in apart if ".eqns" in MODULES[m].read_text()]


def test_a_run_goes_the_way_that_is_drawn():
    """Each line is called, and by the line above it that is less indented."""
    drawn, parents = [], []
    for line in WAY.splitlines():
        name = line.split()[0]
        depth = (len(line) - len(line.lstrip())) // 2
        parents[depth:] = [name]
        drawn.append((parents[depth - 1] if depth else None, name))
    calls = _calls_of_a_cold_run()
    for caller, name in drawn:
        if name.rpartition(".")[2][0].isupper():  # a class is called by its initialiser
            name = f"{name}.__init__"
        assert name in calls, f"{name} is not called in a run"
        assert caller is None or any(caller in by for by in calls[name]), (caller, name, calls[name])


def _calls_of_a_cold_run() -> dict[str, set[str]]:
    """Functions of the package that a first run calls, each with the functions of the package around it."""
    calls: dict[str, set[str]] = collections.defaultdict(set)
    around: list[set[str]] = [
        set()
    ]  # of every frame that was entered: the functions of the package down to it

    @functools.cache
    def full_name(module, code):
        return f"{module}.{code.co_qualname}".removeprefix("noslip.") if "noslip" in module else None

    def profile(frame, event, _):
        if event == "return":
            around.pop()
        elif event == "call":
            name, above = full_name(frame.f_globals.get("__name__", ""), frame.f_code), around[-1]
            if name:
                calls[name] |= above
                above = above | {name, name.removesuffix(".__init__")}
            around.append(above)

    system = gearbox.system()
    sys.setprofile(profile)
    try:
        simulate(system, DiscreteGradient(nodes=7), *gearbox.typical_state(), step_size=0.1, steps=3)
    finally:
        sys.setprofile(None)
    return calls
