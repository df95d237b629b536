"""Balls by `bodies` on surfaces that are curved or move, beside Newton's and Euler's equations by hand."""

import functools
import warnings

import jax.numpy as jnp
import numpy as np
import pytest
from scipy.optimize import fsolve

from noslip import rotations, simulate
from noslip.bodies import LiftOff, Model, bowl, cone, cylinder, free, graph, plane, revolute, sphere
from noslip.engine.backends.numpy_rows import evaluate
from noslip.integrators import DiscreteGradient, EnergyCollocation, SemiImplicitDLA

MASS, RADIUS, INERTIA, GRAVITY = 1.3, 0.2, 0.017, 9.81
DOWN = np.array([0.0, 0.0, -MASS * GRAVITY])


def ball(surface, **more):
    model = Model(gravity=GRAVITY)
    model.body("ball", joint=free(), mass=MASS, inertia=INERTIA, shape=sphere(RADIUS))
    model.rolls_on("ball", surface, **more)
    return model


def motion(t, system, q, v):
    return system.at(t).acceleration(q, v, t), system.at(t).multipliers(q, v, t)


def accelerations(model, q, v, t=0.0):
    return tuple(x[0] for x in evaluate(motion, t, model.system(), q[None], v[None]))


def spin_of(q, v):
    return np.asarray(rotations.space_rates(q[3:], v[3:]))


def by_hand(n, dn, W, ground=0.0):
    """The centre's acceleration and the force from m a = F + m g, I W' = arm x F and the derivative of
    V + W x arm = the velocity of the ground, `ground` being what that has of other terms."""
    arm, darm = -RADIUS * n, -RADIUS * dn
    cross = np.cross(np.eye(3), arm).T * -1.0  # cross @ x = arm x x
    rows, right = np.zeros((9, 9)), np.zeros(9)
    rows[:3, :3], rows[:3, 6:] = MASS * np.eye(3), -np.eye(3)
    rows[3:6, 3:6], rows[3:6, 6:] = INERTIA * np.eye(3), -cross
    rows[6:, :3], rows[6:, 3:6] = np.eye(3), -cross
    right[:3], right[6:] = DOWN, ground - np.cross(W, darm)
    found = np.linalg.solve(rows, right)
    return found[:3], found[6:]


def hill(x, y):
    return 0.3 * np.sin(x) * np.cos(0.7 * y) + 0.1 * x * x


def foot(c):
    """The point of the hill under a centre: the line from there to the centre is along the normal."""

    def slopes(y, h=1e-3):
        def by(e):
            steps = ((1, 0.75), (2, -0.15), (3, 1 / 60))
            return sum(w * (hill(*(y + k * h * e)) - hill(*(y - k * h * e))) for k, w in steps) / h

        return np.array([by(np.array([1.0, 0.0])), by(np.array([0.0, 1.0]))])

    y = fsolve(lambda y: y - c[:2] + (hill(*y) - c[2]) * slopes(y), c[:2], xtol=1e-12)
    n = np.array([*-slopes(y), 1.0])
    return n / np.linalg.norm(n)


def around(c):
    return -np.array([c[0], c[1], 0.0]) / np.hypot(c[0], c[1])


SURFACES = {
    "bowl": (bowl(1.1), lambda c: -c / np.linalg.norm(c), {"x": 0.2, "y": -0.3}, {"z": -0.8}),
    "dome": (bowl(0.9, outside=True), lambda c: c / np.linalg.norm(c), {"x": 0.2, "y": 0.3}, {"z": 1.0}),
    "cylinder": (cylinder(0.8, "z"), around, {"x": 0.3, "z": 0.4}, {"y": -0.5}),
    "cone": (
        cone(0.6),
        lambda c: np.cos(0.6) * around(c) + [0.0, 0.0, np.sin(0.6)],
        {"x": 0.3, "y": 0.4},
        {"z": 1.0},
    ),
    "hill": (
        graph(lambda x, y: 0.3 * jnp.sin(x) * jnp.cos(0.7 * y) + 0.1 * x * x),
        foot,
        {"x": 0.3, "y": -0.4},
        {"z": 0.3},
    ),
}


@pytest.mark.thorough
@pytest.mark.parametrize("name", SURFACES)
def test_a_ball_rolls_on_a_curved_surface_by_newtons_and_eulers_equations(name):
    surface, normal, held, near = SURFACES[name]
    model = ball(surface)
    q, v = model.start(held, {"u": [1.3, -0.7, 0.9]}, near=near)
    W = spin_of(q, v)
    np.testing.assert_allclose(v[:3] + np.cross(W, -RADIUS * normal(q[:3])), 0, atol=1e-12)
    h = 1e-3
    dn = (
        sum(
            w * (normal(q[:3] + k * h * v[:3]) - normal(q[:3] - k * h * v[:3]))
            for k, w in ((1, 0.75), (2, -0.15), (3, 1 / 60))
        )
        / h
    )
    a, force = by_hand(normal(q[:3]), dn, W)
    found, multipliers = accelerations(model, q, v)
    np.testing.assert_allclose(found[:3], a, atol=1e-7 if name == "hill" else 1e-10)
    np.testing.assert_allclose(multipliers[2], normal(q[:3]) @ force, rtol=1e-7 if name == "hill" else 1e-10)


