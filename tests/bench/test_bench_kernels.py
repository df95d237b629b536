"""What `noslip bench kernels` tells, of kernels that run on the host; nothing is timed here."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from engine.host_device import HostDevice
from noslip.bench import kernels
from noslip.bench.engine import beside, members, per_evaluation
from noslip.cli import app
from noslip.engine.backends import cuda
from noslip.engine.program import Loop, count
from noslip.integrators import (
    Composition,
    DiscreteGradient,
    RungeKutta4,
    SemiImplicitDLA,
    VelocityNonholonomic,
)
from noslip.integrators.base import Integrator
from noslip.run import many_gpu
from noslip.run.pairing import pairing_of
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
        assert row["of the peak"] == row["operations per second"] / HostDevice().peak()
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


@pytest.mark.parametrize("method", [DiscreteGradient(), SemiImplicitDLA(), VelocityNonholonomic()], ids=repr)
def test_operations_are_those_of_the_iteration_and_not_of_its_fallback(method: Integrator) -> None:
    step = pairing_of(gearbox.system(), method).programs.step
    fallbacks = [count(item.body) for item in step.main.items if isinstance(item, Loop) and item.rare]
    of_one = per_evaluation(step)
    assert 0 < of_one < min(fallbacks)
    assert beside(step) + of_one + sum(fallbacks) <= count(step.main)
    composed = pairing_of(gearbox.system(), Composition(method)).programs.step
    assert per_evaluation(composed) == of_one


def test_a_method_without_an_iteration_has_no_operations_of_one() -> None:
    assert per_evaluation(pairing_of(gearbox.system(), RungeKutta4()).programs.step) == 0
