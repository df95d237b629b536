"""Events of a run on disk: they grow with it, and an interruption leaves no trace in them."""

from __future__ import annotations

import itertools
import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest

from noslip import Damaged, Event, Interrupted, Trajectory, simulate
from noslip.analysis.thinning import thinned
from noslip.integrators import DiscreteGradient, Integrator, ReferenceFlow, SemiImplicitDLA
from noslip.run import trajectory_store
from noslip.run.checked import verify_folder
from noslip.run.one_native import NativeTrajectory
from run.same import EVENTS, PARTICLE, STATE, assert_same

pytest.importorskip("zarr")


def run(method: Integrator | None = None, **how: Any) -> Trajectory:
    how = {"events": EVENTS, "step_size": 0.05, "save_every": 3, **how}
    return simulate(PARTICLE, method or SemiImplicitDLA(), *STATE, **how)


@pytest.fixture(scope="module")
def small() -> Iterator[None]:
    """Calls of a few steps, chunks of some ten rows and of two events, and no wait for the disk."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fsync", lambda _: None)
        patch.setattr(trajectory_store, "SECONDS_PER_CALL", 0.0)
        patch.setattr(trajectory_store, "CHUNK_BYTES", 1500)
        patch.setattr(trajectory_store, "EVENTS_AT_ONCE", 2)
        patch.setattr(NativeTrajectory, "first_piece", 5)
        yield


@pytest.fixture(scope="module")
def stored(small, tmp_path_factory) -> Path:
    """A run on disk, for those that only read it."""
    where = tmp_path_factory.mktemp("stored") / "a.zarr"
    run(store=where)
    return where


class Killed(BaseException):
    """Nobody catches it: what is on the disk then is all that is left."""


LONGER = [pytest.param(method, marks=pytest.mark.slow) for method in (DiscreteGradient(), ReferenceFlow())]


@pytest.mark.parametrize("method", [SemiImplicitDLA(), *LONGER], ids=str)
def test_a_run_until_an_event_ends_with_its_bits_however_often_it_is_killed(
    small, tmp_path, monkeypatch, method
):
    """Before a checkpoint, when rows and events beyond the last one have been written, and after it."""
    in_memory, deaths = run(method), []
    assert in_memory.stopped_by == "late"
    assert len(in_memory.events["often"]) >= 6
    assert len(in_memory.events["wall"]) >= 1
    write, left = trajectory_store.Checkpoints.write, []

    def deadly(self: Any, *what: Any) -> None:
        left.append(what)
        if len(left) % 3 == 2:
            raise Killed
        write(self, *what)
        if len(left) % 4 == 3:
            raise Killed

    monkeypatch.setattr(trajectory_store.Checkpoints, "write", deadly)
    while True:
        try:
            stored = run(method, store=tmp_path / "a.zarr")
            break
        except Killed:
            deaths.append(len(left))
    assert len(deaths) >= (2 if method.host_driven else 5)
    assert_same(stored, in_memory)
    assert stored.events["often"].q[-1].tolist() == in_memory.events["often"].q[-1].tolist()
    assert_same(run(method, store=tmp_path / "a.zarr"), in_memory)


def test_events_are_seen_while_they_come(small, tmp_path):
    counts, looks = [], itertools.count()

    def look(done: int, total: int) -> None:
        if done > 110:
            raise KeyboardInterrupt
        if next(looks) % 3 == 0 and (tmp_path / "a.zarr" / "time" / "c").exists():
            now = Trajectory.open(tmp_path / "a.zarr")
            counts.append(len(now.events["often"]))
            assert now.stopped_by is None

    with pytest.raises(Interrupted, match=r"interrupted after step 11[0-9]; the same call goes on"):
        run(store=tmp_path / "a.zarr", progress=look)
    assert len(set(counts)) >= 3
    assert sorted(counts) == counts
    assert_same(run(store=tmp_path / "a.zarr"), run())


def test_what_reads_a_run_reads_its_events(stored):
    whole = Trajectory.open(stored)
    few = thinned(whole, 5)
    assert len(few.t) < len(whole.t)
    assert np.array_equal(few.events["often"].t, run().events["often"].t)


def test_another_event_is_another_call(stored):
    for name, event, sentence in (
        ("often", Event(lambda q, v, p: jnp.sin(4 * q[0])), "functions of the events is"),
        ("wall", Event(EVENTS["wall"].function, direction=1, reset=lambda q, v, p: (q, -v)), "functions of"),
        ("often", Event(EVENTS["often"].function, direction=1), "events is"),
    ):
        with pytest.raises(ValueError, match="of another call") as caught:
            run(store=stored, events={**EVENTS, name: event})
        assert sentence in str(caught.value)


def test_a_lost_or_damaged_chunk_of_events_is_named(stored, tmp_path):
    copy = Path(shutil.copytree(stored, tmp_path / "a.zarr"))
    run, chunk = Trajectory.open(copy), copy / "event_often_q" / "c" / "1" / "0"
    data = bytearray(chunk.read_bytes())
    data[len(data) // 2] ^= 4
    chunk.write_bytes(data)
    with pytest.raises(Damaged, match="'event_often_q/c/1/0' is not what was written"):
        np.asarray(run.events["often"].q)
    chunk.unlink()
    with pytest.raises(Damaged, match="it has lost its file 'event_often_q/c/1/0'"):
        np.asarray(run.events["often"].q)
    assert any("event_often_q/c/1/0" in line for line in verify_folder(copy).damaged)
