"""What hardly ever runs is compiled when it runs for the first time, and computes the same bits."""

import signal
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

from noslip.engine.backends import llvm_functions, native
from noslip.engine.backends.rarely import Rarely
from noslip.engine.translate import translate

SHAPE = jax.ShapeDtypeStruct((2,), float)
USUAL, SELDOM = np.array([[0.3, 0.7], [-0.2, 0.1]] * 4), np.array([[0.3, 40.0], [9.0, 0.1]] * 4)


@pytest.fixture(autouse=True)
def outlined(monkeypatch):
    monkeypatch.setattr(llvm_functions, "OUTLINED", 0)


@pytest.fixture
def made(monkeypatch):
    found = []

    def compiled(text, quickly, compiled=native._compiled):
        found.append(text)
        return compiled(text, quickly)

    monkeypatch.setattr(native, "_compiled", compiled)
    return found


def halved(x):
    """The numbers halved together until they are small, times their sine; counted."""

    def seldom(x):
        turn = lambda c: (jnp.sin(c[0]) + c[0] / 2, c[1] + 1)  # noqa: E731
        return lax.while_loop(lambda c: jnp.max(jnp.abs(c[0])) > 3, turn, (x, 0))

    y, count = jax.jit(seldom)(x)
    return y * jnp.cos(x), count


def function(width=1, rare=("seldom",)):
    return native.map_function(translate(lambda _, x: halved(x), 0.0, SHAPE, rare=rare), width)


def bits(f, rows, width=1):
    values = np.ascontiguousarray(rows.reshape(-1, width, 2).transpose(0, 2, 1))
    out = np.zeros((len(values), 3, width), np.int64)
    f(np.zeros((len(values), 1, width)), values, out, len(values))
    return out.transpose(0, 2, 1).tobytes()


def test_it_is_compiled_when_it_runs_and_only_then(made):
    f = function()
    usual = bits(f, USUAL)
    assert len(made) == 1
    seldom = bits(f, SELDOM)
    assert len(made) == 2
    assert "@rare" in made[0]
    assert "define void @rare" in made[1]
    assert (bits(f, SELDOM), bits(f.improved(), SELDOM)) == (seldom, seldom)
    assert len(made) == 3  # and once more when the rest is made well
    plain = function(rare=())
    assert (bits(plain, USUAL), bits(plain, SELDOM)) == (usual, seldom)
    counts = np.frombuffer(seldom, np.int64).reshape(-1, 3)[:, 2]
    assert min(counts) > 0 == max(np.frombuffer(usual, np.int64).reshape(-1, 3)[:, 2])


def test_lanes_that_need_it_and_lanes_that_do_not():
    rows = np.concatenate([USUAL[:3], SELDOM[:1], USUAL[:4]])
    assert bits(function(width=4), rows, 4) == bits(function(), rows)


def test_threads_that_need_it_at_once_make_it_once(made):
    f, ready = function(), threading.Barrier(4)

    def run(_):
        ready.wait()
        return {bits(f, SELDOM) for _ in range(50)}

    with ThreadPoolExecutor(4) as pool:
        assert len(set.union(*pool.map(run, range(4)))) == 1
    assert sum("define void @rare" in text for text in made) == 1


@pytest.mark.parametrize("error", [KeyboardInterrupt(), SystemExit(3)], ids=["interrupt", "exit"])
def test_what_a_signal_raises_waits_until_it_is_made(monkeypatch, error):
    expected, tries = bits(function(), SELDOM), []

    def address(self, name, address=Rarely.address):
        tries.append(name)
        if len(tries) == 1:
            raise error
        return address(self, name)

    monkeypatch.setattr(Rarely, "address", address)
    f, found = function(), []

    def run():
        found.append(bits(f, SELDOM))
        for _ in range(1000):  # Python looks for signals between calls, not before one
            time.sleep(0.01)

    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # a job in the background ignores it
    try:
        with pytest.raises(type(error)) as raised:
            run()
    finally:
        signal.signal(signal.SIGINT, before)
    assert raised.value.args == error.args
    assert getattr(raised.value, "code", None) == getattr(error, "code", None)
    assert found == [expected]


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_what_cannot_be_made_is_no_number(monkeypatch):
    def broken(self, name):
        raise MemoryError

    monkeypatch.setattr(Rarely, "address", broken)
    found = np.frombuffer(bits(function(), SELDOM), np.float64).reshape(-1, 3)
    assert np.all(np.isnan(found[:, :2]))
