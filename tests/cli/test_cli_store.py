"""`noslip run -o run.zarr`: filled while it runs, gone on with by the same command, read by all others."""

from __future__ import annotations

import numpy as np
import pytest
from typer.testing import CliRunner, Result

from noslip import Trajectory
from noslip.cli import app
from noslip.integrators import VelocityNonholonomic
from noslip.run import trajectory_store
from noslip.run.one_native import NativeTrajectory
from noslip.simulate import simulate
from noslip.systems import chaplygin_sleigh

pytest.importorskip("zarr")
RUN = ("run", "chaplygin_sleigh", "-i", "VelocityNonholonomic", "--step-size", "0.1", "--steps", "50")


@pytest.fixture(autouse=True)
def elsewhere(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def call(*words: str) -> Result:
    return CliRunner().invoke(app, list(words))


def test_an_interrupted_command_goes_on_and_every_command_reads_the_folder(monkeypatch, tmp_path):
    monkeypatch.setattr(trajectory_store, "SECONDS_PER_CALL", 0.0)
    monkeypatch.setattr(NativeTrajectory, "first_piece", 5)
    to = NativeTrajectory.to

    def stopped(runner, *where):
        import signal

        if runner.reached > 20:
            signal.raise_signal(signal.SIGTERM)
        return to(runner, *where)

    with monkeypatch.context() as patch:
        patch.setattr(NativeTrajectory, "to", stopped)
        early = call(*RUN, "-o", "run.zarr")
    assert early.exit_code == 130, early.output
    assert (
        "interrupted after step 22 of 50; the part before is in run.zarr, and the same command goes on"
        in (early.output)
    )
    assert len(Trajectory.open("run.zarr").t) == 23
    assert call("report", "run.zarr", "-o", "early.html").exit_code == 0
    done = call(*RUN, "-o", "run.zarr", "--plot", "run.png")
    assert done.exit_code == 0, done.output
    assert "wrote run.zarr" in done.output
    direct = simulate(
        chaplygin_sleigh.system(),
        VelocityNonholonomic(),
        *chaplygin_sleigh.typical_state(),
        step_size=0.1,
        steps=50,
    )
    np.testing.assert_array_equal(Trajectory.open("run.zarr").q[:], direct.q)
    again = call("rerun", "run.zarr")
    assert "identical bit for bit: 51 saved times" in again.output, again.output
    assert call("animate", "run.zarr", "-o", "run.gif", "--seconds", "0.2").exit_code == 0
    assert sorted(p.name for p in tmp_path.iterdir()) == [
        "early.html", "run.gif", "run.png", "run.zarr",
    ]  # fmt: skip


@pytest.mark.parametrize("kind", ["file", "link", "nowhere", "mine"])
def test_a_place_that_is_none_is_refused_before_the_run(kind, tmp_path):
    (tmp_path / "file.zarr").write_text("mine")
    (tmp_path / "link.zarr").symlink_to(tmp_path / "file.zarr")
    (tmp_path / "mine.zarr").mkdir()
    target = "nowhere/a.zarr" if kind == "nowhere" else f"{kind}.zarr"
    result = call(*RUN, "-o", target)
    assert result.exit_code == 2
    assert result.output.count("\n") == 1
    assert sorted(p.name for p in tmp_path.rglob("*")) == ["file.zarr", "link.zarr", "mine.zarr"]
    assert (tmp_path / "file.zarr").read_text() == "mine"


def test_verify_tells_what_is_whole_and_names_what_is_not(tmp_path):
    assert call(*RUN, "-o", "run.nc").exit_code == 0
    assert call(*RUN, "-o", "run.zarr").exit_code == 0
    for name, said in (("run.nc", "run.nc: 1 file, nothing"), ("run.zarr", "nothing damaged or missing")):
        whole = call("verify", name)
        assert whole.exit_code == 0
        assert said in whole.output
    chunk = tmp_path / "run.zarr" / "energy" / "c" / "0"
    chunk.unlink()
    damaged = call("verify", "run.zarr")
    assert (damaged.exit_code, damaged.output) == (
        5,
        "noslip: 'run.zarr' is damaged: it has lost its file 'energy/c/0'\n",
    )
    data = bytearray((tmp_path / "run.nc").read_bytes())
    data[3000] ^= 1
    (tmp_path / "run.nc").write_bytes(data)
    for words in (("verify", "run.nc"), ("rerun", "run.nc"), ("report", "run.nc", "-o", "a.html")):
        damaged = call(*words)
        assert (damaged.exit_code, damaged.output) == (
            5,
            "noslip: 'run.nc' is damaged: it is not what was written\n",
        )
    assert call("verify", "nowhere").exit_code == 2
    assert call("verify", ".").exit_code == 2


def test_what_is_read_is_never_replaced(tmp_path):
    assert call(*RUN, "-o", "run.nc").exit_code == 0
    (tmp_path / "run.html").hardlink_to(tmp_path / "run.nc")
    (tmp_path / "run.gif").hardlink_to(tmp_path / "run.nc")
    before = (tmp_path / "run.nc").read_bytes()
    for words in (
        ("report", "run.nc", "-o", "run.html"),
        ("animate", "run.nc", "-o", "run.gif"),
        ("rerun", "run.nc", "-o", "run.nc"),
    ):
        refused = call(*words)
        assert refused.exit_code == 2
        assert "must be another file than the one that is read" in refused.output
    assert (tmp_path / "run.nc").read_bytes() == before
