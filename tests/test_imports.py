"""Importing noslip: JAX in 64 bits whichever comes first, names when they are asked for, old module names."""

from __future__ import annotations

import importlib
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import noslip
from noslip.moved import MOVED

ROOT = Path(noslip.__file__).parent


def told(code: str, given: str = "", **environment: str) -> str:
    """What a fresh Python prints, with warnings as errors."""
    env = {k: x for k, x in os.environ.items() if k != "JAX_ENABLE_X64"} | environment
    command = [sys.executable, "-W", "error", "-c", code]
    done = subprocess.run(command, capture_output=True, text=True, env=env, timeout=120, input=given)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


ANEW = """
import contextlib, io, json, sys
answers = {}
for asked, code in json.load(sys.stdin).items():
    for module in [name for name in sys.modules if name.partition(".")[0] == "noslip"]:
        del sys.modules[module]
    sys.meta_path[:] = [x for x in sys.meta_path if not type(x).__module__.startswith("noslip")]
    with contextlib.redirect_stdout(io.StringIO()) as said:
        exec(code, {})
    answers[asked] = said.getvalue().strip()
print(json.dumps(answers))
"""


def told_anew(**codes: str) -> dict[str, str]:
    """What each of them prints, in one Python that forgets all of noslip before it."""
    found: dict[str, str] = json.loads(told(ANEW, json.dumps(codes)))
    return found


@pytest.mark.thorough
@pytest.mark.parametrize("asked", [{}, {"JAX_ENABLE_X64": "0"}, {"JAX_ENABLE_X64": "1"}], ids=str)
@pytest.mark.parametrize("first", ["import noslip; import jax", "import jax; import noslip"])
def test_jax_has_64_bits_whichever_is_imported_first(first: str, asked: dict[str, str]) -> None:
    assert told(f"{first}; print(jax.numpy.zeros(1).dtype)", **asked) == "float64"


def test_importing_noslip_loads_no_jax_until_something_needs_it() -> None:
    code = (
        "import sys, noslip; before = 'jax' in sys.modules, 'numpy' in sys.modules; noslip.System; "
        "print(*before, 'jax' in sys.modules, sys.modules['jax'].config.jax_enable_x64)"
    )
    assert told(code) == "False False True True"


def test_names_are_listed_and_come_from_where_editors_are_told() -> None:
    for name in noslip.__all__:
        assert name in dir(noslip)
        assert getattr(noslip, name) is not None
    # what mypy reads, the imports for type checking, are the same objects
    text = (ROOT / "__init__.py").read_text()
    block = text.partition("if TYPE_CHECKING:\n")[2].partition("\n\n")[0]
    space: dict[str, object] = {}
    exec("\n".join(line.strip() for line in block.splitlines()), space)
    told_to_editors = {name: x for name, x in space.items() if not name.startswith("__")}
    assert set(told_to_editors) == set(noslip.__all__) - {"__version__"}
    for name, value in told_to_editors.items():
        assert getattr(noslip, name) is value


def test_names_that_never_were_are_ordinary_errors() -> None:
    with pytest.raises(AttributeError, match="module 'noslip' has no attribute 'simulat'"):
        noslip.simulat  # noqa: B018
    with pytest.raises(ImportError, match="cannot import name 'Sistem' from 'noslip'"):
        from noslip import Sistem  # type: ignore[attr-defined] # noqa: F401


# ---- names of version 0.1 -------------------------------------------------------------------------


@pytest.mark.parametrize("old", MOVED)
def test_a_module_of_0_1_is_the_very_module_of_now(old: str) -> None:
    module = importlib.import_module(old)
    assert module is importlib.import_module(MOVED[old])
    assert module.__name__ == MOVED[old]
    assert module.__spec__ is not None
    assert module.__spec__.name == MOVED[old]
    parent, _, name = old.rpartition(".")
    assert getattr(importlib.import_module(parent), name) is module


OLD_FORMS = """
import noslip.diagnostics.order
import noslip.diagnostics.conservation as conservation
from noslip.diagnostics import energy_error, scoreboard
from noslip.diagnostics.order import measured_order
from noslip import diagnostics
from noslip.geometry import linear, embedding
from noslip.integrators._base import Integrator
from noslip._pytree import replaced
import noslip.analysis.order, noslip.analysis.scoreboard, noslip.integrators.base
assert noslip.diagnostics.order is noslip.analysis.order
assert scoreboard is noslip.analysis.scoreboard
assert conservation.energy_error is energy_error
assert Integrator is noslip.integrators.base.Integrator
print(diagnostics.__name__, linear.__name__, embedding.__name__)
"""
SIMULATE = "import noslip\nfrom noslip import simulate as s\nprint(s is noslip.simulate, s)"
ASKED = {
    "an old name, first of all": (
        "from noslip.diagnostics.order import MeasuredOrder as m; print(m.__module__)"
    ),
    "every form of import of an old name": OLD_FORMS,
    "a room, without importing it": (
        "import noslip; print(noslip.systems.gearbox.__name__, noslip.integrators.RungeKutta4().order)"
    ),
    # noslip.simulate is a function in a module of the same name
    "a function": SIMULATE,
    "a function after its module": f"import noslip.simulate\n{SIMULATE}",
    "a function after a name of its module": f"from noslip.simulate import run_info\n{SIMULATE}",
    "a function after another module": f"import noslip.ensembles\n{SIMULATE}",
}


def test_every_name_is_found_by_whichever_import_is_first() -> None:
    found = told_anew(**ASKED)
    assert found["an old name, first of all"] == "noslip.analysis.order"
    assert found["every form of import of an old name"] == (
        "noslip.analysis noslip.numerics.linear noslip.analysis.embedding"
    )
    assert found["a room, without importing it"] == "noslip.systems.gearbox 4"
    functions = [said for asked, said in found.items() if asked.startswith("a function")]
    assert len(functions) == 4
    assert all(said.startswith("True <function simulate") for said in functions)


@pytest.mark.parametrize("name", ["noslip.diagnostics.nothing", "noslip.geometry.nothing", "noslip._nothing"])
def test_what_never_was_is_an_ordinary_error(name: str) -> None:
    with pytest.raises(ModuleNotFoundError, match=f"No module named '{name}'"):
        importlib.import_module(name)


# ---- the command ----------------------------------------------------------------------------------


def test_help_loads_no_jax_and_is_quick() -> None:
    code = (
        "import sys, time\nfrom noslip.cli import main\nsys.argv = ['noslip', '{option}']\n"
        "try:\n    main()\nfinally:\n"
        "    heavy = {{'jax', 'numpy', 'scipy', 'sympy', 'xarray', 'matplotlib'}}\n"
        "    print([*heavy & {{*sys.modules}}])\n"
        "    print(time.process_time())"
    )
    seconds = []
    for option in ("--help", "--version", "--help"):
        first, *_, loaded, used = told(code.format(option=option)).splitlines()
        assert loaded == "[]"
        assert option == "--help" or first == f"noslip {noslip.__version__}"
        seconds.append(float(used))
    assert min(seconds) < 0.3
