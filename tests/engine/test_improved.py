"""Machine code is made quickly at first and well once it has been in use; the bits stay."""

import threading
from concurrent.futures import ThreadPoolExecutor

import jax.numpy as jnp
import numpy as np
import pytest
from jax import ShapeDtypeStruct

from noslip import prepare, simulate
from noslip.engine import kept, shelf
from noslip.engine.backends import improved, native
from noslip.engine.backends.improved import ImprovedFunction
from noslip.engine.translate import translate
from noslip.integrators import DiscreteGradient, RungeKutta4
from noslip.systems import chaplygin_sleigh

X = np.linspace(-2.0, 3.0, 12)


@pytest.fixture
def made(monkeypatch):
    """How each module was compiled: quickly or not."""
    found = []

    def compiled(text, quickly, compiled=native._compiled):
        found.append(quickly)
        return compiled(text, quickly)

    monkeypatch.setattr(native, "_compiled", compiled)
    return found


def function(width=1):
    program = translate(
        lambda _, x: jnp.sin(x) * x[::-1] + jnp.sqrt(jnp.abs(x)) / 3, 0.0, ShapeDtypeStruct((3,), float)
    )
    return native.map_function(program, width)


def bits(f):
    out = np.zeros(12)
    f(np.zeros(4), X, out, 4)
    return out.tobytes()


def test_code_is_made_well_after_some_use_with_the_same_bits(made, monkeypatch):
    monkeypatch.setattr(improved, "PATIENCE", 0.0)
    f = function()
    first, later = bits(f), [bits(f) for _ in range(3)]
    assert made == [True, False]
    assert set(later) == {first}
    assert np.ptp(np.frombuffer(first)) > 1


def test_little_use_is_not_worth_it(made):
    f = function()
    bits(f)
    assert made == [True]
    assert f.improved() is f.improved()
    assert made == [True, False]


def test_what_is_large_can_stay_as_it_is(made):
    f = function()
    before = f.improved(most=10)
    assert made == [True]
    assert bits(before) == bits(f.improved())


def test_lanes_are_made_well_at_once(made):
    function(width=2)
    assert made == [False]


def test_the_next_process_finds_what_was_made_well(made, monkeypatch, tmp_path):
    monkeypatch.setenv(shelf.VARIABLE, str(tmp_path))
    assert isinstance(function(), ImprovedFunction)
    assert isinstance(function(), ImprovedFunction)
    function().improved()
    assert made == [True, False]
    assert not isinstance(function(), ImprovedFunction)
    assert made == [True, False]


def test_threads_may_call_while_it_is_improved(made, monkeypatch):
    monkeypatch.setattr(improved, "PATIENCE", 0.0)
    f, ready = function(), threading.Barrier(4)

    def run(_):
        ready.wait()
        return {bits(f) for _ in range(200)}

    with ThreadPoolExecutor(4) as pool:
        assert len(set.union(*pool.map(run, range(4)))) == 1
    assert made == [True, False]


def test_a_run_has_the_same_bits_from_both(made, monkeypatch, tmp_path):
    monkeypatch.setenv(shelf.VARIABLE, str(tmp_path))  # where the second finds what the first translated

    def rows():
        kept.forget()
        run = simulate(system, DiscreteGradient(), *state, step_size=0.05, steps=60, save_every=7)
        return np.concatenate([run.q, run.v, run.multipliers], axis=1).tobytes()

    system, state = chaplygin_sleigh.system(), chaplygin_sleigh.typical_state()
    quick = rows()
    assert all(made)
    monkeypatch.setattr(improved, "PATIENCE", -1.0)
    assert rows() == quick
    assert not all(made)


def test_a_prepared_run_is_made_well_at_once(made):
    kept.forget()
    state = chaplygin_sleigh.typical_state()
    run = prepare(chaplygin_sleigh.system(), RungeKutta4(), step_size=0.05, steps=20)
    run(*state)
    assert False in made
    count = len(made)
    run(*state)
    assert len(made) == count
