"""What is made from a user's functions is kept in one bounded place, and returned."""

import gc
import time
import weakref
from concurrent.futures import ThreadPoolExecutor

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from noslip import System, prepare, simulate
from noslip.engine import kept
from noslip.engine.backends import native
from noslip.engine.program import CannotTranslate
from noslip.integrators.runge_kutta4 import RungeKutta4

STATE = ([0.2, 0.5], [0.8, 0.4])


def particle(c):
    """With functions of its own: a distinct system."""
    return System(
        lambda q, v, p: 0.5 * jnp.dot(v, v) - p["k"] * jnp.sin(c * q[1]),
        one_forms=lambda q, p: jnp.array([[-q[1], 1.0]]),
        coordinates=("x", "y"),
        parameters={"k": 1.3},
    )


def run(system):
    return simulate(system, RungeKutta4(), *STATE, step_size=0.1, steps=5, backend="native")


@pytest.fixture
def own_garbage():
    """What other tests left is not searched, which would take longer than all the rest."""
    gc.freeze()
    yield
    gc.unfreeze()


@pytest.fixture
def living(own_garbage, monkeypatch):
    """The modules of machine code that are alive."""
    kept.forget()
    alive, make = weakref.WeakSet(), native.Module.__init__

    def init(self, text, rare="", once=False):
        alive.add(self)
        make(self, text, rare, once)

    monkeypatch.setattr(native.Module, "__init__", init)
    yield alive
    kept.forget()


def test_machine_code_of_many_systems_is_bounded_and_what_has_gone_comes_back_the_same(living, monkeypatch):
    systems = [particle(1.0)]
    first = run(systems[0])
    one, room = len(living), kept.taken()
    assert one > 0
    monkeypatch.setattr(kept, "ROOM", room + room // 2)
    for k in range(1, 4):
        systems.append(particle(1.0 + k))
        run(systems[-1])
        gc.collect()
        assert kept.taken() <= kept.ROOM + kept.ROOM // 2  # with that of scaffolds
        assert len(living) <= 2 * one
    assert run(systems[0]) == first
    assert len(living) <= 2 * one


def test_code_that_somebody_holds_outlives_its_place(living):
    system = particle(1.0)
    prepared = prepare(system, RungeKutta4(), step_size=0.1, steps=5)
    before = prepared(*STATE)
    stepper = prepared.start(*STATE)
    stepper.step()
    kept.forget()
    gc.collect()
    assert len(living) > 0
    for _ in range(4):
        stepper.step()
    np.testing.assert_array_equal(stepper.q, before.q[-1])
    assert prepared(*STATE) == before
    del prepared, stepper, before, system
    kept.forget()
    gc.collect()
    assert len(living) == 0


def test_nothing_holds_the_functions_of_a_system_that_is_gone(own_garbage):
    system = particle(2.0)
    run(system)
    system.energy(*STATE)
    functions = [weakref.ref(system.lagrangian), weakref.ref(system.one_forms)]
    del system
    kept.forget()
    gc.collect()
    assert [f() for f in functions] == [None, None]


def test_systems_of_one_form_are_not_compared_with_each_other():
    structures = [jax.tree.structure(particle(1.0 + k)) for k in range(8)]
    for wrap in (lambda s: s, lambda s: jax.tree_util.treedef_tuple([jax.tree_util.treedef_tuple([s])])):
        assert len({kept._mark(wrap(structure)) for structure in structures}) == 8


def test_what_was_used_last_stays(monkeypatch):
    kept.forget()
    monkeypatch.setattr(kept, "ROOM", 3)
    made = []

    @kept.kept
    def double(x):
        made.append(x)
        return 2 * x

    assert [double(x) for x in (1, 2, 3, 1, 4, 1, 2)] == [2, 4, 6, 2, 8, 2, 4]
    assert made == [1, 2, 3, 4, 2]


def test_a_large_thing_takes_more_room_and_one_that_is_too_large_stays_alone(monkeypatch):
    kept.forget()
    monkeypatch.setattr(kept, "ROOM", 4)

    class Sized(kept.Large):
        def __init__(self, size):
            self.size = size

        def nodes(self):
            return self.size

    make = kept.kept(Sized)
    make(0), make(1), make(2 * kept.NODES)
    assert kept.taken() == 4  # the first has gone
    make(9 * kept.NODES)
    assert kept.taken() == 10
    kept.forget()


def test_what_only_helps_to_make_other_things_does_not_put_them_out(monkeypatch):
    kept.forget()
    monkeypatch.setattr(kept, "ROOM", 4)
    made = []

    class Sized(kept.Large):
        def __init__(self, name):
            made.append(name)

        def nodes(self):
            return 2 * kept.NODES

    scaffold, result = kept.scaffold(Sized), kept.kept(Sized)
    result("result"), scaffold("one"), scaffold("two")
    assert kept.taken() == 3 + 3  # two scaffolds are too much for half of the room
    result("result"), scaffold("two")
    assert made == ["result", "one", "two"]
    kept.forget()


def test_a_refusal_is_kept_too():
    kept.forget()
    asked = []

    @kept.kept
    def refuse(x):
        asked.append(x)
        raise CannotTranslate(f"not {x}")

    for _ in range(2):
        with pytest.raises(CannotTranslate, match="not 1"):
            refuse(1)
    assert asked == [1]


def test_the_passes_of_llvm_are_freed(monkeypatch):
    from llvmlite.binding.newpassmanagers import NewPassManager

    freed, dispose = [], NewPassManager._dispose
    monkeypatch.setattr(NewPassManager, "_dispose", lambda self: (freed.append(self), dispose(self)))
    native.Module("define void @f() {\n  ret void\n}\n")
    assert len(freed) == 1
    assert freed[0].closed


def test_threads_that_make_and_take_do_not_disturb_each_other(monkeypatch):
    """Keys whose comparison runs Python code, as that of a system's functions may."""

    class Key:
        def __init__(self, k):
            self.k = k

        def __hash__(self):
            return self.k % 3

        def __eq__(self, other):
            time.sleep(0)
            return self.k == other.k

    made = kept.kept(lambda key: key.k)
    monkeypatch.setattr(kept, "ROOM", kept.taken() + 20)
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda k: made(Key(k % 40)), range(400)))
    assert found == [k % 40 for k in range(400)]
    assert kept.taken() <= kept.ROOM
