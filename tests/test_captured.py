"""What the functions of a system read beside their arguments is part of the system, as in a notebook."""

import functools
import pickle
import types

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from noslip import System, ensemble, simulate
from noslip.integrators.runge_kutta4 import RungeKutta4
from noslip.integrators.semi_implicit_dla import SemiImplicitDLA
from noslip.systems import gearbox

STATE = ([0.2, 0.5, -0.1], [0.8, 0.6, 0.4])
CELL = """
import jax.numpy as jnp
import numpy as np
from noslip import System

k, weights, options, T = 1.0, np.array([1.0, 1.0, 1.0]), {"g": [0.3]}, np.zeros(3)

class Config:
    c = 0.2

def potential(q):
    return k * (q[0] ** 2 + q[1] ** 2) + options["g"][0] * q[0] + Config.c * q[1]

def lagrangian(q, v, p):
    return 0.5 * jnp.dot(v, weights * v).T - potential(q)

def one_forms(q, p):
    return jnp.array([[-q[1], 0.0, 1.0]])

def made():
    return System(lagrangian, one_forms=one_forms, coordinates=("x", "y", "z"))
"""
CHANGES = {
    "a number": "k = 5.0",
    "an array in place": "weights[0] = 3.0",
    "a container in place": "options['g'][0] = 2.0",
    "a class attribute": "Config.c = 4.0",
    "a function": "def potential(q): return 7.0 * q[0]",
}


@pytest.fixture
def notebook():
    namespace = {"__name__": "__main__"}
    exec(CELL, namespace)
    return namespace


def end(system, **more):
    return simulate(system, RungeKutta4(), *STATE, step_size=0.1, steps=5, **more)


@pytest.mark.thorough
@pytest.mark.parametrize("change", CHANGES)
def test_a_new_system_of_the_same_function_runs_with_the_new_value(notebook, change):
    old = notebook["made"]()
    before, energy = end(old), float(old.energy(*STATE))
    exec(CHANGES[change], notebook)
    new = notebook["made"]()
    after = end(new)
    assert not np.array_equal(before.q[-1], after.q[-1])
    assert float(new.energy(*STATE)) != energy
    np.testing.assert_allclose(after.energy[0], float(new.energy(*STATE)), rtol=1e-14)
    np.testing.assert_allclose(end(new, backend="xla").q, after.q, rtol=1e-12)
    fresh = {"__name__": "__main__"}
    exec(CELL + CHANGES[change], fresh)  # what a notebook run from the top gives
    np.testing.assert_array_equal(after.q, end(fresh["made"]()).q)


@pytest.mark.parametrize("change", CHANGES)
def test_a_value_that_changes_after_the_system_was_made_is_refused(notebook, change):
    system = notebook["made"]()
    before = end(system)
    exec(CHANGES[change], notebook)
    for use in (
        lambda: end(system),
        lambda: end(system, backend="xla"),
        lambda: system.energy(*STATE),
        lambda: system.multipliers(*STATE),
        lambda: ensemble(system, SemiImplicitDLA(), *STATE, step_size=0.1, steps=1),
    ):
        with pytest.raises(ValueError, match=r"must stay as it was when the System was made.*`parameters`"):
            use()
    exec(CELL.split("class")[0].partition("k,")[2].join(["k,", ""]), notebook)
    if change in ("a number", "an array in place", "a container in place"):
        np.testing.assert_array_equal(end(system).q, before.q)  # put back, it runs again


def test_names_that_are_only_attributes_are_not_taken_for_globals(notebook):
    system = notebook["made"]()
    notebook["T"] = np.ones(7)  # `.T` in the Lagrangian is no reading of T
    assert end(system).success


def forms(q, p):
    return jnp.array([[-q[1], 0.0, 1.0]])


def of(lagrangian):
    return System(lagrangian, one_forms=forms, coordinates=("x", "y", "z"))


def bare(q, v, p, k=1.0):
    return 0.5 * jnp.dot(v, v) - k * q[0] ** 2


class Body:
    shape = 1.0

    def __init__(self, k):
        self.k = k

    def lagrangian(self, q, v, p):
        return bare(q, v, p, self.k * self.shape)

    def __call__(self, q, v, p):
        return self.lagrangian(q, v, p)


def closure(k):
    return lambda q, v, p: bare(q, v, p, k["k"])


def test_closures_partials_methods_and_callable_objects_are_seen_through():
    box, body = {"k": 1.0}, Body(1.0)
    space = types.SimpleNamespace(k=1.0)
    functions = {
        "closure": (closure(box), lambda: box.update(k=4.0)),
        "partial": (functools.partial(closure(box)), lambda: box.update(k=9.0)),
        "method": (body.lagrangian, lambda: setattr(body, "k", 4.0)),
        "object": (body, lambda: setattr(body, "k", 9.0)),
        "class": (body, lambda: setattr(Body, "shape", 3.0)),
        "jit": (jax.jit(lambda q, v, p: bare(q, v, p, space.k)), lambda: setattr(space, "k", 4.0)),
    }
    for name, (function, change) in functions.items():
        system = of(function)
        before = end(system).q[-1]
        change()
        with pytest.raises(ValueError, match="has changed"):
            end(system)
        if name != "jit":  # whose own cache keeps the old value, whoever asks
            assert not np.array_equal(end(of(function)).q[-1], before), name
    Body.shape = 1.0


def test_equal_values_share_code_and_a_pickled_system_captures_anew(compilations):
    box = {"k": 1.5}
    function = closure(box)
    end(of(function))
    with compilations() as count:
        end(of(function))
    assert count() == 0
    system = gearbox.system()
    copy = pickle.loads(pickle.dumps(system))
    assert jax.tree.structure(copy) == jax.tree.structure(system)


def test_what_cannot_be_compared_is_refused_with_advice():
    numbers = (x for x in range(3))
    with pytest.raises(ValueError, match="a generator cannot be compared; make it one of the `parameters`"):
        of(lambda q, v, p: 0.5 * jnp.dot(v, v) if numbers else 0.0)
    with pytest.raises(ValueError, match="it is traced"):
        jax.grad(lambda k: end(of(lambda q, v, p: bare(q, v, p, k))).q[-1, 0])(1.0)
