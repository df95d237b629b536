"""Starts of larger systems: what is asked of them is answered by NumPy and, asked often, by machine code."""

import jax.numpy as jnp
import numpy as np
import pytest

from noslip import System, simulate
from noslip.engine.backends import often
from noslip.integrators.runge_kutta4 import RungeKutta4
from noslip.run import arguments, sure
from noslip.system import conditions

N = 8
REST = np.array([0.3, -0.2, 0.5, 0.1, -0.4, 0.2, 0.6, -0.1])


def lagrangian(q, v, p):
    masses = 1.0 + 0.3 * jnp.cos(q) + jnp.where(jnp.arange(N) == 2, q[0] - 0.3, 0.0) * p["light"]
    return 0.5 * jnp.dot(masses, v * v) - p["k"] * jnp.sum(jnp.sqrt(2.0 + q) * q)


def one_forms(q, p):
    first = jnp.zeros(N).at[0].set(jnp.sin(q[2])).at[1].set(-jnp.cos(q[2])).at[5].set(p["arm"])
    return jnp.stack([first, jnp.zeros(N).at[3].set(1.0).at[4].set(q[6]).at[0].set(q[7])])


@pytest.fixture(scope="module")
def system():
    names = tuple(f"q{k}" for k in range(N))
    return System(lagrangian, one_forms=one_forms, coordinates=names,
                  parameters={"k": 0.7, "arm": 0.4, "light": 9.0})  # fmt: skip


@pytest.fixture(params=["NumPy", "machine code"])
def asked(request, monkeypatch):
    monkeypatch.setattr(often, "OFTEN", 10**9 if request.param == "NumPy" else 0)


def start(system, q, v, **changes):
    v = np.asarray(system.project_velocity(q, v))
    return simulate(system, RungeKutta4(), q, v, **({"step_size": 0.001, "steps": 2} | changes))


def test_a_good_start_is_asked_nothing_twice(system, asked, monkeypatch):
    run = start(system, REST, np.ones(N))

    def never(*_):
        raise AssertionError("a question for which the quick answer should do")

    monkeypatch.setattr(arguments, "evaluate_anyhow", never)
    monkeypatch.setattr(conditions, "evaluate_anyhow", never)
    assert start(system, REST, np.ones(N)) == run


BAD = {
    "the mass matrix must be positive definite": REST - 0.5 * np.eye(N)[0],
    "the lagrangian must be finite": REST - 2.5 * np.eye(N)[4],
}


@pytest.mark.parametrize("sentence", BAD)
def test_a_bad_place_is_refused_in_its_own_words(system, asked, sentence):
    start(system, REST, np.ones(N))
    with pytest.raises(ValueError, match=sentence):
        simulate(system, RungeKutta4(), BAD[sentence], np.zeros(N), step_size=0.01, steps=2)


def test_a_velocity_off_the_constraint_is_refused_with_its_residual(system, asked):
    v = np.asarray(system.project_velocity(REST, np.ones(N)))
    with pytest.raises(ValueError, match=r"`v0` must satisfy the constraint, but phi\(q0, v0\) = \["):
        simulate(system, RungeKutta4(), REST, v + 1e-7, step_size=0.01, steps=2)


def test_dependent_one_forms_are_refused(system, asked):
    flat = REST.copy()
    flat[[2, 6, 7]] = 0.0
    lame = System(
        lagrangian,
        one_forms=lambda q, p: jnp.stack([one_forms(q, p)[0], (1.0 + q[6]) * one_forms(q, p)[0]]),
        coordinates=system.coordinates,
        parameters=system.parameters,
    )
    with pytest.raises(ValueError, match="one-forms must have full rank 2"):
        simulate(lame, RungeKutta4(), flat, np.zeros(N), step_size=0.01, steps=2)


@pytest.mark.parametrize("where", ["mass", "mu", "phi"])
def test_the_quick_answer_is_no_where_a_number_is_bad(system, where, monkeypatch):
    """The look itself: a singular value, a velocity or a number that is not finite makes it doubtful."""
    good = [x.copy() for x in often.evaluate_often(sure._start, None, system, REST[None], np.zeros((1, N)))]
    monkeypatch.setattr(sure, "evaluate_often", lambda *_: good)
    assert sure._by_values(system, REST, np.zeros(N))
    if where == "mass":
        good[0][0, 0] *= 0.0
    elif where == "mu":
        good[1][0, 1] = good[1][0, 0] * (1 + 1e-13)
    else:
        good[3][0, 0] = np.nan
    assert not sure._by_values(system, REST, np.zeros(N))
