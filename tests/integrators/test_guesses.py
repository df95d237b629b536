"""The guess of `SemiImplicitDLA`: few turns where increments go on, and no failure where they do not."""

import jax.numpy as jnp
import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from noslip import ensemble, simulate
from noslip.integrators.composition import Composition
from noslip.integrators.semi_implicit_dla import SemiImplicitDLA
from noslip.systems import car_with_trailers, four_bar, knife_edge, unicycle

METHOD = SemiImplicitDLA()


def turns(system, state, h):
    return simulate(system, METHOD, *state, step_size=h, steps=200).report.iterations[1:].mean()


def test_increments_that_go_on_are_foreseen():
    state = car_with_trailers.typical_state()
    assert turns(car_with_trailers.system(), state, 0.2) < 3.5  # from the acceleration it was 4.1
    assert turns(car_with_trailers.system(), state, 0.05) < 3.05


@pytest.mark.parametrize(("module", "h"), [(four_bar, 0.4), (unicycle, 0.1)], ids=["four_bar", "unicycle"])
def test_where_increments_vary_too_much_the_solves_do_not_fail(module, h):
    """By increments that go on regardless 22 members fail on the four-bar, by accelerations 9 and 30."""
    q, v = (np.asarray(x, float) for x in module.typical_state()[:2])
    speeds = np.linspace(0.3, 2, 40)[:, None]
    many = ensemble(
        module.system(), METHOD, q, speeds * v, step_size=h, steps=300, save_every=300, throw=False
    )
    assert np.sum(many.status != 0) <= 1


def test_a_step_of_another_length_shows_the_same_and_remembers_the_increments():
    system, (q, v) = four_bar.system(), four_bar.typical_state()[:2]
    t, h = jnp.zeros(()), jnp.array(0.05)
    state = METHOD.advance(system, METHOD.init(system, jnp.asarray(q), jnp.asarray(v), t, h), h)[0]
    other = METHOD.for_step(system, state, h / 3)
    for a, b in zip(state.shown, other.shown, strict=True):
        assert_allclose(a, b, rtol=0, atol=1e-13)
    assert_array_equal(other.increments, state.increments)
    nodes = [q + h / 6 * s * v for s in (-1, 1) for q, v in [(other.q.value, other.v.value)]]
    assert max(np.max(np.abs(system.g(node))) for node in nodes) < 1e-13
    assert np.max(np.abs(system.g(state.q.value + h / 6 * state.v.value))) > 1e-9, "the nodes of h are others"


def test_a_composition_foresees_the_increments_of_each_of_its_steps():
    system, (q, v) = knife_edge.system(), knife_edge.typical_state()
    run = simulate(system, Composition(METHOD, "kahan_li6"), q, v, step_size=0.1, steps=50)
    assert run.report.iterations[2:].max() <= 2 * 9
