"""One trajectory on disk: the bits of one in memory after any interruptions, and read while it grows."""

from __future__ import annotations

import signal
import threading
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import jax.numpy as jnp
import numpy as np
import pytest

from noslip import Damaged, Ensemble, Interrupted, SolveFailed, System, Trajectory, load, simulate
from noslip.analysis.conservation import constraint_error, energy_error
from noslip.analysis.thinning import thinned
from noslip.integrators.base import Integrator, Observation, Sum, pytree
from noslip.integrators.composition import Composition
from noslip.integrators.discrete_gradient import DiscreteGradient
from noslip.integrators.generating_function import GeneratingFunction
from noslip.integrators.geometric_nonholonomic import GeometricNonholonomic
from noslip.integrators.hamiltonized_del import HamiltonizedDEL
from noslip.integrators.reference_flow import ReferenceFlow
from noslip.integrators.semi_implicit_dla import SemiImplicitDLA
from noslip.run import one_reference, trajectory_store
from noslip.run.checkpoints import state_of, state_words
from noslip.run.one_native import NativeTrajectory
from noslip.run.one_xla import XlaTrajectory
from noslip.systems import gearbox, knife_edge, two_quadratic_constraints
from run.same import assert_same

pytest.importorskip("zarr")

STATE = gearbox.typical_state()
HOW: dict[str, Any] = {"step_size": 0.1, "steps": 60, "save_every": 7}


def run(method: Integrator | None = None, **how: Any) -> Trajectory:
    return simulate(gearbox.system(epsilon=0.21), method or SemiImplicitDLA(), *STATE, **{**HOW, **how})


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Calls of a few steps, chunks of some ten rows."""
    monkeypatch.setattr(trajectory_store, "SECONDS_PER_CALL", 0.0)
    monkeypatch.setattr(trajectory_store, "CHUNK_BYTES", 4000)
    monkeypatch.setattr(one_reference, "SECONDS", 0.0)
    for runner in (NativeTrajectory, XlaTrajectory):
        monkeypatch.setattr(runner, "first_piece", 5)


def stop_after(calls: int) -> Any:
    seen = []

    def progress(done: int, total: int) -> None:
        seen.append(done)
        if len(seen) >= calls:
            raise KeyboardInterrupt

    return progress


def in_pieces(call: Any, where: Path, calls: int = 3) -> tuple[Trajectory, int]:
    """Interrupted after every few calls until it is there, and how often."""
    count = 0
    while True:
        try:
            return call(store=where, progress=stop_after(calls)), count
        except Interrupted:
            count += 1


@pytest.mark.thorough
@pytest.mark.parametrize("backend", ["native", "xla"])
def test_a_stored_run_interrupted_many_times_has_the_bits_of_one_in_memory(small, tmp_path, backend):
    in_memory = run(backend=backend)
    stored, count = in_pieces(lambda **how: run(backend=backend, **how), tmp_path / "a.zarr")
    assert count >= 8
    assert_same(stored, in_memory)
    assert_same(load(tmp_path / "a.zarr"), in_memory)
    assert_same(run(backend=backend, store=tmp_path / "a.zarr", progress=stop_after(1)), in_memory)
    assert [p.name for p in tmp_path.iterdir()] == ["a.zarr"]
    assert not list((tmp_path / "a.zarr").rglob(".part-*"))


@pytest.mark.thorough
@pytest.mark.parametrize(
    "method",
    [
        GeometricNonholonomic(),
        Composition(DiscreteGradient(gradient="mean_value"), "suzuki4"),
        GeneratingFunction(alpha=0.3),
        ReferenceFlow(),
    ],
    ids=lambda method: type(method).__name__,
)
def test_whatever_a_method_remembers_is_in_the_checkpoint(small, tmp_path, method):
    how = {"steps": 1200, "save_every": 100} if method == ReferenceFlow() else {"steps": 40, "save_every": 3}
    stored, count = in_pieces(lambda **more: run(method, **how, **more), tmp_path / "a.zarr", 1)
    assert count >= 2
    assert_same(stored, run(method, **how))


@pytest.mark.slow
def test_a_method_with_its_own_time_is_stored_with_it(small, tmp_path):
    def call(**how: Any) -> Trajectory:
        state = knife_edge.typical_state()
        return simulate(knife_edge.system(), HamiltonizedDEL(), *state, step_size=0.02, t_end=1.0, **how)

    stored, count = in_pieces(call, tmp_path / "a.zarr")
    assert count >= 5
    assert_same(stored, call())


@pytree
class Odd:
    """A state of all kinds of numbers, in a tree of some depth."""

    t: Sum
    q: Sum
    v: jnp.ndarray
    memory: dict


@dataclass(frozen=True)
class OddOne(Integrator):
    """Euler's method that counts, and remembers, more than it needs."""

    order: ClassVar = 1
    preserves: ClassVar = frozenset()
    reference: ClassVar = "none"

    def init(self, system, q, v, t, h):
        memory = {"count": jnp.array(3, jnp.int32), "flip": jnp.array(True), "older": (q, q[None] * 0.5)}
        return Odd(Sum.start(t), Sum.start(q), v, memory)

    def step(self, system, state, h):
        q, v = state.q.value, state.v
        old = state.memory
        push = jnp.where(old["flip"], 1.0, 0.5) * jnp.sin(old["count"] * 1.0) * old["older"][1][0]
        moved = state.q.plus(h * (v + 0.01 * push))
        memory = {"count": old["count"] + 1, "flip": ~old["flip"], "older": (q, old["older"][0][None])}
        v1 = v + h * system.acceleration(q, v, state.t.value)
        return Odd(state.t.plus(h), moved, v1, memory)

    def observe(self, state):
        return Observation(state.t.value, state.q.value, state.v, None, state.t.value)


