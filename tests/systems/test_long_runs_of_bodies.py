"""What must hold for bodies in space and closed loops over 1e5 steps, and how accurate a step is.

The coin, the rattleback, Chaplygin's sphere and the four-bar linkage have a quaternion with a holonomic and
two nonholonomic constraints, a stiff form of that, a quaternion with nonholonomic constraints alone, and
holonomic constraints alone.
"""

import numpy as np
import pytest

from noslip import simulate, systems
from noslip.analysis import measured_order
from noslip.integrators import DiscreteGradient, EnergyCollocation, SemiImplicitDLA

pytestmark = pytest.mark.slow
STEPS = {"rolling_coin": 0.02, "rattleback": 1e-3, "chaplygin_sphere": 0.05, "four_bar": 0.05}
HORIZON = {"rolling_coin": 1.0, "rattleback": 0.02, "chaplygin_sphere": 4.0, "four_bar": 1.0}
NAMES = list(STEPS)


def started(name):
    module = systems.find(name)
    return module.system(), *module.typical_state()


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("method", [DiscreteGradient(), EnergyCollocation(2)], ids=str)
def test_energy_and_constraints_stay_over_1e5_steps(method, name):
    system, q, v = started(name)
    run = simulate(system, method, q, v, step_size=STEPS[name], steps=100_000, save_every=100)
    assert np.max(np.abs(run.energy - run.energy[0])) < 1e-13
    assert np.max(np.abs(run.holonomic_residual), initial=0.0) < 1e-13
    assert np.max(np.abs(run.constraint_residual), initial=0.0) < 1e-13


@pytest.mark.parametrize("name", NAMES)
def test_the_energy_of_the_semi_implicit_method_is_bounded_in_both_halves_alike(name):
    system, q, v = started(name)
    run = simulate(system, SemiImplicitDLA(), q, v, step_size=STEPS[name] / 2, steps=100_000, save_every=10)
    change = np.abs(run.energy - run.energy[0])
    first, second = change[:5000].max(), change[5000:].max()
    assert second < 1.1 * first
    assert np.max(np.abs(run.holonomic_residual), initial=0.0) < 1e-13


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("method", [SemiImplicitDLA(), DiscreteGradient(), EnergyCollocation(2)], ids=str)
def test_a_run_goes_back_from_what_it_shows(method, name):
    system, q, v = started(name)
    h = STEPS[name] / 2
    there = simulate(system, method, q, v, step_size=h, steps=200, save_every=200)
    back = simulate(system, method, there.q[-1], -there.v[-1], step_size=h, steps=200, save_every=200)
    np.testing.assert_allclose(back.q[-1], q, rtol=0, atol=1e-12)
    np.testing.assert_allclose(back.v[-1], -v, rtol=0, atol=1e-12 * max(1, np.max(np.abs(v))))


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(
    ("method", "steps"),
    [
        (SemiImplicitDLA(), (40, 80, 160)),
        (DiscreteGradient(), (40, 80, 160)),
        (EnergyCollocation(2), (20, 40, 80)),
        (EnergyCollocation(3), (8, 16, 32)),
    ],
    ids=str,
)
def test_the_order_is_as_promised(method, steps, name):
    system, q, v = started(name)
    found = measured_order(system, method, q, v, t_end=HORIZON[name], steps=steps)
    errors = np.max(found.global_errors[:, :2], axis=1)
    slope = np.polyfit(np.log(found.step_sizes), np.log(errors), 1)[0]
    assert errors.min() > 1e-13
    assert abs(slope - method.order) < max(0.15, 0.05 * method.order)
