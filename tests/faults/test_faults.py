"""Short forms of what the scripts beside this file do at length: signals, full disks and flipped bits."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from noslip import Trajectory, ensemble, files, load, saved, simulate
from noslip.integrators.semi_implicit_dla import SemiImplicitDLA
from noslip.run import trajectory_store
from noslip.systems import gearbox

pytest.importorskip("zarr")
sys.path.insert(0, str(Path(__file__).parent))

import bad_calls
import bad_commands
import flips
import kills

FORKS = pytest.mark.skipif(not hasattr(os, "fork"), reason="signals and forks are those of POSIX")


@pytest.fixture(scope="module")
def stored(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("stored")
    flips.make(folder)
    return folder


@pytest.mark.parametrize("kind", flips.KINDS)
def test_no_flipped_bit_changes_a_number_in_silence(stored, kind, request):
    seen = flips.flips(kind, 12, 1, stored)
    assert seen["reported"] + seen["harmless"] == 12
    assert seen["reported"] >= 6
    assert not seen["not seen by verify"]


@pytest.mark.parametrize("kind", flips.KINDS)
def test_what_is_whole_is_verified(stored, kind):
    found = saved.verify(stored / kind)
    assert (found.damaged, found.unchecked) == ((), 0)
    assert found.files > 20 or kind == "run.nc"


@pytest.mark.parametrize("kind", ["run.zarr", "ensemble.zarr"])
def test_every_lost_file_is_named(stored, kind):
    """All but the mark of who is writing, which is only of use then."""
    folder = stored / kind
    lost = [path for path in sorted(folder.rglob("*")) if path.is_file() and "mark" not in path.parts]
    for path in lost[:: max(1, len(lost) // 12)]:
        data, name = path.read_bytes(), path.relative_to(folder).as_posix()
        path.unlink()
        try:
            if name == "zarr.json":
                with pytest.raises(ValueError, match=r"has no 'zarr\.json'"):
                    saved.verify(folder)
            else:
                assert [name in sentence for sentence in saved.verify(folder).damaged] == [True], name
        finally:
            path.write_bytes(data)


@FORKS
@pytest.mark.parametrize(
    "steps", [["--steps=2000000", "--members-steps=0"], ["--steps=0", "--members-steps=200000"]]
)
@pytest.mark.slow
def test_signals_and_full_disks_cost_nothing(steps):
    """In a process of its own: a child of one in which much has run may wait for threads that it has not."""
    command = [sys.executable, kills.__file__, "--kills=4", "--others=1", "--seed=3", *steps]
    done = subprocess.run(command, capture_output=True, text=True, timeout=500)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "'SIGKILL': " in done.stdout
    assert "'at last done': 1" in done.stdout
    assert "differing arrays: none" in done.stdout


def fails_at(monkeypatch: pytest.MonkeyPatch, call: int) -> None:
    """The disk is full when the file with this number is to reach it, and from then on."""
    count, sync = [0], os.fsync

    def full(handle: int) -> None:
        count[0] += 1
        if count[0] >= call:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        sync(handle)

    monkeypatch.setattr(os, "fsync", full)


def run(**how: Any) -> Trajectory:
    state = gearbox.typical_state()
    return simulate(gearbox.system(), SemiImplicitDLA(), *state, step_size=0.1, steps=40, **how)


def test_a_disk_that_is_full_at_any_moment_leaves_what_can_be_gone_on_with(monkeypatch, tmp_path):
    monkeypatch.setattr(trajectory_store, "CHUNK_BYTES", 5000)
    where, failures = tmp_path / "a.zarr", 0
    for call in (1, 60, 150, 290, 330, 390):
        with monkeypatch.context() as patch:
            fails_at(patch, call)
            try:
                run(store=where)
            except OSError as error:
                failures += 1
                said = str(error)
            else:
                said = "cannot write: No space left on device"
        assert "cannot write" in said
        assert "No space left on device" in said
        assert not list(tmp_path.glob(".part-*"))
    assert failures >= 3
    assert run(store=where) == run()


def test_a_full_disk_leaves_the_saved_file_and_the_run(monkeypatch, tmp_path):
    before = run()
    before.save(tmp_path / "a.nc")
    fails_at(monkeypatch, 1)
    with pytest.raises(OSError, match=r"cannot write '.*a.nc': No space left on device"):
        run(parameters={"epsilon": 0.2}).save(tmp_path / "a.nc")
    monkeypatch.undo()
    assert load(tmp_path / "a.nc") == before
    assert os.listdir(tmp_path) == ["a.nc"]


def test_leftovers_of_the_dead_are_removed_and_those_of_the_living_are_not(monkeypatch, tmp_path):
    dead, other = tmp_path / ".part-0123456789abcdef.nc", tmp_path / ".part-of-mine"
    for path in (dead, other):
        path.write_text("x")
    folder = tmp_path / ".part-0123456789abcde0.zarr"
    folder.mkdir()
    monkeypatch.setattr(files, "SECONDS_UNTOUCHED", 0.0)
    with files.replacing(tmp_path / "a.txt") as part:
        files.write_text(tmp_path / "b.txt", "b")
        assert part.exists()
        part.write_text("a")
    assert sorted(os.listdir(tmp_path)) == [".part-of-mine", "a.txt", "b.txt"]


def test_an_ensemble_tells_of_a_lost_chunk_and_shows_what_has_not_run(tmp_path):
    state = gearbox.typical_state()
    how: dict[str, Any] = {"step_size": 0.1, "steps": 8, "parameters": {"epsilon": np.linspace(0.1, 0.2, 4)}}

    def stop(done: int, total: int) -> None:
        if done >= 8:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt) as early:
        ensemble(
            gearbox.system(),
            SemiImplicitDLA(),
            *state,
            **how,
            store=tmp_path / "a.zarr",
            chunk=2,
            progress=stop,
        )
    assert np.isnan(early.value.trajectory.q[2:]).all()
    assert np.isfinite(early.value.trajectory.q[:2]).all()
    (tmp_path / "a.zarr" / "q" / "c" / "0" / "0" / "0").unlink()
    with pytest.raises(ValueError, match="it has lost its file 'q/c/0/0/0'"):
        early.value.trajectory.q[:2]
    (tmp_path / "a.zarr" / "resume" / "checkpoint" / "c" / "0" / "0").unlink()
    with pytest.raises(ValueError, match="it has lost its file 'resume/checkpoint/c/0/0'"):
        ensemble(gearbox.system(), SemiImplicitDLA(), *state, **how, store=tmp_path / "a.zarr", chunk=2)


def test_bad_arguments_get_a_sentence(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    seen = bad_calls.bad_calls(60, 11, tmp_path)
    assert not seen["broken"]
    assert seen["refused"] > 30


def test_bad_commands_get_a_sentence_and_a_code(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    bad_commands.prepare(tmp_path)
    seen = bad_commands.bad_commands(20, 11, tmp_path, 0)
    assert not seen["broken"]
    assert seen["refused"] > 10