def test_a_state_of_any_shape_is_kept(small, tmp_path):
    stored, count = in_pieces(lambda **how: run(OddOne(), backend="xla", **how), tmp_path / "a.zarr")
    assert count >= 8
    assert_same(stored, run(OddOne(), backend="xla"))


def test_rows_are_read_while_they_come_and_only_those_asked_for(small, tmp_path, monkeypatch):
    monkeypatch.setattr(trajectory_store, "SECONDS_BETWEEN_CHECKPOINTS", 0.0)
    monkeypatch.setattr(trajectory_store, "SHARE_OF_WRITING", 1e9)
    where, lengths = tmp_path / "a.zarr", []

    def look(done: int, total: int) -> None:
        now = Trajectory.open(where)
        assert now.q[-1].shape == (3,)
        lengths.append(len(now.t))

    stored = run(store=where, progress=look)
    in_memory = run()
    assert len(set(lengths)) > 5
    assert sorted(lengths) == lengths
    for index in (-1, 3, slice(2, 9, 3), slice(None, None, -1), [1, 4], (slice(None), 1), (2, [0, 2])):
        np.testing.assert_array_equal(stored.q[index], in_memory.q[index])
    assert np.max(stored.energy) == np.max(in_memory.energy)
    assert (2 * stored.v - 1).tolist() == (2 * in_memory.v - 1).tolist()
    with pytest.raises(IndexError, match="there is no row 99"):
        stored.q[99]
    dataset = stored.to_xarray()
    assert type(dataset.q.data).__module__.startswith("dask")
    assert dataset.identical(in_memory.to_xarray())
    import xarray

    with xarray.open_zarr(where, consolidated=False, chunks=None) as data:
        np.testing.assert_array_equal(data.q, in_memory.q)


def test_long_runs_are_thinned_without_losing_an_extreme(small, tmp_path):
    stored, in_memory = run(store=tmp_path / "a.zarr", save_every=1), run(save_every=1)
    few = thinned(stored, 11)
    assert 11 <= len(few.t) <= 14
    assert (few.t[0], few.t[-1]) == (in_memory.t[0], in_memory.t[-1])
    assert np.max(np.abs(energy_error(few))) == np.max(np.abs(energy_error(in_memory)))
    assert constraint_error(few) == constraint_error(in_memory)
    assert np.sum(few.report.steps) == 60
    assert_same(thinned(stored, 1000), in_memory)
    assert thinned(in_memory, 3) is in_memory


@pytest.mark.parametrize("number", ["SIGTERM", "SIGHUP", "SIGINT"])
def test_signals_end_a_run_and_keep_it(tmp_path, number):
    """In the middle of a call: here the next look at the clock, by a timer, as another process would."""
    which = getattr(signal, number)
    ask = threading.Timer(0.3, signal.raise_signal, [which])
    begun = []
    # whoever started the tests may have told them to ignore it
    usual = signal.default_int_handler if number == "SIGINT" else signal.SIG_DFL
    given = signal.signal(which, usual)

    def progress(done: int, total: int) -> None:
        if not begun:
            begun.append(ask.start())

    try:
        with pytest.raises(Interrupted, match="interrupted after step") as caught:
            run(DiscreteGradient(), steps=10**9, save_every=10**4, progress=progress)  # its energy stays
        assert signal.getsignal(which) is usual
    finally:
        signal.signal(which, given)
    assert len(caught.value.trajectory.t) > 1


