"""Ensembles on disk: the same bits as in memory, after any number of sudden deaths; other calls refused."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from noslip import Ensemble, Interrupted, Observable, SolveFailed, ensemble
from noslip.integrators.semi_implicit_dla import SemiImplicitDLA
from noslip.integrators.velocity_nonholonomic import VelocityNonholonomic
from noslip.run import store as store_module
from noslip.run import store_layout as layout_module
from noslip.systems import gearbox, quartic

pytest.importorskip("zarr")

SYSTEM = gearbox.system()
Q0, V0 = (np.asarray(x) for x in gearbox.typical_state())
MEMBERS = 21
EPSILON = np.linspace(0.0, 0.3, MEMBERS)
WATCH = {"drift": Observable("energy_error", ("max", "variance")), "pendulum": "pendulum_energy"}

# the ensemble that is killed, with a checkpoint after every piece; it says when it runs the first chunk
CHILD = """
import sys
import numpy as np
from noslip import Observable, ensemble
from noslip.run import store
from noslip.integrators.semi_implicit_dla import SemiImplicitDLA
from noslip.systems import gearbox
store.SECONDS_BETWEEN_CHECKPOINTS = 0.0
q0, v0 = gearbox.typical_state()
watch = {"drift": Observable("energy_error", ("max", "variance")), "pendulum": "pendulum_energy"}
plan_runner = store.Plan.runner
def speaking(plan, group):
    if group.count == 4:
        print("runs", flush=True)
    return plan_runner(plan, group)
store.Plan.runner = speaking
ensemble(gearbox.system(), SemiImplicitDLA(), q0, v0, step_size=0.1, steps=2000, save_every=50,
         parameters={"epsilon": np.linspace(0.0, 0.3, 21)}, threads=1, store=sys.argv[1], chunk=4,
         observables=watch)
