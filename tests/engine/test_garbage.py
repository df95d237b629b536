"""The search for garbage is set aside while programs are made, and is then as it was."""

import gc
import threading

import pytest

from noslip.engine import garbage
from noslip.engine.translate import translate


@pytest.fixture(params=[True, False], ids=["on", "off"])
def before(request):
    was = gc.isenabled()
    (gc.enable if request.param else gc.disable)()
    yield request.param
    (gc.enable if was else gc.disable)()


def test_it_is_as_it_was_afterwards_and_after_an_error(before):
    with garbage.set_aside():
        assert not gc.isenabled()
        with pytest.raises(KeyError), garbage.set_aside():
            raise KeyError
        assert not gc.isenabled()
    assert gc.isenabled() is before


def test_it_stays_aside_until_the_last_thread_is_done():
    assert gc.isenabled()
    inside, leave = threading.Event(), threading.Event()

    def other():
        with garbage.set_aside():
            inside.set()
            leave.wait(10)

    thread = threading.Thread(target=other)
    with garbage.set_aside():
        thread.start()
        assert inside.wait(10)
    assert not gc.isenabled()
    leave.set()
    thread.join()
    assert gc.isenabled()


def test_translation_sets_it_aside(before):
    seen = []

    def function(_, x):
        seen.append(gc.isenabled())
        return x * x

    translate(function, 0.0, 1.0)
    assert seen == [False]
    assert gc.isenabled() is before
