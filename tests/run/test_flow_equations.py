"""The equations that a flow solves: those in a frame are the same motion, with fewer operations."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from numpy.testing import assert_allclose

from noslip import System, prepare, simulate, systems
from noslip.integrators import ReferenceFlow
from noslip.run import flow_equations
from noslip.run.flow_code import flow_code_of
from noslip.run.flow_equations import equations, frame_at, framed, has_frame, own_of, velocity_in
from noslip.systems import knife_edge

FLOW = ReferenceFlow()


def one_forms(q, t, p):
    return jnp.array([[jnp.sin(q[2]), -jnp.cos(q[2]), 0.0, p["c"]], [0.0, q[0], 2.0 + jnp.sin(t), 2.0]])


def frame(q, t, p):
    """Two vectors that one_forms vanish on, of no particular length, which do not come back after a turn."""
    s, c, r = jnp.sin(q[2]), jnp.cos(q[2]), 2.0 + jnp.sin(t)
    size = 2.0 + jnp.sin(0.5 * q[2])
    along = jnp.array([c, s, -q[0] * s / r, 0.0])
    across = jnp.array([-p["c"] * s, p["c"] * c, -(2.0 + p["c"] * c * q[0]) / r, 1.0])
    return jnp.stack([size * along, across], axis=1)


@pytest.fixture
def in_any_frame(monkeypatch):
    """Flows are in the frame of a system, whatever it costs and wherever it may end."""
    monkeypatch.setattr(flow_equations, "FEW", 10**6)
    monkeypatch.setattr(flow_equations, "_keeps_rank", lambda system: True)


@pytest.fixture(scope="module")
def moving():
    """Masses that vary, a force, a gyroscopic term, two constraints that move, and a frame of them."""

    def lagrangian(q, v, p):
        masses = p["m"] * jnp.array([1.0 + 0.3 * q[1] ** 2, 2.0 + jnp.cos(q[0]), 1.0, 1.5])
        return 0.5 * jnp.sum(masses * v**2) + 0.2 * q[1] * v[0] - 0.35 * (q[0] ** 2 + q[1] ** 2 + q[3] ** 2)

    system = System(
        lagrangian,
        one_forms=one_forms,
        frame=frame,
        force=lambda q, v, t, p: -0.1 * v + jnp.array([0.0, jnp.sin(t), 0.0, 0.2]),
        coordinates=("w", "x", "y", "z"),
        parameters={"m": 1.3, "c": 0.6},
        angles=("y",),
    )
    q = np.array([0.3, -0.4, 0.5, 0.1])
    return system, q, np.asarray(system.project_velocity(q, np.array([0.4, 0.3, -0.9, 0.6]), 0.7))


def test_the_motion_in_a_frame_is_that_of_the_velocities(moving):
    system, q, v = moving
    t = jnp.asarray(0.7)

    @jax.jit
    def both(system):
        u = own_of(system, q, v, t, 2)
        velocity, slope = framed(system, (jnp.asarray(q), u, t))
        turning = jax.jvp(lambda x, s: frame_at(system, x, s) @ u, (q, t), (v, jnp.ones(())))[1]
        return velocity, velocity_in(system, q, u, t), frame_at(system, q, t) @ slope + turning

    velocity, back, acceleration = both(system)
    assert_allclose(velocity, v, rtol=0, atol=1e-15)
    assert_allclose(back, v, rtol=0, atol=1e-15)
    assert_allclose(acceleration, system.acceleration(q, v, 0.7), rtol=0, atol=1e-14)


def test_a_flow_in_a_frame_leads_where_that_of_the_velocities_does(moving, in_any_frame):
    pytest.importorskip("heyoka")
    system, q, v = moving
    how = {"step_size": 0.1, "steps": 600, "t0": 0.7}
    run = simulate(system, FLOW, q, v, **how)
    plain = System(
        system.lagrangian,
        one_forms=one_forms,
        force=system.force,
        coordinates=system.coordinates,
        parameters=system.parameters,
        angles=system.angles,
    )
    other = simulate(plain, FLOW, q, v, **how)
    sizes = [flow_code_of(x, FLOW.flow_tolerance).size for x in (system, plain)]
    assert sizes == [2, 4]
    assert_allclose(run.q, other.q, rtol=0, atol=3e-13)
    assert_allclose(run.v, other.v, rtol=0, atol=3e-13)
    assert np.max(np.abs(run.constraint_residual)) <= 2e-15
    assert_allclose(run.v[0], v, rtol=0, atol=0)
    prepared = prepare(system, FLOW, **how)
    assert prepared(q, v) == run
    assert prepared(q, v) == run


def knife_edge_with(frame):
    given = knife_edge.system(m=1.7, J=0.6)
    return System(
        knife_edge.lagrangian,
        one_forms=knife_edge.one_forms,
        frame=frame,
        coordinates=given.coordinates,
        parameters=given.parameters,
        angles=("phi",),
    )


def stretched(q, p):
    return (2.0 + jnp.sin(0.5 * q[2])) * knife_edge.frame(q, p)


def with_a_pole(q, p):
    return jnp.array([[1.0, 0.0], [jnp.sin(q[2]) / jnp.cos(q[2]), 0.0], [0.0, 1.0]])


def that_vanishes(q, p):
    return jnp.cos(q[2]) * knife_edge.frame(q, p)


def slides_as_it_must(system):
    q, v = (np.asarray(x) for x in knife_edge.typical_state())
    run = simulate(system, FLOW, q, v, step_size=0.5, steps=100)
    there, velocity, lam = knife_edge.exact(run.t, q, v, m=1.7)
    assert_allclose(run.q, there, rtol=0, atol=2e-13)
    assert_allclose(run.v, velocity, rtol=0, atol=1e-13)
    assert_allclose(run.multipliers, lam, rtol=0, atol=2e-13)


def test_a_frame_need_not_come_back_after_a_turn(in_any_frame):
    pytest.importorskip("heyoka")
    system = knife_edge_with(stretched)
    slides_as_it_must(system)
    assert flow_code_of(system, FLOW.flow_tolerance).size == 2


@pytest.mark.parametrize("frame", [with_a_pole, that_vanishes])
def test_no_flow_is_in_a_frame_that_may_end(frame):
    pytest.importorskip("heyoka")
    system = knife_edge_with(frame)
    assert has_frame(system)
    assert not equations(system, True)[1]
    slides_as_it_must(system)


@pytest.mark.parametrize(
    ("name", "dear"),
    [("knife_edge", 5), ("rolling_disk", 4), ("nonholonomic_particle", 6), ("two_wheeled_robot", 12)],
)
def test_equations_in_a_frame_have_few_dear_operations(name, dear):
    way, in_frame = equations(systems.find(name).system(), True)
    assert in_frame
    assert way.dear <= dear


def test_a_frame_is_left_where_the_velocities_cost_less_or_inputs_may_move_it():
    dear = systems.find("two_quadratic_constraints").system()
    assert has_frame(dear)
    assert not equations(dear, True)[1]
    assert not has_frame(systems.find("quartic").system())  # six of them, and one multiplier
    assert not has_frame(systems.find("turntable_ball").system())  # affine
    assert not has_frame(systems.find("segway").system())  # steered