def test_who_has_taken_a_signal_keeps_it():
    seen = []
    before = signal.signal(signal.SIGTERM, lambda *_: seen.append("mine"))
    try:
        run(steps=2000, progress=lambda *_: signal.raise_signal(signal.SIGTERM))
    finally:
        signal.signal(signal.SIGTERM, before)
    assert seen


def test_an_exception_in_progress_keeps_what_there_is(small, tmp_path, monkeypatch):
    def broken(done: int, total: int) -> None:
        if done > 20:
            raise ZeroDivisionError("mine")

    with pytest.raises(ZeroDivisionError, match="mine") as caught:
        run(store=tmp_path / "a.zarr", progress=broken)
    assert caught.value.trajectory.t[-1] == pytest.approx(2.1)
    assert "raised by `progress`: interrupted after step 21 of 60" in caught.value.__notes__[0]
    assert_same(run(store=tmp_path / "a.zarr"), run())
    with pytest.raises(ZeroDivisionError, match="mine") as caught:
        run(steps=10**6, progress=broken)
    assert len(caught.value.trajectory.t) > 3
    with pytest.raises(ZeroDivisionError, match="mine"):  # also at the very end
        run(steps=21, progress=broken)


WALL = System(  # a potential that ends: the logarithm of a negative number is no number
    lambda q, v, p: 0.5 * jnp.dot(v, v) + 1e-3 * jnp.log(1.0 - q[0]),
    one_forms=lambda q, p: jnp.array([[-q[1], 0.0, 1.0]]),
    coordinates=("x", "y", "z"),
)


@pytest.mark.parametrize("every", [1, 7, 1000])
@pytest.mark.thorough
def test_a_failed_run_ends_as_in_memory_and_again_by_the_same_call(small, tmp_path, every):
    def call(**how: Any) -> Trajectory:
        state = [0.2, 0.0, -0.1], [0.8, 0.0, 0.0]
        return simulate(WALL, SemiImplicitDLA(), *state, step_size=0.05, steps=300, save_every=every, **how)

    in_memory = call(throw=False)
    assert not in_memory.success
    stored, count = in_pieces(lambda **how: call(throw=False, **how), tmp_path / "a.zarr", 12)
    assert count >= 1
    assert_same(stored, in_memory)
    with pytest.raises(SolveFailed) as now:
        call(store=tmp_path / "a.zarr")
    with pytest.raises(SolveFailed) as before:
        call()
    assert str(now.value) == str(before.value)


def test_a_condition_that_breaks_on_the_way_ends_the_run_as_in_memory(small, tmp_path):
    def lagrangian(q, v, p):  # not quadratic in v where x > 1
        return 0.5 * jnp.dot(v, v) + jnp.where(q[0] > 1.0, 0.1, 0.0) * v[1] ** 4

    system = System(
        lagrangian, one_forms=lambda q, p: jnp.array([[-q[1], 0.0, 1.0]]), coordinates=("x", "y", "z")
    )

    def call(**how: Any) -> Trajectory:
        state = [0.2, 0.5, -0.1], [0.8, 0.3, 0.4]
        return simulate(system, SemiImplicitDLA(), *state, step_size=0.05, steps=60, **how)

    with pytest.raises(SolveFailed, match="quadratic") as caught:
        call(store=tmp_path / "a.zarr")
    stored = caught.value.trajectory
    assert stored.q[-1, 0] < 1.2
    assert int(np.max(stored.report.failed_step)) == len(stored.t)
    with pytest.raises(SolveFailed, match="quadratic"):
        call(store=tmp_path / "a.zarr")


def test_forms_that_become_parallel_begin_the_run_anew_once(small, tmp_path, monkeypatch):
    looks = iter([False, True, True])
    monkeypatch.setattr(trajectory_store, "parallel_along", lambda *_: next(looks))
    system, state = two_quadratic_constraints.system(), two_quadratic_constraints.typical_state()
    how: dict[str, Any] = {"step_size": 0.01, "steps": 30}
    stored = simulate(system, SemiImplicitDLA(), *state, **how, store=tmp_path / "a.zarr")
    expected = simulate(system.with_orthogonal_forms(), SemiImplicitDLA(), *state, **how)
    assert stored.q[:].tobytes() == expected.q.tobytes()
    assert next(looks)  # what is orthogonal is not asked again