def test_a_ball_on_a_turntable_of_varying_speed_turns_with_it():
    """V' = k (rate e_z x V + rate' e_z x x), k = I / (I + m r^2)."""
    model = Model(gravity=GRAVITY)
    model.body("table", joint=revolute("z", angle=lambda t: 0.8 * t + 0.3 * jnp.sin(t)))
    model.body("ball", joint=free(), mass=MASS, inertia=INERTIA, shape=sphere(RADIUS))
    model.rolls_on("ball", plane(), of="table")
    t = 0.6
    rate, change = 0.8 + 0.3 * np.cos(t), -0.3 * np.sin(t)
    q, v = model.start({"x": 0.7, "y": -0.4}, {"u": [0.5, -0.9, 0.3]}, t=t)
    found, _ = accelerations(model, q, v, t)
    k = INERTIA / (INERTIA + MASS * RADIUS**2)
    turn = np.array([[0.0, -1.0], [1.0, 0.0]])
    np.testing.assert_allclose(found[:2], k * turn @ (rate * v[:2] + change * q[:2]), atol=1e-12)
    assert model.system().drift is not None
    assert abs(found[2]) < 1e-12


@pytest.mark.slow
def test_a_ball_on_a_tilting_plate_moves_by_newtons_and_eulers_equations():
    model = Model(gravity=GRAVITY)
    model.body("plate", joint=revolute("x", angle=lambda t: 0.4 * jnp.sin(1.3 * t)))
    model.body("ball", joint=free(), mass=MASS, inertia=INERTIA, shape=sphere(RADIUS))
    model.rolls_on("ball", plane(), of="plate")
    t = 0.5
    angle, rate, change = (
        0.4 * np.sin(1.3 * t),
        0.52 * np.cos(1.3 * t),
        -0.676 * np.sin(1.3 * t),
    )
    q, v = model.start({"x": 0.7, "y": -0.4}, {"u": [0.5, -0.9, 0.3]}, t=t)
    ex, n = np.array([1.0, 0.0, 0.0]), np.array([0.0, -np.sin(angle), np.cos(angle)])
    dn, point = rate * np.cross(ex, n), q[:3] - RADIUS * n
    W = spin_of(q, v)
    np.testing.assert_allclose(v[:3] - RADIUS * np.cross(W, n), rate * np.cross(ex, point), atol=1e-12)
    ground = change * np.cross(ex, point) + rate * np.cross(ex, v[:3] - RADIUS * dn)
    a, force = by_hand(n, dn, W, ground)
    found, multipliers = accelerations(model, q, v, t)
    np.testing.assert_allclose(found[:3], a, atol=1e-10)
    np.testing.assert_allclose(multipliers[2], n @ force, rtol=1e-10)
    run = simulate(model.system(), SemiImplicitDLA(), q, v, step_size=0.01, steps=200, t0=t)
    assert np.max(np.abs(run.holonomic_residual)) < 1e-13
    assert np.max(np.abs(run.constraint_residual)) < 1e-13


@pytest.mark.slow
def test_a_ball_in_a_vertical_cylinder_goes_up_and_down():
    """With sqrt(I / (I + m r^2)) of the rate at which it goes round: sqrt(2/7) if it is homogeneous."""
    model = Model(gravity=GRAVITY)
    model.body("ball", joint=free(), mass=1.0, inertia=0.4 * 0.1**2, shape=sphere(0.1))
    model.rolls_on("ball", cylinder(0.6, "z"))
    q, v = model.start({"x": 0.5, "y": 0.0, "z": 0.0}, {"y": 2.0, "z": 0.0, "u1": 0.0})
    rate = 2.0 / 0.5
    period = 2 * np.pi / (rate * np.sqrt(2 / 7))
    method = EnergyCollocation(stages=2)
    run = simulate(model.system(), method, q, v, step_size=period / 1000, steps=1000, save_every=500)
    assert abs(run.q[1, 2]) > 0.1
    np.testing.assert_allclose(run.q[2, 2], 0.0, atol=1e-8)


@functools.cache
def from_a_dome():
    model = ball(bowl(1.0, outside=True))
    return model, *model.start({"x": 0.3, "y": 0.0}, near={"z": 1.1})


@pytest.mark.slow
def test_a_ball_leaves_a_dome_where_its_normal_force_vanishes():
    """From rest at the angle b it leaves at the cosine 10/17 cos b if it is homogeneous; here for any I."""
    model, q, v = from_a_dome()
    run = simulate(model.system(), DiscreteGradient(), q, v, step_size=0.005, steps=200, save_every=10)
    with pytest.warns(LiftOff, match="the normal force of 'ball' is -.* at t = 0.85: there it lifts off"):
        force = model.reactions(run)["ball"]
    height = run.q[:, 2] / (1 + RADIUS)
    k = 2 * MASS * GRAVITY / (1 + INERTIA / (MASS * RADIUS**2))
    expected = MASS * GRAVITY * height - k * (height[0] - height)
    np.testing.assert_allclose(force.normal[1:], expected[1:], atol=1e-2)
    np.testing.assert_allclose(
        force.force, force.friction + force.normal[:, None] * run.q[:, :3] / (1 + RADIUS)
    )
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        early = simulate(model.system(), DiscreteGradient(), q, v, step_size=0.005, steps=20)
        assert np.all(model.reactions(early)["ball"].normal > 0)
