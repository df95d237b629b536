"""The command line: every command, exit code and sentence."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner, Result

import noslip
from noslip.cli import app
from noslip.integrators import discover as integrators
from noslip.integrators.velocity_nonholonomic import VelocityNonholonomic
from noslip.run.one_native import NativeTrajectory
from noslip.simulate import simulate
from noslip.systems import chaplygin_sleigh
from noslip.systems import discover as systems

SLEIGH = ("run", "chaplygin_sleigh", "--integrator", "VelocityNonholonomic", "--step-size", "0.1")

USER_FILE = """
import jax.numpy as jnp
from noslip import System

def lagrangian(q, v, p):
    return 0.5 * jnp.dot(v, v) - p["k"] * (q[0] ** 2 + q[1] ** 2)

def one_forms(q, p):
    return jnp.array([[-q[1], 0.0, 1.0]])

particle = System(lagrangian, one_forms=one_forms, coordinates=("x", "y", "z"), parameters={"k": 1.0})

def made():
    return particle

def stretched(k: float = 1.0, copies: int = 1):
    assert isinstance(copies, int)
    return particle.with_parameters({"k": k * copies})

number = 3

def nothing():
    return None

def needy(k):
    return particle
"""
TYPICAL = "\ndef typical_state():\n    return [0.2, 0.5, -0.1], [0.8, 0.6, 0.4]\n"
STATE = ("--q0", "0.2,0.5,-0.1", "--v0", "0.8,0.6,0.4")
# a potential with a wall that the free motion reaches: the logarithm of a negative number is NaN
WALL_FILE = """
import jax.numpy as jnp
from noslip import System

def lagrangian(q, v, p):
    return 0.5 * jnp.dot(v, v) + 1e-3 * jnp.sqrt(1.0 - q[0])

wall = System(lagrangian, one_forms=lambda q, p: jnp.array([[0.0, -q[0], 1.0]]), coordinates=("x", "y", "z"))

def typical_state():
    return [0.0, 0.0, 0.0], [1.0, 0.1, 0.0]
"""

# says when steps have been saved; a shell may have started the tests with SIGINT ignored, so it takes it up
READY_CHILD = """
import signal
signal.signal(signal.SIGINT, signal.default_int_handler)
from noslip.cli import main
from noslip.run.one_native import NativeTrajectory
to, calls = NativeTrajectory.to, []
def counting(*arguments):
    calls.append(arguments)
    if len(calls) == 3:
        print("ready", flush=True)
    return to(*arguments)
