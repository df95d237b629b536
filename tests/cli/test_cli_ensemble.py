"""`noslip ensemble`: random and varied members, going on after an interruption, exit codes and sentences."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner, Result

from noslip import Ensemble, ensemble
from noslip.cli import app
from noslip.integrators.semi_implicit_dla import SemiImplicitDLA
from noslip.run import checkpoints, store
from noslip.sampling import Ball, on_energy_shell
from noslip.systems import nonholonomic_particle

pytest.importorskip("zarr")
PARTICLE = ("nonholonomic_particle", "-i", "SemiImplicitDLA", "--step-size", "0.1", "--steps", "30")
SHELL = ("--energy", "0.9", "--ball", "0.5", "--seed", "4", "--observe", "energy_error", "--chunk", "4")


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def call(*arguments: str) -> Result:
    return CliRunner().invoke(app, ["ensemble", *PARTICLE, *arguments])


def test_random_members_are_those_of_the_library_and_an_interruption_costs_nothing(monkeypatch):
    command = ("--members", "10", *SHELL, "--set", "k=0.7", "-o", "a.zarr")
    run_chunk = store.run_chunk

    def stops_at_the_second(plan, folder, k, show):
        if k == 1:
            raise KeyboardInterrupt
        run_chunk(plan, folder, k, show)

    with monkeypatch.context() as patch:
        patch.setattr(store, "run_chunk", stops_at_the_second)
        stopped = call(*command)
    assert stopped.exit_code == 130
    assert "interrupted with 4 of 10 members done; the same command goes on from 'a.zarr'" in stopped.output
    assert "4 done, 0 failed, 6 not run yet" in stopped.output
    done = call(*command)
    assert done.exit_code == 0, done.output
    assert "10 done, 0 failed, 0 not run yet" in done.output
    assert "energy_error, over members" in done.output
    system = nonholonomic_particle.system(k=0.7)
    q0, _ = nonholonomic_particle.typical_state()
    states = on_energy_shell(system, 0.9, 10, region=Ball(q0, 0.5), seed=4)
    direct = ensemble(system, SemiImplicitDLA(), *states, step_size=0.1, steps=30)
    np.testing.assert_array_equal(Ensemble.open("a.zarr").q[...], direct.q)
    assert "noslip" in checkpoints.attributes_of(Path("a.zarr"))["command"]


def test_parameters_that_vary_and_velocities_at_a_temperature():
    done = call("--members", "3", "--vary", "k=0:1", "-o", "b.zarr", "--save-every", "10")
    assert done.exit_code == 0, done.output
    stored = Ensemble.open("b.zarr")
    np.testing.assert_array_equal(stored.parameters["k"], [0.0, 0.5, 1.0])
    assert stored.q.shape == (3, 4, 3)
    done = call("--members", "3", "--temperature", "0.5", "--box", "1,1,0", "-o", "c.zarr")
    assert done.exit_code == 0, done.output
    assert len(np.unique(Ensemble.open("c.zarr").v[:, 0, 0])) == 3


@pytest.mark.parametrize(
    ("more", "sentence"),
    [
        ((), "members must differ, so --energy, --temperature or --vary must be given"),
        (("--energy", "1"), "so --ball or --box must be given"),
        (("--ball", "1", "--vary", "k=0:1"), "`--ball` and `--box` must come with --energy or --temperature"),
        (("--energy", "1", "--temperature", "1", "--ball", "1"), "must not be given both"),
        (("--energy", "1", "--ball", "1", "--box", "1,1,1"), "must not be given both"),
        (("--energy", "1", "--box", "1,1"), "`--box` must be 3 numbers (x,y,z), but 2 were provided"),
        (("--vary", "k=0"), "`--vary k` must be LOW:HIGH, but '0' was provided"),
        (("--vary", "kk=0:1"), "unknown parameter 'kk'"),
        (("--vary", "k=0:1", "--observe", "enrgy"), "unknown observable 'enrgy'"),
        (("--energy", "-1", "--ball", "1"), "must hold states of energy -1"),
    ],
)
def test_bad_input_gets_one_sentence_and_writes_nothing(folder, more, sentence):
    result = call("--members", "5", "-o", "a.zarr", *more)
    assert result.exit_code == 2
    assert sentence in result.output
    assert not list(folder.iterdir())


def test_members_that_fail_are_kept_and_counted():
    result = call("--members", "2", "--vary", "k=1:1.1", "--step-size", "1000", "-o", "a.zarr")
    assert result.exit_code == 3
    assert "2 of 2 members failed" in result.output
    assert Ensemble.open("a.zarr").status.all()
