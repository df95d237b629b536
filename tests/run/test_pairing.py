"""What is known of a method on a system before any state is given."""

import pickle

import jax.numpy as jnp
import numpy as np

from noslip import System, simulate
from noslip.integrators.runge_kutta4 import RungeKutta4
from noslip.integrators.semi_implicit_dla import SemiImplicitDLA
from noslip.run.pairing import pairing_of
from noslip.systems import gearbox


def test_it_is_kept_with_the_system_and_shared_by_equal_methods():
    system = gearbox.system()
    assert pairing_of(system, SemiImplicitDLA()) is pairing_of(system, SemiImplicitDLA())
    assert pairing_of(system, SemiImplicitDLA()) is not pairing_of(system, RungeKutta4())
    other = system.with_parameters({"epsilon": 0.1})
    assert pairing_of(other, RungeKutta4()) is not pairing_of(system, RungeKutta4())
    assert pairing_of(other, RungeKutta4()).programs is pairing_of(system, RungeKutta4()).programs


def test_a_system_is_pickled_without_what_can_be_worked_out_again():
    system = gearbox.system()
    simulate(system, RungeKutta4(), *gearbox.typical_state(), step_size=0.1, steps=1)
    assert system.remembered
    copy = pickle.loads(pickle.dumps(system))
    assert "remembered" not in vars(copy)
    assert copy.parameters == system.parameters


def test_a_refusal_is_asked_for_once():
    asked = []

    class Choosy(RungeKutta4):
        def applies_to(self, system):
            asked.append(system)

    system = gearbox.system()
    for _ in range(3):
        simulate(system, Choosy(), *gearbox.typical_state(), step_size=0.1, steps=1)
    assert asked == [system]


def test_numbers_at_a_state_are_those_of_the_system_and_a_division_by_zero_is_left_to_others():
    system = gearbox.system()
    q, v = (np.asarray(x) for x in gearbox.typical_state())
    pairing = pairing_of(system, RungeKutta4())
    mass = pairing.at_state(lambda s, q, v: s.mass_matrix(q), q, v)
    np.testing.assert_allclose(mass, np.ravel(system.mass_matrix(q)), rtol=1e-15)
    singular = System(
        lambda q, v, p: 0.5 * jnp.dot(v, v) / q[0],
        one_forms=lambda q, p: jnp.array([[0.0, 1.0]]),
        coordinates=("x", "y"),
    )
    at_rest = pairing_of(singular, RungeKutta4()), np.zeros(2), np.zeros(2)
    assert at_rest[0].at_state(lambda s, q, v: s.mass_matrix(q), *at_rest[1:]) is None
