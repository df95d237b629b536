"""Rows at given times on disk: those of a run in memory, after any interruptions, with inputs and events."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest

from noslip import Interrupted, System, Trajectory, simulate
from noslip.integrators import Composition, ReferenceFlow, RungeKutta4, SemiImplicitDLA
from noslip.run import one_reference, trajectory_store
from noslip.run.one_native import NativeTrajectory
from noslip.run.one_xla import XlaTrajectory
from noslip.systems import gearbox
from run.same import EVENTS, PARTICLE, STATE, assert_same

pytest.importorskip("zarr")
TIMES = np.sort(np.concatenate([np.linspace(0.3, 5.9, 37), [0.4, 1.0, 1.01, 1.02, 6.0]]))


@pytest.fixture(scope="module")
def small() -> Iterator[None]:
    """Calls of a few steps, chunks of some ten rows, and no wait for the disk."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fsync", lambda _: None)
        patch.setattr(trajectory_store, "SECONDS_PER_CALL", 0.0)
        patch.setattr(trajectory_store, "CHUNK_BYTES", 3000)
        patch.setattr(one_reference, "SECONDS", 0.0)
        for runner in (NativeTrajectory, XlaTrajectory):
            patch.setattr(runner, "first_piece", 5)
        yield


def in_pieces(call: Any, where: Path, calls: int) -> tuple[Trajectory, int]:
    """Interrupted after every few calls until it is there, and how often."""
    for count in range(1000):
        seen = []

        def progress(done: int, total: int, seen: list[int] = seen) -> None:
            seen.append(done)
            if len(seen) >= calls:
                raise KeyboardInterrupt

        try:
            return call(store=where, progress=progress), count
        except Interrupted:
            continue
    raise AssertionError("it never ends")


def of_gearbox(method: Any = None, **how: Any) -> Trajectory:
    how = {"step_size": 0.1, "save_at": TIMES, **how}
    return simulate(
        gearbox.system(epsilon=0.21), method or SemiImplicitDLA(), *gearbox.typical_state(), **how
    )


def of_particle(method: Any = None, **how: Any) -> Trajectory:
    how = {"events": EVENTS, "step_size": 0.05, "save_at": 1.25 * TIMES, "t_end": 7.5, **how}
    return simulate(PARTICLE, method or SemiImplicitDLA(), *STATE, **how)


PUSHED = System(
    lambda q, v, p: 0.5 * jnp.dot(v, v) - q[0] ** 2,
    one_forms=lambda q, p: jnp.array([[-q[1], 0.0, 1.0]]),
    coordinates=("x", "y", "z"),
    force=lambda q, v, t, p: jnp.array([p["along"], p["across"], 0.0]),
    inputs={"along": 0.0, "across": 0.0},
)


def of_pushed(method: Any = None, **how: Any) -> Trajectory:
    forces = {"along": np.sin(np.arange(120.0)), "across": np.cos(np.arange(120.0) ** 2)}
    how = {"step_size": 0.05, "save_at": TIMES, "inputs": forces, **how}
    return simulate(PUSHED, method or SemiImplicitDLA(), *STATE, **how)


MORE = [
    (of_gearbox, ReferenceFlow(), {"step_size": 0.003}),
    (of_gearbox, Composition(SemiImplicitDLA()), {}),
    (of_gearbox, SemiImplicitDLA(), {"backend": "xla"}),
    (of_particle, ReferenceFlow(), {"step_size": 0.006}),
    (of_pushed, RungeKutta4(), {"backend": "xla"}),
]


@pytest.mark.parametrize(
    ("call", "method", "how"),
    [
        *((call, SemiImplicitDLA(), {}) for call in (of_gearbox, of_particle, of_pushed)),
        *(pytest.param(*case, marks=pytest.mark.slow) for case in MORE),
    ],
)
def test_rows_at_given_times_on_disk_are_those_in_memory_after_any_interruptions(
    small, tmp_path, call, method, how
):
    in_memory = call(method, **how)
    calls, least = (3, 1) if method.host_driven else (5, 5)
    stored, count = in_pieces(lambda **more: call(method, **how, **more), tmp_path / "a.zarr", calls)
    assert count >= least
    assert_same(stored, in_memory)
    assert_same(call(method, **how, store=tmp_path / "a.zarr"), in_memory)
    if call is of_particle:
        assert stored.stopped_by == "late"
        assert len(stored.events["wall"]) >= 1
    else:
        assert np.array_equal(stored.t, TIMES)
        system = in_memory.origin.pairing.system
        assert np.array_equal(stored.at([1.2345], system=system).q, in_memory.at([1.2345], system=system).q)
    with pytest.raises(ValueError, match="of another call: save_at is digest"):
        call(method, **{**how, "save_at": TIMES[1:]}, store=tmp_path / "a.zarr")


def test_a_run_that_fails_between_given_times_ends_on_disk_as_in_memory(small, tmp_path):
    falls = System(
        lambda q, v, p: 0.5 * v[0] ** 2, coordinates=("x",), force=lambda q, v, t, p: jnp.log(1 - t)[None]
    )
    how = {"step_size": 0.05, "save_at": np.linspace(0.01, 1.5, 40), "throw": False}
    in_memory = simulate(falls, RungeKutta4(), [0.0], [1.0], **how)
    stored = simulate(falls, RungeKutta4(), [0.0], [1.0], store=tmp_path / "a.zarr", **how)
    assert not stored.success
    assert 20 < len(stored.t) < 30
    assert_same(stored, in_memory)


def test_a_run_can_be_interrupted_before_its_first_row(small, tmp_path):
    def stop(done: int, total: int) -> None:
        if done >= 7:
            raise KeyboardInterrupt

    how = {"save_at": [5.0, 5.05], "store": tmp_path / "a.zarr"}
    with pytest.raises(Interrupted, match="interrupted before its first row; the same call goes on"):
        of_gearbox(progress=stop, **how)
    steps = []
    again = of_gearbox(progress=lambda done, total: steps.append(done), **how)
    assert steps[0] > 7
    assert_same(again, of_gearbox(save_at=[5.0, 5.05]))