@pytest.mark.parametrize(
    ("how", "sentence"),
    [
        ({"step_size": 0.05}, "step_size is 0.1 there, but 0.05 was provided"),
        ({"steps": 61}, "steps is 60 there, but 61 was provided"),
        ({"save_every": 3}, "save_every is 7 there, but 3 was provided"),
        ({"backend": "xla"}, "backend is native there, but xla was provided"),
        ({"parameters": {"epsilon": 0.3}}, "parameters is"),
    ],
)
def test_another_call_onto_the_same_folder_is_refused(tmp_path_factory, how, sentence):
    where = tmp_path_factory.getbasetemp() / "refused_run.zarr"
    if not where.exists():
        run(store=where)
    with pytest.raises(ValueError, match="holds a trajectory of another call") as caught:
        run(store=where, **how)
    assert sentence in str(caught.value)


def test_an_interruption_says_how_to_go_on(small, tmp_path):
    with pytest.raises(
        Interrupted, match="interrupted after step 6 of 60; the same call goes on from"
    ) as early:
        run(store=tmp_path / "a.zarr", progress=stop_after(2))
    assert len(early.value.trajectory.t) == 1


def test_bad_places_are_refused_before_anything_is_written(tmp_path):
    with pytest.raises(FileNotFoundError, match="there is no folder"):
        run(store=tmp_path / "nowhere" / "a.zarr")
    (tmp_path / "file").write_text("x")
    (tmp_path / "link").symlink_to(tmp_path)
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.tex").write_text("x")
    for name, kind in (("file", "a file"), ("link", "a link"), ("mine", "something else")):
        with pytest.raises(ValueError, match=f"must be a new folder or a trajectory of noslip, .* {kind}"):
            run(store=tmp_path / name)
    assert sorted(p.name for p in tmp_path.rglob("*")) == ["file", "link", "mine", "thesis.tex"]
    run(store=tmp_path / "a.zarr")
    with pytest.raises(ValueError, match="must hold an ensemble, but it holds a trajectory"):
        Ensemble.open(tmp_path / "a.zarr")
    with pytest.raises(ValueError, match="was not written by noslip"):
        Trajectory.open(tmp_path / "mine")


def test_a_process_that_lost_its_run_to_another_stops(small, tmp_path):
    again = []

    def another_goes_on(done: int, total: int) -> None:
        if done > 20 and not again:
            again.append(run(store=tmp_path / "a.zarr"))

    with pytest.raises(OSError, match="was taken up by another process"):
        run(store=tmp_path / "a.zarr", progress=another_goes_on)
    assert_same(Trajectory.open(tmp_path / "a.zarr"), run())


def test_a_lost_or_damaged_chunk_is_named(small, tmp_path):
    run(store=tmp_path / "a.zarr", save_every=1)
    chunk = tmp_path / "a.zarr" / "q" / "c" / "1" / "0"
    data = bytearray(chunk.read_bytes())
    data[len(data) // 2] ^= 4
    chunk.write_bytes(data)
    opened = Trajectory.open(tmp_path / "a.zarr")
    assert opened.q[0].shape == (3,)  # the others are there
    with pytest.raises(Damaged, match="'q/c/1/0' is not what was written"):
        np.asarray(opened.q)
    chunk.unlink()
    with pytest.raises(Damaged, match="it has lost its file 'q/c/1/0'"):
        np.asarray(opened.q)


def test_a_state_of_another_layout_is_refused_in_a_sentence():
    """It would be read as numbers of other members, or not at all."""
    tree = {"q": np.arange(6.0).reshape(3, 2), "count": np.arange(3)}
    words = np.concatenate([state_words(tree, 3), np.zeros(2 * 3, np.int64)])  # room for five
    again = state_of(words, tree, members=3, room=5)
    np.testing.assert_array_equal(again["q"], tree["q"])
    np.testing.assert_array_equal(again["count"], tree["count"])
    larger = {**tree, "more": np.zeros(3)}
    with pytest.raises(
        ValueError, match="another version of noslip, whose states had 3 words where they have 4"
    ):
        state_of(words, larger, members=3, room=5)
