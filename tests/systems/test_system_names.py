"""Systems by name: the catalogue, installed packages, files of the user, and what each source gives."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from noslip import System, simulate, systems
from noslip.integrators import RungeKutta4
from noslip.systems import chaplygin_sleigh, gearbox, open_source

OWN = """
import jax.numpy as jnp
from noslip import System

def lagrangian(q, v, p):
    return 0.5 * jnp.dot(v, v) - p["k"] * (q[0] ** 2 + q[1] ** 2)

def one_forms(q, p):
    return jnp.array([[-q[1], 0.0, 1.0]])

def system(k: float = 1.0):
    return System(lagrangian, one_forms=one_forms, coordinates=("x", "y", "z"), parameters={"k": k})

def typical_state():
    return [0.2, 0.5, -0.1], [0.8, 0.6, 0.4]

particle = system()

def late():
    raise NameError("name 'mass' is not defined")
"""


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A package with entry points, as an installer leaves it."""
    (tmp_path / "own_systems.py").write_text(OWN)
    folder = tmp_path / "own_systems-1.0.dist-info"
    folder.mkdir()
    (folder / "METADATA").write_text("Metadata-Version: 2.1\nName: own-systems\nVersion: 1.0\n")
    (folder / "entry_points.txt").write_text(
        "[noslip.systems]\nrobot = own_systems\nwrong = own_systems:particle\ngearbox = own_systems\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    yield
    sys.modules.pop("own_systems", None)


def test_every_system_is_listed_and_imported_by_its_name() -> None:
    for name in systems.names():
        assert name in dir(systems)
        assert getattr(systems, name) is systems.find(name)
    assert not hasattr(systems, "gearbx")
    with pytest.raises(ImportError, match="cannot import name 'gearbx'"):
        from noslip.systems import gearbx  # noqa: F401


@pytest.mark.usefixtures("package")
def test_a_module_of_an_installed_package_is_one_of_all() -> None:
    robot = systems.find("robot")
    assert "robot" in dir(systems)
    assert getattr(systems, "robot") is robot  # noqa: B009
    assert open_source("robot").build({"k": 3.0}).parameters == {"k": 3.0}
    assert systems.find("gearbox") is gearbox  # the catalogue's names stay its own
    assert systems.name_of("own_systems") == "robot"
    run = simulate(robot.system(k=2.0), RungeKutta4(), *robot.typical_state(), step_size=0.1, steps=2)
    assert run.info.source == "robot"  # also for a run from Python, as for the catalogue
    with pytest.raises(ValueError, match=r"'wrong' of noslip\.systems must be a module with a function"):
        systems.find("wrong")


def test_a_source_builds_and_starts_what_its_words_say(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(OWN)
    for name in ("system", "particle"):
        source = open_source(f"{tmp_path / 'mine.py'}:{name}")
        arguments = source.arguments({"k": "2"})
        model = source.build(arguments)
        assert float(model.parameters["k"]) == 2.0
        q, v, projected = source.start(model, arguments)
        assert (list(q), list(v), projected) == ([0.2, 0.5, -0.1], [0.8, 0.6, 0.4], False)
        q, v, projected = source.start(model, arguments, q0=np.array([0.0, 1.0, 0.0]))
        assert projected
        assert abs(float(model.phi(q, v)[0])) < 1e-15
    with pytest.raises(ValueError, match=r"mine.py:late' failed with NameError: name 'mass' is not defined"):
        open_source(f"{tmp_path / 'mine.py'}:late").build({})


def test_systems_and_makers_are_sources_too() -> None:
    made = chaplygin_sleigh.system()
    assert open_source(made).build({"a": 0.5}).parameters["a"] == 0.5
    assert open_source(chaplygin_sleigh.system).build({"a": 0.5}).parameters["a"] == 0.5
    assert isinstance(open_source("chaplygin_sleigh").build({}), System)
    with pytest.raises(ValueError, match="has no typical_state"):
        open_source(made).start(made, {})


def test_a_file_that_ends_the_program_is_refused_like_one_that_fails(tmp_path: Path) -> None:
    file = tmp_path / "ends.py"
    file.write_text("import sys\nsys.exit(0)\n")
    with pytest.raises(ValueError, match=r"ends.py', line 2: SystemExit: 0"):
        open_source(f"{file}:x")
    before = list(sys.path)
    file.write_text("x = 1 / 0\n")
    with pytest.raises(ValueError, match=r"ends.py', line 1: ZeroDivisionError: division by zero"):
        open_source(f"{file}:x")
    assert sys.path == before
