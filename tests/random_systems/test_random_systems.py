"""A few of the random runs, chosen by their seeds; `random_runs.py` makes as many as there is time for."""

import numpy as np
import pytest
from random_methods import METHODS
from random_runs import Case, complaints, draw, group
from random_system import KINDS, Motion, Shape, as_system, random_coefficients, random_shape

from noslip import integrators
from noslip.integrators.semi_implicit_dla import SemiImplicitDLA

QUICK, ALL = (10, 20, 25), range(2 * len(METHODS))
SLOW, SLOWER = [pytest.mark.slow], [pytest.mark.slow, pytest.mark.all_pairs]  # every method once, and again
REST = [pytest.param(i, marks=SLOW if i < len(METHODS) else SLOWER) for i in ALL if i not in QUICK]


@pytest.mark.parametrize("number", [*QUICK, *REST])
def test_methods_keep_their_claims_on_random_systems(number):
    method, shape = group(0, number)
    for one in range(3):
        found = complaints(draw(0, number, one, method, shape))
        assert not found, f"--seed 0 --group {number} --draw {one}: {method} on {shape}: {found}"


@pytest.mark.thorough
@pytest.mark.parametrize("kind", KINDS)
def test_a_wrong_motion_is_seen(kind):
    """The same method on a system whose potential is another than that of the motion it is held to."""
    shape = Shape(3, 1, kind)
    case = draw(0, 0, 0, SemiImplicitDLA(), shape)
    other = as_system(shape, case.motion.p | {"c": 1.003 * case.motion.p["c"]})
    wrong = Case(case.method, shape, other, case.motion, case.path)
    assert any("order 2 is missed" in sentence for sentence in complaints(wrong))


def test_every_method_is_among_them():
    assert METHODS.keys() == integrators.discover().keys()
    for name, make in METHODS.items():
        assert type(make(np.random.default_rng(0))).__name__ == name


def test_a_seed_is_a_case():
    assert group(3, 5) == group(3, 5)
    shapes = [random_shape(np.random.default_rng(i)) for i in range(300)]
    assert {shape.n for shape in shapes} == set(range(2, 9))
    assert {(shape.n, shape.m) for shape in shapes} >= {(n, m) for n in range(2, 5) for m in range(n)}


def test_the_motion_in_numpy_keeps_energy_and_constraints():
    shape = Shape(4, 2, angle=True)
    rng = np.random.default_rng(1)
    motion = Motion(shape, random_coefficients(rng, shape))
    q, v = rng.standard_normal((2, 4))
    v = motion.admissible(q, v)
    end = motion.flow(q, v, 0.5).y[:, -1]
    assert abs(motion.energy(q, v)[0] - motion.energy(end[:4], end[4:])[0]) < 1e-11
    assert np.max(np.abs(motion.constraint(end[:4], end[4:])[0])) < 1e-11
