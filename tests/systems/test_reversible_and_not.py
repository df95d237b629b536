"""What Modin, Verdier 2020 find, on two systems: methods whose energy stays bounded owe it to a reversal.

Both systems are integrable. A reversal takes each torus of `driven_knife_edge` to itself for epsilon = 0, and
(q, p) -> (q, -p) is one of `contact_oscillator` for s = 0. Without it methods lose what they had, and each of
the five here on one of the two systems at least.
"""

import functools

import numpy as np
import pytest

from noslip import simulate
from noslip.integrators import (
    GeneratingFunction,
    GeometricNonholonomic,
    LobattoSpark,
    SemiImplicitDLA,
    VelocityNonholonomic,
)
from noslip.systems import contact_oscillator, driven_knife_edge

CONTACT, KNIFE = contact_oscillator, driven_knife_edge
LOSES = {  # by method: where it does
    SemiImplicitDLA(): {KNIFE},
    VelocityNonholonomic(): {KNIFE},
    LobattoSpark(): {KNIFE, CONTACT},
    GeneratingFunction(): {KNIFE, CONTACT},
    GeometricNonholonomic(): {CONTACT},
}
BROKEN = {KNIFE: {"epsilon": 0.2}, CONTACT: {"s": 0.2}}
OTHERS = {KNIFE: {"m": 1.4, "J": 0.8, "k": 1.7}, CONTACT: {"epsilon": 0.4}}
slow = pytest.mark.slow


def by_halves(module, method, parameters):
    """The largest relative energy error of the first and of the second half of a long run."""
    system, start = module.system(**parameters), module.typical_state()
    run = simulate(system, method, *start, step_size=0.1, t_end=16000.0, save_every=10)
    first, second = np.array_split(np.abs(run.energy / run.energy[0] - 1), 2)
    return first.max(), second.max()


@pytest.mark.parametrize(
    ("method", "module", "others"),
    [
        (SemiImplicitDLA(), KNIFE, {}),
        (GeometricNonholonomic(), CONTACT, {}),
        *(
            pytest.param(method, module, others, marks=slow)
            for method in LOSES
            for module in (KNIFE, CONTACT)
            for others in ({}, OTHERS[module])
        ),
    ],
)
def test_energy_is_bounded_with_a_reversal_and_drifts_where_the_method_needs_one(method, module, others):
    with_one = dict.fromkeys(BROKEN[module], 0.0)
    first, second = by_halves(module, method, others | with_one)
    assert second < 1.02 * first
    first, second = by_halves(module, method, others | BROKEN[module])
    if module in LOSES[method]:
        assert second > 1.4 * first
    else:
        assert second < 1.3 * first < 1e-2


def moving(module, parameters, count=5):
    """A system and admissible states."""
    system, rng = module.system(**parameters), np.random.default_rng(4)
    states = rng.uniform(-1, 1, (count, 2, system.n))
    return system, [(q, np.asarray(system.project_velocity(q, v))) for q, v in states]


def defect_of_a_reversal(parameters):
    """(x, y, phi) -> (x, -y, -phi) with time reversed, as a symmetry of accelerations."""
    system, states = moving(driven_knife_edge, parameters)
    turn = np.array([1.0, -1.0, -1.0])
    errors = [system.acceleration(turn * q, -turn * v) - turn * system.acceleration(q, v) for q, v in states]
    return np.max(np.abs(errors))


def test_the_knife_edge_has_its_second_reversal_only_without_epsilon():
    assert defect_of_a_reversal({"epsilon": 0.0, "m": 1.3, "k": 0.7}) < 1e-14
    assert defect_of_a_reversal({"epsilon": 0.2, "m": 1.3, "k": 0.7}) > 0.1


def test_along_a_given_heading_the_knife_edge_turns_a_vector():
    """(w x, w y, u) by a rotation, the same one over each period of the pendulum."""
    system = driven_knife_edge.system(m=1.4, J=0.8, k=1.7)
    w = np.sqrt(1.7 / 1.4)
    for q, v in moving(driven_knife_edge, {"m": 1.4, "J": 0.8, "k": 1.7})[1]:
        a, c, s = system.acceleration(q, v), np.cos(q[2]), np.sin(q[2])
        u = v[0] * c + v[1] * s
        np.testing.assert_allclose(v[:2], [u * c, u * s], atol=1e-14)
        np.testing.assert_allclose(a[0] * c + a[1] * s, -(w**2) * (q[0] * c + q[1] * s), atol=1e-13)
        np.testing.assert_allclose(0.8 * a[2], np.sin(q[2]) + 0.4 * np.cos(2 * q[2]), atol=1e-13)


def test_s_moves_nothing_but_momenta():
    motion = functools.partial(moving, contact_oscillator)
    (plain, states), (shifted, _) = motion({"epsilon": 0.3, "s": 0.0}), motion({"epsilon": 0.3, "s": 0.7})
    leaves = []
    for q, v in states:
        np.testing.assert_allclose(shifted.acceleration(q, v), plain.acceleration(q, v), atol=1e-14)
        np.testing.assert_allclose(shifted.energy(q, v), plain.energy(q, v), atol=1e-15)
        np.testing.assert_allclose(
            shifted.momentum(q, v) - plain.momentum(q, v), [0, 0, 0.7 * np.sin(q[2])], atol=1e-15
        )
        of_minus_p = -v - 2 * (shifted.momentum(q, v) - v)
        leaves.append(abs(shifted.phi(q, of_minus_p)[0]))
    assert max(leaves) > 0.1  # the velocity of -p is not even admissible
