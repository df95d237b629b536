"""Energy, contacts, loops and rolling of models by `bodies` over many steps, and a rattleback's reversals."""

import functools

import bodies_bicycle as bicycle
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.integrate import solve_ivp

from noslip import Event, rotations, simulate
from noslip.bodies import Model, bowl, disk, ellipsoid, free, plane, revolute, sphere
from noslip.integrators import DiscreteGradient, EnergyCollocation, ReferenceFlow

SQUARES, OFFSET = np.array([0.2, 0.03, 0.02]) ** 2, np.array([0.0, 0.0, 0.01])
INERTIA = np.array([[2e-4, -2e-5, 0.0], [-2e-5, 1.6e-3, 0.0], [0.0, 0.0, 1.7e-3]])


@functools.cache
def rattleback():
    """Kane and Levinson's, spun the wrong way and tilted by half a degree."""
    model = Model(gravity=9.81)
    shape = ellipsoid((0.2, 0.03, 0.02), at=OFFSET)
    model.body("stone", joint=free(), mass=1.0, inertia=INERTIA, shape=shape)
    model.rolls_on("stone", plane())
    tilt = np.asarray(rotations.from_axis([1.0, 0.3, 0.2], np.radians(0.5)))
    return model, *model.start({"x": 0.0, "y": 0.0, "u": tilt}, {"u": [0.02, -0.01, -5.0]})


def coin():
    model = Model(gravity=9.81)
    model.body("coin", joint=free(), mass=1.7, inertia=(0.07, 0.136, 0.07), shape=disk(0.4, "y"))
    model.rolls_on("coin", plane())
    return model, *model.start({"u": [0.9, 0.3, -0.2, 0.1]}, {"u": [0.3, -4.0, 0.7]})


def four_bar():
    """In the plane of x and z, on hinges at 0 and 1; no two bars are alike."""
    model = Model(gravity=9.81)
    model.body("crank", joint=revolute("y"), mass=0.7, centre=(0.2, 0.0, 0.0), inertia=(0.01, 0.02, 0.02))
    arm = revolute("y", at=(0.4, 0.0, 0.0), own=(0.0, 0.0, 0.0))
    model.body("rod", on="crank", joint=arm, mass=0.9, centre=(0.5, 0.0, 0.1), inertia=(0.02, 0.05, 0.05))
    foot = revolute("y", at=(1.0, 0.0, 0.0), own=(0.0, 0.0, 0.0))
    model.body("rocker", joint=foot, mass=0.5, centre=(0.3, 0.0, 0.0), inertia=(0.01, 0.03, 0.03))
    model.loop(("rod", (0.9, 0.0, 0.0)), ("rocker", (0.7, 0.0, 0.0)))
    return model, *model.start({"crank": 0.8}, {"crank": 7.0}, near={"rod": -1.0, "rocker": -1.2})


def riding():
    model = bicycle.model()
    held = dict.fromkeys(("x", "y", "yaw", "roll", "rear", "steer", "front"), 0.0)
    return model, *model.start(held, {"x": 4.6, "roll": 0.5, "steer": 0.0})


def in_a_bowl():
    model = Model(gravity=9.81)
    model.body("ball", joint=free(), mass=1.3, inertia=(0.012, 0.02, 0.017), shape=sphere(0.2))
    model.rolls_on("ball", bowl(1.1))
    return model, *model.start({"x": 0.2, "y": -0.3}, {"u": [1.3, -0.7, 0.9]}, near={"z": -0.8})


RUNS = {
    "four_bar": (four_bar, DiscreteGradient(), 0.01),
    "coin": (coin, DiscreteGradient(), 0.005),
    "rattleback": (rattleback, DiscreteGradient(), 1e-3),
    "bicycle": (riding, DiscreteGradient(), 0.01),
    "bowl": (in_a_bowl, DiscreteGradient(), 0.01),
    "four_bar4": (four_bar, EnergyCollocation(stages=2), 0.01),
}


def kept(name, steps, save_every):
    made, method, h = RUNS[name]
    model, q, v = made()
    run = simulate(model.system(), method, q, v, step_size=h, steps=steps, save_every=save_every)
    assert np.max(np.abs(run.energy - run.energy[0])) < 1e-13 * run.energy_scale[0]
    assert np.max(np.abs(run.holonomic_residual)) < 1e-13
    assert np.max(np.abs(run.constraint_residual), initial=0.0) < 1e-13 * np.max(np.abs(run.v))
    assert np.max(np.abs(run.q[-1] - run.q[0])) > 0.1


def test_a_four_bar_linkage_keeps_its_energy_and_its_loop():
    kept("four_bar", 500, 10)


@pytest.mark.slow
@pytest.mark.parametrize("name", RUNS)
def test_energy_contacts_and_loops_are_kept_over_many_steps(name):
    kept(name, 100_000, 500)


def of_newton_and_euler(t, y):
    """v = a x w, force R = dv/dt + w x v + g gamma, J dw/dt + w x J w = a x R, dgamma/dt = gamma x w."""
    gamma, w = y[:3], y[3:]
    size = np.sqrt(SQUARES @ gamma**2)
    a, turn = OFFSET - SQUARES * gamma / size, np.cross(gamma, w)
    da = -SQUARES * turn / size + SQUARES * gamma * (SQUARES @ (gamma * turn)) / size**3
    known = np.cross(da, w) + np.cross(w, np.cross(a, w)) + 9.81 * gamma
    cross = np.cross(np.eye(3), a).T * -1.0  # cross @ x = a x x
    right = np.cross(a, known) - np.cross(w, INERTIA @ w)
    return np.concatenate([turn, np.linalg.solve(INERTIA - cross @ cross, right)])


def spin(q, v, p):
    return rotations.space_rates(q[3:], v[3:])[2]


@pytest.mark.slow
def test_a_rattleback_turns_round_when_newton_and_euler_say():
    model, q, v = rattleback()
    events = {"reversal": Event(spin, direction=1)}
    run = simulate(model.system(), ReferenceFlow(), q, v, step_size=0.1, t_end=8.0, events=events)
    gamma, w = rotations.matrix(q[3:])[2], rotations.body_rates(q[3:], v[3:])

    def reversal(t, y):
        return y[:3] @ y[3:]

    found = solve_ivp(
        of_newton_and_euler,
        (0, 8),
        np.asarray(jnp.concatenate([gamma, w])),
        events=reversal,
        method="DOP853",
        rtol=1e-13,
        atol=1e-14,
    )
    assert len(run.events["reversal"].t) == 1
    np.testing.assert_allclose(run.events["reversal"].t, found.t_events[0], rtol=0, atol=1e-8)
    assert run.v[0] @ run.v[0] > 0