NativeTrajectory.to = counting
main()
"""


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Each test works in an empty folder of its own."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


def call(*arguments: str) -> Result:
    return CliRunner().invoke(app, list(arguments))


def user_run(*more: str, name: str = "mine.py:particle") -> Result:
    return call("run", name, "--integrator", "RungeKutta4", "--step-size", "0.1", "--steps", "20", *more)


# ---- tables ---------------------------------------------------------------------------------------


def test_the_package_is_the_command() -> None:
    done = subprocess.run([sys.executable, "-m", "noslip", "--version"], capture_output=True, text=True)
    assert (done.returncode, done.stdout.strip()) == (0, f"noslip {noslip.__version__}")


def test_a_velocity_off_the_constraint_is_answered_with_the_nearest_one() -> None:
    words = ("run", "knife_edge", "-i", "SemiImplicitDLA", "--step-size", "0.1", "--steps", "1", "--v0")
    refused = call(*words, "1,2,3")
    assert refused.exit_code == 2
    nearest = re.search(r"nearest velocity that does, \[(.*)\]", " ".join(refused.output.split()))
    assert nearest
    assert call(*words, nearest[1].replace(" ", "")).exit_code == 0


def test_version_and_help() -> None:
    assert call("--version").output.strip() == f"noslip {noslip.__version__}"
    assert "rerun" in call("--help").output
    for command in ("systems", "integrators", "run", "rerun", "ensemble", "reduce", "scoreboard", "bench"):
        assert call(command, "--help").exit_code == 0


def test_no_command_shows_the_help() -> None:
    assert "Usage" in call().output


def test_systems_lists_every_system() -> None:
    output = call("systems").output
    for name in systems():
        assert name in output
    assert "J=8" in output
    assert "1 linear" in output
    assert "theta (angle)" in output


def test_integrators_lists_every_integrator_in_both_forms() -> None:
    table, markdown = call("integrators").output, call("integrators", "--markdown").output
    for name in integrators():
        assert name in table
        assert f"| `{name}` |" in markdown
    assert "beta=0.5" in table


# ---- run ------------------------------------------------------------------------------------------


@pytest.mark.native
def test_run_prints_the_figures_and_writes_both_files() -> None:
    result = call(*SLEIGH, "--t-end", "2", "--save-every", "5", "-o", "sleigh.nc", "--plot", "sleigh.png")
    assert result.exit_code == 0, result.output
    for words in (
        "20 of 0.1, 5 saved",
        "energy error",
        "constraint residual",
        "iterations",
        "native",
        "seconds",
    ):
        assert words in result.output
    assert Path("sleigh.png").read_bytes().startswith(b"\x89PNG")
    run = noslip.load("sleigh.nc")
    assert run.info.source == "chaplygin_sleigh"
    assert sorted(path.name for path in Path().iterdir()) == ["sleigh.nc", "sleigh.png"]


def test_run_equals_the_run_from_python() -> None:
    call(*SLEIGH, "--steps", "10", "--set", "a=0.5", "--option", "beta=0.3", "-o", "sleigh.nc")
    run = simulate(
        chaplygin_sleigh.system(a=0.5), VelocityNonholonomic(0.3), *chaplygin_sleigh.typical_state(),
        step_size=0.1, steps=10,
    )  # fmt: skip
    assert noslip.load("sleigh.nc") == run.with_source("chaplygin_sleigh", {"a": 0.5})


def test_initial_state_from_options() -> None:
    result = call(*SLEIGH, "--steps", "3", "--q0", "-1,2,0", "--v0", "0.5,0,0.1", "-o", "a.nc")
    assert result.exit_code == 0, result.output
    assert noslip.load("a.nc").q[0].tolist() == [-1.0, 2.0, 0.0]


def test_typical_velocity_is_projected_when_the_start_moves() -> None:
    result = call(*SLEIGH, "--steps", "3", "--q0", "0,0,1", "-o", "a.nc")
    assert result.exit_code == 0, result.output
    assert "projected to" in result.output
    assert np.max(np.abs(noslip.load("a.nc").constraint_residual)) < 1e-14


def test_explicit_methods_say_so() -> None:
    result = call("run", "chaplygin_sleigh", "-i", "RungeKutta4", "--step-size", "0.1", "--steps", "5")
    assert "no implicit equations" in result.output


# ---- a user's own file ----------------------------------------------------------------------------


@pytest.fixture
def mine() -> Path:
    path = Path("mine.py")
    path.write_text(USER_FILE + TYPICAL)
    return path


@pytest.mark.usefixtures("mine")
def test_own_file_with_system_or_function() -> None:
    for name, more in (("particle", ()), ("made", ()), ("stretched", ("--set", "copies=2"))):
        result = user_run("--set", "k=2", *more, "-o", f"{name}.nc", name=f"mine.py:{name}")
        assert result.exit_code == 0, result.output
    assert noslip.load("particle.nc").info.parameters == {"k": 2.0}
    assert noslip.load("made.nc").info.parameters == {"k": 2.0}
    assert noslip.load("stretched.nc").info.parameters == {"k": 4.0}
    assert noslip.load("stretched.nc").info.arguments == {"k": 2.0, "copies": 2}
    assert call("rerun", "stretched.nc", "--system", "mine.py:stretched").exit_code == 0


def test_own_file_without_typical_state_asks_for_the_state() -> None:
    Path("mine.py").write_text(USER_FILE)
    refused(user_run(), "--q0 and --v0 must both be given")
    assert user_run(*STATE).exit_code == 0


# ---- bad input: one sentence, exit code 2, nothing written ----------------------------------------


def refused(result: Result, *words: str) -> None:
    assert result.exit_code == 2, result.output
    for word in words:
        assert word in result.stderr
    assert len(result.stderr.strip().splitlines()) == 1
    assert result.stderr.startswith("noslip: ")
    assert not list(Path().glob("*.nc")) + list(Path().glob("*.png")) + list(Path().glob(".*"))


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--steps", "5", "--t-end", "1"), ("exactly one of `steps` and `t_end`", "both were")),
        ((), ("exactly one of `steps` and `t_end`", "neither was")),
        (("--t-end", "1.05"), ("whole number of steps", "nearest reachable times")),
        (("--t-end", "-1"), ("`t_end` must be a time after t0",)),
        (("--steps", "-5"), ("`steps` must be a whole number >= 0",)),
        (("--steps", "5", "--save-every", "0"), ("`save_every` must be",)),
        (("--steps", "5", "--backend", "xlaa"), ("unknown backend 'xlaa'", "did you mean 'xla'")),
        (("--steps", "5", "--set", "j=1"), ("unknown parameter 'j'",)),
        (("--steps", "5", "--set", "mass=1"), ("unknown parameter 'mass'", "known: J, a, m")),
        (("--steps", "5", "--set", "m"), ("`--set` must be name=value", "'m'")),
        (("--steps", "5", "--set", "m=heavy"), ("parameter 'm' must be a number", "'heavy'")),
        (("--steps", "5", "--set", "m=nan"), ("parameter 'm' must be finite",)),
        (("--steps", "5", "--set", "m=1", "--set", "m=2"), ("'m' was given twice",)),
        (("--steps", "5", "--set", "m=-1"), ("the mass matrix must be positive definite",)),
        (
            ("--steps", "5", "--option", "beat=0.3"),
            ("unknown option of VelocityNonholonomic 'beat'", "'beta'"),
        ),
        (("--steps", "5", "--option", "beta=half"), ("option 'beta' must be a number", "'half'")),
        (("--steps", "5", "--option", "beta=2"), ("`beta` must be in [0, 1]",)),
        (("--steps", "5", "--q0", "1,2"), ("`--q0` must be 3 numbers (x,y,theta)", "2 were provided")),
        (("--steps", "5", "--q0", "1,b,2"), ("`--q0` must be numbers", "'1,b,2'")),
        (("--steps", "5", "--q0", "0,0,nan", "--v0", "0,0,0"), ("`q0` must be finite",)),
        (("--steps", "5", "--v0", "1,1,1"), ("`v0` must satisfy the constraint", "project_velocity")),
        (("--steps", "5", "--plot", "a.xyz"), ("`--plot` must end in .png, .pdf, .svg", "a.xyz")),
        (("--steps", "5", "-o", "nowhere/a.nc"), ("in a folder that exists", "nowhere")),
        (("--steps", "5", "-o", "."), ("it is a folder",)),
        (("--steps", "5", "-o", "a.png", "--plot", "a.png"), ("must be different files",)),
        (("--steps", "5", "-o", "a.png"), ("'a.png' would be a NetCDF file",)),
        (("--steps", "5", "-o", "a.csv"), ("'a.csv' would be a NetCDF file",)),
    ],
)
def test_bad_input_of_a_run(arguments: tuple[str, ...], words: tuple[str, ...]) -> None:
    files = () if {"-o", "--plot"} & set(arguments) else ("-o", "a.nc", "--plot", "a.png")
    refused(call(*SLEIGH, *arguments, *files), *words)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("chaplygin_slei", "-i", "RungeKutta4"), ("unknown system", "did you mean 'chaplygin_sleigh'")),
        (("chaplygin_sleigh", "-i", "RungeKuta4"), ("unknown integrator", "did you mean 'RungeKutta4'")),
        (("absent.py:x", "-i", "RungeKutta4"), ("there is no file 'absent.py'",)),
        (("mine.py", "-i", "RungeKutta4"), ("must name a system in that file", "mine.py:particle")),
        (("mine.py:particel", "-i", "RungeKutta4"), ("unknown system in mine.py", "did you mean 'particle'")),
        (("maker.py:robt", "-i", "RungeKutta4"), ("unknown system in maker.py", "did you mean 'robot'")),
        (("maker.py:zzz", "-i", "RungeKutta4"), ("unknown system in maker.py 'zzz'; known: robot.",)),
        (("maker.py", "-i", "RungeKutta4"), ("must name a system in that file", "maker.py:robot")),
        (("mine.py:number", "-i", "RungeKutta4"), ("must be a System or a function that returns one", "3")),
        (
            ("mine.py:nothing", "-i", "RungeKutta4"),
            ("must be a System or a function that returns one", "None"),
        ),
        (("mine.py:needy", "-i", "RungeKutta4"), ("needs --set", "'k'")),
        (("mine.py:particle", "-i", "RungeKutta4", "--set", "kk=1"), ("unknown parameter 'kk'",)),
        (("wrong.py:x", "-i", "RungeKutta4"), ("'wrong.py', line 1", "ZeroDivisionError")),
        (("broken.py:x", "-i", "RungeKutta4"), ("'broken.py', line 1", "SyntaxError")),
        (("text.txt:x", "-i", "RungeKutta4"), ("must be a Python file",)),
        (("badshape.py:x", "-i", "RungeKutta4"), ("'badshape.py', line 3", "must have shape (m, 2)")),
    ],
)
@pytest.mark.usefixtures("mine")
def test_bad_names_and_files(arguments: tuple[str, ...], words: tuple[str, ...]) -> None:
    Path("wrong.py").write_text("def f(): return 1 / 0\nf()\n")
    Path("broken.py").write_text("def (:\n")
    Path("text.txt").write_text("hello")
    Path("maker.py").write_text(
        "def lagrangian(q, v, p): pass\ndef typical_state(): pass\ndef robot(k=1.0, **others): pass\n"
    )
    Path("badshape.py").write_text(
        "from noslip import System\n"
        "import jax.numpy as jnp\n"
        "x = System(lambda q, v, p: v @ v, one_forms=lambda q, p: q, coordinates=('a', 'b'))\n"
    )
    refused(call("run", *arguments, "--step-size", "0.1", "--steps", "2", "-o", "a.nc"), *words)


def test_missing_matplotlib_is_said_before_the_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    refused(call(*SLEIGH, "--steps", "5", "-o", "a.nc", "--plot", "a.png"), "noslip[plots]")


def test_step_must_be_positive() -> None:
    for step in ("0", "-0.1", "nan"):
        result = call("run", "chaplygin_sleigh", "-i", "RungeKutta4", "--step-size", step, "--steps", "2")
        refused(result, "`step_size` must be positive")


def test_missing_or_malformed_options_are_usage_errors() -> None:
    result = call("run", "chaplygin_sleigh", "--step-size", "0.1")
    assert result.exit_code == 2
    assert "--integrator" in result.stderr
    result = call("run", "chaplygin_sleigh", "-i", "RungeKutta4", "--step-size", "small")
    assert result.exit_code == 2
    assert "--step-size" in result.stderr


# ---- runs that end early --------------------------------------------------------------------------


def test_solver_failure_keeps_the_part_before_it() -> None:
    Path("wall.py").write_text(WALL_FILE)
    arguments = ("run", "wall.py:wall", "-i", "VelocityNonholonomic", "--step-size", "0.1", "--t-end", "5")
    result = call(*arguments, "-o", "wall.nc")
    assert result.exit_code == 3, result.output
    assert "failed: " in result.stderr
    assert "the part before is in wall.nc" in result.stderr
    run = noslip.load("wall.nc")
    assert 5 < len(run.t) < 15
    assert not run.success
    assert np.all(np.isfinite(run.q))
    assert call("rerun", "wall.nc", "--system", "wall.py:wall").exit_code == 0
    assert "give -o FILE" in call(*arguments).stderr


@pytest.mark.skipif(os.name == "nt", reason="needs POSIX signals")
@pytest.mark.native
def test_interruption_keeps_what_was_saved() -> None:
    long_run = (*SLEIGH, "--steps", "2000000000", "--save-every", "1000", "-o", "long.nc")
    process = subprocess.Popen(
        [sys.executable, "-c", READY_CHILD, *long_run],
        stderr=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 130, out + err
    assert "interrupted after step" in err
    assert "the part before is in long.nc" in err
    run = noslip.load("long.nc")
    assert run.success
    assert len(run.t) > 1
    assert [path.name for path in Path().iterdir()] == ["long.nc"]


@pytest.mark.native
def test_interruption_of_a_short_part_reruns_bit_for_bit(monkeypatch: pytest.MonkeyPatch) -> None:
    calls, to = [], NativeTrajectory.to

    def stopping(self: NativeTrajectory, *arguments: int) -> object:
        calls.append(arguments)
        if len(calls) == 3:
            signal.raise_signal(signal.SIGINT)
        return to(self, *arguments)

    with monkeypatch.context() as patch:
        patch.setattr(NativeTrajectory, "to", stopping)
        result = call(*SLEIGH, "--steps", "1000000", "--save-every", "7", "-o", "part.nc")
    assert result.exit_code == 130, result.output
    assert "interrupted after step" in result.stderr
    assert "identical bit for bit" in call("rerun", "part.nc").output
