"""The reference flow by heyoka: its vector field is that of the system, on every system of the catalogue."""

import jax.numpy as jnp
import numpy as np
import pytest
from numpy.testing import assert_allclose

from catalogue_by_size import sampled
from noslip import System, simulate, systems
from noslip.analysis.reversibility import reversibility_defect
from noslip.engine.backends.expressions import NotExpressible
from noslip.integrators.reference_flow import ReferenceFlow
from noslip.run import drive
from noslip.run import flows as reference
from noslip.systems import chaplygin_sleigh, gearbox

hy = pytest.importorskip("heyoka")


def everything(q, v, p):
    """A Lagrangian that uses as many operations as a user might."""
    potential = (
        jnp.sum(jnp.einsum("ij,j->i", p["K"], q) * q) + jnp.exp(-q[0]) * jnp.tanh(q[1]) + q[2] ** 3 / 3
    )
    metric = jnp.diag(2 + jnp.array([jnp.cos(q[1]), jnp.sqrt(1 + q[2] ** 2), jnp.log(2 + q[0] ** 2)]))
    metric = metric.at[0, 1].set(0.1 * jnp.arctan2(q[1], 3.0)).at[1, 0].set(0.1 * jnp.arctan2(q[1], 3.0))
    return 0.5 * v @ metric @ v - potential


@pytest.fixture(scope="module")
def rich():
    return System(
        everything,
        one_forms=lambda q, p: jnp.stack([jnp.roll(jnp.array([1.0, q[2], p["c"]]), 1)]),
        force=lambda q, v, t, p: -0.1 * v * jnp.cos(t),
        coordinates=("x", "y", "z"),
        parameters={"K": np.array([[2.0, 0.3, 0.0], [0.3, 1.0, 0.1], [0.0, 0.1, 1.5]]), "c": 0.7},
    )


def test_expressions_equal_the_function(rich):
    variables, slopes = zip(*reference.vector_field(rich)[0], strict=True)
    compiled = hy.cfunc(slopes, variables)
    q, v = np.array([0.3, -0.4, 0.5]), np.array([0.2, 0.6, -0.1])
    pars = np.concatenate([np.ravel(rich.parameters["K"]), [0.7]])
    out = compiled(np.concatenate([q, v]), pars=pars, time=0.9)
    assert_allclose(out[:3], v)
    assert_allclose(out[3:], rich.acceleration(q, v, 0.9), rtol=1e-13)


@pytest.mark.thorough
@pytest.mark.parametrize("name", [*sampled(systems.discover()), "suslov_quaternion"])
def test_heyoka_runs_every_system_of_the_catalogue(name):
    system, (q, v) = systems.find(name).system(), systems.find(name).typical_state()
    run = simulate(system, ReferenceFlow(), q, v, step_size=0.02, steps=2)
    assert run.backend == "heyoka"
    states, _ = reference.RungeKutta().through(system, np.concatenate([q, v]), [0.0, 0.02, 0.04])
    assert_allclose(np.concatenate([run.q[-1], run.v[-1]]), states[-1], rtol=0, atol=1e-12)


@pytest.mark.parametrize("unused", ["aaa", "zzz"])
def test_heyoka_does_not_mind_a_parameter_that_is_not_used(particle, particle_state, unused):
    system = System(
        lambda q, v, p: 0.5 * p["mass"] * jnp.dot(v, v) - 0.5 * p["k"] * q[1] ** 2,
        one_forms=particle.one_forms,
        coordinates=("x", "y", "z"),
        parameters={"mass": 2.0, "k": 3.0, unused: 7.0},
    )
    run = simulate(system, ReferenceFlow(), *particle_state, step_size=0.1, steps=5)
    assert run.backend == "heyoka"
    states, _ = reference.RungeKutta().through(system, np.concatenate(particle_state), [0.0, 0.5])
    assert_allclose(np.concatenate([run.q[-1], run.v[-1]]), states[-1], rtol=0, atol=1e-12)


def test_the_scipy_fallback_agrees_and_says_so(monkeypatch):
    system = chaplygin_sleigh.system()
    state = chaplygin_sleigh.typical_state()
    taylor = simulate(system, ReferenceFlow(), *state, step_size=0.5, steps=10)
    monkeypatch.setattr(reference.importlib.util, "find_spec", lambda name: None)
    fallback = simulate(system, ReferenceFlow(), *state, step_size=0.5, steps=10)
    assert (taylor.backend, fallback.backend) == ("heyoka", "scipy DOP853")
    assert_allclose(fallback.q, taylor.q, rtol=0, atol=1e-11)
    assert_allclose(fallback.multipliers, taylor.multipliers, rtol=0, atol=1e-11)


def test_an_operation_without_expression_falls_back_and_says_so(particle, particle_state):
    def lagrangian(q, v, p):
        return 0.5 * jnp.dot(v, v) - jnp.where(q[0] > 0, q[0], 2 * q[0]) ** 2

    system = System(lagrangian, one_forms=particle.one_forms, coordinates=("x", "y", "z"))
    with pytest.raises(NotExpressible, match="the operation 'select' has no analytic expression"):
        reference.vector_field(system)
    run = simulate(system, ReferenceFlow(), *particle_state, step_size=0.1, steps=5)
    assert run.backend == "scipy DOP853"


def test_the_reference_does_not_depend_on_how_the_run_is_cut(monkeypatch):
    system, state = chaplygin_sleigh.system(), chaplygin_sleigh.typical_state()
    one = simulate(system, ReferenceFlow(), *state, step_size=0.1, steps=700, save_every=3)
    monkeypatch.setattr(drive, "SECONDS_PER_CALL", 0.0)
    other = simulate(system, ReferenceFlow(), *state, step_size=0.1, steps=700, save_every=3)
    assert one == other


def test_the_reference_goes_back_to_where_it_came_from_in_one_row():
    system, state = gearbox.system(), gearbox.typical_state()
    assert reversibility_defect(system, ReferenceFlow(), *state, step_size=0.1, steps=100) <= 1e-13


def test_every_row_of_the_reference_is_on_the_constraint_but_the_first_which_is_as_it_was_given():
    system, (q, v) = chaplygin_sleigh.system(), chaplygin_sleigh.typical_state()
    v = np.asarray(v) + 1e-13
    run = simulate(system, ReferenceFlow(), q, v, step_size=0.3, steps=600)
    assert_allclose(run.v[0], v, rtol=0, atol=0)
    assert np.max(np.abs(run.constraint_residual[1:])) <= 2e-16 < np.max(np.abs(run.constraint_residual[0]))


def test_the_reference_reports_where_the_motion_ends(particle):
    def lagrangian(q, v, p):
        return 0.5 * jnp.dot(v, v) - jnp.sqrt(1.0 - q[0])

    system = System(lagrangian, one_forms=particle.one_forms, coordinates=("x", "y", "z"))
    run = simulate(
        system, ReferenceFlow(), [0.9, 0.5, 0.0], [1.0, 0.0, 0.5], step_size=0.01, steps=100, throw=False
    )
    assert not run.success
    assert 0.9 < run.q[-1, 0] < 1.0
    assert run.report.failed_step.max() == len(run.t)


def test_a_parameter_cannot_change_its_shape(rich):
    with pytest.raises(ValueError, match=r"parameter 'K' must have shape \(3, 3\), but \(2,\) was provided"):
        rich.with_parameters({"K": [1.0, 2.0]})
