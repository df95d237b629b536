"""Processes, threads, clocks, users and the network: it works, or says so at once."""

from __future__ import annotations

import gc
import multiprocessing
import os
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from noslip import System, Trajectory, simulate
from noslip.cli import app
from noslip.integrators.semi_implicit_dla import SemiImplicitDLA
from noslip.plots.trajectory import compare_runs
from noslip.report import page
from noslip.run import pacing
from noslip.systems import gearbox

ROOT = Path(__file__).parents[2]
STATE = gearbox.typical_state()
POSIX = pytest.mark.skipif(not hasattr(os, "fork"), reason="about forks and users of POSIX")


def run(**how: Any) -> Trajectory:
    return simulate(gearbox.system(), SemiImplicitDLA(), *STATE, step_size=0.1, **{"steps": 20, **how})


def _in_a_fork(what: Any) -> tuple[int, str]:
    """The exit code and the sentence of a process that is forked here."""
    listen, tell = os.pipe()
    child = os.fork()
    if not child:
        code = 1
        gc.freeze()  # what JAX has made is not freed here: that may wait for threads that are not here
        try:
            what()
            code = 0
        except Exception as error:
            os.write(tell, str(error).encode())
        finally:
            os._exit(code)
    os.close(tell)
    began = time.monotonic()
    while not (found := os.waitpid(child, os.WNOHANG))[0]:
        if time.monotonic() > began + 60:
            os.kill(child, 9)
            os.waitpid(child, 0)
            return -1, "hangs"
        time.sleep(0.01)
    said = os.read(listen, 4096).decode()
    os.close(listen)
    return os.waitstatus_to_exitcode(found[1]), said


@pytest.mark.slow
@POSIX
@pytest.mark.native
@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning", "ignore:.*fork:RuntimeWarning")
def test_a_forked_process_runs_native_code_and_says_at_once_where_xla_would_hang():
    here = run(backend="native")
    run(backend="xla")

    def same() -> None:
        assert run(backend="native").q.tobytes() == here.q.tobytes()

    assert _in_a_fork(same) == (0, "")
    code, said = _in_a_fork(lambda: run(backend="xla"))
    assert code == 1
    assert "forked after JAX had begun to work" in said
    assert "spawn" in said
    other = System(lambda q, v, p: 0.5 * v @ v - 0.1 * q[0] ** 4, coordinates=("x", "y"))
    code, said = _in_a_fork(
        lambda: simulate(other, SemiImplicitDLA(), [1.0, 0.0], [0.0, 1.0], step_size=0.1, steps=3)
    )
    assert (code, "forked after JAX" in said) in ((1, True), (0, False))


def _spawned(steps: int) -> bytes:
    return run(steps=steps).q.tobytes()


@pytest.mark.slow
def test_spawned_processes_have_the_same_bits():
    with multiprocessing.get_context("spawn").Pool(2) as pool:
        assert pool.map(_spawned, [20, 30]) == [_spawned(20), _spawned(30)]