print("done", flush=True)
"""


def run(store=None, **how):
    arguments = {"step_size": 0.1, "steps": 60, "save_every": 7, "observables": WATCH} | how
    parameters = {"parameters": {"epsilon": EPSILON}} | how
    arguments |= {"parameters": parameters["parameters"]}
    return ensemble(SYSTEM, SemiImplicitDLA(), Q0, V0, store=store, **arguments)


def assert_same(a: Ensemble, b: Ensemble) -> None:
    """Every array has the same bits."""
    first, second = a.to_xarray(), b.to_xarray()
    assert set(first.variables) == set(second.variables)
    for name in first.variables:
        x, y = first[name].values, second[name].values
        assert x.dtype == y.dtype, name
        assert x.tobytes() == y.tobytes(), name
    assert a.info == b.info


@pytest.mark.thorough
@pytest.mark.parametrize("backend", ["native", "xla"])
def test_a_stored_ensemble_has_the_bits_of_one_in_memory(tmp_path, backend):
    in_memory = run(backend=backend)
    stored = run(backend=backend, store=tmp_path / "a.zarr", chunk=MEMBERS if backend == "xla" else 8)
    assert stored.success
    assert_same(stored, in_memory)
    assert_same(Ensemble.open(tmp_path / "a.zarr"), in_memory)
    assert [p.name for p in tmp_path.iterdir()] == ["a.zarr"]
    again = run(backend=backend, store=tmp_path / "a.zarr")  # complete: nothing is computed
    assert_same(again, in_memory)


def test_xarray_opens_the_folder_itself(tmp_path):
    import xarray

    stored = run(store=tmp_path / "a.zarr", chunk=8)
    with xarray.open_zarr(tmp_path / "a.zarr", consolidated=False, chunks=None) as data:
        assert data.q.dims == ("member", "time", "coordinate")
        np.testing.assert_array_equal(data.q, stored.to_xarray().q)
        np.testing.assert_array_equal(data.parameter_epsilon, EPSILON)
        assert "SemiImplicitDLA" in data.attrs["noslip"]


@pytest.mark.thorough
@pytest.mark.parametrize("backend", ["native", "xla"])
def test_an_interrupted_ensemble_goes_on_from_its_checkpoint(tmp_path, monkeypatch, backend):
    monkeypatch.setattr(store_module, "SECONDS_BETWEEN_CHECKPOINTS", 0.0)
    monkeypatch.setattr(layout_module, "CHUNK_BYTES", 20000)  # several pieces of time in a chunk
    where, seen = tmp_path / "a.zarr", []

    def stop_in_the_second_chunk(done, total):
        seen.append(done)
        if done > 60 + 20:
            raise KeyboardInterrupt

    with pytest.raises(Interrupted, match="8 of 21 members done; the same call goes on") as caught:
        run(store=where, chunk=8, backend=backend, progress=stop_in_the_second_chunk)
    assert "13 not run yet" in repr(caught.value.trajectory)
    assert list(caught.value.trajectory.status) == [0] * 8 + [-1] * 13
    seen.clear()
    went_on = run(store=where, chunk=8, backend=backend, progress=lambda done, total: seen.append(done))
    assert seen[0] > 80  # of three chunks with 60 steps each: the second did not begin anew
    assert_same(went_on, run(backend=backend, store=tmp_path / "b.zarr", chunk=8))


def _killed_and_resumed(tmp_path: Path, moments: list[float]) -> None:
    """Kill a real process at each of these moments after it began, then let it finish."""
    where = tmp_path / "killed.zarr"
    environment = {**os.environ, "PYTHONUNBUFFERED": "1"}
    deaths = 0
    for moment in moments:
        process = subprocess.Popen(
            [sys.executable, "-c", CHILD, str(where)], stdout=subprocess.PIPE, text=True, env=environment
        )
        assert process.stdout is not None
        assert process.stdout.readline() == "runs\n"
        time.sleep(moment)
        process.send_signal(signal.SIGKILL)
        deaths += process.wait() == -signal.SIGKILL
        process.stdout.close()
    assert deaths == len(moments)
    unfinished = Ensemble.open(where)
    assert not unfinished.success
    done = subprocess.run(
        [sys.executable, "-c", CHILD, str(where)],
        capture_output=True,
        text=True,
        env=environment,
        timeout=300,
    )
    assert done.stdout.endswith("done\n"), done.stderr
    how = {"steps": 2000, "save_every": 50, "threads": 1}
    assert_same(Ensemble.open(where), run(**how))


@pytest.mark.slow
def test_killed_twice_and_resumed_gives_the_same_bits(tmp_path):
    _killed_and_resumed(tmp_path, [0.1, 0.4])


@pytest.mark.slow
@pytest.mark.all_pairs  # those killed twice say it in half the time
def test_killed_at_ten_random_moments_and_resumed_gives_the_same_bits(tmp_path):
    rng = np.random.default_rng()
    moments = rng.uniform(0.0, 0.3, 10).tolist()
    print("moments", moments)
    _killed_and_resumed(tmp_path, moments)


@pytest.mark.parametrize(
    ("how", "sentence"),
    [
        ({"step_size": 0.05}, "step_size is 0.1 there, but 0.05 was provided"),
        ({"steps": 61}, "steps is 60 there, but 61 was provided"),
        ({"parameters": {"epsilon": EPSILON[:5]}}, "members is 21 there, but 5 was provided"),
        ({"parameters": {"epsilon": EPSILON + 1e-16}}, "parameter epsilon is digest"),
        ({"observables": ("energy",)}, "observables is [['drift'"),
        ({"backend": "xla"}, "backend is native there, but xla was provided"),
        ({"chunk": 9}, "chunk is 8 there, but 9 was provided"),
    ],
)
def test_another_call_onto_the_same_folder_is_refused(tmp_path_factory, how, sentence):
    where = tmp_path_factory.getbasetemp() / "refused.zarr"
    if not where.exists():
        run(store=where, chunk=8)
    with pytest.raises(ValueError, match="holds an ensemble of another call") as caught:
        run(store=where, **how)
    assert sentence in str(caught.value)
    assert "\n" not in str(caught.value)


def test_another_system_with_the_same_names_is_refused(tmp_path):
    def heavier(q, v, p):
        return gearbox.lagrangian(q, v, p) + 0.5 * v[2] ** 2

    from dataclasses import replace

    run(store=tmp_path / "a.zarr")
    other = replace(SYSTEM, lagrangian=heavier)
    with pytest.raises(ValueError, match="functions of the system and the observables is digest"):
        ensemble(
            other, SemiImplicitDLA(), Q0, V0, step_size=0.1, steps=60, save_every=7, observables=WATCH,
            parameters={"epsilon": EPSILON}, store=tmp_path / "a.zarr",
        )  # fmt: skip
    with pytest.raises(ValueError, match="integrator is SemiImplicitDLA there, but VelocityNonholonomic"):
        ensemble(
            SYSTEM, VelocityNonholonomic(), Q0, V0, step_size=0.1, steps=60, save_every=7, observables=WATCH,
            parameters={"epsilon": EPSILON}, store=tmp_path / "a.zarr",
        )  # fmt: skip


@pytest.mark.slow
def test_failed_members_are_stored_and_reported(tmp_path):
    system, (q0, v0) = quartic.system(), quartic.typical_state()
    q0s, v0s = np.stack([q0, 0 * q0]), np.stack([v0, 0 * v0])  # the second is at rest
    how = {"step_size": 3.0, "steps": 30, "save_every": 10}
    stored = ensemble(
        system, SemiImplicitDLA(), q0s, v0s, throw=False, store=tmp_path / "a.zarr", chunk=1, **how
    )
    assert_same(stored, ensemble(system, SemiImplicitDLA(), q0s, v0s, throw=False, **how))
    with pytest.raises(SolveFailed, match="1 of 2 members failed, first member 0 in step"):
        ensemble(system, SemiImplicitDLA(), q0s, v0s, store=tmp_path / "a.zarr", **how)


def test_a_process_that_lost_its_chunk_to_another_stops(tmp_path):
    taken = []

    def another_takes_it(done, total):
        if done >= 30 and not taken:
            taken.append(store_module._Store(tmp_path / "a.zarr").checkpoints.take(0))

    with pytest.raises(OSError, match="chunk 0 of this ensemble was taken up by another process"):
        run(store=tmp_path / "a.zarr", chunk=MEMBERS, progress=another_takes_it)
    assert_same(run(store=tmp_path / "a.zarr"), run())


def test_bad_input_writes_nothing(tmp_path, monkeypatch):
    with pytest.raises(FileNotFoundError, match=r"there is no folder '.*nowhere'"):
        run(store=tmp_path / "nowhere" / "a.zarr")
    with pytest.raises(ValueError, match="`chunk` must be a whole number >= 1"):
        run(store=tmp_path / "a.zarr", chunk=0)
    with pytest.raises(ValueError, match="`chunk` must come with `store`"):
        run(chunk=3)
    with pytest.raises(TypeError, match=r"`cluster` must be a dask.distributed.Client, but 3"):
        run(store=tmp_path / "a.zarr", cluster=3)
    assert not list(tmp_path.iterdir())
    (tmp_path / "a.nc").write_text("x")
    with pytest.raises(ValueError, match="must be a new folder or an ensemble of noslip"):
        run(store=tmp_path / "a.nc")
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.tex").write_text("x")
    with pytest.raises(ValueError, match="must be a new folder or an ensemble of noslip"):
        run(store=tmp_path / "mine")
    assert [p.name for p in (tmp_path / "mine").iterdir()] == ["thesis.tex"]
    with pytest.raises(ValueError, match="was not written by noslip"):
        Ensemble.open(tmp_path / "mine")
    with pytest.raises(FileNotFoundError, match="there is no folder"):
        Ensemble.open(tmp_path / "b.zarr")
    for name, extra in (("zarr", "store"), ("distributed", "cluster")):
        monkeypatch.setattr(
            store_module.importlib.util,
            "find_spec",
            lambda module, missing=name: None if module == missing else 1,
        )
        with pytest.raises(ImportError, match=f"needs the package {name}.*noslip\\[{extra}\\]"):
            run(store=tmp_path / "a.zarr", cluster=3)
