"""What `noslip bench kernels` tells, of kernels that run on the host; nothing is timed here."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from engine.host_device import HostDevice
from noslip.bench import kernels
from noslip.bench.engine import members
from noslip.cli import app
from noslip.engine.backends import cuda
from noslip.run import many_gpu
from noslip.systems import gearbox, rolling_coin


def test_without_a_gpu_it_says_so_and_writes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cuda, "count", lambda: 0)
    path = tmp_path / "kernels.json"
    done = CliRunner().invoke(app, ["bench", "kernels", "--json", str(path)])
    assert done.exit_code == 2
    assert done.stderr == "noslip: this needs a GPU, but the driver shows none\n"
    assert not path.exists()


def test_rows_count_bits_and_members_of_the_second_kernel(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cuda, "count", lambda: 1)
    monkeypatch.setattr(many_gpu, "_devices", lambda: [HostDevice()])
    monkeypatch.setattr(kernels, "STEPS", 2)
    monkeypatch.setattr(kernels, "COMPARED", 3)
    trials = [trial._replace(size=40) for trial in kernels.TRIALS if trial.module is gearbox]
    needy = next(trial for trial in trials if "long steps" in trial.words)
    monkeypatch.setattr(kernels, "TRIALS", (trials[1], needy._replace(h=2.0)))
    path = tmp_path / "kernels.json"
    done = CliRunner().invoke(app, ["bench", "kernels", "--markdown", "--json", str(path)])
    assert done.exit_code == 0, done.output
    easy, hard = json.loads(path.read_text())["rows"]
    for row in (easy, hard):
        assert row["members with the bits of native code"] == row["members"] == 40
    assert easy["in the second kernel"] == easy["failed"] == 0
    assert hard["in the second kernel"] > hard["failed"]
    assert easy["seconds to the first step"] > 0
    assert "seconds to the first step" not in hard, "its kernels were there"
    assert "DiscreteGradient, no frame, long steps" in done.output


def test_a_member_with_other_bits_is_not_counted() -> None:
    class Ran:
        shares = ()

        def __init__(self, values: np.ndarray):
            self.values = values

        def to(self, stop: int) -> None:
            pass

        def final(self) -> dict[str, np.ndarray]:
            return {"q": self.values}

    ours = np.arange(6.0).reshape(3, 2)
    other = ours.copy()
    other[1, 1] = np.nextafter(other[1, 1], 9)
    assert kernels._beside_native(Ran(ours), Ran(other)) == (2, 0)
    other[0, 0] = -0.0
    assert kernels._beside_native(Ran(ours), Ran(other)) == (1, 0)


def test_members_of_bodies_start_where_they_may() -> None:
    inputs = members(rolling_coin, 0.02, 5)
    system = rolling_coin.system()
    q0s, v0s, *_ = inputs.initial
    for q, v in zip(q0s, v0s, strict=True):
        assert np.max(np.abs(system.phi(q, v))) < 1e-13
        assert np.max(np.abs(system.g(q))) < 1e-13
    assert len(np.unique(v0s[:, 0])) == 5