def test_threads_have_the_same_bits(tmp_path):
    found: dict[int, bytes] = {}

    def work(k: int) -> None:
        found[k] = run(steps=20 + k % 2, store=tmp_path / f"{k}.zarr").q[:].tobytes()

    threads = [threading.Thread(target=work, args=(k,)) for k in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == {k: run(steps=20 + k % 2).q.tobytes() for k in range(4)}


def test_no_connection_is_opened(monkeypatch, tmp_path):
    pytest.importorskip("zarr")

    def refused(*_: Any, **__: Any) -> None:
        raise AssertionError("a connection was asked for")

    for name in ("connect", "connect_ex", "bind", "sendto"):
        monkeypatch.setattr(socket.socket, name, refused)
    monkeypatch.setattr(socket, "getaddrinfo", refused)
    from typer.testing import CliRunner

    monkeypatch.chdir(tmp_path)
    words = [
        "run",
        "chaplygin_sleigh",
        "-i",
        "VelocityNonholonomic",
        "--step-size",
        "0.1",
        "--steps",
        "5",
        "-o",
    ]
    for command in (
        [*words, "run.zarr"],
        ["rerun", "run.zarr"],
        ["verify", "run.zarr"],
        ["systems"],
    ):
        result = CliRunner().invoke(app, command)
        assert result.exit_code == 0, (result.output, result.exception)


HOSTILE = ("<script>alert(1)</script>", "$\\nope_{$", 'x" onload="alert(1)', "y\nz", "\\frac{")


def test_hostile_names_make_no_active_page(tmp_path):
    """Names of coordinates, parameters and first integrals, and the source that a file may name."""
    system = System(
        lambda q, v, p: 0.5 * v @ v - p["<img src=x onerror=alert(1)>"] * q[0] ** 2,
        coordinates=HOSTILE,
        parameters={"<img src=x onerror=alert(1)>": 1.0},
        first_integrals={"<svg onload=alert(1)>$": lambda q, v, p: v[1]},
    )
    result = simulate(system, SemiImplicitDLA(), np.ones(5), np.ones(5), step_size=0.1, steps=5)
    # with the pictures of the run, in which names are labels
    text = page(result.with_source("<script>alert(2)</script>", {}), None, None).replace("&lt;", "~")
    for hostile in ("<script", "<img src=x", "<svg onload", 'onload="alert'):
        assert hostile not in text
    result.save(tmp_path / "a.nc")
    compare_runs({"$\\nope_{$": result}).savefig(tmp_path / "b.png")


def test_clocks_that_stand_still_or_jump_do_no_harm(monkeypatch, tmp_path):
    clock = iter([5.0, 5.0, 5.0, -1e9, 1e9, 0.0] * 10_000)
    monkeypatch.setattr(pacing.time, "perf_counter", lambda: next(clock))
    assert run(steps=3000, save_every=100).success
    monkeypatch.undo()
    monkeypatch.setattr(time, "time", lambda: -1e9)
    assert run(store=tmp_path / "a.zarr").success


@POSIX
@pytest.mark.slow
def test_a_folder_that_an_ordinary_user_cannot_write_is_refused_before_the_run(tmp_path):
    """In a process of its own, which gives up being root if it was."""
    folder = tmp_path / "locked"
    folder.mkdir()
    folder.chmod(0o555)
    tmp_path.chmod(0o755)
    for parent in list(tmp_path.parents)[:3]:
        if parent.name.startswith(("pytest-", "popen-")):
            parent.chmod(0o755)
    code = f"""
import os, sys
from noslip import simulate, files
from noslip.integrators.semi_implicit_dla import SemiImplicitDLA
from noslip.run import drive
from noslip.systems import gearbox
import zarr, h5netcdf
run = simulate(gearbox.system(), SemiImplicitDLA(), *gearbox.typical_state(), step_size=0.1, steps=3)
if os.getuid() == 0:
    os.setgid(65534); os.setuid(65534)
for name in ("a.zarr", "a.nc"):
    try:
        if name == "a.nc":
            run.save({str(folder)!r} + "/a.nc")
        else:
            simulate(gearbox.system(), SemiImplicitDLA(), *gearbox.typical_state(), step_size=0.1, steps=3,
                     store={str(folder)!r} + "/a.zarr")
    except PermissionError as error:
        print(error)
"""
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=300, env=os.environ
    )
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert [line.endswith("Permission denied") for line in lines] == [True, True], done.stdout
    assert all(line.startswith("cannot write '") for line in lines)


def test_the_wheel_is_pure_python_and_posix_calls_are_guarded():
    """What only POSIX has is looked for before it is used."""
    guarded = {
        "fcntl": "files.py",
        "SIGHUP": "pacing.py",
        "register_at_fork": "forks.py",
        "O_NOFOLLOW": "files.py",
    }
    for word, home in guarded.items():
        users = [path.name for path in (ROOT / "src").rglob("*.py") if word in path.read_text()]
        assert users == [home], word
    assert not [path for path in (ROOT / "src").rglob("*") if path.suffix in (".so", ".pyd", ".c", ".pyx")]
